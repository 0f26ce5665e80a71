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
