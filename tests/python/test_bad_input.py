"""Malformed configurations and requests: each refused with the right status and a message that names the thing,
and the server serves on. Malformed requests with Triton's own texts are in the scenarios; here is what only
raw bytes can say, and every configuration."""

import http.client
import json
import re
import socket

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2, service_pb2_grpc

import clients
import server_pool
import shared_flags
from repositories import add_sub_config, identity_config

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("observed")
IO = 'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ] output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
OUT = 'output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'

# name: (text after name and backend, what the log must say about it)
CONFIGS = {
    "unknown_field": ("inputs [ ]", "inputs"),
    "unknown_nested": ('input [ { title: "x" } ]', "title"),
    "near_miss": ('input_ [ { name: "x" } ]', "input_"),
    "text_for_number": ("max_batch_size: many\n" + IO, "many"),
    "float_for_number": ("max_batch_size: 1.5\n" + IO, "1.5"),
    "too_big_number": ("max_batch_size: 99999999999\n" + IO, "99999999999"),
    "number_for_text": ("default_model_filename: 3\n" + IO, "3"),
    "unknown_enum": ('input [ { name: "A" data_type: TYPE_FP31 dims: [ 1 ] } ]', "TYPE_FP31"),
    "open_brace": ('input [ { name: "A"', "open_brace"),
    "open_list": ("input [ { dims: [ 1, 2 } ]", "open_list"),
    "open_text": ('default_model_filename: "x\n' + IO, "open_text"),
    "stray": ("} " + IO, "stray"),
    "bad_character": ("@ " + IO, "@"),
    "bad_escape": ('default_model_filename: "\\xzz"\n' + IO, "escape"),
    "set_twice": ("max_batch_size: 1 max_batch_size: 2\n" + IO, "max_batch_size"),
    "two_schedulers": (IO + "dynamic_batching { } sequence_batching { }", "sequence_batching"),
    "scalar_for_message": ("dynamic_batching: 3\n" + IO, "dynamic_batching"),
    "negative_batch": ("max_batch_size: -1\n" + IO, "'max_batch_size' must be non-negative value for negative_batch"),
    "no_input_name": ("input [ { data_type: TYPE_FP32 dims: [ 1 ] } ]\n" + OUT, "model input must specify 'name' for no_input_name"),
    "no_output_name": (IO + "output [ { data_type: TYPE_FP32 dims: [ 1 ] } ]", "model output must specify 'name' for no_output_name"),
    "no_data_type": ('input [ { name: "A" dims: [ 1 ] } ]\n' + OUT, "must specify 'data_type' for no_data_type"),
    "no_dims": ('input [ { name: "A" data_type: TYPE_FP32 } ]\n' + OUT, "must specify 'dims' for no_dims"),
    "zero_dim": ('input [ { name: "A" data_type: TYPE_FP32 dims: [ 0 ] } ]\n' + OUT, "dimension must be integer >= 1, or -1"),
    "negative_dim": ('input [ { name: "A" data_type: TYPE_FP32 dims: [ -2 ] } ]\n' + OUT, "dimension must be integer >= 1, or -1"),
    "nhwc_rank": ('input [ { name: "A" data_type: TYPE_FP32 format: FORMAT_NHWC dims: [ 1, 2 ] } ]\n' + OUT, "require 3 dims"),
    "reshape_size": ('input [ { name: "A" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 5 ] } } ]\n' + OUT, "has different size for dims and reshape"),
    "reshape_zero": ('input [ { name: "A" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 0 ] } } ]\n' + OUT, "reshape dimensions must be integer >= 1"),
    "reshape_empty": ('input [ { name: "A" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } } ]\n' + OUT, "cannot have empty reshape for non-batching model"),
    "reshape_variable": ('input [ { name: "A" data_type: TYPE_FP32 dims: [ -1 ] reshape { shape: [ 2 ] } } ]\n' + OUT, "reshape"),
    "shape_tensor": ('input [ { name: "A" data_type: TYPE_INT32 dims: [ 1 ] is_shape_tensor: true } ]\n' + OUT, "shape tensors are only supported for TensorRT platform"),
    "preferred_too_big": ("max_batch_size: 4\n" + IO + "dynamic_batching { preferred_batch_size: [ 8 ] }", "dynamic batching preferred size must be <= max batch size for preferred_too_big"),
    "preferred_zero": ("max_batch_size: 4\n" + IO + "dynamic_batching { preferred_batch_size: [ 0 ] }", "dynamic batching preferred size must be positive for preferred_zero"),
    "default_priority": ("max_batch_size: 4\n" + IO + "dynamic_batching { priority_levels: 2 default_priority_level: 3 }", "default priority level must be in range [1, 2]"),
    "ordering_priorities": ("max_batch_size: 4\n" + IO + "dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }", "Only one priority level is allowed when 'preserve_ordering' is true"),
    "gpu_on_cpu": (IO + "instance_group [ { kind: KIND_GPU } ]", "gpu_on_cpu has kind KIND_GPU but "),
    "cpu_with_gpus": (IO + "instance_group [ { kind: KIND_CPU gpus: [ 0 ] } ]", "has kind KIND_CPU but specifies one or more GPUs"),
    "cpu_named_gpu": (IO + 'instance_group [ { kind: KIND_GPUS } ]', "KIND_GPUS"),
    "negative_delay": ("max_batch_size: 4\n" + IO + "dynamic_batching { max_queue_delay_microseconds: -1 }", "-1"),
    "another_name": ("", "unexpected directory name 'another_name' for model 'somebody'"),
}
UNKNOWN_BACKENDS = {
    "no_such_backend": 'name: "no_such_backend"\nbackend: "abacus"\n' + IO,
    "no_backend": 'name: "no_backend"\n' + IO,
    "no_such_platform": 'name: "no_such_platform"\nplatform: "abacus"\n' + IO,
}


