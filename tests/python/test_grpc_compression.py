"""Compressed gRPC messages both ways, by the stock clients and by hand: the same from our server and from the real Triton."""

import asyncio
import functools
import gzip
import queue
import struct
import subprocess
import urllib.parse
import zlib

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.grpc.aio as aioclient
from tritonclient.grpc import service_pb2, service_pb2_grpc

import repositories
import tiers

SERVICE = "/inference.GRPCInferenceService/"
ALL = "identity, deflate, gzip"
LIMIT = 20


def write(path, target):
    repositories.write_model(path, "vector", target, repositories.PASSES_ON[target], repositories.identity_config())


@pytest.fixture(scope="module", params=tiers.BOTH)
def started(request, module_stage):
    """Servers of one kind by their compression level, started once each."""

    @functools.cache
    def server(level):
        # Without the flag nothing is compressed.
        flags = [] if level == "none" and request.param == "galatea" else [f"--grpc-infer-response-compression-level={level}"]
        return module_stage.get(request.param, write, *flags)

    return server


def request(count=2000):
    message = service_pb2.ModelInferRequest(model_name="vector", id="a")
    tensor = message.inputs.add(name="INPUT0", datatype="FP32")
    tensor.shape.append(count)
    message.raw_input_contents.append(np.zeros(count, np.float32).tobytes())
    return message.SerializeToString()


def framed(flag, message):
    return bytes([flag]) + struct.pack(">I", len(message)) + message


def ask(server, body, headers=None, method="ModelInfer"):
    """Headers, framed messages and status of a call made of exactly these bytes; status None: the call was reset."""
    given = {"content-type": "application/grpc", "te": "trailers", **(headers or {})}
    options = [part for name, value in given.items() for part in ("-H", f"{name}: {value}")]
    url = f"http://{server.grpc}{SERVICE}{method}"
    command = ["curl", "-s", "-i", "--http2-prior-knowledge", "--max-time", str(LIMIT), "--data-binary", "@-", *options, url]
    done = subprocess.run(command, input=body, stdout=subprocess.PIPE)
    if done.returncode:
        return {}, [], None
    head, rest = done.stdout.split(b"\r\n\r\n", 1)
    messages = []
    while len(rest) > 5 and rest[0] in (0, 1):
        size = struct.unpack(">I", rest[1:5])[0]
        messages.append((rest[0], rest[5 : 5 + size]))
        rest = rest[5 + size :]
    lines = (head + b"\r\n" + rest).decode().splitlines()
    fields = dict(line.split(": ", 1) for line in lines if ": " in line)
    status = int(fields["grpc-status"]), urllib.parse.unquote(fields.get("grpc-message", ""))
    return fields, messages, status


def unpacked(messages, encoding):
    read = {"gzip": gzip.decompress, "deflate": zlib.decompress}.get(encoding)
    return [read(content) if flag else content for flag, content in messages]


@pytest.mark.parametrize("level", ["none", "low", "medium", "high"])
@pytest.mark.parametrize("accepted", ["identity", "gzip", "deflate", ALL, "identity,gzip,deflate", "br", "gzip;q=0", None])
def test_the_response_encoding_follows_level_and_client(started, level, accepted):
    headers = {"grpc-accept-encoding": accepted} if accepted else {}
    fields, messages, status = ask(started(level), framed(0, request()), headers)
    names = [name.strip() for name in (accepted or "").split(",")]
    found = [name for name in ("gzip", "deflate") if name in names]
    wanted = None
    if level != "none" and found:
        wanted = found[0] if level == "low" else found[-1]
    assert (status, fields.get("grpc-encoding"), fields["grpc-accept-encoding"]) == ((0, ""), wanted, ALL)
    ((flag, content),) = messages
    assert flag == (wanted is not None) and (len(content) < 200) == (wanted is not None)
    (message,) = unpacked(messages, wanted)
    assert service_pb2.ModelInferResponse.FromString(message).raw_output_contents[0] == bytes(8000)


def test_a_message_that_does_not_shrink_is_sent_uncompressed(started):
    fields, ((flag, content),), status = ask(started("low"), framed(0, request(1)), {"grpc-accept-encoding": "gzip"})
    assert (status, fields["grpc-encoding"], flag, len(content)) == ((0, ""), "gzip", 0, 40)


def test_only_inference_responses_are_compressed(started):
    server, headers = started("low"), {"grpc-accept-encoding": "gzip"}
    message = service_pb2.ModelConfigRequest(name="vector").SerializeToString()
    fields, ((flag, _),), status = ask(server, framed(0, message), headers, "ModelConfig")
    assert (status, fields.get("grpc-encoding"), flag) == ((0, ""), None, 0)
    fields, messages, status = ask(server, 3 * framed(0, request()), headers, "ModelStreamInfer")
    assert (status, fields["grpc-encoding"], [flag for flag, _ in messages]) == ((0, ""), "gzip", [1, 1, 1])
    for message in unpacked(messages, "gzip"):
        response = service_pb2.ModelStreamInferResponse.FromString(message).infer_response
        assert response.raw_output_contents[0] == bytes(8000)


def raw_deflate(content):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(content) + packer.flush()


def halves(content):
    return gzip.compress(content[:100]) + gzip.compress(content[100:])


FINE = (0, "")


def damaged(name):
    return 13, f"Unexpected error decompressing data for algorithm {name}"


