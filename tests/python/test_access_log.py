"""The access log, spans of clients' traces, and the line of a failed request, seen from outside."""

import json
import re
import signal
import uuid

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

import clients
import raw_http
import repositories
import servers
import shared_flags
from test_security import address
from test_streams import message, repeat_arrays
from waiting import eventually

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("observed")
TRACE_ID, PARENT_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"
FIELDS = (
    "time id peer protocol method path model version status bytes_in bytes_out queue_us compute_us total_us trace_id "
    "span_id parent_id identity"
).split()
INFER = "/v2/models/simple/infer"
VALUE = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')

SPANS = """\
import json

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([self.answer(request)]) for request in requests]

    def answer(self, request):
        own = request.trace().get_context() or ""
        called = ""
        if CALLS:
            given = pb.Tensor("INPUT0", np.zeros(1, np.float32))
            call = pb.InferenceRequest(
                model_name="span", requested_output_names=["OUTPUT0"], inputs=[given], trace=request.trace())
            answer = call.exec()
            called = pb.get_output_tensor_by_name(answer, "OUTPUT0").as_numpy()[0].decode()
        return pb.Tensor("OUTPUT0", np.array([own, called], object))
"""
SPANS_CONFIG = repositories.tensor("input", "INPUT0", "TYPE_FP32", "-1") + repositories.tensor("output", "OUTPUT0", "TYPE_STRING", "2")


def with_models(server):
    server.place("simple", "add_sub", repositories.add_sub_config())
    server.place("repeat", "repeat", repositories.REPEAT_CONFIG)
    return server


class Lines:
    """The lines of an access log from now on; other tests use the server as well."""

    def __init__(self, server, file, read):
        self.file, self.read, self.mark = file, read, f"/v2/mark-{uuid.uuid4().hex}"
        clients.ask(server.http, "GET", self.mark)
        eventually("the access log has the line of the mark", lambda: self.mark in file.read_text())

    def take(self, count):
        """The first lines after the mark, waited for; each is whole."""

        def lines():
            text = self.file.read_text().rpartition(self.mark)[2].splitlines(keepends=True)[1:]
            return [line for line in text if line.endswith("\n")]

        eventually(f"{count} lines come", lambda: len(lines()) >= count)
        return [self.read(line.rstrip("\n")) for line in lines()]


@pytest.fixture
def logged(shared):
    """A server with an access log in a file, and the lines of it that come."""
    flags, env = shared_flags.observed()
    server = with_models(shared(*flags, env=env))
    return server, Lines(server, shared_flags.access_log(), parsed)


@pytest.fixture
def plain(shared):
    """A server without an access log."""
    return with_models(shared())


def parsed(line):
    """A line of text as a dictionary; a value in quotes is JSON."""
    time_, _, rest = line.partition(" ")
    values = {name: json.loads(text) if text[0] == '"' else text for name, text in VALUE.findall(rest)}
    return {"time": time_, **values}


def test_every_request_is_logged(logged):
    server, lines = logged
    body = {"id": "a b", **clients.pair_json()}
    sent = json.dumps(body).encode()
    status, _, answer = clients.ask(server.http, "POST", INFER, sent, {"traceparent": TRACEPARENT})
    assert status == 200
    assert clients.ask(server.http, "POST", INFER, {"inputs": []})[0] == 400
    assert clients.ask(server.http, "POST", "/v2/models/nope/infer", {"inputs": []})[0] == 404
    assert clients.ask(server.http, "GET", "/v2/nothing?secret=1")[0] == 404
    assert clients.ask(server.http, "PUT", "/v2")[0] == 405
    assert clients.ask(server.http, "GET", "/v2/health/ready")[0] == 200
    assert raw_http.exchange(address(server.http), b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000 + b"\r\n\r\n")[0] == 431
    good, wrong, unknown, lost, method, malformed = lines.take(6)
    assert list(good) == FIELDS
    expected = {
        "id": "a b", "protocol": "http", "method": "POST", "path": INFER, "model": "simple", "version": "1", "status": "200",
        "bytes_in": str(len(sent)), "bytes_out": str(len(answer)), "trace_id": TRACE_ID, "parent_id": PARENT_ID,
    }
    assert {name: good[name] for name in expected} == expected
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", good["time"]) and good["peer"].startswith("127.0.0.1:")
    assert int(good["queue_us"]) + int(good["compute_us"]) <= int(good["total_us"]) > 0
    assert re.fullmatch("[0-9a-f]{16}", good["span_id"]) and good["span_id"] != PARENT_ID
    assert (wrong["status"], wrong["model"], wrong["queue_us"], wrong["trace_id"]) == ("400", "simple", "-", "-")
    assert (unknown["status"], unknown["model"], unknown["version"]) == ("404", "nope", "-")
    assert (lost["status"], lost["path"], lost["model"]) == ("404", "/v2/nothing", "-")
    assert (method["status"], method["method"]) == ("405", "PUT")
    assert (malformed["status"], malformed["method"], malformed["path"]) == ("431", "-", "-")


