"""What a stranger can send where calls are restricted, headers forwarded, messages compressed or the health watched: in
small what `cargo xtask attack` plays at full size."""

import json
import os
import signal
import threading
import time

import grpc
import pytest
from tritonclient.grpc import service_pb2

import clients
import raw_http
import raw_http2
import servers
import tiers
from repositories import add_sub_config, identity_config, write_model
from test_security import SECRET, SLACK, Memory, address, load, serves_on, vector_config, with_models
from waiting import LIMIT

reflection_pb2 = pytest.importorskip("grpc_reflection.v1alpha.reflection_pb2", reason="`cargo xtask setup clients` installs it")
from grpc_reflection.v1alpha import reflection_pb2_grpc  # noqa: E402

KEY = {"X-Admin": "open-sesame"}
RESTRICTED = (
    "--http-restricted-api=model-repository,statistics:x-admin=open-sesame", "--http-header-forward-pattern=.*",
    "--grpc-restricted-protocol=model-repository:x-admin=open-sesame", "--grpc-restricted-protocol=metadata:key=secret",
    "--drain-delay-secs=2", "--exit-timeout-secs=3",
)
UNLOAD = "/v2/repository/models/vector/unload"
SPELLINGS = (
    UNLOAD, UNLOAD + "/", UNLOAD + "?a=b", UNLOAD + ";x", "/" + UNLOAD, "http://x" + UNLOAD, UNLOAD.replace("/v2/", "/v2/./"),
    UNLOAD.replace("repository", "%72epository"), UNLOAD.replace("vector", "%76ector"), UNLOAD.replace("/v2/", "/v2/x/../"),
    UNLOAD.replace("/v2/", "/V2/"), UNLOAD.replace("repository/", "repository//"), UNLOAD.replace("repository/", "repository/default/"),
    UNLOAD.replace("/v2/", "/v2/models/../"),
)
COMPRESSIONS = {"gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}


@pytest.fixture(scope="module")
def restricted(tmp_path_factory):
    """The last test that uses it ends it."""
    path = tmp_path_factory.mktemp("restricted")
    write_model(path, "simple", "galatea", "add_sub", add_sub_config())
    write_model(path, "vector", "galatea", "identity", identity_config())
    with servers.galatea(path, "--model-control-mode=explicit", "--load-model=*", *RESTRICTED) as server:
        serves_on(server)
        yield server


@pytest.fixture
def server(shared):
    return with_models(shared())


def exchange(server, sent):
    return raw_http.exchange(address(server.http), sent, LIMIT)


def is_loaded(server):
    return clients.ask(server.http, "GET", "/v2/models/vector/ready")[0] == 200


def test_a_restricted_call_is_refused_in_every_spelling(restricted):
    server = restricted
    for path in SPELLINGS:
        for method in ("POST", "GET", "PUT", "post"):
            status = exchange(server, raw_http.head(method, path, 2) + b"{}")[0]
            assert status in (400, 403, 404, 405), f"{method} {path}: {status}"
    for wrong in ("", "open-sesam", "open-sesamee", "OPEN-SESAME"):
        assert exchange(server, raw_http.post(UNLOAD, b"{}", X_Admin=wrong))[0] == 403
    for path in ("/v2/models/stats", "/v2/models/vector/stats", "/v2/models/vector/versions/1/stats", "/v2/models/x/stats"):
        assert clients.ask(server.http, "GET", path)[0] == 403, path
    assert is_loaded(server)
    assert clients.ask(server.http, "POST", UNLOAD, {}, KEY)[0] == 200 and not is_loaded(server)
    serves_on(server)
    assert clients.ask(server.http, "POST", UNLOAD.replace("/unload", "/load"), {}, KEY)[0] == 200


def test_a_restricted_grpc_call_is_refused_on_every_path(restricted):
    server = restricted
    unload = service_pb2.RepositoryModelUnloadRequest(model_name="vector").SerializeToString()
    key = "triton-grpc-protocol-x-admin"
    name = raw_http2.SERVICE + "RepositoryModelUnload"
    paths = (name, name + "/", "/" + name, name.lower(), name.replace("/inference.", "/"), name.replace("Rep", "%52ep"))
    wrong = ((), (("x-admin", "open-sesame"),), ((key, ""),), ((key, "open-sesamee"),), ((key + "-bin", b"open-sesame"),))
    with grpc.insecure_channel(server.grpc) as channel:
        for path in paths:
            for metadata in wrong:
                with pytest.raises(grpc.RpcError) as refused:
                    channel.unary_unary(path)(unload, timeout=20, metadata=metadata)
                assert refused.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNIMPLEMENTED), path
        assert is_loaded(server)
        channel.unary_unary(name)(unload, timeout=20, metadata=((key, "open-sesame"),))
    assert not is_loaded(server)
    serves_on(server)
    assert clients.ask(server.http, "POST", UNLOAD.replace("/unload", "/load"), {}, KEY)[0] == 200


