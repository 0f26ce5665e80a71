"""What a stranger can send, in small: the server lives, its memory stays within a few times the bytes it was sent, and
other clients have their answers. `cargo xtask attack` plays the same at full size, and docs/security.md has the table."""

import json
import os
import signal
from pathlib import Path

import grpc
import onnx
import pytest
from onnx import TensorProto, helper
from tritonclient.grpc import service_pb2, service_pb2_grpc

import clients
import processes
import raw_http
import raw_http2
import shared_files
import shared_flags
from repositories import add_sub_config, identity_config, tensor
from waiting import LIMIT, eventually

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("observed")
# How many bytes the server may hold for each byte of a request, and what it needs in any case.
FACTOR, SLACK = 4, 24 * 1024 * 1024
SECRET = "secret-of-the-host"
SLOW = 'parameters { key: "execute_delay_ms" value { string_value: "300" } }\n'
# Is being loaded until a file of this name lies in its version.
SLOW_LOAD = """\
import os
import time


class TritonPythonModel:
    def initialize(self, args):
        while not os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), "go")):
            time.sleep(0.005)

    def execute(self, requests):
        return []
"""
NO_ANSWER = 0


def with_models(server):
    """The server, with the models that the tests of security ask."""
    server.place("simple", "add_sub", add_sub_config())
    server.place("vector", "identity", identity_config())
    server.place("strings", "identity", identity_config("TYPE_STRING"))
    server.place("slow", "identity", identity_config(more=SLOW))
    serves_on(server)
    return server


@pytest.fixture
def server(shared):
    return with_models(shared())


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def serves_on(server):
    """Another client has its answer."""
    assert server.process.poll() is None, f"the server ended: {server.process.returncode}"
    assert clients.ask(server.http, "POST", "/v2/models/simple/infer", clients.pair_json())[0] == 200


class Memory:
    """The most memory the server held since `Memory(server)`, in bytes beyond what it held then."""

    def __init__(self, server):
        self.pid = server.pid
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        self.before = self._field("VmRSS")

    def _field(self, name):
        return int(processes.status(self.pid)[name].split()[0]) * 1024

    def grown(self):
        return self._field("VmHWM") - self.before

    def within(self, sent):
        assert self.grown() <= FACTOR * sent + SLACK, f"{self.grown()} bytes held for {sent} sent"


def post(server, path, body, timeout=30):
    return raw_http.exchange(address(server.http), raw_http.post(path, body), timeout)


def load(server, model, config=None, timeout=15):
    """(status, text); a status of 0 says that there was no answer in time."""
    parameters = {"parameters": {"config": json.dumps(config)}} if config else {}
    status, text = post(server, f"/v2/repository/models/{model}/load", json.dumps(parameters).encode(), timeout)
    return status, text.decode()


def call(server, method, payload):
    with grpc.insecure_channel(server.grpc, options=[("grpc.max_send_message_length", -1)]) as channel:
        try:
            channel.unary_unary(raw_http2.SERVICE + method)(payload, timeout=30)
        except grpc.RpcError as error:
            return error.code().name
    return "OK"


def vector_config(**more):
    return {
        "name": "vector", "backend": "identity",
        "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
        "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1], **more.pop("output", {})}],
        **more,
    }


# ---- what requests make the server hold


def test_claimed_string_counts_allocate_no_memory(server):
    """Many inputs each claim a hundred million strings."""
    claim = b'{"name":"I%d","shape":[99999999],"datatype":"BYTES","data":[""]}'
    body = b'{"inputs":[' + b",".join(claim % number for number in range(100_000)) + b"]}"
    memory = Memory(server)
    status, _ = post(server, "/v2/models/strings/infer", body)
    assert status == 400
    memory.within(len(body))
    serves_on(server)


@pytest.mark.parametrize("field", [5, 6], ids=["inputs", "outputs"])
def test_empty_grpc_fields_cost_little_memory(server, field):
    """Each field has two bytes on the wire and about 140 once decoded."""
    payload = service_pb2.ModelInferRequest(model_name="vector").SerializeToString() + bytes([field << 3 | 2, 0]) * 4_000_000
    memory = Memory(server)
    assert call(server, "ModelInfer", payload) in ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED")
    memory.within(len(payload))
    serves_on(server)


def small_request(model):
    request = service_pb2.ModelInferRequest(model_name=model, raw_input_contents=[bytes(4)])
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[1])
    return raw_http2.message(request.SerializeToString())