@pytest.fixture(scope="module")
def server(pool):
    with server_pool.lent(pool, test="bad_input") as running:
        write_models(running)
        yield running


def write_models(server):
    """Those of the tables, not loaded, and three that are sound."""
    folder = server.repository
    for name, data_type in (("identity", "TYPE_FP32"), ("bytes", "TYPE_STRING")):
        server.place(name, "identity", identity_config(data_type))
    server.place("simple", "add_sub", add_sub_config())
    for name, (config, _) in CONFIGS.items():
        server.place(name, "identity", config, load=False)
    (folder / "another_name/config.pbtxt").write_text('name: "somebody"\nbackend: "identity"\n' + IO)
    server.place("eager", "identity", IO + "optimization { eager_batching: true }", load=False)
    for name, config in UNKNOWN_BACKENDS.items():
        server.place(name, "identity", None, load=False)
        (folder / name / "config.pbtxt").write_text(config)
    for name in ("no_version", "not_text"):
        (folder / name).mkdir()
        server.owns(name)
    (folder / "no_version/config.pbtxt").write_text('backend: "identity"\n' + IO)
    (folder / "not_text/1").mkdir()
    (folder / "not_text/config.pbtxt").write_bytes(b"\xff\xfe\x00\x01name")


def load(server, name):
    status, _, body = clients.ask(server.http, "POST", f"/v2/repository/models/{name}/load", {})
    return status, json.loads(body)["error"]


def serves_on(server):
    status, _, _ = clients.ask(server.http, "POST", "/v2/models/simple/infer", clients.pair_json())
    assert status == 200


@pytest.mark.parametrize("name", CONFIGS)
def test_a_bad_configuration_fails_its_load_with_the_reason(server, name):
    status, text = load(server, name)
    assert status in (400, 500) and name in text
    needle = re.escape(CONFIGS[name][1])
    if not re.search(needle, text):
        server.wait_for_line(rf"(?s)(?=.*{name}).*{needle}" if name not in needle else needle)
    serves_on(server)


def test_a_field_without_effect_is_warned_about(server):
    status, _, _ = clients.ask(server.http, "POST", "/v2/repository/models/eager/load", {})
    assert status == 200
    server.wait_for_line(r"optimization\.eager_batching of model 'eager' has no effect")


@pytest.mark.parametrize("name", [*UNKNOWN_BACKENDS, "no_version", "not_text", "nowhere", "..", "a%2Fb"])
def test_a_bad_model_folder_fails_its_load(server, name):
    status, text = load(server, name)
    assert status in (400, 404, 500) and text
    serves_on(server)


@pytest.mark.parametrize("name, place", [("unknown_field", "3:1"), ("near_miss", "3:1"), ("text_for_number", "3:17")])
def test_configuration_errors_name_line_and_column(server, name, place):
    """A parser error names line and column; the first two lines are name and backend."""
    load(server, name)
    line = server.wait_for_line(rf"{name}.*\b{place}\b|\b{place}\b.*{name}")
    if name == "near_miss":
        assert "did you mean `input`" in line