def test_forwarded_headers_cost_little_memory(restricted):
    server = restricted
    body = b'{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"FP32","data":[1]}]}'
    sent = raw_http.post("/v2/models/vector/infer", body, **{f"X-H{number}": "v" * 330 for number in range(85)})
    memory = Memory(server)
    assert raw_http.together(16, lambda _: exchange(server, sent)[0]) == [200] * 16
    memory.within(16 * len(sent))
    for name in (b"sequence_id", b"triton_x"):
        head = b"POST /v2/models/vector/infer HTTP/1.1\r\nHost: x\r\n" + name + b": 1\r\nContent-Length: %d\r\n\r\n" % len(body)
        assert exchange(server, head + body)[0] == 400, name
    serves_on(server)


def test_reflection_is_restricted_with_the_metadata(restricted):
    with grpc.insecure_channel(restricted.grpc) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        ask = [reflection_pb2.ServerReflectionRequest(list_services="")]
        with pytest.raises(grpc.RpcError) as error:
            list(stub.ServerReflectionInfo(iter(ask), timeout=LIMIT))
        assert error.value.code() is grpc.StatusCode.UNAVAILABLE
        assert error.value.details() == "This protocol is restricted, expecting header 'triton-grpc-protocol-key'"
        given = [("triton-grpc-protocol-key", "secret")]
        assert next(iter(stub.ServerReflectionInfo(iter(ask), timeout=LIMIT, metadata=given))).list_services_response.service


def leave_beside_clients(server, begun):
    """The exit status of a server to which 300 clients come, and send `begun`, while it leaves."""
    server.process.send_signal(signal.SIGTERM)
    server.wait_for_line("Signal")
    held = raw_http.many(address(server.http), 300, begun)
    infer = raw_http.post("/v2/models/simple/infer", json.dumps(clients.pair_json()).encode())
    assert set(raw_http.together(8, lambda _: exchange(server, infer)[0])) == {200}
    status = server.wait_for_exit(LIMIT)
    raw_http.close(held)
    return status


def test_idle_clients_do_not_delay_the_exit(restricted):
    """An open reflection stream does not delay the exit either."""
    with grpc.insecure_channel(restricted.grpc) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        given, ended = [("triton-grpc-protocol-key", "secret")], threading.Event()

        def ask():
            yield reflection_pb2.ServerReflectionRequest(list_services="")
            ended.wait(LIMIT)

        answers = iter(stub.ServerReflectionInfo(ask(), timeout=LIMIT, metadata=given))
        assert next(answers).list_services_response.service
        assert leave_beside_clients(restricted, b"") == 0
        ended.set()


HALF = raw_http.head("POST", "/v2/models/simple/infer", 100) + b"{"


@tiers.measure
@pytest.mark.parametrize("begun,status", [(b"", 0), (HALF, 1)], ids=["idle", "half-sent"])
def test_clients_that_connect_during_the_exit_do_not_delay_it(repository, serve, begun, status):
    repository.add("simple", "add_sub", add_sub_config())
    server = serve(repository.path, "--drain-delay-secs=2", "--exit-timeout-secs=3")
    begin = time.monotonic()
    assert leave_beside_clients(server, begun) == status
    assert time.monotonic() - begin < 2 + (3 if status else 0) + 2.5, "it waited for what does not come"


