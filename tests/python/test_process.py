"""The program: command line, start, tables, signals."""

import concurrent.futures
import contextlib
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
from repositories import add_sub_config, identity_config

SLOW = identity_config(more='parameters { key: "execute_delay_ms" value { string_value: "300" } }\n')
ROW = {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}


def run(*args, timeout=60):
    done = subprocess.run([servers.galatea_binary(), *map(str, args)], capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout + done.stderr


def post(server, model):
    status, _, body = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", ROW)
    return status


def test_sigterm_lets_requests_finish(repository, serve):
    """Five requests on one slow instance; stopped after the first answer, it answers the rest and ends with 0."""
    repository.add("slow", "identity", SLOW)
    server = serve(repository.path)
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(post, server, "slow") for _ in range(5)]
        next(concurrent.futures.as_completed(asked))
        server.process.send_signal(signal.SIGTERM)
        assert [one.result() for one in asked] == [200] * 5
    assert server.wait_for_exit() == 0


def test_while_draining_open_connections_are_served_and_new_ones_refused(repository, serve):
    """Clients take an idle connection for one that works; calls of gRPC are made elsewhere after UNAVAILABLE."""
    repository.add("slow", "identity", SLOW)
    server = serve(repository.path)
    open_before = http.client.HTTPConnection(server.http, timeout=30)
    open_before.request("GET", "/v2/health/live")
    assert open_before.getresponse().read() == b""
    with grpc.insecure_channel(server.grpc) as channel, concurrent.futures.ThreadPoolExecutor(5) as pool:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert stub.ServerLive(service_pb2.ServerLiveRequest()).live
        asked = [pool.submit(post, server, "slow") for _ in range(5)]
        next(concurrent.futures.as_completed(asked))
        late = service_pb2.ModelInferRequest(model_name="slow", raw_input_contents=[b"\0" * 4])
        late.inputs.add(name="INPUT0", datatype="FP32", shape=[1])
        server.process.send_signal(signal.SIGTERM)
        # The line about the signal itself comes before requests are refused.
        server.wait_for_line("Waiting for in-flight requests")
        with pytest.raises(grpc.RpcError) as error:
            stub.ModelInfer(late, timeout=30)
        assert error.value.code() == grpc.StatusCode.UNAVAILABLE
        open_before.request("POST", "/v2/models/slow/infer", json.dumps(ROW))
        reply = open_before.getresponse()
        assert (reply.status, reply.getheader("Connection")) == (200, "close")
        with pytest.raises(OSError):
            http.client.HTTPConnection(server.http, timeout=5).request("GET", "/v2/health/live")
        assert [one.result() for one in asked] == [200] * 5
    assert server.wait_for_exit() == 0


def test_health_is_answered_over_grpc_while_models_load(repository, serve):
    """Live and not ready; a request sent meanwhile is answered once its model is there."""
    repository.add("slow", "identity", identity_config(more='parameters { key: "creation_delay_sec" value { string_value: "2" } }\n'))
    server = serve(repository.path, wait=False)
    line = server.wait_for_line("GRPCInferenceService listens at ")
    with grpc.insecure_channel(line.split()[-1].strip('"')) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        early = service_pb2.ModelInferRequest(model_name="slow", raw_input_contents=[b"\0" * 4])
        early.inputs.add(name="INPUT0", datatype="FP32", shape=[1])
        answer = stub.ModelInfer.future(early, timeout=30)
        assert stub.ServerLive(service_pb2.ServerLiveRequest()).live
        assert not stub.ServerReady(service_pb2.ServerReadyRequest()).ready
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert check(b"") == b"\x08\x02", "NOT_SERVING"
        assert not answer.done()
        assert answer.result().model_name == "slow"
        assert stub.ServerReady(service_pb2.ServerReadyRequest()).ready
    assert server.stop() == 0


def test_no_more_than_1024_requests_wait_for_the_start(repository, serve):
    """Those beyond are refused at once, and liveness is answered beside them; the others are answered in the end."""
    repository.add("slow", "identity", identity_config(more='parameters { key: "creation_delay_sec" value { string_value: "5" } }\n'))
    server = serve(repository.path, wait=False)
    address = server.wait_for_line("GRPCInferenceService listens at ").split()[-1].strip('"')
    early = service_pb2.ModelInferRequest(model_name="slow", raw_input_contents=[b"\0" * 4])
    early.inputs.add(name="INPUT0", datatype="FP32", shape=[1])
    apart = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, apart) as one, grpc.insecure_channel(address, apart) as other:
        stubs = [service_pb2_grpc.GRPCInferenceServiceStub(channel) for channel in (one, other)]
        asked = [stub.ModelInfer.future(early, timeout=60) for stub in stubs for _ in range(515)]
        assert stubs[1].ServerLive(service_pb2.ServerLiveRequest(), timeout=30).live
        assert not stubs[1].ServerReady(service_pb2.ServerReadyRequest(), timeout=30).ready
        refused = [answer.exception() for answer in asked if answer.exception() is not None]
        assert [error.code() for error in refused] == [grpc.StatusCode.UNAVAILABLE] * 6
        assert all("Server is starting" in error.details() for error in refused)
    assert server.stop() == 0


