"""The console without its page: files and their headers, the events while requests run, who may see what."""

import gzip
import json
import re
import shutil
import signal
import socket
import subprocess

import pytest

import clients
import raw_http
import repositories
import servers
import tiers
from console_events import Events
from repositories import identity_config

FAILING = identity_config(max_batch_size=8) + 'parameters { key: "fail" value { string_value: "execute" } }\n'
WRONG = "max_batch_size: 8\nmax_batch_sise: 8\n"
FILES = {"/": "text/html; charset=utf-8", "/docs": "text/html; charset=utf-8", "/console/index.html": "text/html; charset=utf-8"}
RESTRICTED = "--http-restricted-api=model-repository:x-admin=sesame"
LOAD = "/v2/repository/models/identity/load"


def infer(server, model="identity", numbers=2, **more):
    tensor = {"name": "INPUT0", "shape": [1, numbers], "datatype": "FP32", "data": [1.0] * numbers}
    return clients.ask(server.http, "POST", f"/v2/models/{model}/infer", {"inputs": [tensor], **more})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    repositories.write_model(path, "identity", "galatea", "identity", identity_config(max_batch_size=8))
    repositories.write_model(path, "failing", "galatea", "failing", FAILING)
    repositories.write_model(path, "wrong", "galatea", "identity", WRONG)
    flags = ("--model-control-mode=explicit", "--load-model=*", "--exit-on-error=false")
    with servers.galatea(path, *flags) as running:
        running.repository = path
        yield running


def test_the_files_of_the_page_are_served(server):
    for path, kind in FILES.items():
        status, headers, body = clients.ask(server.http, "GET", path)
        assert (status, headers["Content-Type"]) == (200, kind) and b"<html" in body, path
        policy = headers["Content-Security-Policy"].split("; ")
        assert policy[0] == "default-src 'none'" and "frame-ancestors 'none'" in policy
        assert "script-src 'self'" in policy and "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        known = {"If-None-Match": headers["ETag"]}
        status, again, nothing = clients.ask(server.http, "GET", path, headers=known)
        assert (status, nothing, again["ETag"]) == (304, b"", headers["ETag"])
        status, packed, small = clients.ask(server.http, "GET", path, headers={"Accept-Encoding": "gzip, br"})
        assert packed["Content-Encoding"] == "gzip" and gzip.decompress(small) == body and packed["Vary"] == "accept-encoding"
        plain = clients.ask(server.http, "GET", path, headers={"Accept-Encoding": "gzip;q=0"})
        assert plain[2] == body and "Content-Encoding" not in plain[1]
        status, head, nothing = clients.ask(server.http, "HEAD", path)
        assert (status, nothing, head["Content-Length"]) == (200, b"", str(len(body)))
        assert clients.ask(server.http, "POST", path)[0] == 405
    assert b"<html" not in clients.ask(server.metrics, "GET", "/")[2], "the port of the metrics has none"
    for path in ("/console", "/console/", "/console/x.js", "/console/../Cargo.toml", "/console/%2e%2e/x", "/docs/"):
        assert clients.ask(server.http, "GET", path)[0] == 404, path
    assert clients.ask(server.http, "HEAD", "/console/events")[0] == 200
    assert clients.ask(server.http, "POST", "/console/events")[0] == 405


def test_all_files_referenced_by_the_page_exist(server):
    index = clients.ask(server.http, "GET", "/")[2].decode()
    for path in re.findall(r'(?:src|href)="([^"#:]+)"', index):
        assert not path.startswith("/"), f"{path}: behind a proxy's prefix only relative addresses work"
        if path.startswith("console/"):
            assert clients.ask(server.http, "GET", "/" + path)[0] == 200, path


