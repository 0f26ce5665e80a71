"""CUDA shared memory. The driver is made up (`fake_driver/cuda.c`): memory of a GPU is a file, which a client of the test
writes and reads. One test asks a real GPU, where there is one."""

import base64
import json
import shutil

import numpy as np
import pytest
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

import clients
import made_up_driver
import servers
import shared_files
import tiers
from region_calls import FLAGS, call, descriptors, identity, infer, links, register, span
from repositories import add_sub_config, identity_config, write_model
from shared_flags import NO_GPU

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("regions")


@pytest.fixture
def server(shared):
    found = shared(*FLAGS, env=made_up_driver.environment())
    yield found
    for kind in ("system", "cuda"):
        assert call(found, "unregister", kind=kind) == (200, "")


@pytest.fixture
def files():
    with shared_files.SharedFiles() as made:
        yield made


@pytest.fixture(params=["http", "grpc"])
def protocol(request):
    return request.param


def handle(files, name):
    """What the made-up driver gives a client for this memory, in base64."""
    return base64.b64encode((files.prefix + name).encode().ljust(64, b"\0"))


def register_cuda(server, name, raw_handle, byte_size, device_id=0):
    body = {"raw_handle": {"b64": raw_handle.decode()}, "device_id": device_id, "byte_size": byte_size}
    status, text = call(server, "register", name, body, "cuda")
    return status, json.loads(text)["error"] if text else ""


def contexts(server):
    return [link for link in links(server.pid) if "made-up-context" in link]


def status_of(stock, protocol, name=""):
    """The regions as `(name, GPU, bytes)`."""
    if protocol == "http":
        return [(row["name"], row["device_id"], row["byte_size"]) for row in stock.get_cuda_shared_memory_status(name)]
    rows = sorted(stock.get_cuda_shared_memory_status(name).regions.items())
    assert all(name == row.name for name, row in rows)
    return [(row.name, row.device_id, row.byte_size) for _, row in rows]


def test_the_stock_client_s_calls(server, files, protocol):
    """A context exists from the first region of a GPU to its last."""
    model, module = server.add("simple", "add_sub", add_sub_config()), clients.MODULES[protocol]
    arrays = [np.arange(16, dtype=np.int32).reshape(1, 16), np.full((1, 16), 3, np.int32)]
    size = arrays[0].nbytes
    files.write("in", b"".join(array.tobytes() for array in arrays))
    files.write("out", size=2 * size)
    assert not contexts(server)
    with clients.client(server, protocol) as stock:
        stock.register_cuda_shared_memory("out", handle(files, "out"), 1, 2 * size)
        stock.register_cuda_shared_memory("in", handle(files, "in"), 0, 2 * size)
        assert len(contexts(server)) == 2
        assert status_of(stock, protocol) == [("in", 0, 2 * size), ("out", 1, 2 * size)]
        assert status_of(stock, protocol, "out") == [("out", 1, 2 * size)]
        inputs, outputs = [], []
        for i in range(2):
            inputs.append(module.InferInput(f"INPUT{i}", [1, 16], "INT32"))
            inputs[-1].set_shared_memory("in", size, offset=i * size)
            outputs.append(module.InferRequestedOutput(f"OUTPUT{i}"))
            outputs[-1].set_shared_memory("out", size, offset=i * size)
        stock.infer(model, inputs, outputs=outputs)
        found = np.frombuffer(files.read("out"), np.int32).reshape(2, 1, 16)
        assert (found[0] == arrays[0] + arrays[1]).all() and (found[1] == arrays[0] - arrays[1]).all()
        stock.unregister_cuda_shared_memory("in")
        assert status_of(stock, protocol) == [("out", 1, 2 * size)] and len(contexts(server)) == 1
        with pytest.raises(InferenceServerException, match="Unable to find cuda shared memory region: 'in'"):
            status_of(stock, protocol, "in")
        with pytest.raises(InferenceServerException, match="Unable to find shared memory region: 'in'"):
            stock.infer(model, inputs, outputs=outputs)
        stock.unregister_cuda_shared_memory()
        assert status_of(stock, protocol) == []
    assert not descriptors(server, files) and not contexts(server)


