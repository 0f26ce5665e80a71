"""The load tool against real servers: the command lines of the seed documents, exact counts, sequences, what goes
over the wire, interruption, and the same figures as the real tool."""

import http.server
import re
import shlex
import signal
import subprocess
import threading

import pytest
from google.protobuf import json_format

import clients
import perf_models
import perf_tool
import perf_wire
import region_calls
import servers
import tiers
import waiting

QUICK = ["-p", "150", "-s", "1000000", "-r", "3"]


# --- the seed documents ------------------------------------------------------------------------------------------

BLIP = "--shape pixel_values:3,384,384 --shape input_ids:16 --shape attention_mask:16"
FLAIR = "flair-ner-english-fast-ensemble"
# (command line as documented, requests in flight it visits); only host and length of the windows are added. Lines that
# differ in the name of the model alone, and those that load long, are in the tier peers.
SEEDS = [
    ("perf_analyzer -m simple", [1]),
    (f"perf_analyzer -m base_model_cpu --concurrency-range 1:4:1 {BLIP}", [1, 2, 3, 4]),
    pytest.param(f"perf_analyzer -m base_model_gpu --concurrency-range 1:8:1 {BLIP}", list(range(1, 9)), marks=tiers.peers),
    pytest.param(f"perf_analyzer -m base_model_multi_gpu --concurrency-range 1:4:1 {BLIP}", [1, 2, 3, 4], marks=tiers.peers),
    pytest.param(f"perf_analyzer -m trt_model --concurrency-range 1:4:1 {BLIP}", [1, 2, 3, 4], marks=tiers.peers),
    (f"perf_analyzer -m {FLAIR} --async --percentile=95 --concurrency-range 4 --input-data {{sentence}} "
     "--shape sentence_bytes:70 -i grpc --measurement-interval 30000 -v", [4]),
    ('perf_analyzer -m ner-english-fast -a --string-data "George Washington went to Washington" --shape INPUT_0:1 '
     "--percentile 95 --request-distribution constant --max-threads 32 --concurrency-range 32:64:16 -b 32 "
     "--percentile=99", [32, 48, 64]),
    ("perf_analyzer -m simple -b 2 --concurrency_range 1:2 -i grpc -p 5000", [1, 2]),
]


@pytest.mark.parametrize("line, visited", SEEDS, ids=lambda value: str(value)[:60])
def test_command_lines_of_the_seeds_work(line, visited, perf_servers, perf_data, tmp_path):
    if perf_tool.STAND_IN and "_range" in line:
        pytest.skip("the real tool does not know this spelling")
    server = perf_servers.get("galatea")
    name, *args = shlex.split(line.format(**perf_data))
    link = tmp_path / name
    link.symlink_to(perf_tool.program(perf_tool.OURS))
    args += ["-u", server.grpc if "grpc" in args else server.http, *QUICK]
    run = perf_tool.run(perf_tool.OURS, args, tmp_path / "run", command=[link])
    assert run.code == 0, run.out + run.err
    points = run.report()["points"]
    assert [point["load"] for point in points] == [f"Request concurrency: {n}" for n in visited]
    for point in points:
        plausible(point, batch=int((args[args.index("-b") + 1]) if "-b" in args else 1))
    assert len(run.report()["footer"]) == len(visited)
    if FLAIR in line:
        assert set(points[0]["models"]) == {f"flair-ner-english-fast{part}" for part in ("", "-tokenization", "-viterbi-decoder")}
        assert len(points[0]["passes"]) == 3


def plausible(point, batch):
    """The figures of a point agree with each other and with what the server counted."""
    client, server = point["client"], point["server"]
    ordered = [client[f"p{n} latency"][0] for n in (50, 90, 95, 99)]
    assert 0 < ordered[0] and ordered == sorted(ordered)
    assert client["Throughput"][0] > 0
    # The server is asked after the window has ended, and counts what was answered until then.
    assert server["Successful request count"][0] > 0
    assert server["Inference count"][0] == server["Successful request count"][0] * batch


# --- exact counts ------------------------------------------------------------------------------------------------