def test_a_watcher_sees_requests_while_they_run(server):
    with Events(server) as events:
        assert events.next()[0] == "state"
        row = events.models["identity/1"]
        before = row["counts"]["success"]
        assert (row["state"], row["backend"], row["max_batch_size"]) == ("READY", "identity", 8)
        assert row["instances"] == {"all": 1, "working": 1} and events.server["state"] == "ready"
        assert events.server["memory"]["resident_bytes"] > 1 << 20
        assert 0 <= events.server["load"] < 1
        connections = events.server["connections"]
        assert 1 <= connections["open"] <= connections["limit"] and connections["refused"] == 0
        for _ in range(20):
            assert infer(server)[0] == 200
        assert infer(server, "failing", id="the-one")[0] == 500
        assert infer(server, "nothing", id="lost")[0] == 404
        events.until(lambda: row["counts"]["success"] == before + 20 and len(events.failures) >= 2, "the requests")
        latency = row["latency_ms"]
        assert latency["count"] == 20 and 0 < latency["p50"] <= latency["p90"] <= latency["p99"]
        assert [1, before + 20] in row["batch_sizes"] and row["ns"]["success"] > 0
        failed, unknown = events.failures[-2:]
        assert (failed["model"], failed["version"], failed["id"]) == ("failing", 1, "the-one")
        assert (failed["protocol"], failed["status"], failed["code"]) == ("http", 500, "Internal")
        assert failed["client"] == "127.0.0.1"
        assert failed["call"] == "POST /v2/models/failing/infer" and "told to fail" in failed["reason"]
        assert unknown["call"] == "POST /v2/models/nothing/infer" and "nothing" in unknown["reason"]
        assert events.models["failing/1"]["counts"]["failure"] >= 1
        events.until(lambda: row["rates"]["requests"] == 0, "the end of the requests")


def test_a_failing_model_has_no_batch_below_one_item(server):
    for _ in range(3):
        assert infer(server, "failing")[0] == 500
    with Events(server) as events:
        events.until(lambda: events.models.get("failing/1", {"counts": {}})["counts"].get("executions", 0) >= 3, "the executions")
        counts = events.models["failing/1"]["counts"]
        assert counts["inferences"] < 3 <= counts["executions"] <= counts["items"], counts


def test_a_later_watcher_gets_the_history(server):
    with Events(server) as events:
        events.next()
        before = {key: dict(events.models[key]["counts"]) for key in ("identity/1", "failing/1")}
        assert infer(server)[0] == 200 and infer(server, "failing")[0] == 500
        rows = events.models
        happened = lambda key, kind: rows[key]["counts"][kind] > before[key][kind]
        events.until(lambda: happened("identity/1", "success") and happened("failing/1", "failure"), "the requests")
    with Events(server) as events:
        history = events.next()[1]["history"]
        for key in before:
            points = history["models"][key]
            assert len(points) <= len(history["times_ms"]) == len(history["spans_ms"]) <= 181
            counts = events.models[key]["counts"]
            succeeded, failed = (sum(point[at] for point in points if point) for at in (0, 1))
            # A load begins the counters anew, and the history goes on.
            assert succeeded >= counts["success"] and failed >= counts["failure"], "nothing is lost"
            if key == "failing/1":
                assert (succeeded, failed) == (counts["success"], counts["failure"]), "nothing is told twice"
        assert sum(total[1] for total in history["total"]) >= 1 and history["total"][-1][4] > 1 << 20
        assert "history" not in events.next()[1], "a change brings none"


def test_the_server_reports_ports_options_runtimes_and_cpu(server):
    with Events(server) as events:
        about = events.next()[1]["about"]
        ports = {port["service"]: port["address"] for port in about["ports"]}
        assert ports["HTTPService"] == server.http.replace("127.0.0.1", ports["HTTPService"].split(":")[0])
        assert set(ports) == {"HTTPService", "GRPCInferenceService", "Metrics Service"}
        assert not any(port["is_encrypted"] for port in about["ports"])
        options = dict(about["options"])
        assert options["model_control_mode"] == "MODE_EXPLICIT" and options["model_repository_path[0]"] == str(server.repository)
        assert about["runtimes"]["identity"] == {"version": "", "path": "built-in"}
        cpu = events.server["cpu"]
        assert 0 <= cpu["utilization"] <= 1 and cpu["cores"] >= 1 and cpu["memory_used_bytes"] < cpu["memory_total_bytes"]
        assert "about" not in events.next()[1], "it is sent when it changes"


