"""What the load tool has beyond perf_analyzer: summaries, pages, comparisons, confidence, latencies that a stalled
server cannot hide, progress on a terminal; and its answers to mistyped options."""

import json
import os
import pty
import re
import subprocess

import pytest

import clients
import perf_models
import perf_tool
import servers
import tiers

pytestmark = pytest.mark.skipif(perf_tool.STAND_IN, reason="the real tool has none of this")

QUICK = ["-p", "150", "-s", "1000000", "-r", "3"]


def run(server, folder, *args, url=None):
    args = [*QUICK, *map(str, args), "-u", url or (server.grpc if "grpc" in args else server.http)]
    return perf_tool.run(perf_tool.OURS, args, folder)


def measured(server, folder, *args):
    """(run, summary): the run with its summary in a file."""
    done = run(server, folder, *args, "--json", "summary.json")
    assert done.code == 0, done.err
    return done, json.loads(done.path("summary.json").read_text())


# --- summaries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line, mode, loads", [
    ("-m simple --concurrency-range 1:2", "concurrency", [1, 2]),
    ("-m simple -i grpc -b 4 --percentile 95", "concurrency", [1]),
    ("-m simple --request-rate-range 40:80:40", "request_rate", [40, 80]),
    ("-m outer -a --concurrency-range 2", "concurrency", [2]),
    ("-m repeat -i grpc -a --streaming --input-data {repeat}", "concurrency", [1]),
])
def test_the_summary_agrees_with_the_report(line, mode, loads, perf_servers, perf_data, tmp_path):
    args = line.format(**perf_data).split()
    done, summary = measured(perf_servers.get("galatea"), tmp_path, *args)
    assert summary["format"] == "galatea-perf/1"
    assert summary["command"].endswith(" ".join(done.args)) and summary["server_name"] == "triton"
    assert summary["model"] == args[1] and summary["protocol"] == ("grpc" if "grpc" in args else "http")
    assert summary["batch_size"] == (4 if "-b" in args else 1)
    assert summary.get("percentile") == (95 if "--percentile" in args else None)
    assert [(point["mode"], point["value"]) for point in summary["points"]] == [(mode, load) for load in loads]
    assert [warning for warning in summary["warnings"] if warning not in done.out + done.err] == []
    for point, reported in zip(summary["points"], done.report()["points"], strict=True):
        same_figures(point, reported)
        confident(point)
        assert set(composing(point["server"])) == set(reported["models"])
        assert ("scheduled_latency" in point) == (mode == "request_rate")
        assert ("response_throughput" in point) == ("repeat" in args)


def test_an_unstable_measurement_is_reported_and_marked(perf_servers, tmp_path):
    """Exit code and words are those of perf_analyzer, which reports nothing more."""
    args = ["-m", "simple", "-s", "0.000001", "-r", "5", "-f", "report.csv", "--json", "summary.json"]
    done = run(perf_servers.get("galatea"), tmp_path, *args)
    assert done.code == 2 and "Failed to obtain stable measurement" in done.err
    assert "\n  Unstable windows:\n    throughput: " in done.out
    listed = re.findall(r"^    throughput: (\S+) infer/sec, latency (\d+) usec( \(merged\))?$", done.out, re.MULTILINE)
    (reported,) = done.report()["points"]
    (point,) = json.loads(done.path("summary.json").read_text())["points"]
    assert point["unstable"] is True and len(point["windows"]) == 3
    why = point["instability"]
    assert f"\n  Unstable because {why['reason']}\n" in done.out
    assert why["allowed_percent"] == pytest.approx(1e-6) and why["throughput_percent"] > 1e-6
    assert [trial["merged"] for trial in why["trials"]] == [False, False, True, True, True]
    assert [bool(mark) for *_, mark in listed] == [trial["merged"] for trial in why["trials"]]
    assert [int(latency) for _, latency, _ in listed] == [int(trial["latency_us"]) for trial in why["trials"]]
    merged = [{"throughput": trial["throughput"], "latency_us": trial["latency_us"]} for trial in why["trials"][2:]]
    assert merged == point["windows"]
    same_figures(point, reported)
    columns, rows = done.csv()
    assert columns[-1] == "Stable" and [row["Stable"] for row in rows] == ["0"]