def test_oversized_and_refused_requests_are_logged(shared):
    server = with_models(shared(*shared_flags.narrow()))
    lines = Lines(server, shared_flags.narrow_log(), parsed)
    assert clients.ask(server.http, "POST", INFER, {"inputs": [], "id": "x" * 2000})[0] == 400
    big = {"INPUT0": np.zeros((1, 16 << 20), np.int32)}
    text = json.dumps(
        {"inputs": [{"name": "INPUT0", "shape": [1, 16 << 20], "datatype": "INT32", "parameters": {"binary_data_size": 64 << 20}}]}
    ).encode()
    sent = raw_http.post(INFER, text + bytes(64 << 20), Inference_Header_Content_Length=len(text))
    assert raw_http.exchange(address(server.http), sent)[0] == 503
    with clients.client(server, "grpc") as stock, pytest.raises(InferenceServerException, match="EXHAUSTED"):
        clients.infer(stock, "grpc", "simple", big)
    long, no_room, call = lines.take(3)
    assert (long["status"], long["model"], long["protocol"]) == ("400", "simple", "http")
    assert (no_room["status"], no_room["model"], no_room["queue_us"]) == ("503", "simple", "-")
    assert (call["status"], call["protocol"]) == ("8", "grpc")
    for reason in ("Use --http-max-input-size", "Exhausted"):
        assert server.wait_for_line(reason)


def test_grpc_calls_and_requests_of_a_stream_are_logged(logged):
    server, logged_lines = logged
    pair = {name: np.ones((1, 16), np.int32) for name in ("INPUT0", "INPUT1")}
    with clients.client(server, "grpc") as stock:
        clients.infer(stock, "grpc", "simple", pair, request_id="7", headers={"traceparent": TRACEPARENT})
        with pytest.raises(InferenceServerException):
            clients.infer(stock, "grpc", "nope", pair)
        answers = []
        stock.start_stream(lambda result, error: answers.append(error or result))
        for request_id in ("s1", "s2"):
            stock.async_stream_infer("repeat", clients.inputs(grpcclient, repeat_arrays([1, 2])), request_id=request_id)
        stock.async_stream_infer("nope", clients.inputs(grpcclient, repeat_arrays([1])), request_id="s3")
        eventually("the stream is answered", lambda: len(answers) == 5)
        stock.stop_stream()
    lines = {line["id"]: line for line in logged_lines.take(5)}
    assert {(line["protocol"], line["method"]) for line in lines.values()} == {("grpc", "POST")}
    unary, stream = (f"/inference.GRPCInferenceService/{name}" for name in ("ModelInfer", "ModelStreamInfer"))
    one = lines["7"]
    assert (one["path"], one["model"], one["version"], one["status"]) == (unary, "simple", "1", "0")
    assert (one["trace_id"], one["parent_id"]) == (TRACE_ID, PARENT_ID)
    assert int(one["bytes_in"]) > 128 and int(one["bytes_out"]) > 128
    refused = lines["-"]
    assert (refused["path"], refused["model"], refused["status"]) == (unary, "nope", "5")
    for request_id in ("s1", "s2"):
        line = lines[request_id]
        assert (line["path"], line["model"], line["status"], line["bytes_out"]) == (stream, "repeat", "0", "16")
        assert line["compute_us"] != "-"
    assert (lines["s3"]["model"], lines["s3"]["queue_us"]) == ("nope", "-") and lines["s3"]["status"] != "0"


def test_a_moved_file_is_reopened_at_sighup(logged, tmp_path):
    server, _ = logged
    file, moved = shared_flags.access_log(), tmp_path / "access.log.1"
    file.rename(moved)
    clients.ask(server.http, "GET", "/v2/before")
    eventually("the line comes to the file that was moved", lambda: "path=/v2/before" in moved.read_text())
    server.process.send_signal(signal.SIGHUP)
    eventually("the file is opened again", file.exists)
    clients.ask(server.http, "GET", "/v2/models/simple")
    eventually("the line comes to the new file", lambda: "path=/v2/models/simple " in file.read_text())
    assert "path=/v2/before" not in file.read_text() and "path=/v2/models/simple " not in moved.read_text()


@pytest.fixture
def verbose(shared):
    """A server whose lines go to stdout."""
    return with_models(shared("--access-log", "--log-verbose=3"))


def test_without_a_file_lines_go_to_stdout(verbose):
    clients.ask(verbose.http, "POST", INFER, {"id": "to-stdout", **clients.pair_json()})
    line = parsed(verbose.wait_for_line("^[0-9-]+T.* id=to-stdout "))
    assert line["status"] == "200"


def test_lines_are_json_if_the_log_is(shared):
    server = with_models(shared(*shared_flags.in_json()))
    lines = Lines(server, shared_flags.folder() / "json.log", json.loads)
    clients.ask(server.http, "POST", INFER, {"id": "j\n1", **clients.pair_json()})
    clients.ask(server.http, "POST", INFER, {"id": "j2", "inputs": []})
    good, bad = lines.take(2)
    assert list(good) == ["type", *FIELDS] and good["type"] == "access"
    assert (good["id"], good["version"], good["status"], good["trace_id"]) == ("j\n1", 1, 200, None)
    assert (bad["id"], bad["status"], bad["queue_us"]) == ("j2", 400, None)
    failed = json.loads(server.wait_for_line("request id j2"))
    assert (failed["model"], failed["version"], failed["request_id"]) == ("simple", 1, "j2")


