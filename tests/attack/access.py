"""What is served behind a shared secret, forwarded to models, compressed or watched: the ways around, and too much of it."""

import json
import threading
import time

import grpc
import raw_http
import raw_http2
from tritonclient.grpc import service_pb2

import models
from grpc_messages import OPTIONS, named
from registry import Achieved, attack

KEY = ("x-admin", "open-sesame")
RESTRICTED = ("--http-restricted-api=model-repository,statistics,metadata:x-admin=open-sesame",)
# The same calls, written in the ways that proxies and routers disagree about.
PATHS = (
    "/v2/repository/models/vector/unload", "/v2/repository/models/vector/unload/", "/v2/repository//models/vector/unload",
    "//v2/repository/models/vector/unload", "/v2/./repository/models/vector/unload", "/v2/x/../repository/models/vector/unload",
    "/v2/%72epository/models/vector/unload", "/V2/repository/models/vector/unload", "/v2/repository/models/vector/unload?a=b",
    "/v2/repository/models/vector/unload#x", "/v2/repository/models/%76ector/unload", "/v2/repository/models/vector/unload;x",
    "/v2/repositories/default/models/vector/unload", "/v2/repository/default/models/vector/unload",
    "http://x/v2/repository/models/vector/unload", "/v2/models/../repository/models/vector/unload",
)
HEADERS = (
    {}, {"X-Admin": "open-sesam"}, {"X-Admin": "open-sesamee"}, {"X-Admin": ""}, {"X-Admin": "OPEN-SESAME"},
    {"X-Admin-": "open-sesame"}, {"Admin": "open-sesame"}, {"X-HTTP-Method-Override": "GET"}, {"X-Original-URL": "/v2/health/live"},
)


def is_loaded(target, model="vector"):
    return target.ask("GET", f"/v2/models/{model}/ready")[0] == 200


@attack("restricted-http", flags=RESTRICTED)
def restricted_http(target):
    """a restricted call by other spellings of its path, other methods, other headers"""
    answers = []
    for path in PATHS:
        for method in ("POST", "GET", "PUT", "post", "OPTIONS"):
            sent = raw_http.head(method, path, 2) + b"{}"
            answers.append(raw_http.exchange(target.http, sent, 5)[0])
    for headers in HEADERS:
        answers.append(raw_http.exchange(target.http, raw_http.post(PATHS[0], b"{}", **headers), 5)[0])
    if not is_loaded(target):
        raise Achieved("a model was unloaded without the key")
    for path in ("/v2/models/vector/stats", "/v2/models/stats", "/v2", "/v2/models/vector", "/v2/models/vector/versions/1/stats"):
        status, text = target.ask("GET", path)
        if status == 200:
            raise Achieved(f"{path} was answered without the key: {text[:80]}")
    status, _ = target.ask("GET", "/v2", headers={KEY[0]: KEY[1]})
    if status != 200:
        raise Achieved(f"with the key /v2 is answered with {status}")
    return raw_http.statuses(answers)


@attack("restricted-guesses", flags=RESTRICTED)
def restricted_guesses(target):
    """64 clients guess the key for 5 seconds"""
    answers = raw_http.together(
        64, lambda n: raw_http.exchange(target.http, raw_http.post(PATHS[0], b"{}", X_Admin=f"guess-{n}-{time.monotonic()}"), 10)[0], 5
    )
    if not is_loaded(target):
        raise Achieved("a model was unloaded without the key")
    return raw_http.statuses(answers)