COUNTS = [
    "-m simple --request-count 37",
    "-m simple -i grpc --request-count 37",
    "-m simple -a --concurrency-range 4 --request-count 101",
    "-m simple -i grpc -a --streaming --concurrency-range 3 --request-count 50",
    "-m simple --concurrency-range 4 --request-count 40 --warmup-request-count 12",
    "-m simple -b 2 --request-count 20",
    "-m simple --request-rate-range 50 --request-count 60",
    "-m repeat -i grpc -a --streaming --input-data {repeat} --request-count 9",
]


@pytest.mark.parametrize("line", COUNTS)
@tiers.both
def test_the_request_count_is_exact(line, target, perf_servers, perf_data, tmp_path):
    server, args = perf_servers.get(target), shlex.split(line.format(**perf_data))
    model = args[1]
    before = clients.counts(server, model)
    run = perf_tool.run(perf_tool.OURS, [*args, "-u", server.grpc if "grpc" in args else server.http], tmp_path)
    after = clients.counts(server, model)
    assert run.code == 0, run.err
    asked = int(args[args.index("--request-count") + 1])
    warm_up = int(args[args.index("--warmup-request-count") + 1]) if "--warmup-request-count" in args else 0
    # A decoupled request that sent its replies counts once, however many they are.
    assert after["success"] - before["success"] == asked + warm_up
    assert after["fail"] == before["fail"]
    assert run.report()["points"][-1]["client"]["Request count"] == [asked]


# --- sequences ---------------------------------------------------------------------------------------------------

SEQUENCES = [
    ("oldest", "--sequence-length 5 --concurrency-range 3", range(4, 7), 3),
    ("direct", "--sequence-length 5 -a --concurrency-range 3", range(4, 7), 3),
    ("direct", "--sequence-length 5 --sync --concurrency-range 2", range(4, 7), 2),
    ("oldest", "--sequence-length 10 -i grpc -a --streaming --concurrency-range 2", range(8, 13), 2),
    ("direct", "--sequence-length 6 --sequence-length-variation 0 -i grpc", [6], 1),
    ("oldest", "--sequence-length 5 --request-rate-range 100 --num-of-sequences 3", range(4, 7), 3),
    ("direct", "--sequence-length 5 --request-rate-range 100 --num-of-sequences 2 --serial-sequences -i grpc", range(4, 7), 2),
    ("direct", "--sequence-length 5 --sequence-id-range 100:110 --concurrency-range 2", range(4, 7), 2),
    ("oldest", "", range(16, 25), 1),
]


def steps_of(server, model, run):
    """What the model saw while `run` ran: (id, start, end, value) for every step."""
    log = perf_models.sequence_log(server.repository, model)
    skip = log.stat().st_size
    done = run()
    with log.open() as file:
        file.seek(skip)
        return done, [tuple(map(int, line.split())) for line in file]


def sequences(steps):
    """(id and values of each sequence that ended, how many were open at once at most, those left open)."""
    done, running, most = [], {}, 0
    for which, start, end, value in steps:
        assert start == (which not in running), f"sequence {which} begins wrongly"
        running.setdefault(which, []).append(value)
        most = max(most, len(running))
        if end:
            done.append((which, running.pop(which)))
    return done, most, running


@tiers.both
@pytest.mark.parametrize("tool", perf_tool.BOTH)
@pytest.mark.parametrize("strategy, line, lengths, at_once", SEQUENCES, ids=lambda value: str(value)[:70])
def test_sequences_have_start_end_length_and_id(target, tool, strategy, line, lengths, at_once, perf_servers, tmp_path):
    """Every sequence starts, ends, has the requested length and its own id."""
    server, model, more = perf_servers.get(target), f"sequence_{strategy}", shlex.split(line)
    failed = clients.counts(server, model)["fail"]
    args = ["-m", model, *more, "-u", server.grpc if "grpc" in more else server.http, *QUICK]
    run, steps = steps_of(server, model, lambda: perf_tool.run(tool, args, tmp_path))
    assert run.code == 0, run.err
    assert clients.counts(server, model)["fail"] == failed
    done, most, left = sequences(steps)
    # At a fixed rate the real tool sometimes leaves one behind.
    assert not left or tool == perf_tool.REAL
    ids = [which for which, _ in done] + list(left)
    assert most <= at_once
    # The last ones were cut short: ended early when the tool stopped.
    assert {len(values) for _, values in done[:-at_once]} <= set(lengths)
    if "--sequence-id-range" in more:
        assert set(ids) == set(range(100, 110))
    else:
        assert sorted(ids) == list(range(1, len(ids) + 1))


