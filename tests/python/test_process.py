"""The program: command line, start, tables, signals."""

import concurrent.futures
import http.client
import json
import os
import pty
import re
import signal
import subprocess

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

import clients
import servers
from processes import read_all
from repositories import add_sub_config, identity_config, write_model
from waiting import eventually

ROW = {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}


def run(*args, timeout=60):
    done = subprocess.run([servers.galatea_binary(), *map(str, args)], capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout + done.stderr


def post(server, model):
    status, _, body = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", ROW)
    return status


# Goes on with a file that its parameter names: to be ready, and to execute.
GATE = """\
import json
import os
import time

import triton_python_backend_utils as pb


def wait_for(path):
    while path and not os.path.exists(path):
        time.sleep(0.002)


class TritonPythonModel:
    def initialize(self, args):
        self.parameters = json.loads(args["model_config"])["parameters"]
        wait_for(self.gate("ready"))

    def gate(self, name):
        return self.parameters.get(name, {}).get("string_value")

    def execute(self, requests):
        wait_for(self.gate("execute"))
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
"""


def gated(what, path):
    return identity_config(more=f'parameters {{ key: "{what}" value {{ string_value: "{path}" }} }}\n')


def late_request():
    request = service_pb2.ModelInferRequest(model_name="slow", raw_input_contents=[b"\0" * 4])
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[1])
    return request


@pytest.fixture
def gate(tmp_path_factory):
    return tmp_path_factory.mktemp("gate") / "open"


def test_draining_serves_open_connections_and_refuses_new_ones(repository, serve, gate):
    """HTTP clients reuse idle connections; gRPC clients go elsewhere after UNAVAILABLE."""
    repository.add("slow", "python", gated("execute", gate), files={"1/model.py": GATE})
    server = serve(repository.path)
    open_before = http.client.HTTPConnection(server.http, timeout=60)
    open_before.request("GET", "/v2/health/live")
    assert open_before.getresponse().read() == b""
    flight = ("galatea_inference_requests_in_flight", 'model="slow",version="1"')
    with grpc.insecure_channel(server.grpc) as channel, concurrent.futures.ThreadPoolExecutor(5) as pool:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert stub.ServerLive(service_pb2.ServerLiveRequest()).live
        asked = [pool.submit(post, server, "slow") for _ in range(5)]
        try:
            eventually("five requests are under way", lambda: clients.metrics(server)[flight] == 5)
            server.process.send_signal(signal.SIGTERM)
            # The line about the signal itself comes before requests are refused.
            server.wait_for_line("Waiting for in-flight requests")
            with pytest.raises(grpc.RpcError) as error:
                stub.ModelInfer(late_request(), timeout=60)
            assert error.value.code() == grpc.StatusCode.UNAVAILABLE
            with pytest.raises(OSError):
                http.client.HTTPConnection(server.http, timeout=60).request("GET", "/v2/health/live")
            assert not any(one.done() for one in asked)
            open_before.request("POST", "/v2/models/slow/infer", json.dumps(ROW))
        finally:
            gate.touch()
        reply = open_before.getresponse()
        assert (reply.status, reply.getheader("Connection")) == (200, "close")
        assert [one.result() for one in asked] == [200] * 5
    assert server.wait_for_exit() == 0


def test_grpc_requests_wait_for_the_start(repository, serve, gate):
    """The server is live and not ready, and a request sent meanwhile is answered once its model is there. No more than 1024
    wait: those beyond are refused at once, and liveness is answered beside them."""
    repository.add("slow", "python", gated("ready", gate), files={"1/model.py": GATE})
    server = serve(repository.path, wait=False)
    address = server.wait_for_line("GRPCInferenceService listens at ").split()[-1].strip('"')
    apart = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, apart) as one, grpc.insecure_channel(address, apart) as other:
        stubs = [service_pb2_grpc.GRPCInferenceServiceStub(channel) for channel in (one, other)]
        try:
            asked = [stub.ModelInfer.future(late_request(), timeout=120) for stub in stubs for _ in range(515)]
            eventually("six are refused", lambda: sum(answer.done() for answer in asked) == 6)
            assert stubs[1].ServerLive(service_pb2.ServerLiveRequest(), timeout=60).live
            assert not stubs[1].ServerReady(service_pb2.ServerReadyRequest(), timeout=60).ready
            check = one.unary_unary("/grpc.health.v1.Health/Check")
            assert check(b"") == b"\x08\x02", "NOT_SERVING"
        finally:
            gate.touch()
        refused = [answer.exception() for answer in asked if answer.exception() is not None]
        assert [error.code() for error in refused] == [grpc.StatusCode.UNAVAILABLE] * 6
        assert all("Server is starting" in error.details() for error in refused)
        assert {answer.result().model_name for answer in asked if answer.exception() is None} == {"slow"}
        assert stubs[0].ServerReady(service_pb2.ServerReadyRequest()).ready
    assert server.stop() == 0


