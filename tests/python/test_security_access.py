"""What a stranger can send where calls are restricted, headers forwarded, messages compressed or the health watched: in
small what `cargo xtask attack` plays at full size."""

import json
import os
import signal
import time

import grpc
import pytest
from tritonclient.grpc import service_pb2

import clients
import raw_http
import raw_http2
from repositories import add_sub_config, identity_config
from test_security import SECRET, SLACK, Memory, address, load, serves_on, vector_config

KEY = {"X-Admin": "open-sesame"}
EXPLICIT = ("--model-control-mode=explicit", "--load-model=*")
UNLOAD = "/v2/repository/models/vector/unload"
SPELLINGS = (
    UNLOAD, UNLOAD + "/", UNLOAD + "?a=b", UNLOAD + ";x", "/" + UNLOAD, "http://x" + UNLOAD, UNLOAD.replace("/v2/", "/v2/./"),
    UNLOAD.replace("repository", "%72epository"), UNLOAD.replace("vector", "%76ector"), UNLOAD.replace("/v2/", "/v2/x/../"),
    UNLOAD.replace("/v2/", "/V2/"), UNLOAD.replace("repository/", "repository//"), UNLOAD.replace("repository/", "repository/default/"),
    UNLOAD.replace("/v2/", "/v2/models/../"),
)
COMPRESSIONS = {"gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}


@pytest.fixture
def start(repository, serve):
    def started(*flags):
        repository.add("simple", "add_sub", add_sub_config())
        repository.add("vector", "identity", identity_config())
        server = serve(repository.path, *EXPLICIT, *flags)
        serves_on(server)
        return server

    return started


def exchange(server, sent):
    return raw_http.exchange(address(server.http), sent, 20)


def is_loaded(server):
    return clients.ask(server.http, "GET", "/v2/models/vector/ready")[0] == 200


def test_a_restricted_call_has_no_other_way_in(start):
    server = start("--http-restricted-api=model-repository,statistics:x-admin=open-sesame")
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


def test_a_restricted_grpc_call_has_no_other_way_in(start):
    server = start("--grpc-restricted-protocol=model-repository:x-admin=open-sesame")
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


def test_forwarded_headers_cost_what_was_sent(start):
    server = start("--http-header-forward-pattern=.*")
    body = b'{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"FP32","data":[1]}]}'
    sent = raw_http.post("/v2/models/vector/infer", body, **{f"X-H{number}": "v" * 330 for number in range(85)})
    memory = Memory(server)
    assert raw_http.together(16, lambda _: exchange(server, sent)[0]) == [200] * 16
    memory.within(16 * len(sent))
    for name in (b"sequence_id", b"triton_x"):
        head = b"POST /v2/models/vector/infer HTTP/1.1\r\nHost: x\r\n" + name + b": 1\r\nContent-Length: %d\r\n\r\n" % len(body)
        assert exchange(server, head + body)[0] == 400, name
    serves_on(server)


@pytest.mark.parametrize("kind,status", [("idle", 0), ("half-sent", 1)])
def test_clients_that_come_while_the_server_leaves_do_not_hold_it_up(start, kind, status):
    """Bodies that are half sent may still come: they are waited for as long as the exit may take, and no longer."""
    server = start("--drain-delay-secs=2", "--exit-timeout-secs=3")
    server.process.send_signal(signal.SIGTERM)
    server.wait_for_line("Signal")
    begun = raw_http.head("POST", "/v2/models/vector/infer", 100) + b"{" if kind == "half-sent" else b""
    held = raw_http.many(address(server.http), 300, begun)
    infer = raw_http.post("/v2/models/simple/infer", json.dumps(clients.pair_json()).encode())
    assert set(raw_http.together(8, lambda _: exchange(server, infer)[0], 0.5)) == {200}
    begin = time.monotonic()
    assert server.wait_for_exit(30) == status
    assert time.monotonic() - begin < 2 + (3 if status else 0) + 2, "it waited for what does not come"
    raw_http.close(held)


@pytest.mark.parametrize("encoding", COMPRESSIONS)
@pytest.mark.parametrize("method", ["ModelInfer", "RepositoryModelLoad", "ServerLive", "RepositoryIndex"])
def test_a_compressed_message_does_not_grow_without_end(start, method, encoding):
    """100 MB of zeros are 100 KB on the wire."""
    server = start()
    memory = Memory(server)
    with grpc.insecure_channel(server.grpc, options=[("grpc.max_send_message_length", -1)]) as channel:
        call = channel.unary_unary(raw_http2.SERVICE + method)
        with pytest.raises(grpc.RpcError) as refused:
            call(bytes(100_000_000), timeout=30, compression=COMPRESSIONS[encoding])
    assert refused.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)
    # What is unpacked before it is found to be too much is not more than a message without compression may be.
    assert memory.grown() < 64 * 1024 * 1024
    serves_on(server)


def test_a_compressed_request_that_decodes_to_many_parts_is_refused(start):
    server = start()
    payload = service_pb2.ModelInferRequest(model_name="vector").SerializeToString() + bytes([5 << 3 | 2, 0]) * 20_000_000
    memory = Memory(server)
    with grpc.insecure_channel(server.grpc, options=[("grpc.max_send_message_length", -1)]) as channel:
        with pytest.raises(grpc.RpcError):
            channel.unary_unary(raw_http2.SERVICE + "ModelInfer")(payload, timeout=30, compression=grpc.Compression.Gzip)
    assert memory.grown() < 64 * 1024 * 1024
    serves_on(server)


@pytest.mark.parametrize("path", ["/proc/self/environ", "../../secret.txt", "1/../../../secret.txt", "/dev/zero"])
def test_no_digest_of_a_file_of_the_host_is_told(start, repository, path):
    server = start()
    (repository.path.parent / "secret.txt").write_text(SECRET)
    agents = {"agents": [{"name": "checksum", "parameters": {f"MD5:{path}": "0" * 32}}]}
    status, text = load(server, "vector", vector_config(model_repository_agents=agents))
    assert status in (400, 500) and "expect" not in text.lower(), text
    assert is_loaded(server)
    serves_on(server)


def test_a_hostile_tree_does_not_hold_up_the_polling_of_others(repository, serve):
    """Links to the whole machine and in circles, a pipe as configuration, folders without end."""
    repository.add("simple", "add_sub", add_sub_config())
    server = serve(repository.path, "--model-control-mode=poll", "--repository-poll-secs=1", "--exit-on-error=false")
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
    server.wait_for_line("Poll failed for model directory 'piped'", timeout=40)
    repository.add("late", "identity", identity_config())
    server.wait_for_line("successfully loaded 'late'", timeout=40)
    serves_on(server)
    assert memory.grown() < SLACK
