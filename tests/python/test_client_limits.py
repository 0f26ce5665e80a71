"""Limits per client: 429 with Retry-After, RESOURCE_EXHAUSTED with a pushback, and nothing of it for another client."""

import json
import re
import subprocess

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.grpc import service_pb2, service_pb2_grpc

import clients
import servers
from auth_cases import bearer, key_entry
from repositories import identity_config, write_model
from test_python_queue import CONFIG as GATE_CONFIG
from test_python_queue import GATE, Gates
from waiting import LIMIT, eventually

ARRAY = np.zeros([1, 4], np.float32)
BODY = {"inputs": [clients.tensor_json("INPUT0", ARRAY)]}
REQUESTS = re.compile(r"this client has reached its limit of 2 requests in progress \(--client-max-concurrent-requests\)")
RATE = re.compile(r"this client sends more than its limit of 2 requests a second \(--client-requests-per-second\)")
COUNTED = 'galatea_requests_refused_total{reason="%s"}'


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    path = tmp_path_factory.mktemp("limits") / "models"
    write_model(path, "quick", "galatea", "identity", identity_config(dims="4", max_batch_size=2))
    config = GATE_CONFIG + "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
    write_model(path, "gate", "galatea", "python", config, {"1/model.py": GATE})
    return path


def ask(address, model, headers=None):
    return clients.ask(address, "POST", f"/v2/models/{model}/infer", BODY, headers or {})


def metric(server, reason):
    page = clients.ask(server.metrics, "GET", "/metrics")[2].decode()
    return int(re.search(f"^{re.escape(COUNTED % reason)} (.+)$", page, re.MULTILINE)[1])


def in_flight(server):
    page = clients.ask(server.metrics, "GET", "/metrics")[2].decode()
    return int(re.search(r'^galatea_inference_requests_in_flight{model="gate".*} (.+)$', page, re.MULTILINE)[1])


class InHand:
    """Requests that are in hand until this ends."""

    def __init__(self, server, folder, count):
        self.gates = Gates(server, folder, "gate")
        self.answers = self.gates.begin("held") + [self.gates.send("held") for _ in range(count - 1)]
        # Another request would take the place of one of them.
        eventually("the requests are in hand", lambda: in_flight(server) == count)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gates.permit("held")
        assert [answer.result(LIMIT) for answer in self.answers] == [200] * len(self.answers)


def refused(address, model="quick", headers=None):
    status, given, body = ask(address, model, headers)
    return status, given, body.decode()


@pytest.fixture(scope="module")
def narrow(models):
    """Few requests and bytes in hand."""
    with servers.galatea(models, "--client-max-concurrent-requests=2", "--client-max-request-bytes=2K") as server:
        yield server


@pytest.fixture(scope="module")
def slow(models):
    """Few requests a second, and few in hand of a connection."""
    with servers.galatea(models, "--client-requests-per-second=2:30", "--connection-max-concurrent-requests=2") as server:
        yield server


def test_requests_in_progress_of_a_client_are_limited(narrow, tmp_path):
    server = narrow
    with InHand(server, tmp_path, 2):
        status, given, text = refused(server.http)
        assert (status, given["Retry-After"]) == (429, "1"), text
        assert REQUESTS.search(text), text
        # Who asks for health and metrics is not counted.
        assert clients.ask(server.http, "GET", "/v2/health/ready")[0] == 200
        assert clients.ask(server.http, "GET", "/v2/models/quick/ready")[0] == 200
        assert clients.ask(server.http, "GET", "/v2/models/quick")[0] == 429
        with pytest.raises(grpcclient.InferenceServerException) as error:
            clients.client(server, "grpc").infer("quick", clients.inputs(grpcclient, {"INPUT0": ARRAY}))
        assert error.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
        assert REQUESTS.search(error.value.message())
        # The same client at another address is another one where nobody proves who it is.
        assert curl(server, "quick", "--interface", "127.0.0.2") == ("200", "")
        assert curl(server, "quick") == ("429", "1")
    assert ask(server.http, "quick")[0] == 200
    assert metric(server, "client_requests") >= 4