def test_verbose_levels_log_the_same_events_as_triton(verbose):
    server = verbose
    clients.ask(server.http, "POST", INFER, {"id": "v1", **clients.pair_json()})
    for pattern in (
        "HTTP request: POST " + INFER, r"\[request id: v1\] prepared: model: simple, requested version: -1, actual version: 1, batch size: 1",
        r"\[request id: v1\] input: INPUT0, type: INT32, shape: \[1,16\], 64 bytes", "model simple, instance simple_0, executing 1 requests",
        r"\[request id: v1\] HTTP answer to POST " + INFER + ": 200, ",
    ):
        assert server.wait_for_line(pattern).startswith("I")


def test_a_request_cannot_forge_a_line(logged):
    server, found = logged
    forged = "x\n2026-01-01T00:00:00.000000Z id=forged status=200"
    clients.ask(server.http, "POST", INFER, {"id": forged, **clients.pair_json()})
    clients.ask(server.http, "POST", INFER, {"id": forged, "inputs": []})
    lines = found.take(2)
    assert len(lines) == 2 and lines[0]["id"] == forged
    assert not [line for line in server.log if line.startswith("2026-01-01")]


def test_a_missing_folder_ends_the_start(tmp_path):
    server = servers.galatea(tmp_path, "--access-log=/nonexistent/access.log", wait=False)
    assert server.wait_for_exit() == 1
    assert "failed to open access log '/nonexistent/access.log' (--access-log)" in server.text()


def test_a_failed_request_is_logged(plain):
    server = plain
    clients.ask(server.http, "POST", INFER, {"id": "bad-1", "inputs": []}, {"traceparent": TRACEPARENT})
    line = server.wait_for_line("bad-1")
    assert line.startswith("I") and "model 'simple' version 1, request id bad-1, trace 00-" + TRACE_ID in line
    assert "Invalid argument: " in line
    clients.ask(server.http, "POST", "/v2/models/nope/infer", {"inputs": []})
    line = server.wait_for_line("POST /v2/models/nope/infer")
    assert "Request for unknown model: 'nope' is not found" in line
    with clients.client(server, "grpc") as stock, pytest.raises(InferenceServerException):
        clients.infer(stock, "grpc", "simple", {"INPUT0": np.zeros((1, 16), np.int32)}, request_id="bad-2")
    line = server.wait_for_line("bad-2")
    assert "model 'simple' version 1, request id bad-2: Invalid argument: " in line
    # A stream goes on after a request that fails.
    request = message("simple", {"INPUT0": np.zeros((1, 16), np.int32)}, "bad-3")
    with clients.client(server, "grpc") as stock:
        list(stock._client_stub.ModelStreamInfer(iter([request])))
    server.wait_for_line("bad-3")


def test_a_flood_of_bad_requests_logs_few_lines_and_a_count(shared):
    server = shared()
    name = server.add("flooded", "add_sub", repositories.add_sub_config())
    sent = raw_http.post(INFER.replace("simple", name), b'{"id":"flood","inputs":[]}')
    for _ in range(400):
        raw_http.exchange(address(server.http), sent)
    # The count comes although nothing fails any more.
    server.wait_for_line(f"more requests to model '{name}' failed")
    assert len([line for line in server.text().splitlines() if "request id flood" in line]) < 400


def test_models_see_their_trace_span_and_pass_it_on(shared):
    server = shared()
    for name, calls in (("span", False), ("caller", True)):
        server.place(name, "python", SPANS_CONFIG, files={"1/model.py": f"CALLS = {calls}\n" + SPANS})
    step = 'step [ { model_name: "span" model_version: -1 input_map { key: "INPUT0" value: "INPUT0" } ' \
           'output_map { key: "OUTPUT0" value: "OUTPUT0" } } ]'
    server.place("pipeline", "ensemble", SPANS_CONFIG + f"ensemble_scheduling {{ {step} }}\n")

    def asked(model, headers):
        body = {"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [0]}]}
        status, _, answer = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body, headers)
        assert status == 200, answer
        return json.loads(answer)["outputs"][0]["data"]

    assert asked("span", {}) == ["", ""]
    for bad in ("nonsense", TRACEPARENT.upper(), TRACEPARENT.replace(TRACE_ID, "0" * 32)):
        assert asked("span", {"traceparent": bad}) == ["", ""]
    seen = {PARENT_ID}
    for model in ("span", "caller", "pipeline"):
        own, called = asked(model, {"traceparent": TRACEPARENT})
        for context in filter(None, (own, called)):
            version, trace_id, span_id, flags = json.loads(context)["traceparent"].split("-")
            assert (version, trace_id, flags) == ("00", TRACE_ID, "01")
            assert span_id not in seen, "each is a span of its own"
            seen.add(span_id)
        assert bool(called) == (model == "caller")
    assert len(seen) == 5