def test_a_stream_is_read_ahead_up_to_a_limit(server):
    """20 MB of tiny requests to a slow model: reading stops instead of the memory growing."""
    one = small_request("slow")
    connection = raw_http2.Connection(address(server.grpc), initial_window=1 << 30)
    memory = Memory(server)
    connection.open(1, "ModelStreamInfer")
    taken = connection.send_data(1, one * (20_000_000 // len(one)), patience=1.0)
    grown = memory.grown()
    connection.close()
    assert taken < 10_000_000, "all was read"
    assert grown <= SLACK, f"{grown} bytes held for a stream"
    serves_on(server)


def test_the_number_of_streams_of_a_connection_is_limited(server):
    """20,000 half-open streams on one connection, whatever the server allows: all but 1,000 are refused, or all end."""
    block = raw_http2.call("ModelInfer")
    connection = raw_http2.Connection(address(server.grpc))
    for first in range(0, 20_000, 500):
        connection.send(b"".join(
            raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 2 * (first + n) + 1, block) for n in range(500)
        ))
    connection.send(raw_http2.frame(raw_http2.PING, 0, 0, bytes(8)))
    connection.wait(lambda: raw_http2.PING in connection.seen)
    refused = connection.seen.get(raw_http2.RESET, 0)
    assert connection.closed or connection.went_away or refused >= 19_000, f"{refused} of 20,000 streams were refused"
    connection.close()
    serves_on(server)


def test_classification_of_a_large_tensor_costs_little_memory(server):
    """The tensor has as many numbers as the server ranks at most."""
    count = 1_000_000
    outputs = [{"name": "OUTPUT0", "parameters": {"classification": 1, "binary_data": True}}]
    inputs = [{"name": "INPUT0", "shape": [count], "datatype": "FP32", "parameters": {"binary_data_size": 4 * count}}]
    document = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    sent = raw_http.post("/v2/models/vector/infer", document + bytes(4 * count), Inference_Header_Content_Length=len(document))
    memory = Memory(server)
    status, _ = raw_http.exchange(address(server.http), sent)
    assert status == 200
    memory.within(len(sent))


# ---- configurations that come with a load


def test_long_bodies_of_many_clients_stay_within_the_budget(shared):
    """Refused bodies free their memory at once; waiting ones count. At most twice the budget is in use."""
    server = shared(*shared_flags.narrow())
    server.place("vector", "identity", identity_config())
    # What comes in, what goes out and what is ranked fit together where one client asks.
    size = 4_000_000
    tensors = {
        "inputs": [{"name": "INPUT0", "shape": [size // 4], "datatype": "FP32", "parameters": {"binary_data_size": size}}],
        "outputs": [{"name": "OUTPUT0", "parameters": {"classification": 1}}],
    }
    text = json.dumps(tensors).encode()
    request = raw_http.post("/v2/models/vector/infer", text + bytes(size), Inference_Header_Content_Length=len(text))
    memory = Memory(server)
    assert raw_http.exchange(address(server.http), request)[0] == 200
    statuses = raw_http.together(10, lambda _: raw_http.exchange(address(server.http), request)[0])
    assert {200, 503}.issuperset(statuses), raw_http.statuses(statuses)
    assert memory.grown() < 2 * (32 << 20), memory.grown()


def test_inputs_in_shared_memory_count_once(shared):
    """They are no part of the body and may be longer than one. Of the memory budget they take their bytes."""
    server, size = shared(*shared_flags.narrow()), 20 << 20
    server.place("vector", "identity", identity_config("TYPE_UINT8"))
    with shared_files.SharedFiles() as files:
        files.write("in", b"\1", size=2 * size)
        region = {"key": files.key("in"), "byte_size": 2 * size}
        assert clients.ask(server.http, "POST", "/v2/systemsharedmemory/region/security/register", region)[0] == 200

        def ask(bytes_in):
            place = {"shared_memory_region": "security", "shared_memory_byte_size": bytes_in}
            output = {"shared_memory_region": "security", "shared_memory_byte_size": bytes_in}
            body = {
                "inputs": [{"name": "INPUT0", "datatype": "UINT8", "shape": [bytes_in], "parameters": place}],
                "outputs": [{"name": "OUTPUT0", "parameters": output}],
            }
            status, _, text = clients.ask(server.http, "POST", "/v2/models/vector/infer", body)
            return status, text.decode()

        assert ask(size)[0] == 200
        status, text = ask(2 * size)
        assert status == 503 and "memory" in text, text
        assert clients.ask(server.http, "POST", "/v2/systemsharedmemory/region/security/unregister", "")[0] == 200


def test_label_files_must_lie_in_the_model_folder(server, tmp_path_factory):
    secret = tmp_path_factory.mktemp("host") / "secret.txt"
    secret.write_text(f"{SECRET}\n{SECRET}\n")
    relative = os.path.relpath(secret, server.repository / "vector")
    classify = {
        "inputs": [{"name": "INPUT0", "shape": [2], "datatype": "FP32", "data": [1, 2]}],
        "outputs": [{"name": "OUTPUT0", "parameters": {"classification": 2}}],
    }
    for path in (str(secret), relative):
        status, text = load(server, "vector", vector_config(output={"label_filename": path}))
        assert status in (400, 500) and SECRET not in text, f"{path}: {status} {text}"
        assert SECRET not in clients.ask(server.http, "POST", "/v2/models/vector/infer", classify)[2].decode()


def test_label_files_must_be_regular_files(server):
    """Opening a FIFO would block for ever; a sparse file of 2 GB would be read whole."""
    os.mkfifo(server.repository / "vector/fifo")
    with open(server.repository / "vector/huge.txt", "wb") as file:
        file.truncate(2_000_000_000)
    for path in ("fifo", "huge.txt", "1"):
        status, _ = load(server, "vector", vector_config(output={"label_filename": path}))
        assert status in (400, 500), path
    assert load(server, "strings")[0] == 200


HUGE = (1_000_000_000_000, 2_000_000_000, 2**64 - 1)


def test_huge_counts_are_refused(server):
    for number in HUGE:
        status, text = load(server, "vector", vector_config(instance_group=[{"count": number, "kind": "KIND_CPU"}]))
        assert status in (400, 500), f"{number}: {status} {text}"
        serves_on(server)


def test_huge_numbers_of_priority_levels_cost_no_memory(server):
    """A level exists while it has requests."""
    for number in HUGE:
        levels = {"priority_levels": number, "default_priority_level": 1}
        status, text = load(server, "vector", vector_config(max_batch_size=8, dynamic_batching=levels))
        assert status == 200, f"{number}: {status} {text}"
        serves_on(server)


# ---- loads


def test_failed_loads_leave_no_memory(server):
    """Loads unknown models with names of 60 KB."""
    memory = Memory(server)
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        for number in range(400):
            with pytest.raises(grpc.RpcError):
                stub.RepositoryModelLoad(service_pb2.RepositoryModelLoadRequest(model_name=f"{number:05d}" + "n" * 60_000))
        listed = [model.name for model in stub.RepositoryIndex(service_pb2.RepositoryIndexRequest()).models]
    assert "simple" in listed and not [name for name in listed if name.endswith("nnn")]
    assert memory.grown() < 16 * 1024 * 1024


def test_waiting_loads_block_no_other_calls(server):
    """1,200 loads of one slow model, more than a pool of threads has."""
    folder = server.place("late", "python", identity_config(), load=False, files={"1/model.py": SLOW_LOAD})
    held = raw_http.many(address(server.http), 1200, raw_http.post("/v2/repository/models/late/load", b"{}"))
    try:
        for path in ("/v2/repository/index", "/v2/repository/models/vector/load"):
            assert post(server, path, b"{}", LIMIT)[0] == 200, path
        ready = raw_http.head("GET", "/v2/models/vector/ready")
        assert raw_http.exchange(address(server.http), ready, LIMIT)[0] == 200
        serves_on(server)
    finally:
        (folder / "1/go").touch()
        raw_http.close(held)
    running = "galatea_control_operations_running", 'operation="load"'
    eventually("no load goes on", lambda: clients.metrics(server)[running] == 0)


@pytest.mark.parametrize("body", [b"[]", b"5", b'"text"', b"true", b'{"parameters":[]}'])
def test_load_bodies_must_be_objects(server, body):
    assert post(server, "/v2/repository/models/vector/load", body)[0] in (400, 500)


def test_errors_do_not_reveal_host_paths(server):
    raises = tensor("output", "OUT", "TYPE_INT32", "1")
    server.place("broken", "onnxruntime", "", load=False, files={"1/model.onnx": "no model"})
    server.place("no_text", "identity", "input: 3", load=False)
    server.place("raises", "python", raises, load=False, files={"1/model.py": "import nowhere\n"})
    for model in ("broken", "no_text", "raises", "absent"):
        status, text = load(server, model, timeout=LIMIT)
        assert status >= 400 and str(server.repository) not in text, text
    assert str(server.repository) not in clients.ask(server.http, "POST", "/v2/repository/index", {})[2].decode()


# ---- connections


def test_half_sent_heads_and_bodies_time_out(shared):
    """100 connections of each kind, with time-outs of a second."""
    quick = shared("--connection-head-timeout-secs=1", "--connection-progress-timeout-secs=1")
    quick.place("simple", "add_sub", add_sub_config())
    quick.place("vector", "identity", identity_config())
    kinds = {
        "head over HTTP": (quick.http, b"POST /v2/models/vector/infer HTTP/1.1\r\nHost: x\r\nX-Half: "),
        "body over HTTP": (quick.http, raw_http.head("POST", "/v2/models/vector/infer", 100) + b"{"),
        "nothing over HTTP": (quick.http, b""),
        "nothing over gRPC": (quick.grpc, b""),
    }
    held = {what: raw_http.many(address(to), 100, sent) for what, (to, sent) in kinds.items()}
    for what, connections in held.items():
        for connection in connections:
            connection.settimeout(LIMIT)
            while connection.recv(65536):
                pass
        raw_http.close(connections)
        assert len(connections) == 100, what
    serves_on(quick)


WORKER = """\
import os

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("PID", np.array([os.getpid()], np.int32))]) for _ in requests]
"""


def worker(repository):
    (repository.path / "worker/1").mkdir(parents=True)
    (repository.path / "worker/1/model.py").write_text(WORKER)
    config = tensor("input", "IN", "TYPE_INT32", "1") + tensor("output", "PID", "TYPE_INT32", "1")
    (repository.path / "worker/config.pbtxt").write_text(f'backend: "python"\n{config}')


def worker_pid(server):
    """None while the model does not answer."""
    body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "INT32", "data": [0]}]}
    status, text = post(server, "/v2/models/worker/infer", json.dumps(body).encode())
    return json.loads(text)["outputs"][0]["data"][0] if status == 200 else None


def test_idle_clients_leave_descriptors_for_the_server(repository, serve):
    """256 descriptors, 224 idle clients: health, metrics and a new Python worker have theirs."""
    worker(repository)
    few = serve(repository.path, through=("prlimit", "--nofile=256:256"))
    pid = worker_pid(few)
    held = raw_http.many(address(few.http), 224, b"", keep_trying=True)
    try:
        for to, path in ((few.http, "/v2/health/live"), (few.metrics, "/metrics")):
            get = raw_http.head("GET", path, Connection="close")
            # While idle ones are closed to make room, a client may have to try again.
            eventually(f"{path} is answered", lambda: raw_http.exchange(address(to), get, LIMIT)[0] == 200)
        os.kill(pid, signal.SIGKILL)
        eventually("a new worker answers", lambda: worker_pid(few) not in (None, pid))
    finally:
        raw_http.close(held)


# ---- models


def test_a_division_overflow_fails_only_its_request(server):
    """The smallest INT32 divided by -1 in an ONNX model is a fault of the processor."""
    tensors = [helper.make_tensor_value_info(n, TensorProto.INT32, [None]) for n in ("A", "B", "C")]
    graph = helper.make_graph([helper.make_node("Div", ["A", "B"], ["C"])], "divide", tensors[:2], tensors[2:])
    config = "".join(tensor(kind, name, "TYPE_INT32", "-1") for kind, name in (("input", "A"), ("input", "B"), ("output", "C")))
    folder = server.place("divide", "onnxruntime", config, load=False)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "1/model.onnx")
    server.load("divide")

    def divide(by):
        body = {"inputs": [
            {"name": "A", "shape": [1], "datatype": "INT32", "data": [-2147483648]},
            {"name": "B", "shape": [1], "datatype": "INT32", "data": [by]},
        ]}
        return post(server, "/v2/models/divide/infer", json.dumps(body).encode())

    assert divide(2)[0] == 200
    assert divide(-1)[0] not in (NO_ANSWER, 200)
    assert server.process.poll() is None
    eventually("the model answers again", lambda: divide(2)[0] == 200)