def test_what_is_refused_has_triton_s_texts_and_leaves_nothing(server, files, protocol):
    files.write("r", size=64)
    files.write("taken", size=64)
    register(server, "taken", files.key("taken"), 64)
    kept = descriptors(server, files)
    unknown = base64.b64encode(b"none".ljust(64, b"\0"))
    no_handle = "failed to register shared memory region: invalid args"
    short = "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t" if protocol == "http" else no_handle
    no_gpu = "failed to register CUDA shared memory region 'x': device_id {} is no GPU of this server, which has 3, numbered from 0"
    good = handle(files, "r")
    refused = [
        (("x", unknown, 0, 64), 400, "INVALID_ARGUMENT", no_handle),
        (("x", base64.b64encode(b"short"), 0, 64), 400, "INVALID_ARGUMENT", short),
        (("x", good, 0, 65), 400, "INVALID_ARGUMENT", "failed to register shared memory region 'x': invalid args"),
        (("x", good, 3, 64), 400, "INVALID_ARGUMENT", no_gpu.format(3)),
        (("taken", good, 0, 64), 400, "ALREADY_EXISTS", "shared memory region 'taken' already in manager"),
    ]
    if protocol == "grpc":
        refused.append((("x", good, -1, 64), 400, "INVALID_ARGUMENT", no_gpu.format(-1)))
    with clients.client(server, protocol) as stock:
        for given, status, code, text in refused:
            with pytest.raises(InferenceServerException) as error:
                stock.register_cuda_shared_memory(*given)
            assert error.value.message() == text
            assert error.value.status() == (str(status) if protocol == "http" else f"StatusCode.{code}")
        assert status_of(stock, protocol) == []
    server.wait_for_line(r"^W.*CUDA shared memory region 'x' cannot be opened: cuIpcOpenMemHandle failed: an error")
    assert descriptors(server, files) == kept and not contexts(server)


def test_names_are_those_of_both_kinds(server, files):
    """A call about one kind changes no region of the other."""
    files.write("r", size=64)
    register(server, "system", files.key("r"), 64)
    assert register_cuda(server, "cuda", handle(files, "r"), 64) == (200, "")
    status, answer = call(server, "status", "cuda")
    text = "The region named 'cuda' is registered as CUDA shared memory, not system shared memory"
    assert (status, json.loads(answer)["error"]) == (404, text)
    with clients.client(server, "grpc") as stock, pytest.raises(InferenceServerException, match=text):
        stock.get_system_shared_memory_status("cuda")
    status, answer = call(server, "register", "cuda", {"key": files.key("r"), "byte_size": 64})
    assert (status, json.loads(answer)["error"]) == (400, "shared memory region 'cuda' already in manager")
    for name, kind in (("cuda", "system"), (None, "system"), ("system", "cuda")):
        assert call(server, "unregister", name, kind=kind) == (200, "")
        assert call(server, "status", kind="cuda") == (200, '[{"name":"cuda","device_id":0,"byte_size":64}]')
    register(server, "system", files.key("r"), 64)
    assert call(server, "unregister", kind="cuda") == (200, "")
    assert len(json.loads(call(server, "status")[1])) == 1


def test_one_handle_under_two_names_is_opened_once(server, files):
    """The driver refuses to open it again."""
    model = server.add("bytes", "identity", identity_config("TYPE_UINT8"))
    files.write("r", b"\5" * 64, size=8192)
    for name in ("one", "two"):
        assert register_cuda(server, name, handle(files, "r"), 8192) == (200, "")
    assert len(descriptors(server, files)) == 1
    inputs, outputs = {"INPUT0": ("UINT8", [64], span("one", 64))}, {"OUTPUT0": span("two", 64, 4096)}
    assert infer(server, model, inputs, outputs)[0] == 200
    assert files.read("r", 4096, 64) == b"\5" * 64
    assert call(server, "unregister", "one", kind="cuda") == (200, "")
    assert identity(server, model, "two")[0] == 200
    assert call(server, "unregister", "two", kind="cuda") == (200, "")
    assert not descriptors(server, files)
    assert register_cuda(server, "one", handle(files, "r"), 64) == (200, "")


