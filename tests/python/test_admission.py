"""Overload: requests that a model has no time for get 503 or UNAVAILABLE, with the time of another attempt; others are answered."""

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

import clients
import servers
from repositories import write_model
from test_python_queue import CONFIG, GATE, Gates, instances
from waiting import LIMIT, eventually

LIMIT_OF_ONE_INSTANCE = 2
BURST = 4 * LIMIT_OF_ONE_INSTANCE
SENT = 12
FULL = "model 'gate' is overloaded: its 2 places for requests in progress are taken (--admission); try again later"
# More than the server needs to know how fast a model is.
ENOUGH = 250


@pytest.fixture
def gates(tmp_path):
    write_model(tmp_path / "models", "gate", "galatea", "python", CONFIG + instances(1), {"1/model.py": GATE})
    with servers.galatea(tmp_path / "models", "--admission=on") as server:
        yield Gates(server, tmp_path, "gate")


def message(name):
    asked = service_pb2.ModelInferRequest(model_name="gate")
    asked.inputs.add(name="IN", datatype="BYTES", shape=[1]).contents.bytes_contents.append(name.encode())
    return asked


def stub(server):
    return service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(server.grpc))


def figure(server, name, *labels):
    found = clients.metrics(server).items()
    wanted = ('model="gate"', *labels)
    return next(value for (metric, given), value in found if metric == name and all(label in given for label in wanted))


def refused(server):
    return figure(server, "galatea_inference_requests_refused_total", 'reason="overload"')


def in_flight(server):
    return figure(server, "galatea_inference_requests_in_flight")


def ask(server, name="", headers=None, **parameters):
    body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "BYTES", "data": [name]}], "parameters": parameters}
    status, given, text = clients.ask(server.http, "POST", "/v2/models/gate/infer", body, headers or {})
    return status, given, text.decode()


def test_a_full_model_refuses_with_a_time_to_retry(gates, tmp_path):
    server, name = gates.server, str(tmp_path / "held")
    first = gates.begin("held")
    with ThreadPoolExecutor(2 * SENT) as threads:
        over_http = [threads.submit(ask, server, name) for _ in range(SENT)]
        over_grpc = [stub(server).ModelInfer.future(message(name), timeout=LIMIT) for _ in range(SENT)]
        eventually("each waits or is refused", lambda: in_flight(server) + refused(server) == 1 + 2 * SENT)
        assert LIMIT_OF_ONE_INSTANCE <= in_flight(server) <= BURST
        assert figure(server, "galatea_admission_limit") == LIMIT_OF_ONE_INSTANCE
        gates.permit("held")
        answers = [answer.result(LIMIT) for answer in over_http]
    assert [answer.result(LIMIT) for answer in first] == [200]
    no = [(given, text) for status, given, text in answers if status == 503]
    assert len(no) >= SENT - BURST and len(no) == sum(status != 200 for status, _, _ in answers)
    assert all(given["Retry-After"] == "1" and FULL in text for given, text in no), no
    errors = [error for answer in over_grpc if (error := answer.exception(LIMIT))]
    assert len(errors) >= SENT - BURST
    assert {error.code() for error in errors} == {grpc.StatusCode.UNAVAILABLE}
    assert all(FULL in error.details() for error in errors)
    assert all(int(dict(error.trailing_metadata())["grpc-retry-pushback-ms"]) >= 1 for error in errors)
    assert refused(server) == len(no) + len(errors)
    # The model has nothing to do now.
    assert ask(server)[0] == 200


def test_a_request_that_would_be_late_is_refused(gates):
    server = gates.server
    assert {ask(server)[0] for _ in range(ENOUGH)} == {200}
    assert ask(server, headers={"X-Request-Timeout-Ms": "0"})[0] == 200, "an idle model refuses nothing"
    held = gates.begin("held")
    for headers, parameters in (
        ({"X-Request-Timeout-Ms": "0"}, {}),
        ({"x-envoy-expected-rq-timeout-ms": "0"}, {}),
        ({}, {"timeout": 1}),
    ):
        status, given, text = ask(server, headers=headers, **parameters)
        assert (status, given["Retry-After"]) == (503, "1"), text
        assert "model 'gate' is overloaded: the answer would come in about" in text and "the client waits for 0 ms" in text
    count = refused(server)

    def has_refused():
        with pytest.raises(grpc.RpcError):
            stub(server).ModelInfer(message(""), timeout=0.002)
        return refused(server) > count

    eventually("a call is refused for its deadline", has_refused)
    # A number that is none says nothing, and a long time is enough.
    waiting = gates.threads.submit(ask, server, "", {"X-Request-Timeout-Ms": "soon"})
    patient = gates.threads.submit(ask, server, "", {"X-Request-Timeout-Ms": "600000"})
    gates.permit("held")
    assert [answer.result(LIMIT) for answer in held] == [200]
    assert [waiting.result(LIMIT)[0], patient.result(LIMIT)[0]] == [200, 200]


def test_without_the_option_every_request_waits(gates, tmp_path):
    with servers.galatea(tmp_path / "models") as server:
        plain = Gates(server, tmp_path, "gate")
        answers = plain.begin("off") + [plain.send("off", timeout=1) for _ in range(2 * BURST)]
        eventually("all wait", lambda: in_flight(server) == len(answers))
        plain.permit("off")
        assert [answer.result(LIMIT) for answer in answers] == [200] * len(answers)
        assert "galatea_admission_limit" not in {name for name, _ in clients.metrics(server)}