@pytest.mark.parametrize("encoding, flag, pack, wanted", [
    ("gzip", 1, gzip.compress, FINE),
    ("deflate", 1, zlib.compress, FINE),
    ("gzip", 0, bytes, FINE),
    ("identity", 0, bytes, FINE),
    ("deflate", 1, raw_deflate, damaged("deflate")),
    ("deflate", 1, gzip.compress, damaged("deflate")),
    ("gzip", 1, zlib.compress, damaged("gzip")),
    ("gzip", 1, lambda content: gzip.compress(content)[:-9], damaged("gzip")),
    ("gzip", 1, lambda content: gzip.compress(content)[:-8] + bytes(8), damaged("gzip")),
    ("gzip", 1, lambda content: gzip.compress(content) + b"x", damaged("gzip")),
    ("gzip", 1, halves, damaged("gzip")),
    ("gzip", 1, lambda _: b"hello", damaged("gzip")),
    ("gzip", 1, lambda _: b"", (5, "Request for unknown model: '' is not found")),
])
@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer"])
def test_compressed_requests_are_accepted(started, encoding, flag, pack, wanted, method):
    if method == "ModelStreamInfer" and wanted[0] == 5:
        wanted = FINE
    _, messages, status = ask(started("none"), framed(flag, pack(request())), {"grpc-encoding": encoding}, method)
    assert (status, len(messages)) == (wanted, wanted == FINE)


def test_other_calls_accept_compressed_messages(started):
    body = framed(1, gzip.compress(service_pb2.ModelReadyRequest(name="vector").SerializeToString()))
    _, ((_, content),), status = ask(started("none"), body, {"grpc-encoding": "gzip"}, "ModelReady")
    assert status == FINE and service_pb2.ModelReadyResponse.FromString(content).ready


@pytest.mark.parametrize("encoding", [None, "identity"])
def test_a_compressed_flag_without_an_encoding_is_refused(started, encoding):
    headers = {"grpc-encoding": encoding} if encoding else {}
    _, messages, status = ask(started("none"), framed(1, gzip.compress(request())), headers)
    assert (status[0], messages) == (13, [])


@pytest.mark.parametrize("encoding", ["br", "zstd", "GZIP", "gzip,deflate"])
@pytest.mark.parametrize("flag", [0, 1])
def test_unknown_encodings_are_refused(started, request, encoding, flag):
    """Triton resets such a call without a message, even if no message is compressed."""
    is_ours = "galatea" in request.node.callspec.id
    fields, messages, status = ask(started("none"), framed(flag, globals()["request"]()), {"grpc-encoding": encoding})
    assert messages == []
    if is_ours:
        text = f"grpc-encoding '{encoding}' is not supported; take one of identity, deflate, gzip"
        assert (status, fields["grpc-accept-encoding"]) == ((12, text), ALL)
    else:
        assert status is None


def tensor(count):
    data = np.arange(count, dtype=np.float32)
    given = grpcclient.InferInput("INPUT0", data.shape, "FP32")
    given.set_data_from_numpy(data)
    return data, given


@pytest.mark.parametrize("level", ["none", "low", "high"])
@pytest.mark.parametrize("as_sent", [None, "gzip", "deflate"])
@pytest.mark.parametrize("count", [3, 100_000, pytest.param(1_000_000, marks=tiers.peers)])
def test_the_stock_client_compresses(started, level, as_sent, count):
    data, given = tensor(count)
    with grpcclient.InferenceServerClient(started(level).grpc) as client:
        result = client.infer("vector", [given], compression_algorithm=as_sent)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), data)
        results = queue.Queue()
        client.start_stream(lambda result, error: results.put((result, error)), compression_algorithm=as_sent)
        for _ in range(3):
            client.async_stream_infer("vector", [given])
        for _ in range(3):
            result, error = results.get(timeout=LIMIT)
            assert error is None
            np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), data)
        client.stop_stream()


@pytest.mark.parametrize("level", ["none", "medium"])
@pytest.mark.parametrize("as_sent", [None, "gzip", "deflate"])
def test_the_stock_aio_client_compresses(started, level, as_sent):
    data, given = tensor(10_000)

    async def infer():
        async with aioclient.InferenceServerClient(started(level).grpc) as client:
            return await client.infer("vector", [given], compression_algorithm=as_sent)

    np.testing.assert_array_equal(asyncio.run(infer()).as_numpy("OUTPUT0"), data)


def packed_zeros(mebibytes, level=1):
    packer, zeros = zlib.compressobj(level), bytes(1 << 20)
    return b"".join([*(packer.compress(zeros) for _ in range(mebibytes)), packer.flush()])


@pytest.mark.parametrize("mebibytes", [160, pytest.param(1024, marks=tiers.measure)])
def test_a_compression_bomb_is_refused_at_little_cost(module_stage, mebibytes):
    """Sends compressed zeros; Triton accepts them up to 2 GiB."""
    server = module_stage.get("galatea", lambda *_: None)
    before = server.rss_mb()
    for method in ("ModelInfer", "ModelStreamInfer", "RepositoryModelLoad", "ServerLive"):
        body = framed(1, packed_zeros(60, 9) if method == "ServerLive" else packed_zeros(mebibytes))
        _, messages, status = ask(server, body, {"grpc-encoding": "deflate"}, method)
        assert status is not None and messages == [], method
        assert status[0] == 8 and "larger than max" in status[1], (method, status)
    assert server.rss_mb() < before + 400
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert stub.ServerLive(service_pb2.ServerLiveRequest()).live
