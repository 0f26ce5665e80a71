"""Limits per client: 429 with Retry-After, RESOURCE_EXHAUSTED with a pushback, and nothing of it for another client."""

import json
import re
import subprocess
import threading
import time

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.grpc import service_pb2, service_pb2_grpc

import clients
import servers
from auth_cases import bearer, key_entry
from repositories import identity_config, write_model

# So long that every other request of a test is answered meanwhile.
SLOW = 'parameters { key: "execute_delay_ms" value { string_value: "1500" } }\n'
ARRAY = np.zeros([1, 4], np.float32)
BODY = {"inputs": [clients.tensor_json("INPUT0", ARRAY)]}
REQUESTS = re.compile(r"this client has as much in hand as it may, 2 requests \(--client-max-concurrent-requests\)")
RATE = re.compile(r"this client sends more than the 2 requests a second that it may \(--client-requests-per-second\)")
COUNTED = 'galatea_requests_refused_total{reason="%s"}'


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    path = tmp_path_factory.mktemp("limits") / "models"
    write_model(path, "quick", "galatea", "identity", identity_config(dims="4", max_batch_size=2))
    more = SLOW + "instance_group { count: 8 kind: KIND_CPU }\n"
    write_model(path, "slow", "galatea", "identity", identity_config(dims="4", max_batch_size=2, more=more))
    return path


def ask(address, model, headers=None):
    return clients.ask(address, "POST", f"/v2/models/{model}/infer", BODY, headers or {})


def metric(server, reason):
    page = clients.ask(server.metrics, "GET", "/metrics")[2].decode()
    return int(re.search(f"^{re.escape(COUNTED % reason)} (.+)$", page, re.MULTILINE)[1])


def in_flight(server):
    page = clients.ask(server.metrics, "GET", "/metrics")[2].decode()
    return int(re.search(r'^galatea_inference_requests_in_flight{model="slow".*} (.+)$', page, re.MULTILINE)[1])


class InHand:
    """Requests to the slow model that are in hand until this ends."""

    def __init__(self, server, count, headers=None):
        self.replies = []
        self.threads = [threading.Thread(target=lambda: self.replies.append(ask(server.http, "slow", headers)[0])) for _ in range(count)]
        for thread in self.threads:
            thread.start()
        # Another request would take the place of one of them.
        while in_flight(server) < count:
            assert all(thread.is_alive() for thread in self.threads), "they were answered before they were counted"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for thread in self.threads:
            thread.join()
        assert self.replies == [200] * len(self.threads)


def refused(address, model="quick", headers=None):
    status, given, body = ask(address, model, headers)
    return status, given, body.decode()


def test_requests_in_hand_of_one_client(models):
    with servers.galatea(models, "--client-max-concurrent-requests=2") as server:
        with InHand(server, 2):
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


def test_requests_a_second_and_the_wait_that_is_said(models):
    with servers.galatea(models, "--client-requests-per-second=2:3") as server:
        assert [ask(server.http, "quick")[0] for _ in range(3)] == [200] * 3
        status, given, text = refused(server.http)
        assert status == 429 and RATE.search(text), text
        assert int(given["Retry-After"]) == 1
        stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(server.grpc))
        with pytest.raises(grpc.RpcError) as error:
            stub.ModelMetadata(service_pb2.ModelMetadataRequest(name="quick"))
        assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        pushback = int(dict(error.value.trailing_metadata())["grpc-retry-pushback-ms"])
        assert 0 < pushback <= 500
        # What is asked for is what is meant: after that time there is one more.
        time.sleep(pushback / 1000)
        stub.ModelMetadata(service_pb2.ModelMetadataRequest(name="quick"))
        assert metric(server, "client_rate") >= 2


def test_each_request_of_a_stream_counts(models):
    with servers.galatea(models, "--connection-max-concurrent-requests=2") as server:
        message = service_pb2.ModelInferRequest(model_name="slow", raw_input_contents=[ARRAY.tobytes()])
        tensor = message.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 4])
        assert tensor.name
        stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(server.grpc))
        replies = list(stub.ModelStreamInfer(iter([message] * 4), timeout=60))
        texts = [reply.error_message for reply in replies]
        assert texts[:2] == ["", ""], "the stream goes on"
        assert len(texts) == 4 and all("this connection has as much in hand as it may, 2 requests" in text for text in texts[2:])
        # Another connection of the same client has its own.
        assert ask(server.http, "quick")[0] == 200
        assert metric(server, "connection_requests") == 2


def test_bytes_in_hand_with_and_without_a_length(models):
    with servers.galatea(models, "--client-max-request-bytes=2K") as server:
        long = {"inputs": [clients.tensor_json("INPUT0", ARRAY)], "id": "x" * 3000}
        # What is iterated over is sent in chunks.
        for sent in (long, iter([json.dumps(long).encode()])):
            status, _, body = clients.ask(server.http, "POST", "/v2/models/quick/infer", sent)
            assert status == 429 and b"2048 bytes of requests (--client-max-request-bytes)" in body, (status, body)
        with pytest.raises(grpcclient.InferenceServerException, match="2048 bytes of requests"):
            clients.client(server, "grpc").infer("quick", clients.inputs(grpcclient, {"INPUT0": ARRAY}), request_id="x" * 3000)
        assert ask(server.http, "quick")[0] == 200
        assert metric(server, "client_bytes") == 3


def test_an_identity_is_one_client_wherever_it_is(models, tmp_path):
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


def test_the_load_tool_counts_them_as_errors(models):
    with servers.galatea(models, "--client-requests-per-second=5") as server:
        command = [servers.galatea_binary(), "perf", "-m", "quick", "-u", server.http, "--shape", "INPUT0:4", "--request-count=20"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert said.returncode != 0
        assert "this client sends more than the 5 requests a second" in said.stdout + said.stderr