def test_a_stopping_server_serves_during_its_delay_and_is_not_ready(repository, serve):
    """The second signal ends the delay; --exit-timeout-secs bounds requests that take longer."""
    repository.add("simple", "add_sub", add_sub_config())
    stuck = identity_config(more='parameters { key: "execute_delay_ms" value { string_value: "3600000" } }\n')
    repository.add("stuck", "identity", stuck)
    server = serve(repository.path, "--drain-delay-secs=600", "--exit-timeout-secs=1")
    held = http.client.HTTPConnection(server.http, timeout=60)
    held.request("POST", "/v2/models/stuck/infer", json.dumps(ROW))
    flight = ("galatea_inference_requests_in_flight", 'model="stuck",version="1"')
    eventually("a request is under way", lambda: clients.metrics(server)[flight] == 1)
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_line("seconds more while not ready")
        assert not stub.ServerReady(service_pb2.ServerReadyRequest()).ready
        assert stub.ServerLive(service_pb2.ServerLiveRequest()).live
        assert stub.ModelReady(service_pb2.ModelReadyRequest(name="simple")).ready
        server.process.send_signal(signal.SIGTERM)
    server.wait_for_exit(120)
    held.close()


def test_a_terminal_shows_complete_reasons(repository):
    """A configuration error with its line and a caret on a terminal, in colours unless these are not wanted; one quoted
    line of the log where that is piped. The last line has the first reason."""
    repository.add("typo", "identity", 'imput { name: "A" }\n')
    command = [servers.galatea_binary(), "serve", f"--model-repository={repository.path}", "--http-port=0", "--grpc-port=0", "--metrics-port=0"]

    def on_terminal(**variables):
        ours, theirs = pty.openpty()
        environment = {**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **variables}
        done = subprocess.run(command, stdout=theirs, stderr=theirs, timeout=60, env=environment)
        os.close(theirs)
        assert done.returncode == 1
        return read_all(ours)

    plain, coloured = on_terminal(NO_COLOR="1"), on_terminal()
    first = next(n for n, line in enumerate(plain) if line.startswith("E"))
    assert plain[first].endswith("] Poll failed for model directory 'typo':"), plain
    excerpt = [
        "typo/config.pbtxt:3:1: error: no field `imput` in ModelConfig", "  |", '3 | imput { name: "A" }', "  | ^",
        "  = help: did you mean `input`?",
    ]
    assert plain[first + 1 : first + 6] == ["    " + line for line in excerpt], plain
    assert plain[-1].startswith("error: creating server: Internal - failed to load all models (typo): "), plain
    assert "typo/config.pbtxt:3:1" in plain[-1] and plain[-1].endswith("; see the log above"), plain
    row = next(line for line in plain if line.startswith("| typo"))
    assert "UNAVAILABLE: typo/config.pbtxt:3:1: " in row, row
    assert any(line.startswith("\x1b[1;31mE") for line in coloured), coloured
    assert not any("\x1b" in line for line in plain)
    uncoloured = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in coloured]
    assert uncoloured[first + 1 : first + 6] == plain[first + 1 : first + 6], coloured
    piped = subprocess.run(command, capture_output=True, text=True, timeout=60).stderr.splitlines()
    told = [line for line in piped if line.startswith("E")]
    assert len(told) == 1 and told[0].endswith('no field `imput` in ModelConfig; did you mean `input`?"'), piped
    assert not any("\x1b" in line for line in piped)


FAILS = identity_config() + 'parameters { key: "fail" value { string_value: "load" } }'


