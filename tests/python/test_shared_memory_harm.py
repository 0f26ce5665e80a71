"""Clients that want to harm the server by its shared memory, and requests that outlive their region or their client."""

import concurrent.futures
import http.client
import json
import os
import threading

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

import clients
import processes
import servers
import shared_files
from region_calls import FLAGS, call, descriptors, identity, links, mappings, register, span
from repositories import identity_config, write_model
from test_python_queue import CONFIG as GATE_CONFIG
from test_python_queue import GATE as QUEUE_GATE
from test_python_queue import Gates
from waiting import eventually

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("regions")
# A model that begins and ends as that of the queues does, tells that it is cancelled, and has an output of 64 bytes.
GATE = QUEUE_GATE.replace("np.zeros(1, np.int32)", "np.full(16, 7, np.int32)").replace(
    'while not os.path.exists(name + ".go"):\n',
    """while not os.path.exists(name + ".go"):
                    if request.is_cancelled():
                        open(name + ".cancelled", "w").close()
""",
)


@pytest.fixture
def server(shared):
    found = shared(*FLAGS)
    yield found
    assert clients.ask(found.http, "POST", "/v2/systemsharedmemory/unregister", "")[0] == 200


@pytest.fixture
def files():
    with shared_files.SharedFiles() as made:
        yield made


@pytest.fixture(params=["http", "grpc"])
def protocol(request):
    return request.param


def test_a_refused_registration_leaves_no_descriptor(server, files):
    files.write("r", size=8192)
    for _ in range(20):
        for body in ({"byte_size": 8193}, {"offset": 8, "byte_size": 8}, {"byte_size": 0}, {"offset": 8192, "byte_size": 1}):
            assert call(server, "register", "x", {"key": files.key("r"), **body})[0] == 400
    register(server, "x", files.key("r"), 8192)
    for _ in range(20):
        assert call(server, "register", "x", {"key": files.key("r"), "byte_size": 8192})[0] == 400
    assert len(descriptors(server, files)) == 1
    assert call(server, "unregister", "x")[0] == 200
    assert not descriptors(server, files) and not mappings(server, files)


def test_keys_lead_to_files_of_shared_memory_alone(server, files, tmp_path):
    (tmp_path / "secret").write_bytes(b"x" * 4096)
    os.symlink(tmp_path / "secret", files.path("link"))
    os.mkfifo(files.path("pipe"))
    for key in (f"/../..{tmp_path}/secret", f"{tmp_path}/secret", files.key("link"), files.key("pipe"), "/.", "/..", "/\0", "/x" * 300):
        status, text = call(server, "register", "x", {"key": key, "byte_size": 4})
        assert status == 500 and "Unable to open shared memory region" in text, (key, status, text)
    status, text = call(server, "register", "x", {"key": "/" * 2000 + "x", "byte_size": 4})
    assert status == 400 and "may have 1024" in text
    status, text = call(server, "register", "n" * 2000, {"key": files.key("none"), "byte_size": 4})
    assert status == 400 and "may have 1024" in text
    assert call(server, "status") == (200, "[]")


def test_memory_of_our_workers_has_no_name(server, files):
    """The memory that a Python model shares with the server is in no folder, so that no client can register it."""
    code = QUEUE_GATE
    model = server.add("gate", "python", GATE_CONFIG, files={"1/model.py": code})
    body = {"inputs": [{"name": "IN", "datatype": "BYTES", "shape": [1], "data": [""]}]}
    assert clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)[0] == 200
    workers = processes.descendants(server.pid)
    assert workers
    for pid in [server.pid, *workers]:
        assert not processes.named_memory(pid) and not [link for link in links(pid) if link.startswith("/dev/shm/")]


@pytest.fixture(scope="module")
def bounded(tmp_path_factory):
    """A server with few descriptors, and little for each client."""
    folder = tmp_path_factory.mktemp("models")
    write_model(folder, "bytes", "galatea", "identity", identity_config("TYPE_UINT8"))
    flags = ("--allow-client-shm=true", "--client-max-request-bytes=1M")
    with servers.galatea(folder, *flags, through=("prlimit", "--nofile=512:512")) as running:
        yield running


