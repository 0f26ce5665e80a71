"""How gRPC connections live and end: by hand and with the stock client, ours beside the real Triton."""

import os
import queue

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

import raw_http2
import repositories
import tiers

LIMIT = 60

TENSORS = """
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
# Answers a request when the test has opened the file beside its repository for writing, where its value is not 0.
WAITS = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            value = pb.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            if value[0]:
                open({gate!r}).close()
            answers.append(pb.InferenceResponse([pb.Tensor("OUTPUT0", value)]))
        return answers
"""


@pytest.fixture
def gate(tmp_path):
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


@pytest.fixture
def server(stage, gate):
    """A server of that kind with the model `waits`."""

    def write(folder, target):
        repositories.write_model(folder, "waits", target, "python", TENSORS, {"1/model.py": WAITS.format(gate=str(gate))})

    return lambda target, *flags: stage.get(target, write, *flags)


def value_of(value):
    data = np.array([value], dtype=np.float32)
    tensor = grpcclient.InferInput("INPUT0", data.shape, "FP32")
    tensor.set_data_from_numpy(data)
    return [tensor]


def open_by_hand(running):
    host, port = running.grpc.rsplit(":", 1)
    return raw_http2.Connection((host, int(port)))


@tiers.both
def test_an_old_connection_is_closed_without_failing_its_client(target, server, gate):
    running = server(target, "--grpc-max-connection-age=400")
    with grpcclient.InferenceServerClient(running.grpc) as client:
        answers = queue.Queue()
        client.async_infer("waits", value_of(1), lambda result, error: answers.put(result or error))
        connection = open_by_hand(running)
        assert connection.wait(lambda: connection.went_away is not None, LIMIT)
        assert connection.went_away[0] == 0
        # Its connection is older than the other: without a grace calls go on as long as they take.
        gate.write_text("")
        assert answers.get(timeout=LIMIT).as_numpy("OUTPUT0")[0] == 1
        for _ in range(3):
            connection = open_by_hand(running)
            client.infer("waits", value_of(0))
            assert connection.wait(lambda: connection.went_away is not None, LIMIT)


@tiers.both
def test_calls_on_an_old_connection_end_after_the_grace_period(target, server, gate):
    running = server(target, "--grpc-max-connection-age=400", "--grpc-max-connection-age-grace=300")
    with grpcclient.InferenceServerClient(running.grpc) as client:
        with pytest.raises(grpcclient.InferenceServerException) as error:
            client.infer("waits", value_of(1))
        assert error.value.status() == "StatusCode.UNAVAILABLE"
    gate.write_text("")


@tiers.measure
@pytest.mark.parametrize("target", ["galatea", "triton"])
def test_connections_have_no_age_limit_by_default(target, server):
    connection = open_by_hand(server(target, "--grpc-max-connection-age-grace=1"))
    assert not connection.wait(lambda: connection.went_away is not None, 1.0)
    assert not connection.closed


class Pings:
    """Pings by hand, one after another, on a connection of its own."""

    def __init__(self, running):
        self.connection = open_by_hand(running)
        # All that a server sends at the start: its settings, the acknowledgement of ours, its window.
        seen = self.connection.seen
        assert self.connection.wait(lambda: seen.get(raw_http2.SETTINGS, 0) == 2 and raw_http2.WINDOW in seen)

    def borne(self, gap=0.05, most=8):
        """How many were sent until the server ended the connection, or `most`."""
        for number in range(1, most + 1):
            answered = self.connection.seen.get(raw_http2.PING, 0)
            self.connection.send(raw_http2.frame(raw_http2.PING, 0, 0, b"are you?"))
            # A busy machine may answer late: the next ping waits for the answer, and no less than the gap.
            assert self.connection.wait(lambda: self.has_gone() or self.connection.seen.get(raw_http2.PING, 0) > answered)
            if self.connection.wait(self.has_gone, gap):
                return number
        return most

    def has_gone(self):
        return self.connection.went_away is not None

    def call(self, stream):
        """A call that is answered."""
        before = self.connection.seen.get(raw_http2.HEADERS, 0)
        self.connection.open(stream, "ServerLive")
        self.connection.send(raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, stream, raw_http2.message(b"")))
        # The end of the call comes behind its data.
        assert self.connection.wait(lambda: self.connection.seen.get(raw_http2.HEADERS, 0) >= before + 2, LIMIT)


@tiers.both
def test_too_many_pings_end_the_connection(target, server):
    running = server(target)
    pings = Pings(running)
    assert pings.borne() == 4
    assert pings.connection.went_away == (11, "too_many_pings")
    assert pings.connection.wait(lambda: pings.connection.closed)
    # What is sent to the client clears it.
    pings = Pings(running)
    for stream in (1, 3, 5, 7):
        assert pings.borne(most=2) == 2 and pings.connection.went_away is None
        pings.call(stream)
    assert pings.borne() == 4


FEW, SHORT = "--grpc-http2-max-ping-strikes=1", "--grpc-http2-min-recv-ping-interval-without-data=20"
ALWAYS = "--grpc-keepalive-permit-without-calls=true"


@pytest.mark.parametrize(("flags", "has_call", "borne"), [
    ([FEW, SHORT], False, 3),
    ([FEW, SHORT], True, 8),
    *[pytest.param(*case, marks=tiers.peers) for case in (
        (["--grpc-http2-max-ping-strikes=0"], False, 8),
        ([FEW], False, 3),
        ([SHORT], False, 4),
        ([SHORT], True, 8),
        ([SHORT, ALWAYS], False, 8),
        ([ALWAYS], False, 4),
    )],
])
@tiers.both
def test_flags_set_the_number_of_tolerated_pings(target, flags, has_call, borne, server):
    pings = Pings(server(target, *flags))
    if has_call:
        pings.connection.open(1, "ModelInfer")
    assert pings.borne() == borne


@tiers.both
def test_a_long_message_is_accepted_in_both_directions(target, stage):
    """The message exceeds the default limit, which a flag raises here."""
    flags = ["--grpc-max-message-size=2147483647"] if target == "galatea" else []
    running = stage.get(target, lambda folder, target: repositories.write_model(folder, "identity", target, "identity", TENSORS), *flags)
    data = np.arange(20_000_000, dtype=np.float32)
    tensor = grpcclient.InferInput("INPUT0", data.shape, "FP32")
    tensor.set_data_from_numpy(data)
    with grpcclient.InferenceServerClient(running.grpc) as client:
        assert np.array_equal(client.infer("identity", [tensor]).as_numpy("OUTPUT0"), data)