def same_figures(point, reported):
    """The report's numbers are the summary's, rounded or cut off."""
    client, server = reported["client"], reported["server"]
    latency, counted = point["latency"], point["server"]
    assert client["Request count"] == [point["request_count"]]
    # Two decimals after a warning of late requests.
    assert client["Throughput"] == [pytest.approx(point["throughput"], rel=1e-4, abs=0.0051)]
    for n in ("50", "90", "95", "99"):
        assert client[f"p{n} latency"] == [int(latency["percentiles_us"][n])]
    if "Avg latency" in client:
        assert client["Avg latency"] == [int(latency["avg_us"]), int(latency["std_us"])]
    counts = [counted[name] for name in ("inference_count", "execution_count", "success_count")]
    assert [server[f"{name} count"][0] for name in ("Inference", "Execution", "Successful request")] == counts
    assert server["Avg request latency"][0] == int(counted["request_us"])
    ordered = [latency["min_us"], *(latency["percentiles_us"][n] for n in ("50", "90", "95", "99", "99.9")), latency["max_us"]]
    assert ordered == sorted(ordered) and latency["min_us"] <= latency["avg_us"] <= latency["max_us"]
    assert 0 < point["tool_cpu_us_per_request"]


def composing(server):
    """Names of the models below, steps of steps too."""
    for step in server["composing"]:
        yield step["model"]
        yield from composing(step)


def confident(point):
    """Three windows give an interval that the merged figure is likely, and the mean of the windows sure to be in."""
    windows = point["windows"]
    assert len(windows) == 3
    for interval, name in (("throughput_ci95", "throughput"), ("latency_ci95", "latency_us")):
        low, high = point[interval]
        assert 0 <= low < high
        assert low <= sum(window[name] for window in windows) / 3 <= high


def test_the_summary_can_go_to_stdout(perf_servers, tmp_path):
    """stdout holds only the summary; the report goes to stderr."""
    done = run(perf_servers.get("galatea"), tmp_path, "-m", "simple", "--json", "-")
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    reported = perf_tool.parse_report(done.err)
    assert [point["load"] for point in reported["points"]] == ["Request concurrency: 1"]
    same_figures(summary["points"][0], reported["points"][0])


def test_a_single_window_has_no_interval(perf_servers, tmp_path):
    _, summary = measured(perf_servers.get("galatea"), tmp_path, "-m", "simple", "--request-count", "20")
    point, = summary["points"]
    assert point["request_count"] == 20 and len(point["windows"]) == 1
    assert "throughput_ci95" not in point and "latency_ci95" not in point


def test_a_summary_that_cannot_be_written_is_an_error(perf_servers, tmp_path):
    done = run(perf_servers.get("galatea"), tmp_path, "-m", "simple", "--json", "no/such/folder.json")
    assert done.code == 99 and "no/such/folder.json" in done.err
    assert done.report()["points"], "the report is there all the same"


# --- pages -------------------------------------------------------------------------------------------------------


