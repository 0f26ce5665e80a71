"""Servers on Unix sockets, and regions of shared memory whose descriptors their clients pass."""

import contextlib
import fcntl
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

import certificates
import clients
import servers
import unix_sockets
from region_calls import links, span
from repositories import EXAMPLES, add_sub_config, identity_config, write_model
from unix_sockets import REGION, connect, memory, register
from waiting import eventually

NO_KEY = "Shared memory register request has no 'key' field"
PAGE = 4096


def places(folder):
    return [f"--{service}-address=unix:{folder}/{service}" for service in ("http", "grpc", "metrics")]


class Running:
    """A server on three Unix sockets: `http`, `metrics` are paths, `grpc` is the address of a stock client."""

    def __init__(self, server, folder):
        self.server, self.pid, self.folder = server, server.pid, folder
        self.http, self.grpc, self.metrics = f"{folder}/http", f"unix:{folder}/grpc", f"{folder}/metrics"


@pytest.fixture(scope="module")
def folder():
    # The path of a Unix socket is short.
    with tempfile.TemporaryDirectory(prefix="g") as made:
        yield made


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    models = tmp_path_factory.mktemp("models")
    write_model(models, "bytes", "galatea", "identity", identity_config("TYPE_UINT8"))
    write_model(models, "pair", "galatea", "add_sub", add_sub_config())
    (models / "simple").symlink_to(EXAMPLES / "simple")
    flags = ["--allow-client-shm=true", f"--access-log={folder}/access.log", *places(folder)]
    with servers.galatea(models, *flags) as running:
        yield Running(running, folder)
    assert os.listdir(folder) == ["access.log"], "a server removes its sockets"


@pytest.fixture
def connection(server):
    with connect(server.http) as made:
        yield made
    assert unix_sockets.ask(server.http, "POST", "/v2/systemsharedmemory/unregister")[0] == 200


@contextlib.contextmanager
def opened(*descriptors):
    yield descriptors
    for descriptor in descriptors:
        os.close(descriptor)


def infer(server, region, offset=PAGE, size=64):
    body = {
        "inputs": [{"name": "INPUT0", "datatype": "UINT8", "shape": [size], "parameters": span(region, size)}],
        "outputs": [{"name": "OUTPUT0", "parameters": span(region, size, offset)}],
    }
    status, _, text = unix_sockets.ask(server.http, "POST", "/v2/models/bytes/infer", body)
    return status, json.loads(text)


def passed(server):
    """The server's descriptors of this file's memory, its pipes and so on."""
    return [link for link in links(server.pid) if "galatea-test" in link]


# ---- servers


def test_everything_is_served_at_sockets(server, pair):
    with grpcclient.InferenceServerClient(server.grpc) as stock:
        answer = clients.infer(stock, "grpc", "pair", dict(zip(("INPUT0", "INPUT1"), pair)))
    assert (answer["OUTPUT0"] == pair[0] + pair[1]).all()
    status, _, text = unix_sockets.ask(server.http, "POST", "/v2/models/pair/infer", clients.pair_json())
    assert status == 200 and json.loads(text)["outputs"][0]["data"] == list(range(1, 17))
    assert "system_shared_memory" in json.loads(unix_sockets.ask(server.http, "GET", "/v2")[2])["extensions"]
    page = unix_sockets.ask(server.metrics, "GET", "/metrics")[2].decode()
    assert 'nv_inference_request_success{model="pair"' in page
    eventually("the access log has both", lambda: len(re.findall(r"\bunix\b.*pair", open(f"{server.folder}/access.log").read())) >= 2)
    assert f"Started HTTPService at unix:{server.folder}/http" in server.server.text()


def test_a_path_has_one_server_and_no_other_file_is_replaced(server, folder, tmp_path):
    command = [servers.galatea_binary(), "serve", f"--model-repository={tmp_path}", "--allow-grpc=false", "--allow-metrics=false"]
    (tmp_path / "file").write_text("of somebody")
    for path, reason in ((f"{folder}/http", "already in use by another process"), (f"{tmp_path}/file", "the file is no socket")):
        run = subprocess.run([*command, f"--http-address=unix:{path}"], capture_output=True, text=True, timeout=60)
        assert run.returncode == 1 and f"'unix:{path}'" in run.stdout + run.stderr and reason in run.stdout + run.stderr
    assert unix_sockets.ask(server.http, "GET", "/v2/health/live")[0] == 200
    assert (tmp_path / "file").read_text() == "of somebody" and os.listdir(tmp_path) == ["file"]