GRPC_KEY = ("triton-grpc-protocol-x-admin", "open-sesame")
UNLOAD = service_pb2.RepositoryModelUnloadRequest(model_name="vector").SerializeToString()
GRPC_PATHS = (
    "/inference.GRPCInferenceService/RepositoryModelUnload", "/inference.GRPCInferenceService/repositorymodelunload",
    "/inference.GRPCInferenceService/RepositoryModelUnload/", "//inference.GRPCInferenceService/RepositoryModelUnload",
    "/inference.GRPCInferenceService/%52epositoryModelUnload", "/inference.grpcinferenceservice/RepositoryModelUnload",
    "/GRPCInferenceService/RepositoryModelUnload", "/inference.GRPCInferenceService/RepositoryModelUnload?x",
)
GRPC_KEYS = (
    (), (("x-admin", "open-sesame"),), ((GRPC_KEY[0], ""),), ((GRPC_KEY[0], "open-sesamee"),), ((GRPC_KEY[0], "OPEN-SESAME"),),
    ((GRPC_KEY[0] + "-bin", b"open-sesame"),), (("grpc-encoding", "identity"), (GRPC_KEY[0], "x")),
)


@attack("restricted-grpc", flags=("--grpc-restricted-protocol=model-repository:x-admin=open-sesame",))
def restricted_grpc(target):
    """a restricted call by other spellings, as a stream, with other keys, and once with the right one"""
    codes = []
    with grpc.insecure_channel(target.server.grpc, options=OPTIONS) as channel:
        for path in GRPC_PATHS:
            for make in (channel.unary_unary, channel.unary_stream):
                for key in GRPC_KEYS:
                    try:
                        list(make(path)(UNLOAD, timeout=10, metadata=key) or ())
                        codes.append("OK")
                    except grpc.RpcError as error:
                        codes.append(error.code().name)
                    except TypeError:  # an answer that is no stream
                        codes.append("OK")
        if "OK" in codes or not is_loaded(target):
            raise Achieved("a model was unloaded without the key")
        channel.unary_unary(GRPC_PATHS[0])(UNLOAD, timeout=10, metadata=(GRPC_KEY,))
    return raw_http.statuses(codes)


@attack("forwarded-metadata", flags=("--grpc-header-forward-pattern=.*",))
def forwarded_metadata(target):
    """32 clients with 15 KB of metadata, all forwarded to the model"""
    inputs = service_pb2.ModelInferRequest(model_name="vector")
    inputs.inputs.add(name="INPUT0", datatype="FP32", shape=[1]).contents.fp32_contents.append(1)
    metadata = tuple((f"x-h{number}", "v" * 60) for number in range(150))

    def infer(_):
        with grpc.insecure_channel(target.server.grpc, options=[*OPTIONS, ("grpc.use_local_subchannel_pool", 1)]) as channel:
            call = channel.unary_unary(raw_http2.SERVICE + "ModelInfer")
            for _ in range(20):
                try:
                    call(inputs.SerializeToString(), timeout=20, metadata=metadata)
                except grpc.RpcError as error:
                    return error.code().name
        return "OK"

    return raw_http.statuses(raw_http.together(32, infer, 4))


@attack("forwarded-headers", flags=("--http-header-forward-pattern=.*",))
def forwarded_headers(target):
    """64 clients with 30 KB of headers, all forwarded to the model; names that the protocol gives a meaning"""
    body = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1]}]}).encode()
    wide = {f"X-H{number}": "v" * 330 for number in range(85)}
    answers = raw_http.together(64, lambda _: raw_http.exchange(target.http, raw_http.post("/v2/models/vector/infer", body, **wide), 20)[0], 5)
    for name in ("sequence_id", "priority", "timeout", "triton_enable_empty_final_response"):
        # Written by hand: the helper turns underscores into hyphens.
        head = f"POST /v2/models/vector/infer HTTP/1.1\r\nHost: x\r\n{name}: 1\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        answers.append(raw_http.exchange(target.http, head + body, 10)[0])
    return raw_http.statuses(answers)