def test_so_many_regions_and_no_more(bounded, files):
    """An eighth of the descriptors that the process may open."""
    files.write("r", size=4096)
    for i in range(64):
        register(bounded, f"r{i}", files.key("r"), 4096)
    status, text = call(bounded, "register", "more", {"key": files.key("r"), "byte_size": 4096})
    assert status == 503 and "64 shared memory regions are registered" in text, text
    assert call(bounded, "unregister", "r0")[0] == 200
    register(bounded, "more", files.key("r"), 4096)
    assert len(descriptors(bounded, files)) == 64
    assert call(bounded, "unregister")[0] == 200 and not descriptors(bounded, files)


def test_inputs_in_regions_count_to_the_limits_of_their_client(bounded, files):
    files.write("r", size=4 << 20)
    register(bounded, "r", files.key("r"), 4 << 20)
    assert identity(bounded, "bytes", "r", 512 << 10, 2 << 20)[0] == 200
    status, answer = identity(bounded, "bytes", "r", 2 << 20, 2 << 20)
    assert status == 429 and "--client-max-request-bytes" in answer["error"], answer
    given, taken = grpcclient.InferInput("INPUT0", [2 << 20], "UINT8"), grpcclient.InferRequestedOutput("OUTPUT0")
    given.set_shared_memory("r", 2 << 20)
    taken.set_shared_memory("r", 2 << 20, offset=2 << 20)
    with clients.client(bounded, "grpc") as stock, pytest.raises(InferenceServerException, match="--client-max-request-bytes") as error:
        stock.infer("bytes", [given], outputs=[taken])
    assert error.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
    assert call(bounded, "unregister")[0] == 200


@pytest.fixture
def gate(server, tmp_path):
    """A model that answers when the test says so."""
    config = GATE_CONFIG.replace('name: "OUT" data_type: TYPE_INT32 dims: [ 1 ]', 'name: "OUT" data_type: TYPE_INT32 dims: [ 16 ]')
    (tmp_path / "gates").mkdir()
    return Gates(server, tmp_path / "gates", server.add("gate", "python", config, files={"1/model.py": GATE}))


def request_of(gate, name, outputs):
    text = str(gate.folder / name) if name else ""
    return {"inputs": [{"name": "IN", "datatype": "BYTES", "shape": [1], "data": [text]}], "outputs": outputs}


def gated(gate, server, name, outputs):
    return clients.ask(server.http, "POST", f"/v2/models/{gate.model}/infer", request_of(gate, name, outputs))


def test_a_name_is_free_while_a_request_still_uses_its_region(server, files, gate):
    """The request writes where it was told to; new ones have the new region, or none."""
    files.write("old", size=4096)
    files.write("new", size=4096)
    register(server, "r", files.key("old"), 4096)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        answer = threads.submit(gated, gate, server, "one", [{"name": "OUT", "parameters": span("r", 64)}])
        eventually("the model begins", lambda: gate.has_begun("one"))
        assert call(server, "unregister", "r")[0] == 200
        assert call(server, "status", "r")[0] == 404
        assert gated(gate, server, "", [{"name": "OUT", "parameters": span("r", 64)}])[0] == 404
        register(server, "r", files.key("new"), 4096)
        gate.permit("one")
        assert answer.result(60)[0] == 200
    assert files.read("old", 0, 64) == np.full(16, 7, np.int32).tobytes() and files.read("new") == bytes(4096)
    assert len(descriptors(server, files)) == 1