def test_a_later_watcher_gets_earlier_failures(server):
    infer(server, "failing", id="seen before")
    with Events(server) as events:
        events.until(lambda: any(f["id"] == "seen before" for f in events.failures), "the failure", 3)
        assert [f["sequence"] for f in events.failures] == sorted(f["sequence"] for f in events.failures)


def test_a_wrong_configuration_is_shown_with_its_line(server):
    with Events(server) as events:
        events.next()
        reason = events.models["wrong/-"]["reason"]
    assert events.models["wrong/-"]["state"] == "UNAVAILABLE"
    lines = reason.split("\n")
    number = next(n for n, line in enumerate(lines) if "max_batch_sise: 8" in line)
    assert lines[number].index("max_batch_sise") == lines[number + 1].index("^"), reason
    assert "did you mean `max_batch_size`?" in reason


def test_watchers_see_loads_and_unloads(server):
    with Events(server) as events:
        events.next()
        assert events.server["may_load"] is True
        row = events.models["identity/1"]
        assert clients.ask(server.http, "POST", "/v2/repository/models/identity/unload", {})[0] == 200
        events.until(lambda: row["state"] == "UNAVAILABLE", "the unload")
        assert row["reason"] == "unloaded"
        assert clients.ask(server.http, "POST", LOAD, {})[0] == 200
        events.until(lambda: row["state"] == "READY" and row["counts"]["success"] == 0, "the load")
        repositories.write_model(server.repository, "late", "galatea", "identity", identity_config())
        assert clients.ask(server.http, "POST", "/v2/repository/models/late/load", {})[0] == 200
        events.until(lambda: events.models.get("late/1", {}).get("state") == "READY", "the new model")
        assert events.models["late/1"]["counts"]["success"] == 0


def test_a_watched_model_can_be_unloaded(server):
    with Events(server) as events:
        events.next()
        assert clients.ask(server.http, "POST", "/v2/repository/models/identity/unload", {})[0] == 200
        server.wait_for_line("successfully unloaded 'identity'")
        assert clients.ask(server.http, "POST", LOAD, {})[0] == 200


def test_pages_of_other_sites_cannot_change_anything(server):
    calls = {LOAD: {}, "/v2/repository/models/identity/unload": {}, "/v2/logging": {"log_verbose_level": 0}}
    for path, body in calls.items():
        for site in ("cross-site", "same-site"):
            status, _, said = clients.ask(server.http, "POST", path, body, {"Sec-Fetch-Site": site})
            assert status == 403 and b"pages of other sites" in said, path
    assert clients.ask(server.http, "GET", "/v2/models/identity/ready")[0] == 200
    for site in ("same-origin", "none"):
        assert clients.ask(server.http, "POST", LOAD, {}, {"Sec-Fetch-Site": site})[0] == 200
    with Events(server, {"Sec-Fetch-Site": "cross-site"}) as events:
        assert events.status == 403
    assert infer(server)[0] == 200


def test_the_number_of_watchers_is_limited(server):
    watching = [Events(server) for _ in range(64)]
    try:
        assert {events.status for events in watching} == {200}
        with Events(server) as refused:
            assert refused.status == 503
            assert json.loads(refused.reply.read())["error"].startswith("64 consoles are open")
        assert infer(server)[0] == 200
        first = [events.next() for events in watching]
        assert {name for name, _ in first} == {"state"}
    finally:
        for events in watching:
            events.close()