COMPRESSIONS = {"gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}
BOMBED = ("ModelInfer", "RepositoryModelLoad", "ServerLive", "RepositoryIndex", "ModelStreamInfer")


def compressed_call(target, method, payload, encoding, timeout=40):
    """The code that a message is answered with, which is sent compressed."""
    with grpc.insecure_channel(target.server.grpc, options=OPTIONS) as channel:
        try:
            if method == "ModelStreamInfer":
                call = channel.stream_stream(raw_http2.SERVICE + method)
                list(call(iter([payload]), timeout=timeout, compression=COMPRESSIONS[encoding]))
            else:
                channel.unary_unary(raw_http2.SERVICE + method)(payload, timeout=timeout, compression=COMPRESSIONS[encoding])
        except grpc.RpcError as error:
            return error.code().name
    return "OK"


@attack("grpc-compressed-bombs")
def grpc_compressed_bombs(target):
    """200 MB of zeros in a compressed message of 200 KB, and 60 MB of empty inputs, to five calls at once"""
    zeros, wide = bytes(200_000_000), named("vector") + bytes([5 << 3 | 2, 0]) * 30_000_000
    sent = [(method, zeros, encoding) for method in BOMBED for encoding in COMPRESSIONS] + [("ModelInfer", wide, "gzip")] * 4
    codes = raw_http.together(len(sent), lambda n: compressed_call(target, *sent[n]), 4)
    if "OK" in codes:
        raise Achieved("a bomb was taken")
    return raw_http.statuses(codes)


@attack("grpc-watches")
def grpc_watches(target):
    """10,000 calls that watch the health, on 20 connections, and stay"""
    channels = [grpc.insecure_channel(target.server.grpc, options=[*OPTIONS, ("grpc.use_local_subchannel_pool", 1)]) for _ in range(20)]
    calls = []
    for channel in channels:
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")
        calls += [watch(b"", timeout=30) for _ in range(500)]
    time.sleep(5)
    refused = sum(call.done() for call in calls)
    for channel in channels:
        channel.close()
    return f"{len(calls) - refused} open, {refused} refused"


def digests(paths):
    return {
        "name": "vector", "backend": "identity",
        "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
        "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
        "model_repository_agents": {"agents": [{"name": "checksum", "parameters": {f"MD5:{path}": "0" * 32 for path in paths}}]},
    }


@attack("checksum-outside")
def checksum_outside(target):
    """a load asks for digests of files of the host, of a FIFO, of /dev/zero, of 100,000 files"""
    secret = target.outside / "secret"
    secret.write_text("secret-of-the-host")
    lists = [[str(secret)], ["../../outside/secret"], ["/dev/zero"], ["../../../../../../etc/hostname"], [f"1/{n}" for n in range(100_000)]]
    answers = []
    for paths in lists:
        status, text = target.load("vector", digests(paths))
        answers.append(status)
        if "expected" in text.lower() and "but got" in text.lower():
            raise Achieved(f"the digest of {paths[0][:40]} was told")
        if status in (0, 200):
            raise Achieved(f"{paths[0][:40]}: {status or 'no answer'}")
    return "loads: " + raw_http.statuses(answers)


@attack("held-while-loading", models=models.slow_load)
def held_while_loading(target):
    """1,500 loads, questions and requests to one model that takes 8 s to load; is liveness answered?"""
    load = raw_http.post("/v2/repository/models/slow_load/load", b"{}")
    infer = raw_http.post("/v2/models/slow_load/infer", b'{"inputs":[]}')
    held = [*raw_http.many(target.http, 750, load, keep_trying=True), *raw_http.many(target.http, 750, infer, keep_trying=True)]
    slowest, done = [0.0], threading.Event()

    def live():
        while not done.wait(0.05):
            begin = time.monotonic()
            target.ask("GET", "/v2/health/live")
            slowest[0] = max(slowest[0], time.monotonic() - begin)

    asking = threading.Thread(target=live, daemon=True)
    asking.start()
    time.sleep(5)
    done.set()
    asking.join(15)
    raw_http.close(held)
    if slowest[0] > 1:
        raise Achieved(f"liveness took {slowest[0]:.1f} s")
    return f"slowest liveness {slowest[0] * 1000:.0f} ms"