def test_the_file_of_a_killed_server_is_replaced(tmp_path):
    """The first takes no descriptors, for clients may not register regions. The second speaks TLS."""
    authority = certificates.Authority(tmp_path)
    own = authority.issue()
    (tmp_path / "models").mkdir()
    with tempfile.TemporaryDirectory(prefix="g") as folder:
        killed = servers.galatea(tmp_path / "models", *places(folder))
        with connect(f"{folder}/http") as connection, opened(memory(PAGE)) as (one,):
            status, text = register(connection, "r", {"byte_size": 64}, [one])
            assert status == 501 and text.startswith("Client shared memory is disabled")
            assert not [link for link in links(killed.pid) if "galatea-test" in link]
        killed.process.kill()
        killed.wait_for_exit()
        assert {"http", "grpc", "metrics"} <= set(os.listdir(folder))
        with servers.galatea(tmp_path / "models", *places(folder), f"--https-cert={own.certificate}", f"--https-key={own.key}"):
            trusting = ssl.create_default_context(cafile=authority.certificate)
            with trusting.wrap_socket(connect(f"{folder}/http"), server_hostname="localhost") as connection:
                connection.sendall(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
                assert unix_sockets.answer(connection)[0] == 200
        assert not os.listdir(folder)


# ---- regions


def test_memory_without_a_name(server, connection):
    """Both protocols use it, and it is closed when it is unregistered."""
    with opened(memory(3 * PAGE, bytes(range(64)))) as (one,):
        assert register(connection, "r", {"byte_size": 3 * PAGE}, [one]) == (200, "")
        row = {"name": "r", "key": "", "offset": 0, "byte_size": 3 * PAGE}
        assert json.loads(unix_sockets.ask(server.http, "GET", f"{REGION}/r/status")[2]) == [row]
        assert infer(server, "r")[0] == 200 and os.pread(one, 64, PAGE) == bytes(range(64))
        with grpcclient.InferenceServerClient(server.grpc) as stock:
            found = stock.get_system_shared_memory_status().regions["r"]
            assert (found.key, found.byte_size) == ("", 3 * PAGE)
            given, taken = grpcclient.InferInput("INPUT0", [64], "UINT8"), grpcclient.InferRequestedOutput("OUTPUT0")
            given.set_shared_memory("r", 64)
            taken.set_shared_memory("r", 64, offset=2 * PAGE)
            stock.infer("bytes", [given], outputs=[taken])
            assert os.pread(one, 64, 2 * PAGE) == bytes(range(64))
            assert register(connection, "r", {"byte_size": 1}, [one]) == (400, "shared memory region 'r' already in manager")
            assert register(connection, "again", {"byte_size": 64, "offset": 1}, [one]) == (200, "")
            eventually("both regions hold it, and nothing else", lambda: len(passed(server)) == 2)
            stock.unregister_system_shared_memory()
        assert not passed(server)


def test_the_client_keeps_nothing_to_harm_the_server_with(server, connection):
    """Memory that shrinks is an error; a client that makes writes append makes only its own append."""
    with opened(memory(2 * PAGE, b"\1" * 64)) as (one,):
        assert register(connection, "r", {"byte_size": 2 * PAGE}, [one])[0] == 200
        fcntl.fcntl(one, fcntl.F_SETFL, os.O_APPEND)
        assert infer(server, "r")[0] == 200
        assert os.fstat(one).st_size == 2 * PAGE and os.pread(one, 64, PAGE) == b"\1" * 64
        os.ftruncate(one, 32)
        status, text = infer(server, "r")
        assert status == 500 and "its memory has shrunk" in text["error"]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("at", ["head", "body", "end"])
def test_any_byte_of_the_request_brings_the_descriptor(server, connection, at, chunked):
    """A request before it on the same connection does not take it, and one behind it gets none."""
    with opened(memory(PAGE)) as (one,):
        head, body = unix_sockets.request(f"{REGION}/r/register", {"byte_size": PAGE}, chunked)
        parts = {"head": [b"", head, body], "body": [head, body[:3], body[3:]], "end": [head + body[:-1], body[-1:], b""]}[at]
        connection.sendall(b"".join(unix_sockets.request("/v2/models/pair/infer", clients.pair_json())) + parts[0])
        socket.send_fds(connection, [parts[1]], [one])
        connection.sendall(parts[2] + b"".join(unix_sockets.request(f"{REGION}/other/register", {"byte_size": 1})))
        assert unix_sockets.answers(connection, 3)[1:] == [(200, ""), (400, NO_KEY)]


def test_a_key_counts_before_a_descriptor(server, connection):
    with opened(memory(PAGE)) as (one,):
        assert register(connection, "r", {"key": "/none", "byte_size": 1}, [one]) == (500, "Unable to open shared memory region: '/none'")


def test_what_is_no_memory_is_refused_by_its_reason(server, connection):
    descriptor = memory(PAGE)
    reader, writer = os.pipe()
    pair = socket.socketpair()
    read_only, pathless = (os.open(f"/proc/self/fd/{descriptor}", flags) for flags in (os.O_RDONLY, os.O_PATH))
    process = os.open("/proc/self/comm", os.O_RDWR)
    no_memory, not_both = "is no memory: make it with memfd_create, or open a file of /dev/shm", "is not open for reading and writing"
    with opened(descriptor, reader, writer, read_only, pathless, process):
        for one, reason in (
            (reader, not_both), (writer, not_both), (read_only, not_both), (pathless, "was opened with O_PATH"),
            (pair[0].fileno(), no_memory), (process, no_memory),
        ):
            text = f"failed to register shared memory region 'r': the passed descriptor {reason}"
            assert register(connection, "r", {"byte_size": 64}, [one]) == (400, text)
        for offset, size in ((0, PAGE + 1), (PAGE, 1), (0, 0), (2**64 - 1, 2)):
            status, text = register(connection, "r", {"byte_size": size, "offset": offset}, [descriptor])
            reason = f"the passed memory has {PAGE} bytes, but offset is {offset} and byte_size is {size}"
            assert (status, text) == (400, f"failed to register shared memory region 'r': {reason}")
        status, text = register(connection, "r", {"byte_size": 64}, [descriptor] * 2)
        assert status == 400 and "more than one descriptor was passed" in text
        assert register(connection, "r", {}, [descriptor]) == (400, "Shared memory register request has no 'byte_size' field")
        assert register(connection, "r", {"byte_size": 64}, []) == (400, NO_KEY)
        assert register(connection, "r", {"byte_size": 64}, [descriptor]) == (200, "")
    for one in pair:
        one.close()


def test_descriptors_that_nobody_asked_for_are_closed(server, connection):
    """200 rounds of them, with requests of every kind and with none, and on the socket of gRPC."""
    before, one = len(links(server.pid)), memory(PAGE)
    live = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    register_head, register_body = unix_sockets.request(f"{REGION}/r/register", {"byte_size": 2 * PAGE})
    infer_head, infer_body = unix_sockets.request("/v2/models/pair/infer", clients.pair_json(), chunked=True)
    with opened(one):
        for round in range(200):
            count = [1, 2, 3, 100][round % 4]
            socket.send_fds(connection, [live], [one] * count)
            assert unix_sockets.answer(connection)[0] == 200
            socket.send_fds(connection, [infer_head], [one] * count)
            socket.send_fds(connection, [infer_body], [one] * count)
            assert unix_sockets.answer(connection)[0] == 200
            socket.send_fds(connection, [register_head], [one])
            socket.send_fds(connection, [register_body], [one] * count)
            assert unix_sockets.answer(connection)[0] == 400
            if round % 10 == 0:
                for path in (server.http, server.grpc.removeprefix("unix:")):
                    # A server of gRPC may already have hung up on a client that speaks HTTP/1.1.
                    with connect(path) as other, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        socket.send_fds(other, [b"\r\n"], [one] * count)
                        socket.send_fds(other, [b"GET /v2"], [one])
        assert unix_sockets.ask(server.http, "GET", f"{REGION}/r/status")[0] == 404
        eventually("all of them are closed", lambda: not passed(server))
        # They are not held until the request is over.
        slow_head, slow_body = unix_sockets.request("/v2/models/pair/infer", clients.pair_json())
        socket.send_fds(connection, [slow_head], [one])
        connection.sendall(slow_body[:1])
        eventually("it is closed before the body is there", lambda: not passed(server))
    eventually("no other descriptor is left", lambda: len(links(server.pid)) <= before + 1)


def test_the_example_client(server, connection):
    script = servers.ROOT / "examples/clients/python/unix_socket.py"
    run = subprocess.run([sys.executable, script, server.http], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"sum: {' '.join(map(str, np.arange(1, 17)))}\n"
    run = subprocess.run([sys.executable, script, f"{server.http}.none"], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0 and "No such file" in run.stderr