def runs_of(page):
    """The runs that a page carries; tests/python/test_perf_report.py looks at what it draws of them."""
    return json.loads(re.search(r'<script id="runs-data" type="application/json">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_compares_runs(perf_servers, tmp_path):
    server = perf_servers.get("galatea")
    _, first = measured(server, tmp_path, "-m", "simple", "--label", "before the change")
    assert first["label"] == "before the change"
    _, unnamed = measured(server, tmp_path / "unnamed", "-m", "plain")
    assert unnamed["label"].startswith("galatea ")
    done = run(server, tmp_path, "-m", "simple", "--concurrency-range", "1:2", "--label", "<after> & co", "--html", "page.html",
               "--compare", "summary.json", "--compare", tmp_path / "unnamed/summary.json")
    assert done.code == 0, done.err
    page = done.path("page.html").read_text()
    assert [one["label"] for one in runs_of(page)] == ["<after> & co", "before the change", unnamed["label"]]
    # One file: nothing is fetched.
    assert not re.search(r"(src|href)=\"(?!#)|url\((?!#)|@import", page)


def test_the_page_shows_a_single_run(perf_servers, tmp_path):
    done = run(perf_servers.get("galatea"), tmp_path, "-m", "simple", "--html", "page.html")
    assert done.code == 0, done.err
    assert [len(one["points"]) for one in runs_of(done.path("page.html").read_text())] == [1]


BROKEN = {
    "text.json": "no JSON",
    "list.json": "[]",
    "other.json": '{"experiments": []}',
    "cut.json": '{"format": "galatea-perf/1", "command": "x"',
    "future.json": None,
}


@pytest.mark.parametrize("name", [*BROKEN, "missing.json"])
def test_broken_summaries_are_refused(name, perf_servers, tmp_path):
    """The tool names the file before it sends any load."""
    server = perf_servers.get("galatea")
    if name == "future.json":
        _, summary = measured(server, tmp_path, "-m", "simple", "--request-count", "5")
        BROKEN[name] = json.dumps({**summary, "format": "galatea-perf/999"})
    if name in BROKEN:
        (tmp_path / name).write_text(BROKEN[name])
    before = clients.counts(server, "simple")["success"]
    done = run(server, tmp_path, "-m", "simple", "--html", "page.html", "--compare", name)
    assert done.code == 3 and f"'{name}'" in done.err and "--compare" in done.err, done.err
    assert not done.path("page.html").exists()
    assert clients.counts(server, "simple")["success"] == before


# --- latencies ---------------------------------------------------------------------------------------------------


@tiers.measure
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_stalls_show_in_scheduled_latencies(protocol, perf_servers, tmp_path):
    """The model stops for 0.3 s once a second. Only one request in progress was slow; 60 more could not be sent in time."""
    rate = perf_models.STALL_EVERY
    _, summary = measured(
        perf_servers.get("galatea"), tmp_path, "-m", "stalling", "-i", protocol, "--request-rate-range", rate, "--max-threads", "1",
        "-p", "900")
    point, = summary["points"]
    stall_us = perf_models.STALL_SECONDS * 1e6
    sent, scheduled = point["latency"]["percentiles_us"], point["scheduled_latency"]["percentiles_us"]
    assert scheduled["99"] > stall_us / 2
    assert sent["99"] < scheduled["99"] / 3
    assert sent["99.9"] >= stall_us
    assert point["delayed_request_count"] > point["request_count"] / 10
    # 30 % of the time is stalled, so that many requests were late.
    assert scheduled["90"] > 10 * sent["90"]


@tiers.measure
def test_a_saturated_tool_is_reported(perf_servers, tmp_path):
    """Requests of 4 MB for a model that does nothing with them: the tool is busy with sending."""
    args = ["-m", "dynamic", "--shape", "INPUT0:1000000", "--concurrency-range", "4"]
    done, summary = measured(perf_servers.get("galatea"), tmp_path, *args)
    assert "[WARNING] Perf Analyzer is not able to keep up with the desired load." in done.out
    found = re.search(r"The tool's own threads were busy for (\d+)% of the time, .* use --async", done.err)
    point, = summary["points"]
    assert int(found[1]) == round(point["overhead_percent"]) > 50
    assert any(found[0] in warning for warning in summary["warnings"])


# --- terminals ---------------------------------------------------------------------------------------------------


def on_terminal(args, folder):
    """What a terminal that is stdout and stderr of the tool is sent."""
    near, far = pty.openpty()
    command, env = perf_tool.command_of(perf_tool.OURS)
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen([*command, *args], env={**os.environ, **env}, cwd=folder, stdin=far, stdout=far, stderr=far)
    os.close(far)
    pieces = []
    try:
        while piece := os.read(near, 1 << 16):
            pieces.append(piece)
    except OSError:
        pass  # The other side is closed: Linux reports that as an error.
    os.close(near)
    assert process.wait(60) == 0
    return b"".join(pieces).decode()


def test_a_terminal_shows_the_progress(perf_servers, tmp_path):
    server = perf_servers.get("galatea")
    args = ["-m", "simple", *QUICK, "-u", server.http]
    shown = on_terminal(args, tmp_path / "terminal")
    progress = re.findall(r"\r\x1b\[2K(Concurrency 1, window \d: \d\.\d of 0\.2 s, \d+ requests/s)", shown)
    assert len(progress) >= 3 and len({line.split(":")[0] for line in progress}) == 3
    # What stays on the terminal is the report that a file gets.
    left = "\n".join(line.rpartition("\r\x1b[2K")[2] for line in shown.replace("\r\n", "\n").split("\n"))
    done = perf_tool.run(perf_tool.OURS, args, tmp_path / "file")
    assert perf_tool.layout(left) == perf_tool.layout(done.out)
    assert "\x1b" not in done.out + done.err and "window" not in done.err


# --- names and addresses -----------------------------------------------------------------------------------------


@pytest.fixture
def link(tmp_path):
    link = tmp_path / "perf_analyzer"
    link.symlink_to(perf_tool.program(perf_tool.OURS))
    return link


@pytest.mark.parametrize("name", ["perf_analyzer", "galatea perf"])
def test_help_names_the_program_as_it_was_started(name, link, tmp_path):
    command = [link] if name == "perf_analyzer" else None
    shown = perf_tool.run(perf_tool.OURS, ["--help"], tmp_path / "help", command=command)
    assert shown.code == 0 and shown.out.startswith(f"Usage: {name} -m <model> [options]\n") and not shown.err
    wrong = perf_tool.run(perf_tool.OURS, ["--nope", "-m", "simple"], tmp_path / "wrong", command=command)
    assert wrong.code == 3
    assert f"{name}: unrecognized option '--nope'" in wrong.err
    assert f"Try '{name} --help'" in wrong.err


ODD = [
    ("http", "18000", "localhost:18000"),
    ("grpc", "18001", "localhost:18001"),
    ("grpc", "http://localhost:8001", "port is the one for gRPC"),
    ("grpc", "https://localhost:8001", "--ssl-grpc-use-ssl true"),
    ("http", "grpc://localhost:8001", "-i grpc"),
    ("http", "ftp://localhost", "ftp"),
    ("http", "/tmp/triton.sock", "unix:/tmp/triton.sock"),
    ("grpc", "unix://host/triton.sock", "no host"),
    ("http", "localhost:http", "'http' is not a port"),
    ("http", "localhost:80000", "65535"),
    ("http", "::1:8000", "brackets"),
    ("http", "localhost:8000,localhost:8001", "one server"),
    ("grpc", "localhost:8001/v2", "no path"),
]


@pytest.mark.parametrize("protocol, url, reason", ODD)
def test_invalid_addresses_are_refused(protocol, url, reason, tmp_path):
    done = run(None, tmp_path, "-m", "simple", "-i", protocol, url=url)
    assert done.code == 3 and not done.out
    assert f"cannot use the URL '{url}' (-u): " in done.err and reason in done.err


@pytest.mark.parametrize("protocol, form", [("http", "{}/"), ("http", "http://{}"), ("http", "HTTP://{}/"), ("grpc", "{}/"), ("grpc", "grpc://{}")])
def test_every_address_form_is_accepted(protocol, form, perf_servers, tmp_path):
    server = perf_servers.get("galatea")
    url = form.format(server.grpc if protocol == "grpc" else server.http)
    done = run(server, tmp_path, "-m", "simple", "-i", protocol, "--request-count", "3", url=url)
    assert done.code == 0, done.err


# --- trace settings ----------------------------------------------------------------------------------------------

TRACE = ["--trace-level", "TIMESTAMPS", "--trace-rate", "7", "--trace-count", "5", "--log-frequency", "2"]
ASKED = {"trace_level": ["TIMESTAMPS"], "trace_rate": "7", "trace_count": "5", "log_frequency": "2"}


@pytest.fixture(scope="module")
def tracing(tmp_path_factory):
    """A real Triton that may write traces; the others have no file for them."""
    repository = tmp_path_factory.mktemp("traced")
    perf_models.add_pair(repository, "simple", "triton", "")
    file = tmp_path_factory.mktemp("traces") / "trace.json"
    with servers.triton(repository, f"--trace-config=triton,file={file}") as server:
        yield server


def settings_of(server):
    return json.loads(clients.ask(server.http, "GET", "/v2/trace/setting")[2])


@tiers.peers
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_trace_settings_reach_the_server(protocol, tracing, tmp_path):
    """The tool sets them for the whole server like perf_analyzer; the report is the same."""
    reports = {}
    tools = [perf_tool.OURS, perf_tool.REAL] if servers.has_perf_analyzer() else [perf_tool.OURS]
    for tool in tools:
        off = {"trace_level": ["OFF"], "trace_rate": "1000", "trace_count": "-1", "log_frequency": "0"}
        assert clients.ask(tracing.http, "POST", "/v2/trace/setting", off)[0] == 200
        url = tracing.grpc if protocol == "grpc" else tracing.http
        done = perf_tool.run(tool, ["-m", "simple", "-i", protocol, "-u", url, *QUICK, *TRACE], tmp_path / tool)
        assert done.code == 0, done.err
        found = settings_of(tracing)
        # Each trace counts down.
        assert 0 <= int(found.pop("trace_count")) <= 5
        assert {name: found[name] for name in ASKED if name != "trace_count"} == {name: ASKED[name] for name in ASKED if name != "trace_count"}
        reports[tool] = perf_tool.layout(done.out)
    assert len({tuple(report) for report in reports.values()}) == 1


@tiers.peers
def test_omitted_trace_settings_are_not_changed(tracing, tmp_path):
    wanted = {"trace_level": ["OFF"], "trace_rate": "123", "trace_count": "-1", "log_frequency": "0"}
    assert clients.ask(tracing.http, "POST", "/v2/trace/setting", wanted)[0] == 200
    done = run(tracing, tmp_path, "-m", "simple", "--request-count", "3", "--trace-count", "9")
    assert done.code == 0, done.err
    found = settings_of(tracing)
    assert (found["trace_rate"], found["trace_level"], found["trace_count"]) == ("123", ["OFF"], "9")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("target", ["galatea", pytest.param("triton", marks=tiers.peers)])
def test_refused_trace_settings_are_an_error(target, protocol, perf_servers, tmp_path):
    done = run(perf_servers.get(target), tmp_path, "-m", "simple", "-i", protocol, *TRACE)
    assert done.code == 99 and not done.report()["points"]
    assert done.err.startswith("error: failed to create triton client backend: ") and "trace file name is not given" in done.err