def test_a_cancelled_request_writes_nothing(server, files, gate, protocol):
    """The server writes outputs itself, when the model has answered and the client still waits. So a model that runs on after
    its client has cancelled, or has hung up, changes no region."""
    files.write("r", size=4096)
    register(server, "r", files.key("r"), 4096)
    if protocol == "grpc":
        given = clients.inputs(grpcclient, {"IN": np.array([str(gate.folder / "one").encode()], np.object_)})
        taken = grpcclient.InferRequestedOutput("OUT")
        taken.set_shared_memory("r", 64)
        with clients.client(server, "grpc") as stock:
            running = stock.async_infer(gate.model, given, lambda result, error: None, outputs=[taken])
            eventually("the model begins", lambda: gate.has_begun("one"))
            running.cancel()
            eventually("the model is told", lambda: (gate.folder / "one.cancelled").exists())
    else:
        connection = http.client.HTTPConnection(server.http, timeout=60)
        body = json.dumps(request_of(gate, "one", [{"name": "OUT", "parameters": span("r", 64)}]))
        connection.request("POST", f"/v2/models/{gate.model}/infer", body)
        eventually("the model begins", lambda: gate.has_begun("one"))
        connection.close()
        eventually("the model is told", lambda: (gate.folder / "one.cancelled").exists())
    gate.permit("one")
    # The model has one instance: when it answers the next request, its answer to the one before has arrived.
    assert gated(gate, server, "", [])[0] == 200
    assert files.read("r") == bytes(4096)


def test_a_file_that_is_cut_fails_its_requests_alone(server, files, protocol):
    """200 times, each until further requests have met it. Another region's requests see nothing of it."""
    model = server.add("bytes", "identity", identity_config("TYPE_UINT8"))
    size, whole = 1 << 20, 4 << 20
    files.write("cut", b"\1" * size, size=whole)
    files.write("kept", b"\2" * size, size=whole)
    for name in ("cut", "kept"):
        register(server, name, files.key(name), whole)
    stop, module, seen = threading.Event(), clients.MODULES[protocol], {"cut": [], "kept": []}

    def load(name):
        given, taken = module.InferInput("INPUT0", [size], "UINT8"), module.InferRequestedOutput("OUTPUT0")
        given.set_shared_memory(name, size)
        taken.set_shared_memory(name, size, offset=2 * size)
        with clients.client(server, protocol) as stock:
            while not stop.is_set():
                try:
                    stock.infer(model, [given], outputs=[taken])
                    seen[name].append("")
                except InferenceServerException as error:
                    seen[name].append(error.message())

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        loads = [threads.submit(load, name) for name in ("cut", "cut", "kept", "kept")]
        try:
            for i in range(200):
                os.truncate(files.path("cut"), (0, 4096, size + 1, 2 * size + 7)[i % 4])
                # Two clients send one request at a time: the third to be answered began after the cut.
                count = len(seen["cut"]) + 3
                eventually("requests have met the cut file", lambda: len(seen["cut"]) >= count)
                os.truncate(files.path("cut"), whole)
        finally:
            stop.set()
        for one in loads:
            one.result(60)
    assert set(seen["kept"]) == {""}
    failed = [outcome for outcome in seen["cut"] if outcome]
    assert len(failed) >= 200
    for outcome in set(failed):
        assert "shared memory region 'cut': its memory has shrunk" in outcome, outcome
    assert files.read("kept", 0, size) == files.read("kept", 2 * size, size) == b"\2" * size
    # The bytes that come back are zeros, or what an earlier answer wrote.
    assert set(files.read("cut")) <= {0, 1}
    assert clients.ask(server.http, "GET", "/v2/health/ready")[0] == 200


def test_regions_come_and_go_under_load(server, files):
    """1,000 times, while requests use whichever there is: no descriptor, mapping or byte is left."""
    model = server.add("bytes", "identity", identity_config("TYPE_UINT8"))
    for name in "ab":
        files.write(name, name.encode() * 64, size=8192)
    stop = threading.Event()

    def load(name):
        seen = set()
        while not stop.is_set():
            status, answer = identity(server, model, name)
            seen.add((status, answer.get("error")))
        return seen

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        loads = [threads.submit(load, name) for name in "ab"]
        try:
            for _ in range(500):
                for name in "ab":
                    register(server, name, files.key(name), 8192)
                for name in "ab":
                    assert call(server, "unregister", name)[0] == 200
        finally:
            stop.set()
        for name, one in zip("ab", loads):
            assert one.result(60) <= {(200, None), (404, f"Unable to find shared memory region: '{name}'")}
    assert call(server, "status") == (200, "[]")
    assert not descriptors(server, files) and not mappings(server, files)
    for name in "ab":
        assert files.read(name) in (name.encode() * 64 + bytes(8128), name.encode() * 64 + bytes(4032) + name.encode() * 64 + bytes(4032))