# ModelInfer is asked in both; the others unpack by the same code, and one encoding shows it.
PACKED = [("ModelInfer", "gzip"), ("ModelInfer", "deflate"), ("RepositoryModelLoad", "gzip"), ("ServerLive", "deflate")]
REST = [("RepositoryModelLoad", "deflate"), ("ServerLive", "gzip"), ("RepositoryIndex", "gzip"), ("RepositoryIndex", "deflate")]


@pytest.mark.parametrize("method,encoding", [*PACKED, *(pytest.param(*each, marks=tiers.peers) for each in REST)])
def test_a_compressed_message_expands_only_up_to_a_limit(server, method, encoding):
    """100 MB of zeros are 100 KB on the wire."""
    memory = Memory(server)
    with grpc.insecure_channel(server.grpc, options=[("grpc.max_send_message_length", -1)]) as channel:
        call = channel.unary_unary(raw_http2.SERVICE + method)
        with pytest.raises(grpc.RpcError) as refused:
            call(bytes(100_000_000), timeout=LIMIT, compression=COMPRESSIONS[encoding])
    assert refused.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)
    # What is unpacked before it is found to be too much is not more than a message without compression may be.
    assert memory.grown() < 64 * 1024 * 1024
    serves_on(server)


def test_a_compressed_request_with_too_many_fields_is_refused(server):
    payload = service_pb2.ModelInferRequest(model_name="vector").SerializeToString() + bytes([5 << 3 | 2, 0]) * 20_000_000
    memory = Memory(server)
    with grpc.insecure_channel(server.grpc, options=[("grpc.max_send_message_length", -1)]) as channel:
        with pytest.raises(grpc.RpcError):
            channel.unary_unary(raw_http2.SERVICE + "ModelInfer")(payload, timeout=LIMIT, compression=grpc.Compression.Gzip)
    assert memory.grown() < 64 * 1024 * 1024
    serves_on(server)


@pytest.mark.parametrize("path", ["/proc/self/environ", "../../secret.txt", "1/../../../secret.txt", "/dev/zero"])
def test_digests_of_host_files_are_not_revealed(server, path):
    (server.repository.parent / "secret.txt").write_text(SECRET)
    agents = {"agents": [{"name": "checksum", "parameters": {f"MD5:{path}": "0" * 32}}]}
    status, text = load(server, "vector", vector_config(model_repository_agents=agents))
    assert status in (400, 500) and "expect" not in text.lower(), text
    assert is_loaded(server)
    serves_on(server)


def test_a_hostile_folder_does_not_delay_polling_of_others(repository, serve):
    """Links to the whole machine and in circles, a pipe as configuration, folders without end. In the end the server leaves,
    and waits for bodies that may still come as long as its exit may take, and no longer."""
    repository.add("simple", "add_sub", add_sub_config())
    flags = ("--model-control-mode=poll", "--repository-poll-secs=1", "--exit-on-error=false", "--exit-timeout-secs=3", "--drain-delay-secs=2")
    server = serve(repository.path, *flags)
    memory = Memory(server)
    tree = repository.path
    (tree / "circle").mkdir()
    (tree / "circle/1").symlink_to(tree)
    (tree / "machine").symlink_to("/proc")
    (tree / "links").mkdir()
    (tree / "links/1").symlink_to("/")
    (tree / "piped/1").mkdir(parents=True)
    os.mkfifo(tree / "piped/config.pbtxt")
    (tree / "deep/1" / "/".join(["d"] * 200)).mkdir(parents=True)
    server.wait_for_line("Poll failed for model directory 'piped'")
    repository.add("late", "identity", identity_config())
    server.wait_for_line("successfully loaded 'late'")
    serves_on(server)
    assert memory.grown() < SLACK
    assert leave_beside_clients(server, HALF) == 1