@tiers.both
@pytest.mark.parametrize("tool", perf_tool.BOTH)
def test_each_sequence_is_one_stream_of_the_data(target, tool, perf_servers, perf_data, tmp_path):
    """Each sequence is one stream of the data in order; the stream is random."""
    server, model = perf_servers.get(target), "sequence_direct"
    args = ["-m", model, "--input-data", perf_data["steps"], "-u", server.http, *QUICK]
    run, steps = steps_of(server, model, lambda: perf_tool.run(tool, args, tmp_path))
    assert run.code == 0, run.err
    streams = [values for _, values in sequences(steps)[0]][:-1]
    assert set(map(tuple, streams)) == {(1, 2, 3), (10, 20)}


# --- the wire ----------------------------------------------------------------------------------------------------

ON_THE_WIRE = [
    ("http", "-m simple --request-count 3 --input-data {many}"),
    ("http", "-m simple --request-count 3"),
    ("http", "-m simple --request-count 3 --input-data zero -b 2"),
    ("http", "-m simple --request-count 3 --input-data {many} --input-tensor-format json --output-tensor-format json"),
    ("http", "-m bytes --request-count 2 --input-tensor-format json --output-tensor-format json --string-data words"),
    ("http", "-m bytes --request-count 2 --string-data words"),
    ("http", "-m dynamic --request-count 4 --input-data {shapes}"),
    ("http", "-m simple --request-count 2 -H X-Test:1 -H Other:two"),
    ("http", "-m simple -x 1 --request-count 2"),
    ("http", "-m sequence_direct --request-count 10 --sequence-length 5 --sequence-length-variation 0"),
    ("http", "-m simple --request-count 2 --shared-memory system"),
    ("grpc", "-m simple --request-count 3 --input-data {many}"),
    ("grpc", "-m bytes --request-count 2 --string-data words"),
    ("grpc", "-m simple --request-count 3 -a --streaming"),
    ("grpc", "-m sequence_oldest --request-count 10 --sequence-length 5 --sequence-length-variation 0"),
    ("grpc", "-m sequence_oldest --request-count 10 -a --streaming --sequence-length 5 --sequence-length-variation 0"),
    ("grpc", "-m repeat --request-count 3 -a --streaming --input-data {repeat}"),
    ("grpc", "-m simple --request-count 2 --request-parameter a:5:int --request-parameter b:true:bool --request-parameter c:x:string"),
    ("grpc", "-m simple --request-count 2 --shared-memory system"),
]


def on_the_wire():
    """Ours with our server in the tier commit. With regions the real tool also meets our server."""
    for protocol, line in ON_THE_WIRE:
        if "--shared-memory" in line:
            yield pytest.param(protocol, line, "real_on_galatea", id=f"{protocol}-{line}-triton-galatea", marks=tiers.peers)
        yield pytest.param(protocol, line, "triton", id=f"{protocol}-{line}-triton", marks=tiers.peers)
        yield pytest.param(protocol, line, "galatea", id=f"{protocol}-{line}-galatea")


@pytest.mark.parametrize("protocol, line, target", list(on_the_wire()))
def test_requests_on_the_wire_equal_perf_analyzers(protocol, line, target, perf_servers, perf_data, recorded, tmp_path):
    """Our tool sends our server the inference requests that the real tool sends the real server. Not compared: numbers of
    requests (ours has them where replies need them, on streams), what random data is, and names of shared memory (ours
    differ from run to run, so that two tools do not meet)."""
    chosen = any(word in line for word in ("--input-data", "--string-data", "--shared-memory"))
    server = perf_servers.get("triton" if target == "triton" else "galatea")
    proxy = perf_wire.start(protocol, server)
    args = [*shlex.split(line.format(**perf_data)), "-i", protocol, "-u", proxy.address]
    run = perf_tool.run(perf_tool.OURS if target == "galatea" else perf_tool.REAL, args, tmp_path)
    proxy.close()
    assert run.code == 0, run.out + run.err
    assert region_calls.call(server, "status") == (200, "[]"), "every region is unregistered"
    requests = http_requests(proxy, chosen) if protocol == "http" else grpc_requests(proxy, chosen)
    assert requests
    recorded.holds(target, requests)