def test_a_failed_model_ends_the_start(repository):
    """One failed model ends the process with 1 by default. The scenario `repository_none_broken` has the other case."""
    repository.add("good", "identity", identity_config())
    repository.add("bad", "failing", FAILS)
    status, text = run("serve", f"--model-repository={repository.path}", "--http-port=0", "--grpc-port=0", "--metrics-port=0")
    assert status == 1
    assert "failed to load 1 of 2 models (bad): load failed for model 'bad': " in text


def test_a_failed_model_does_not_matter_without_strict_readiness(shared):
    server = shared()
    bad = server.write("bad", "failing", FAILS)
    assert clients.ask(server.http, "POST", f"/v2/repository/models/{bad}/load", {})[0] == 400
    assert clients.ask(server.http, "GET", "/v2/health/ready")[0] == 200


@pytest.fixture(scope="module")
def as_tritonserver(tmp_path_factory):
    """A link of that name is the server, without a sub-command, and takes `--flag value`. Two repositories, and HTTP alone."""
    folder = tmp_path_factory.mktemp("models")
    flags = []
    for name in ("one", "two"):
        write_model(folder / name, name, "galatea", "identity", identity_config())
        flags += ["--model-repository", folder / name]
    link = tmp_path_factory.mktemp("bin") / "tritonserver"
    link.symlink_to(servers.galatea_binary())
    flags += ["--http-port", "0", "--allow-grpc=False", "--allow-metrics", "0", "--http-address", "127.0.0.1"]
    flags += ["--id", "mine", "--http-thread-count=2", "--log-verbose=1", "--strict-model-config=false"]
    server = servers.Server([link, *flags], services=1)
    yield server
    assert server.stop(signal.SIGINT) == 0, "SIGINT ends it too"


def test_the_log_has_tritons_lines_and_tables(as_tritonserver):
    """People search the log for these lines."""
    text = as_tritonserver.text()
    assert "loading: one:1" in text and "successfully loaded 'one'" in text
    assert re.search(r"\| Model +\| Version +\| Status +\|", text)
    assert re.search(r"\| one +\| 1 +\| READY +\|", text)
    assert re.search(r"\| Option +\| Value +\|", text)
    assert re.search(r"\| server_id +\| mine +\|", text)
    assert json.loads(clients.ask(as_tritonserver.http, "GET", "/v2")[2])["name"] == "mine"


def test_front_ends_can_be_switched_off(as_tritonserver):
    assert clients.ask(as_tritonserver.http, "GET", "/v2/health/ready")[0] == 200
    assert set(as_tritonserver.addresses) == {"HTTPService"}


def test_several_repositories_are_served(as_tritonserver):
    assert post(as_tritonserver, "one") == post(as_tritonserver, "two") == 200


@pytest.mark.parametrize(
    "args, text",
    [
        (["serve"], "--model-repository must be specified"),
        (["serve", "--model-repository"], "model-repository"),
        (["serve", "--no-such-flag=1"], "no-such-flag"),
        (["serve", "--model-repository=x", "extra"], "extra"),
        (["serve", "--model-repository=x", "--exit-on-error=perhaps"], "invalid value for bool option: perhaps"),
        (["serve", "--model-repository=x", "--http-port=many"], "many"),
        (["serve", "--model-repository=x", "--http-port=70000"], "70000"),
        (["serve", "--model-repository=x", "--model-control-mode=sometimes"], "sometimes"),
        (["serve", "--model-repository=x", "--load-model=y"], "requires setting '--model-control-mode=explicit'"),
        (["serve", "--model-repository=/nonexistent/nowhere"], "/nonexistent/nowhere"),
        (["serve", "--model-repository=x", "--grpc-use-ssl=true"], "grpc-use-ssl"),
        (["serve", "--model-repository=x", "--http-max-input-size=0"], "http-max-input-size"),
        (["dance"], "dance"),
        (["runtime", "install", "abacus"], "abacus"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_command_lines_are_refused(args, text):
    status, printed = run(*args)
    assert status != 0 and text in printed


def test_help_lists_the_flags():
    for args in (["--help"], ["serve", "--help"]):
        status, text = run(*args)
        assert status == 0
    for flag in ("--model-repository", "--http-port", "--grpc-port", "--exit-on-error", "--model-control-mode"):
        assert flag in text