def test_a_server_that_leaves_is_not_ready_over_grpc_and_serves(repository, serve):
    repository.add("simple", "add_sub", add_sub_config())
    server = serve(repository.path, "--drain-delay-secs=600")
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_line("without being ready")
        assert not stub.ServerReady(service_pb2.ServerReadyRequest()).ready
        assert stub.ServerLive(service_pb2.ServerLiveRequest()).live
        assert stub.ModelReady(service_pb2.ModelReadyRequest(name="simple")).ready
        server.process.send_signal(signal.SIGTERM)
    assert server.wait_for_exit() == 0


def test_sigint_ends_it_too(repository, serve):
    repository.add("simple", "add_sub", add_sub_config())
    assert serve(repository.path).stop(signal.SIGINT) == 0


def test_a_terminal_shows_reasons_whole(repository):
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


def read_all(terminal):
    """What was written to it; the end of the last writer is an error on a terminal."""
    text = b""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            text += part
    os.close(terminal)
    return text.decode().replace("\r\n", "\n").splitlines()


def test_exit_timeout(repository, serve):
    """What takes longer than --exit-timeout-secs does not hold the process up."""
    stuck = identity_config(more='parameters { key: "execute_delay_ms" value { string_value: "20000" } }\n')
    repository.add("stuck", "identity", stuck)
    repository.add("quick", "identity", identity_config())
    server = serve(repository.path, "--exit-timeout-secs=1")
    host, port = server.http.rsplit(":", 1)
    held = http.client.HTTPConnection(host, int(port), timeout=60)
    held.request("POST", "/v2/models/stuck/infer", json.dumps(ROW))
    assert post(server, "quick") == 200
    server.process.send_signal(signal.SIGTERM)
    server.wait_for_exit(timeout=12)
    held.close()


def test_failed_model_ends_the_start(repository):
    """By default one model that cannot be loaded ends the process with 1."""
    repository.add("good", "identity", identity_config())
    repository.add("bad", "failing", identity_config() + 'parameters { key: "fail" value { string_value: "load" } }')
    server = servers.galatea(repository.path, wait=False)
    assert server.wait_for_exit() == 1
    assert "failed to load 1 of 2 models (bad): load failed for model 'bad': " in server.text()


def test_exit_on_error_false(repository, serve):
    repository.add("good", "identity", identity_config())
    repository.add("bad", "failing", identity_config() + 'parameters { key: "fail" value { string_value: "load" } }')
    server = serve(repository.path, "--exit-on-error=false")
    assert post(server, "good") == 200
    assert clients.ask(server.http, "GET", "/v2/health/ready")[0] == 400
    lax = serve(repository.path, "--exit-on-error=false", "--strict-readiness=false")
    assert clients.ask(lax.http, "GET", "/v2/health/ready")[0] == 200


def test_log_and_tables(repository, serve):
    """What people grep in the log."""
    repository.add("simple", "add_sub", add_sub_config())
    server = serve(repository.path, "--id=mine", "--http-thread-count=2")
    text = server.text()
    assert "loading: simple:1" in text and "successfully loaded 'simple'" in text
    assert re.search(r"\| Model +\| Version +\| Status +\|", text)
    assert re.search(r"\| simple +\| 1 +\| READY +\|", text)
    assert re.search(r"\| Option +\| Value +\|", text)
    assert re.search(r"\| server_id +\| mine +\|", text)
    assert json.loads(clients.ask(server.http, "GET", "/v2")[2])["name"] == "mine"


def test_fronts_can_be_switched_off(repository, serve):
    repository.add("simple", "add_sub", add_sub_config())
    only_http = serve(repository.path, "--allow-grpc=False", "--allow-metrics", "0", services=1)
    assert clients.ask(only_http.http, "GET", "/v2/health/ready")[0] == 200
    assert set(only_http.addresses) == {"HTTPService"}


def test_several_repositories(tmp_path, serve):
    from repositories import write_model

    for name in ("one", "two"):
        write_model(tmp_path / name, name, "galatea", "identity", identity_config())
    server = serve(tmp_path / "one", f"--model-repository={tmp_path / 'two'}")
    assert post(server, "one") == post(server, "two") == 200


def test_started_as_tritonserver(repository, tmp_path_factory):
    """A link of that name is the server, without a sub-command, and takes `--flag value`."""
    repository.add("simple", "add_sub", add_sub_config())
    link = tmp_path_factory.mktemp("bin") / "tritonserver"
    link.symlink_to(servers.galatea_binary())
    flags = ["--model-repository", repository.path, "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0"]
    with servers.Server([link, *flags, "--log-verbose=1", "--strict-model-config=false"]) as server:
        assert clients.ask(server.http.replace("0.0.0.0", "127.0.0.1"), "GET", "/v2/health/ready")[0] == 200


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
def test_command_line_errors(args, text):
    status, printed = run(*args)
    assert status != 0 and text in printed


def test_help():
    for args in (["--help"], ["serve", "--help"]):
        status, text = run(*args)
        assert status == 0
    for flag in ("--model-repository", "--http-port", "--grpc-port", "--exit-on-error", "--model-control-mode"):
        assert flag in text