# ---- raw bytes over HTTP

HEAD = "POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\n"
DEEP = b"[" * 100_000
GOOD = json.dumps(clients.pair_json()).encode()


def with_body(body, extra=""):
    return f"{HEAD}{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body


def one_input(shape, data, datatype="FP32"):
    body = f'{{"inputs":[{{"name":"INPUT0","shape":{shape},"datatype":"{datatype}","data":{data}}}]}}'.encode()
    return with_body(body).replace(b"models/simple", b"models/identity")


# name: (bytes sent, statuses allowed; None stands for a closed connection)
REQUESTS = {
    "garbage": (b"\x00\x01\x02\x03\r\n\r\n", (400, None)),
    "no version": (b"GET /v2\r\n\r\n", (400, None)),
    "HTTP/3.7": (b"GET /v2 HTTP/3.7\r\n\r\n", (400, 505, None)),
    "bad header": (b"GET /v2 HTTP/1.1\r\nno colon here\r\n\r\n", (400, None)),
    "header too long": (b"GET /v2 HTTP/1.1\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n", (400, 431, None)),
    "many headers": (b"GET /v2 HTTP/1.1\r\n" + b"X: a\r\n" * 5000 + b"\r\n", (400, 431, None)),
    "path of bytes": (b"GET /v2/models/\xff\xfe/ready HTTP/1.1\r\nHost: x\r\n\r\n", (400, None)),
    "long path": (b"GET /v2/models/" + b"a" * 60000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", (400, 404, 414, 431, None)),
    "length no number": (HEAD.encode() + b"Content-Length: ten\r\n\r\n{}", (400, None)),
    "length negative": (HEAD.encode() + b"Content-Length: -5\r\n\r\n{}", (400, None)),
    "two lengths": (HEAD.encode() + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", (400, None)),
    "length beyond the limit": (HEAD.encode() + b"Content-Length: 99999999999\r\n\r\n{}", (400, 413)),
    "bad chunk": (HEAD.encode() + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", (400, None)),
    "unknown expectation": (with_body(GOOD, "Expect: the-unexpected\r\n"), (200, 417)),
    "deep nesting": (with_body(b'{"inputs":' + DEEP), (400, 500)),
    "deep data": (one_input([1], (DEEP[:200] + b"1" + b"]" * 200).decode()), (400, 500)),
    "no text": (with_body(b'{"inputs":[{"name":"\xff\xfe"}]}'), (400, 500)),
    "half a pair": (with_body(b'{"id":"\\ud800","inputs":[]}'), (400, 500)),
    "huge shape": (one_input("[9223372036854775807]", "[1]"), (400, 500)),
    "overflowing shape": (one_input("[4294967296,4294967296]", "[1]"), (400, 500)),
    "overflowing bytes": (one_input("[4611686018427387904]", "[1]"), (400, 500)),
    "shape of many dims": (one_input([1] * 10000, "[1]"), (400, 500)),
    "shape beyond 64 bits": (one_input("[99999999999999999999]", "[1]"), (400, 500)),
    "fraction in shape": (one_input("[1.5]", "[1]"), (400, 500)),
    "data is an object": (one_input("[1]", '{"a":1}'), (400, 500)),
    "data is text": (one_input("[1]", '"1"'), (400, 500)),
    "beyond FP32": (one_input("[1]", "[1e400]"), (200, 400, 500)),
    "shape null": (one_input("null", "[1]"), (400, 500)),
    "inputs null": (with_body(b'{"inputs":null}'), (400, 500)),
    "outputs a number": (with_body(GOOD[:-1] + b',"outputs":3}'), (400, 500)),
    "parameters a list": (with_body(GOOD[:-1] + b',"parameters":[]}'), (400, 500)),
    "classification negative": (with_body(GOOD[:-1] + b',"outputs":[{"name":"OUTPUT0","parameters":{"classification":-1}}]}'), (400, 500)),
    "header length too big a number": (with_body(GOOD, "Inference-Header-Content-Length: 99999999999999999999\r\n"), (400,)),
    "binary size beyond 64 bits": (with_body(b'{"inputs":[{"name":"INPUT0","shape":[1,16],"datatype":"INT32","parameters":{"binary_data_size":18446744073709551615}}]}'), (400, 500)),
}
# These name what is wrong with a tensor or a field, beyond refusing it.
NAMED = {
    "huge shape": "INPUT0|shape|data", "overflowing shape": "INPUT0|shape|data", "deep data": "100",
    "header length too big a number": "inference header size", "data is text": "data",
    "inputs null": "inputs", "shape null": "shape", "outputs a number": "outputs",
    "length beyond the limit": "http-max-input-size|maximum",
}


def exchange(server, sent):
    """(status, body) of the answer; (None, b"") when the server closed the connection instead."""
    host, port = server.http.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        try:
            connection.sendall(sent)
        except ConnectionError:
            pass  # refused before all was sent; the answer may be there all the same
        reply = http.client.HTTPResponse(connection)
        try:
            reply.begin()
            return reply.status, reply.read()
        except (ConnectionError, http.client.HTTPException):
            return None, b""


@pytest.mark.parametrize("name", REQUESTS)
def test_a_bad_request_is_refused(server, name):
    sent, allowed = REQUESTS[name]
    status, body = exchange(server, sent)
    assert status in allowed, body[:500]
    if name in NAMED:
        assert re.search(NAMED[name], json.loads(body)["error"]), body
    serves_on(server)


def test_a_body_over_the_limit_is_refused_before_it_is_read(shared):
    """A body over --http-max-input-size is refused before it is read."""
    small = shared(*shared_flags.narrow())
    small.place("simple", "add_sub", add_sub_config())
    serves_on(small)
    big = {**clients.pair_json(), "id": "x" * 5000}
    status, _, body = clients.ask(small.http, "POST", "/v2/models/simple/infer", big)
    assert status == 400 and b"--http-max-input-size" in body
    serves_on(small)


# ---- gRPC


def raw_grpc(server, method, payload):
    with grpc.insecure_channel(server.grpc) as channel:
        try:
            channel.unary_unary(f"/inference.GRPCInferenceService/{method}")(payload, timeout=30)
        except grpc.RpcError as error:
            return error.code().name, error.details()
    return "OK", ""


@pytest.mark.parametrize("payload", [b"\xff\xff\xff\xff", b"\x0a\x05ab", b"\x08\x96", b"\x0a\x02\xff\xfe"], ids=["bytes", "cut", "wrong type", "no text"])
@pytest.mark.parametrize("method", ["ModelInfer", "ModelMetadata", "RepositoryModelLoad"])
def test_malformed_grpc_messages_are_refused(server, method, payload):
    code, _ = raw_grpc(server, method, payload)
    assert code in ("INTERNAL", "INVALID_ARGUMENT", "NOT_FOUND", "UNKNOWN")
    serves_on(server)


@pytest.mark.parametrize(
    "shape", [[2**62], [2**32, 2**32], [2**63 - 1, 2], [-(2**63)], [1] * 5000, [0] * 3], ids=lambda s: str(s)[:24]
)
def test_bad_grpc_shapes_are_refused(server, shape):
    request = service_pb2.ModelInferRequest(model_name="identity", raw_input_contents=[b"\0" * 4])
    request.inputs.add(name="INPUT0", datatype="FP32", shape=shape)
    with grpc.insecure_channel(server.grpc) as channel:
        with pytest.raises(grpc.RpcError) as error:
            service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=30)
    assert error.value.code().name == "INVALID_ARGUMENT" and "INPUT0" in error.value.details()
    serves_on(server)


def test_strings_with_wrong_lengths_are_refused(server):
    for blob in (b"\xff\xff\xff\xff", b"\x00\x00\x00\x80abc", b"\x01\x00\x00", b"\x05\x00\x00\x00ab"):
        request = service_pb2.ModelInferRequest(model_name="bytes", raw_input_contents=[blob])
        request.inputs.add(name="INPUT0", datatype="BYTES", shape=[1])
        with grpc.insecure_channel(server.grpc) as channel:
            with pytest.raises(grpc.RpcError) as error:
                service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=30)
        assert error.value.code().name == "INVALID_ARGUMENT" and "INPUT0" in error.value.details()
    serves_on(server)


def test_a_huge_shape_without_data_allocates_no_memory(server):
    """A shape that claims 64 GB costs nothing without the bytes."""
    before = server.rss_mb()
    array = np.ones(4, np.float32)
    body = {"inputs": [{**clients.tensor_json("INPUT0", array), "shape": [16_000_000_000]}]}
    status, _, _ = clients.ask(server.http, "POST", "/v2/models/identity/infer", body)
    assert status in (400, 500) and server.rss_mb() < before + 50