def http_requests(proxy, chosen):
    """Path, headers that matter, JSON part and binary part of every inference."""
    found = []
    for line, headers, body in (request for connection in proxy.connections for request in connection):
        path = line.split(" ")[1]
        if not path.endswith("/infer"):
            continue
        head, tail = perf_wire.parts_of((line, headers, body))
        # Without a binary part the real tool still calls some bodies binary.
        wanted = ("content-type", "x-test", "other") if tail else ("x-test", "other")
        kept = {name: headers[name] for name in wanted if name in headers}
        head.pop("id", None)
        for tensor in head["inputs"] + head["outputs"]:
            hide_region(tensor.get("parameters", {}))
        found.append((path, kept, head, tail.hex() if chosen else len(tail)))
    return found


def hide_region(parameters):
    if "shared_memory_region" in parameters:
        parameters["shared_memory_region"] = "region"


def grpc_requests(proxy, chosen):
    messages = []
    for name in ("ModelInfer", "ModelStreamInfer"):
        ids = [message.id for message in proxy.messages(name)]
        assert name == "ModelInfer" or ("" not in ids and len(set(ids)) == len(ids))
        messages += proxy.messages(name)
    for message in messages:
        message.id = ""
        for tensor in (*message.inputs, *message.outputs):
            if "shared_memory_region" in tensor.parameters:
                tensor.parameters["shared_memory_region"].string_param = "region"
        if not chosen:
            message.raw_input_contents[:] = [b"\0" * len(raw) for raw in message.raw_input_contents]
    return [json_format.MessageToDict(message, preserving_proto_field_name=True) for message in messages]


@pytest.mark.parametrize("tool", perf_tool.BOTH)
@pytest.mark.parametrize("protocol, limit", [("http", 6), ("grpc", 2)])
def test_http_uses_a_connection_per_request_and_grpc_shares_them(tool, protocol, limit, perf_servers, tmp_path):
    """HTTP uses a connection for every request in progress; over gRPC up to six share one."""
    proxy = perf_wire.start(protocol, perf_servers.get("galatea"))
    args = ["-m", "slow", "-i", protocol, "-u", proxy.address, "--concurrency-range", "6", "--request-count", "24"]
    run = perf_tool.run(tool, args, tmp_path)
    proxy.close()
    assert run.code == 0, run.err
    if protocol == "http":
        used = [c for c in proxy.connections if any("/infer" in request[0] for request in c)]
        assert sum(map(len, used)) == 24
        assert len(used) <= limit
    else:
        assert len({call[2][0] for call in proxy.calls if call[0] == "ModelInfer"}) <= limit


# --- interruption ------------------------------------------------------------------------------------------------