def test_without_a_console_the_routes_do_not_exist(repository, serve):
    repository.add("identity", "identity", identity_config())
    server = serve(repository.path, "--console=false")
    status, headers, body = clients.ask(server.http, "GET", "/nowhere")
    assert status == 404
    for path in (*FILES, "/console/events", "/console/traces"):
        for method in ("GET", "POST", "HEAD"):
            said = clients.ask(server.http, method, path)
            assert said[0] == 404 and said[1].items() == headers.items(), path
            assert said[2] == (b"" if method == "HEAD" else body)
    document = json.loads(clients.ask(server.http, "GET", "/openapi.json")[2])
    assert "/" not in document["paths"] and "/v2/models/identity/infer" in document["paths"]
    assert "The console is at" not in server.text()


def test_restricted_information_is_not_shown(repository, serve):
    repository.add("identity", "identity", identity_config())
    server = serve(repository.path, RESTRICTED, "--http-restricted-api=statistics:x-stats=open")
    assert clients.ask(server.http, "GET", "/")[0] == 200
    keys = {"x-admin": "sesame", "x-stats": "open"}
    for missing in ("x-admin", "x-stats"):
        given = {name: value for name, value in keys.items() if name != missing}
        for headers in (given, {**given, missing: "wrong"}):
            status, _, said = clients.ask(server.http, "GET", "/console/events", headers=headers)
            assert status == 403 and f"expecting header '{missing}'".encode() in said
    assert clients.ask(server.http, "GET", "/openapi.json")[0] == 403
    assert clients.ask(server.http, "GET", "/openapi.json", headers=keys)[0] == 200
    with Events(server, keys) as events:
        events.next()
        assert events.server["restricted"] == ["model-repository", "statistics"]
        assert events.server["may_load"] is False and "--model-control-mode=explicit" in events.server["may_load_reason"]


def test_a_watcher_that_does_not_read_is_disconnected_and_blocks_nobody(server):
    host, port = server.http.rsplit(":", 1)
    deaf = raw_http.connect((host, int(port)), receive_buffer=2048)
    deaf.sendall(b"GET /console/events HTTP/1.1\r\nHost: x\r\n\r\n")
    with Events(server) as events:
        events.next()
        assert events.next()[0] == "change" and infer(server)[0] == 200
    deaf.shutdown(socket.SHUT_RDWR)
    deaf.close()


@pytest.fixture
def thousands(repository, serve):
    """A server with two thousand models, of which one is loaded."""
    for number in range(2000):
        repository.add(f"model_{number:04}", "identity", identity_config())
    # Whoever waits for its watchers waits longer than any test.
    return serve(repository.path, "--model-control-mode=explicit", "--load-model=model_0007", "--exit-timeout-secs=600")


def test_with_two_thousand_models_only_changes_are_sent(thousands):
    with Events(thousands) as events:
        assert events.next()[0] == "state"
        assert len(events.models) == 2000 and events.bytes < 500_000
        sizes = []
        for _ in range(3):
            assert infer(thousands, "model_0007")[0] in (200, 400)
            events.next()
            sizes.append(events.bytes)
        assert max(sizes) < 5_000, sizes
        assert events.models["model_0007/1"]["state"] == "READY"
        thousands.process.send_signal(signal.SIGTERM)
        seen = []
        while (event := events.next()) is not None:
            seen.append(event)
        assert seen[-1] == ("end", {"reason": "the server is about to exit"})
        assert thousands.wait_for_exit() == 0, "nobody waits for who watches"


@tiers.measure
def test_two_thousand_models_cost_little_cpu_time(thousands):
    with Events(thousands) as events:
        events.next()
        before = thousands.cpu_seconds()
        for _ in range(3):
            assert infer(thousands, "model_0007")[0] in (200, 400)
            events.next()
        assert thousands.cpu_seconds() - before < 1.0


def test_page_functions_pass_their_node_tests(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on this machine")
    shutil.copytree(servers.ROOT / "crates/front/console/page", tmp_path / "page")
    for test in (servers.ROOT / "tests/console").glob("*.test.mjs"):
        shutil.copy(test, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    run = subprocess.run([node, "--test"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout[-4000:]
