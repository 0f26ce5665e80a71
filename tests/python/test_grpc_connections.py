"""How gRPC connections live and end: by hand and with the stock client, ours beside the real Triton."""

import contextlib
import time

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

import raw_http2
import repositories
import servers

REPEAT = """
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
SLOW = """
import time

import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            value = pb.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            time.sleep(float(value[0]))
            answers.append(pb.InferenceResponse([pb.Tensor("OUTPUT0", value)]))
        return answers
"""
needs_triton = pytest.mark.skipif(not servers.has_triton(), reason="the real Triton could not be installed here")
both = pytest.mark.parametrize("target", ["galatea", pytest.param("triton", marks=needs_triton)])


@contextlib.contextmanager
def server(target, folder, *flags):
    repositories.write_model(folder, "slow", target, "python", REPEAT, {"1/model.py": SLOW})
    with servers.TARGETS[target](folder, *flags) as running:
        yield running


def wait_of(seconds):
    data = np.array([seconds], dtype=np.float32)
    tensor = grpcclient.InferInput("INPUT0", data.shape, "FP32")
    tensor.set_data_from_numpy(data)
    return [tensor]


def open_by_hand(running):
    host, port = running.grpc.rsplit(":", 1)
    return raw_http2.Connection((host, int(port)))


@both
def test_an_old_connection_is_asked_to_go_and_its_client_goes_on(target, tmp_path):
    with server(target, tmp_path, "--grpc-max-connection-age=400") as running:
        connection = open_by_hand(running)
        began = time.monotonic()
        assert connection.wait(lambda: connection.went_away is not None)
        assert (connection.went_away[0], 0.3 < time.monotonic() - began < 3) == (0, True)
        with grpcclient.InferenceServerClient(running.grpc) as client:
            # Longer than the age: without a grace calls go on as long as they take.
            assert client.infer("slow", wait_of(1.5)).as_numpy("OUTPUT0")[0] == 1.5
            deadline = time.monotonic() + 2
            while time.monotonic() < deadline:
                client.infer("slow", wait_of(0))


@both
def test_calls_on_an_old_connection_end_with_the_grace(target, tmp_path):
    flags = "--grpc-max-connection-age=400", "--grpc-max-connection-age-grace=300"
    with server(target, tmp_path, *flags) as running:
        with grpcclient.InferenceServerClient(running.grpc) as client:
            began = time.monotonic()
            with pytest.raises(grpcclient.InferenceServerException) as error:
                client.infer("slow", wait_of(4))
            assert error.value.status() == "StatusCode.UNAVAILABLE"
            assert 0.5 < time.monotonic() - began < 3.5


@both
def test_connections_live_on_by_default(target, tmp_path):
    with server(target, tmp_path, "--grpc-max-connection-age-grace=1") as running:
        connection = open_by_hand(running)
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
        before = self.connection.seen.get(raw_http2.DATA, 0)
        self.connection.open(stream, "ServerLive")
        self.connection.send(raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, stream, raw_http2.message(b"")))
        assert self.connection.wait(lambda: self.connection.seen.get(raw_http2.DATA, 0) > before)
        time.sleep(0.05)  # the end of the call, behind its data


@both
def test_too_many_pings_end_the_connection(target, tmp_path):
    with server(target, tmp_path) as running:
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


@both
@pytest.mark.parametrize(("flags", "has_call", "borne"), [
    (["--grpc-http2-max-ping-strikes=0"], False, 8),
    (["--grpc-http2-max-ping-strikes=1"], False, 3),
    (["--grpc-http2-min-recv-ping-interval-without-data=20"], False, 4),
    (["--grpc-http2-min-recv-ping-interval-without-data=20"], True, 8),
    (["--grpc-http2-min-recv-ping-interval-without-data=20", "--grpc-keepalive-permit-without-calls=true"], False, 8),
    (["--grpc-keepalive-permit-without-calls=true"], False, 4),
])
def test_flags_say_how_many_pings_are_borne(target, flags, has_call, borne, tmp_path):
    with server(target, tmp_path, *flags) as running:
        pings = Pings(running)
        if has_call:
            pings.connection.open(1, "ModelInfer")
        assert pings.borne() == borne


@both
def test_a_long_message_is_taken_both_ways(target, tmp_path):
    repositories.write_model(tmp_path, "identity", target, "identity", REPEAT)
    data = np.arange(20_000_000, dtype=np.float32)
    tensor = grpcclient.InferInput("INPUT0", data.shape, "FP32")
    tensor.set_data_from_numpy(data)
    flags = ["--grpc-max-message-size=2147483647"] if target == "galatea" else []
    with servers.TARGETS[target](tmp_path, *flags) as running, grpcclient.InferenceServerClient(running.grpc) as client:
        assert np.array_equal(client.infer("identity", [tensor]).as_numpy("OUTPUT0"), data)