def test_an_error_of_the_gpu_fails_its_request_alone(server, files, protocol):
    """The made-up GPU reports an access behind the end of memory that was cut."""
    model, module = server.add("bytes", "identity", identity_config("TYPE_UINT8")), clients.MODULES[protocol]
    files.write("kept", b"\2" * 64)
    files.write("cut", b"\1" * 64, size=128)
    for name, size in (("kept", 64), ("cut", 128)):
        assert register_cuda(server, name, handle(files, name), size) == (200, "")
    files.write("cut", b"\1" * 32)

    def ask(given, taken, offset=0):
        tensors = [module.InferInput("INPUT0", [64], "UINT8")], [module.InferRequestedOutput("OUTPUT0")]
        tensors[0][0].set_shared_memory(given, 64)
        tensors[1][0].set_shared_memory(taken, 64, offset=offset)
        with clients.client(server, protocol) as stock:
            stock.infer(model, tensors[0], outputs=tensors[1])

    for action, offset, given, taken in (("read", 0, "cut", "kept"), ("write", 64, "kept", "cut")):
        with pytest.raises(InferenceServerException) as error:
            ask(given, taken, offset)
        assert f"Unable to {action} 64 bytes at offset {offset} of CUDA shared memory region 'cut': " in error.value.message()
        assert "an illegal memory access was encountered" in error.value.message()
    assert files.read("cut") == b"\1" * 32
    ask("kept", "kept")
    assert files.read("kept") == b"\2" * 64


def test_a_driver_without_a_gpu_answers_as_triton_there(shared, files):
    """A build with CUDA on a machine without a GPU. Without a driver the answer is that of a build without CUDA."""
    server = shared(*FLAGS, env={**made_up_driver.environment(), **NO_GPU})
    files.write("r", size=64)
    text = "failed to register shared memory region: invalid args"
    assert register_cuda(server, "r", handle(files, "r"), 64) == (400, text)
    server.wait_for_line(r"^W.*'r' cannot be opened: there is no GPU 0: the driver shows 0")
    assert call(server, "status", kind="cuda") == (200, "[]")


@tiers.peers
def test_a_real_gpu(tmp_path):
    """The stock client's own memory of a GPU, with the driver of this machine."""
    if not shutil.which("nvidia-smi"):
        pytest.skip("this machine has no NVIDIA GPU")
    try:
        import tritonclient.utils.cuda_shared_memory as stock_memory
    except RuntimeError as error:
        pytest.skip(str(error))
    numbers = np.arange(1 << 20, dtype=np.int32)
    write_model(tmp_path, "numbers", "galatea", "identity", identity_config("TYPE_INT32"))
    given, taken = (stock_memory.create_shared_memory_region(name, numbers.nbytes, 0) for name in ("in", "out"))
    try:
        with servers.galatea(tmp_path, "--allow-client-shm=true") as server, clients.client(server, "http") as stock:
            stock_memory.set_shared_memory_region(given, [numbers])
            for name, memory in (("in", given), ("again", given), ("out", taken)):
                stock.register_cuda_shared_memory(name, stock_memory.get_raw_handle(memory), 0, numbers.nbytes)
            status, text = register_cuda(server, "long", stock_memory.get_raw_handle(given), 1 << 40)
            assert (status, text) == (400, "failed to register shared memory region 'long': invalid args")
            for name in ("in", "again"):
                stock_memory.set_shared_memory_region(taken, [np.zeros_like(numbers)])
                tensor, output = httpclient.InferInput("INPUT0", [len(numbers)], "INT32"), httpclient.InferRequestedOutput("OUTPUT0")
                tensor.set_shared_memory(name, numbers.nbytes)
                output.set_shared_memory("out", numbers.nbytes)
                stock.infer("numbers", [tensor], outputs=[output])
                assert (stock_memory.get_contents_as_numpy(taken, np.int32, [len(numbers)]) == numbers).all()
            stock.unregister_cuda_shared_memory()
            assert stock.get_cuda_shared_memory_status() == []
    finally:
        for memory in (given, taken):
            stock_memory.destroy_shared_memory_region(memory)