def curl(server, model, *options):
    """The status, and the time to wait."""
    url = f"http://{server.http}/v2/models/{model}/infer"
    tensor = '{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,4],"data":[0,0,0,0]}]}'
    form = "%{http_code} %header{retry-after}"
    command = ["curl", "-s", "-o", "/dev/null", "-w", form, *options, "-d", tensor, url]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    status, _, wait = said.partition(" ")
    return status, wait


def test_each_request_of_a_stream_counts_against_the_limit(slow, tmp_path):
    server, gates = slow, Gates(slow, tmp_path, "gate")
    message = service_pb2.ModelInferRequest(model_name="gate")
    tensor = message.inputs.add(name="IN", datatype="BYTES", shape=[1])
    tensor.contents.bytes_contents.append(str(tmp_path / "held").encode())
    stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(server.grpc))
    replies = stub.ModelStreamInfer(iter([message] * 4), timeout=LIMIT)
    # The answers come in the order of the requests.
    eventually("the last two are refused", lambda: metric(server, "connection_requests") == 2)
    gates.permit("held")
    texts = [reply.error_message for reply in replies]
    assert texts[:2] == ["", ""], "the stream goes on"
    assert len(texts) == 4 and all("this connection has reached its limit of 2 requests" in text for text in texts[2:])
    # Another connection of the same client has its own.
    assert ask(server.http, "quick")[0] == 200
    assert metric(server, "connection_requests") == 2


def test_requests_per_second_are_limited_with_a_retry_after_time(slow):
    answers = [ask(slow.http, "quick")[0] for _ in range(20)]
    assert answers == [200] * 20, "the burst that a client may send at once"
    status, given, text = eventually("the client sends too much", lambda: (found := refused(slow.http))[0] == 429 and found)
    assert RATE.search(text), text
    assert int(given["Retry-After"]) == 1
    stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(slow.grpc))

    def metadata():
        try:
            stub.ModelMetadata(service_pb2.ModelMetadataRequest(name="quick"))
        except grpc.RpcError as error:
            return error

    error = eventually("the client sends too much over gRPC", metadata)
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert 0 < int(dict(error.trailing_metadata())["grpc-retry-pushback-ms"]) <= 500
    # After a while there is one more.
    eventually("a request is taken again", lambda: metadata() is None)
    assert metric(slow, "client_rate") >= 2


def test_the_load_tool_counts_refusals_as_errors(slow):
    command = [servers.galatea_binary(), "perf", "-m", "quick", "-u", slow.http, "--shape", "INPUT0:4", "--request-count=100"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert said.returncode != 0
    assert "this client sends more than its limit of 2 requests a second" in said.stdout + said.stderr


def test_bytes_in_progress_are_limited_with_and_without_a_length(narrow):
    server = narrow
    long = {"inputs": [clients.tensor_json("INPUT0", ARRAY)], "id": "x" * 3000}
    # What is iterated over is sent in chunks.
    for sent in (long, iter([json.dumps(long).encode()])):
        status, _, body = clients.ask(server.http, "POST", "/v2/models/quick/infer", sent)
        assert status == 429 and b"2048 bytes of requests in progress (--client-max-request-bytes)" in body, (status, body)
    with pytest.raises(grpcclient.InferenceServerException, match="2048 bytes of requests"):
        clients.client(server, "grpc").infer("quick", clients.inputs(grpcclient, {"INPUT0": ARRAY}), request_id="x" * 3000)
    assert ask(server.http, "quick")[0] == 200
    assert metric(server, "client_bytes") == 3


def test_an_identity_is_one_client_across_protocols(models, tmp_path):
    names = {"greedy": "infer", "modest": "infer", "admin": "admin"}
    policy = tmp_path / "policy.toml"
    policy.write_text("".join(key_entry(name, f"secret-of-{name}", [role]) for name, role in names.items()))
    flags = ("--client-requests-per-second=0.001:2", f"--auth-policy={policy}")
    with servers.galatea(models, *flags) as server:
        greedy = bearer("secret-of-greedy")
        assert [ask(server.http, "quick", greedy)[0] for _ in range(3)] == [200, 200, 429]
        header = "Authorization: Bearer secret-of-greedy"
        assert curl(server, "quick", "--interface", "127.0.0.2", "-H", header)[0] == "429"
        assert [ask(server.http, "quick", bearer("secret-of-modest"))[0] for _ in range(3)] == [200, 200, 429]