def interrupted(tool, server, folder, times):
    """Runs a long measurement and interrupts it when the load has begun, and again while a request is held; (exit status, lines)."""
    args = ["-m", "gated", "-u", server.http, "-p", "1000", "-s", "1000000", "-r", "3"]
    command, env = perf_tool.command_of(tool)
    model = server.repository / "gated/1"
    process = subprocess.Popen([str(part) for part in [*command, *args]], env={**servers.os.environ, **env}, cwd=folder,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    try:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith("Request concurrency"):
                answered = clients.counts(server, "gated")["success"]
                waiting.eventually("the load has begun", lambda: clients.counts(server, "gated")["success"] > answered)
                if times > 1:
                    (model / "closed").touch()
                    waiting.eventually("a request is held", (model / "holding").exists)
                process.send_signal(signal.SIGINT)
            if times > 1 and line.startswith("Waiting for in-flight"):
                process.send_signal(signal.SIGINT)
        # Two threads say that the run ends. Whether both get to it before the second signal is chance, and not compared.
        return process.wait(30), [line for line in lines if line and not (times > 1 and line == "Received exit signal.")]
    finally:
        for name in ("closed", "holding"):
            (model / name).unlink(missing_ok=True)


@pytest.mark.parametrize("times", [1, 2])
@tiers.both
def test_interrupts_end_the_measurement_like_perf_analyzer(times, target, perf_servers, recorded, tmp_path):
    """The first Ctrl-C ends the measurement cleanly, the second at once, with the text and exit status of perf_analyzer."""
    status, lines = interrupted(perf_tool.TOOLS[target], perf_servers.get(target), tmp_path, times)
    assert any("Interrupt signal (2) received." in line for line in lines)
    recorded.holds(target, {"status": status, "lines": lines})


# --- figures -----------------------------------------------------------------------------------------------------

SAME = [
    ("slow", "--concurrency-range 1"),
    ("slow", "--concurrency-range 3 -i grpc -a"),
    ("slow", "--request-rate-range 30"),
]
FIGURES = ("client", "Throughput"), ("client", "p50 latency"), ("server", "Avg request latency")


@tiers.measure
@pytest.mark.parametrize("model, line", SAME)
def test_measurements_equal_perf_analyzers(model, line, perf_servers, tmp_path):
    """Both tools measure the same on a model of known duration."""
    server, more = perf_servers.get("galatea"), shlex.split(line)
    args = ["-m", model, *more, "-u", server.grpc if "grpc" in more else server.http, "-p", "300", "-s", "1000000", "-r", "3"]
    real, ours = (perf_tool.run(tool, args, tmp_path / tool).report()["points"][0] for tool in (perf_tool.REAL, perf_tool.OURS))
    for block, name in FIGURES:
        # On a machine that does other things as well; the benchmark compares closely.
        assert ours[block][name][0] == pytest.approx(real[block][name][0], rel=0.2), name


# --- GPU gauges --------------------------------------------------------------------------------------------------

GAUGES = """\
# HELP nv_gpu_utilization GPU utilization rate [0.0 - 1.0)
# TYPE nv_gpu_utilization gauge
nv_gpu_utilization{gpu_uuid="GPU-one"} 0.25
nv_gpu_utilization{gpu_uuid="GPU-two"} 0.5
nv_gpu_power_usage{gpu_uuid="GPU-one"} 101.5
nv_gpu_power_usage{gpu_uuid="GPU-two"} 99
nv_gpu_memory_used_bytes{gpu_uuid="GPU-one"} 1000000
nv_gpu_memory_used_bytes{gpu_uuid="GPU-two"} 2000000
nv_gpu_memory_total_bytes{gpu_uuid="GPU-one"} 8000000
nv_gpu_memory_total_bytes{gpu_uuid="GPU-two"} 8000000
"""


@pytest.fixture
def gauges():
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(GAUGES.encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()


@tiers.both
def test_gpu_metrics_equal_perf_analyzers(target, gauges, perf_servers, recorded, tmp_path):
    """An exporter reports two GPUs; text and table cells are the same."""
    args = ["-m", "simple", "-u", perf_servers.get(target).http, "--collect-metrics", "--metrics-url", gauges, "--metrics-interval", "50",
            "--verbose-csv", "-f", "report.csv", *QUICK]
    run = perf_tool.run(perf_tool.TOOLS[target], args, tmp_path)
    assert run.code == 0, run.err
    text = run.out[run.out.index("Server Prometheus Metrics"):run.out.index("Inferences/Second")]
    cells = {name: cell for name, cell in run.csv()[1][0].items() if "GPU" in name}
    assert "GPU-two" in text and len(cells) == 4
    recorded.holds(target, {"text": text.splitlines(), "cells": cells})


# --- on purpose different ----------------------------------------------------------------------------------------

OTHER_KINDS = [["tfserving", "-i", "grpc"], ["torchserve"], ["openai"], ["triton_c_api"], ["dynamic_grpc"]]


@pytest.mark.parametrize("kind", OTHER_KINDS, ids=lambda kind: kind[0])
def test_other_service_kinds_are_refused_by_name(kind, tmp_path):
    if perf_tool.STAND_IN:
        pytest.skip("the real tool knows them")
    run = perf_tool.run(perf_tool.OURS, ["-m", "simple", "--service-kind", *kind], tmp_path)
    assert run.code != 0
    assert kind[0] in run.err
