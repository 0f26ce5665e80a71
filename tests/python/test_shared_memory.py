"""System shared memory: stock clients, requests of every kind, and who may use it."""

import asyncio
import concurrent.futures
import json
import threading

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.grpc.aio as grpc_aio
import tritonclient.http.aio as http_aio
import tritonclient.utils.shared_memory as stock_memory
from tritonclient.utils import InferenceServerException, serialize_byte_tensor

import clients
import perf_tool
import shared_files
import tiers
from region_calls import FLAGS, call, identity, infer, register, span
from repositories import REPEAT_CONFIG, add_sub_config, identity_config
from test_sequence_backends import config as sequence_config

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("regions")
DISABLED = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."


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


# ---- stock clients


def test_the_stock_client_s_own_calls(server, files, protocol):
    """Regions made, filled, registered, used, read, listed and unregistered by the stock client alone."""
    model, module = server.add("simple", "add_sub", add_sub_config()), clients.MODULES[protocol]
    arrays = [np.arange(16, dtype=np.int32).reshape(1, 16), np.full((1, 16), 3, np.int32)]
    size = arrays[0].nbytes
    with clients.client(server, protocol) as stock:
        given = stock_memory.create_shared_memory_region("in", files.key("in"), 2 * size)
        taken = stock_memory.create_shared_memory_region("out", files.key("out"), 2 * size)
        try:
            stock_memory.set_shared_memory_region(given, arrays)
            stock.register_system_shared_memory("in", files.key("in"), 2 * size)
            stock.register_system_shared_memory("out", files.key("out"), 2 * size)
            inputs, outputs = [], []
            for i in range(2):
                inputs.append(module.InferInput(f"INPUT{i}", [1, 16], "INT32"))
                inputs[-1].set_shared_memory("in", size, offset=i * size)
                outputs.append(module.InferRequestedOutput(f"OUTPUT{i}"))
                outputs[-1].set_shared_memory("out", size, offset=i * size)
            answer = stock.infer(model, inputs, outputs=outputs)
            shape = answer.get_output("OUTPUT0")
            assert (shape["shape"] if protocol == "http" else list(shape.shape)) == [1, 16]
            for i, expected in enumerate([arrays[0] + arrays[1], arrays[0] - arrays[1]]):
                assert (stock_memory.get_contents_as_numpy(taken, np.int32, [1, 16], offset=i * size) == expected).all()
            found = stock.get_system_shared_memory_status()
            names = [row["name"] for row in found] if protocol == "http" else sorted(found.regions)
            assert names == ["in", "out"]
            stock.unregister_system_shared_memory("in")
            with pytest.raises(InferenceServerException, match="Unable to find system shared memory region: 'in'"):
                stock.get_system_shared_memory_status("in")
            stock.unregister_system_shared_memory()
            found = stock.get_system_shared_memory_status()
            assert not (found if protocol == "http" else found.regions)
        finally:
            stock_memory.destroy_shared_memory_region(given)
            stock_memory.destroy_shared_memory_region(taken)


def test_strings(server, files, protocol):
    """As many bytes as they have; behind them nothing is written."""
    model, module = server.add("strings", "identity", identity_config("TYPE_STRING")), clients.MODULES[protocol]
    strings = np.array([b"", b"ab", "é".encode(), b"x" * 1000], np.object_)
    packed = serialize_byte_tensor(strings).item()
    files.write("strings", packed, size=8192)
    files.put("strings", b"#" * 4096, offset=4096)
    with clients.client(server, protocol) as stock:
        stock.register_system_shared_memory("strings", files.key("strings"), 8192)
        given, taken = module.InferInput("INPUT0", [4], "BYTES"), module.InferRequestedOutput("OUTPUT0")
        given.set_shared_memory("strings", len(packed))
        taken.set_shared_memory("strings", 4096, offset=4096)
        stock.infer(model, [given], outputs=[taken])
        stock.unregister_system_shared_memory("strings")
    assert files.read("strings", 4096) == packed + b"#" * (4096 - len(packed))


def test_the_stock_clients_of_asyncio(server, files):
    model = server.add("bytes", "identity", identity_config("TYPE_UINT8"))
    files.write("r", bytes(range(64)), size=8192)

    async def play(module, address):
        async with module.InferenceServerClient(address) as stock:
            await stock.register_system_shared_memory("r", files.key("r"), 8192)
            given, taken = module.InferInput("INPUT0", [64], "UINT8"), module.InferRequestedOutput("OUTPUT0")
            given.set_shared_memory("r", 64)
            taken.set_shared_memory("r", 64, offset=4096)
            await stock.infer(model, [given], outputs=[taken])
            assert files.read("r", 4096, 64) == bytes(range(64))
            files.put("r", bytes(64), offset=4096)
            await stock.unregister_system_shared_memory("r")

    asyncio.run(play(http_aio, server.http))
    asyncio.run(play(grpc_aio, server.grpc))


def test_streams_of_the_stock_client(server, files):
    """Every response of a decoupled model overwrites the same span."""
    model = server.add("repeat", "repeat", REPEAT_CONFIG)
    files.write("r", np.array([5, 6, 7], np.int32).tobytes(), size=4096)
    register(server, "r", files.key("r"), 4096)
    answers, done = [], threading.Event()

    def answered(result, error):
        answers.append(error or result)
        if error or result.get_response().parameters["triton_final_response"].bool_param:
            done.set()

    with clients.client(server, "grpc") as stock:
        given = clients.inputs(grpcclient, {"DELAY": np.zeros(3, np.uint32), "WAIT": np.zeros(1, np.uint32)})
        given.append(grpcclient.InferInput("IN", [3], "INT32"))
        given[-1].set_shared_memory("r", 12)
        taken = grpcclient.InferRequestedOutput("OUT")
        taken.set_shared_memory("r", 4, offset=1024)
        stock.start_stream(answered)
        stock.async_stream_infer(model, given, outputs=[taken, grpcclient.InferRequestedOutput("IDX")], enable_empty_final_response=True)
        assert done.wait(60)
        stock.stop_stream()
    assert [int(answer.as_numpy("IDX")[0]) for answer in answers[:-1]] == [0, 1, 2]
    assert files.read("r", 1024, 8) == np.array([7, 0], np.int32).tobytes()


# ---- requests of every kind


def test_both_protocols_have_the_same_regions(server, files):
    model = server.add("bytes", "identity", identity_config("TYPE_UINT8"))
    files.write("r", b"\1" * 64, size=8192)
    with clients.client(server, "grpc") as stock:
        stock.register_system_shared_memory("over grpc", files.key("r"), 8192)
    assert infer(server, model, {"INPUT0": ("UINT8", [4], span("over grpc", 4))}, {})[1]["outputs"][0]["data"] == [1] * 4
    with clients.client(server, "grpc") as stock:
        stock.unregister_system_shared_memory("over grpc")
    assert call(server, "status") == (200, "[]")


def test_offsets_count_from_the_registered_start(server, files):
    model = server.add("bytes", "identity", identity_config("TYPE_UINT8"))
    files.write("r", b"\0" * 4096 + bytes(range(64)) + b"\0" * 4032)
    register(server, "r", files.key("r"), 4096, offset=4096)
    assert infer(server, model, {"INPUT0": ("UINT8", [4], span("r", 4, 8))}, {"OUTPUT0": span("r", 4, 1024)})[0] == 200
    assert files.read("r", 4096 + 1024, 4) == bytes([8, 9, 10, 11])
    status, answer = infer(server, model, {"INPUT0": ("UINT8", [4], span("r", 4, 4093))}, {})
    assert (status, answer["error"]) == (400, "Invalid offset + byte size for shared memory region: 'r'")


def test_one_file_under_two_names(server, files):
    """As in 2.73, where the first name no longer lends its descriptor to the second."""
    model = server.add("bytes", "identity", identity_config("TYPE_UINT8"))
    files.write("r", b"\5" * 64, size=8192)
    register(server, "one", files.key("r"), 8192)
    register(server, "two", files.key("r"), 8192)
    assert infer(server, model, {"INPUT0": ("UINT8", [64], span("one", 64))}, {"OUTPUT0": span("two", 64, 4096)})[0] == 200
    assert files.read("r", 4096, 64) == b"\5" * 64


def test_sums_of_sizes_that_no_number_holds(server, files):
    model = server.add("bytes", "identity", identity_config("TYPE_UINT8"))
    files.write("r", size=8192)
    register(server, "r", files.key("r"), 8192)
    status, answer = infer(server, model, {"INPUT0": ("UINT8", [64], span("r", 2**64 - 1, 8))}, {})
    assert (status, answer["error"]) == (
        400, "Integer overflow detected: byte_size (18446744073709551615) + offset (8) exceeds maximum value (18446744073709551615) "
        "for region 'r'",
    )


def test_a_batch_of_requests_with_spans_of_their_own(server, files):
    model = server.add("simple", "add_sub", add_sub_config(8, "dynamic_batching { max_queue_delay_microseconds: 5000 }\n"))
    files.write("in", np.arange(48 * 16, dtype=np.int32).tobytes())
    files.write("out", size=2 * 48 * 64)
    register(server, "in", files.key("in"), 48 * 64)
    register(server, "out", files.key("out"), 2 * 48 * 64)

    def ask(i):
        given = ("INT32", [1, 16], span("in", 64, 64 * i))
        return infer(server, model, {"INPUT0": given, "INPUT1": given}, {f"OUTPUT{k}": span("out", 64, 64 * (2 * i + k)) for k in (0, 1)})

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        assert {status for status, _ in threads.map(ask, range(48))} == {200}
    found = np.frombuffer(files.read("out"), np.int32).reshape(48, 2, 16)
    assert (found[:, 0] == 2 * np.arange(48 * 16).reshape(48, 16)).all() and not found[:, 1].any()


def test_a_sequence(server, files):
    model = server.add("sums", "sequence", sequence_config("sequence"))
    files.write("r", np.array([1, 2, 3], np.int32).tobytes(), size=4096)
    register(server, "r", files.key("r"), 4096)
    for i in range(3):
        status, answer = infer(
            server, model, {"INPUT": ("INT32", [1, 1], span("r", 4, 4 * i))}, {"OUTPUT": span("r", 4, 1024 + 4 * i)},
            parameters={"sequence_id": 7, "sequence_start": i == 0, "sequence_end": i == 2},
        )
        assert status == 200, answer
    assert np.frombuffer(files.read("r", 1024, 12), np.int32).tolist() == [1, 3, 6]


def test_an_answer_from_the_cache(server, files):
    """It is written to the region, and refused where it does not fit, as one that was executed."""
    model = server.add("cached", "identity", identity_config("TYPE_UINT8", more="response_cache { enable: true }\n"))
    files.write("r", b"\3" * 64, size=8192)
    register(server, "r", files.key("r"), 8192)
    for hits in (0, 1):
        assert identity(server, model, "r")[0] == 200
        assert files.read("r", 4096, 64) == b"\3" * 64
        files.put("r", bytes(64), offset=4096)
        assert clients.statistics(server, model)["inference_stats"]["cache_hit"]["count"] == hits
    status, answer = infer(server, model, {"INPUT0": ("UINT8", [64], span("r", 64))}, {"OUTPUT0": span("r", 63, 4096)})
    assert (status, answer["error"]) == (
        500, "shared memory size specified with the request for output 'OUTPUT0' (63 bytes) should be at least 64 bytes to hold the results",
    )
    assert files.read("r", 4096, 64) == bytes(64)
    assert clients.statistics(server, model)["inference_stats"]["cache_hit"]["count"] == 2


def test_none_of_several_outputs_is_written_if_one_does_not_fit(server, files):
    model = server.add("simple", "add_sub", add_sub_config())
    files.write("r", b"\1" * 64, size=8192)
    register(server, "r", files.key("r"), 8192)
    given = ("INT32", [1, 16], span("r", 64))
    outputs = {"OUTPUT0": span("r", 64, 1024), "OUTPUT1": span("r", 63, 2048)}
    status, answer = infer(server, model, {"INPUT0": given, "INPUT1": given}, outputs)
    assert status == 500 and "'OUTPUT1' (63 bytes)" in answer["error"]
    assert files.read("r", 64) == bytes(8192 - 64)


def test_long_tensors(server, files):
    """Longer than a body may be: what lies in shared memory is no part of the body."""
    size = 96 << 20
    model = server.add("bytes", "identity", identity_config("TYPE_UINT8"))
    files.write("r", b"\1\2\3", size=2 * size)
    files.put("r", b"\4\5\6", offset=size - 3)
    register(server, "r", files.key("r"), 2 * size)
    status, answer = identity(server, model, "r", size, size)
    assert status == 200, answer
    assert files.read("r", size, 3) == b"\1\2\3" and files.read("r", 2 * size - 3, 3) == b"\4\5\6"


# ---- who may


def test_without_the_flag_no_region_can_be_registered(shared):
    """The refusal comes before the name and the body are looked at. The status and requests are as they are without regions."""
    server = shared()
    for kind in ("system", "cuda"):
        for name, action in ((None, "register"), ("r", "register"), ("r", "unregister"), (None, "unregister")):
            status, text = call(server, action, name, "{", kind)
            assert (status, json.loads(text)["error"]) == (501, DISABLED), (kind, action, name)
        assert call(server, "status", kind=kind) == (200, "[]")
    model = server.add("bytes", "identity", identity_config("TYPE_UINT8"))
    status, answer = identity(server, model, "r")
    assert (status, answer["error"]) == (404, "Unable to find shared memory region: 'r'")
    with clients.client(server, "grpc") as stock:
        for refused in (
            lambda: stock.register_system_shared_memory("", "", 0), lambda: stock.unregister_system_shared_memory(),
            lambda: stock.register_cuda_shared_memory("", b"", 0, 0), lambda: stock.unregister_cuda_shared_memory("x"),
        ):
            with pytest.raises(InferenceServerException) as error:
                refused()
            assert (error.value.status(), error.value.message()) == ("StatusCode.UNIMPLEMENTED", DISABLED)
        assert not stock.get_system_shared_memory_status().regions


def test_a_region_of_the_system_is_none_of_a_device(server, files):
    files.write("r", size=64)
    register(server, "r", files.key("r"), 64)
    text = "The region named 'r' is registered as system shared memory, not CUDA shared memory"
    status, answer = call(server, "status", "r", kind="cuda")
    assert (status, json.loads(answer)["error"]) == (404, text)
    assert call(server, "unregister", "r", kind="cuda") == (200, "") and call(server, "status", "r")[0] == 200
    with clients.client(server, "grpc") as stock, pytest.raises(InferenceServerException, match=text):
        stock.get_cuda_shared_memory_status("r")
    with clients.client(server, "grpc") as stock, pytest.raises(InferenceServerException) as error:
        stock.register_cuda_shared_memory("x", b"AA" * 44, 0, 64)
    assert "failed to register" in error.value.message()


def test_a_page_of_another_site_cannot_register(server, files):
    files.write("r", size=64)
    body, headers = {"key": files.key("r"), "byte_size": 64}, {"Sec-Fetch-Site": "cross-site"}
    assert clients.ask(server.http, "POST", "/v2/systemsharedmemory/region/r/register", body, headers)[0] == 403
    assert call(server, "status") == (200, "[]")


# ---- the load tools


@pytest.mark.parametrize("tool", perf_tool.BOTH)
def test_load_tools(server, tmp_path, tool, protocol):
    """All requests of the real one write the same region of an output, at the same time."""
    model = server.add("simple", "add_sub", add_sub_config())
    address = server.http if protocol == "http" else server.grpc
    args = ["-m", model, "-u", address, "-i", protocol, "--shared-memory", "system", "--concurrency-range", "4", "--request-count", "400"]
    run = perf_tool.run(tool, args, tmp_path)
    assert run.code == 0 and "Throughput: " in run.out, run.out + run.err
    assert call(server, "status") == (200, "[]")


@tiers.measure
def test_cost_of_regions(server, tmp_path, protocol):
    """Time of the processor for requests of 400 KB in and out, by socket and by region, four in flight."""
    model, address = server.add("vector", "identity", identity_config()), server.http if protocol == "http" else server.grpc
    args = ["-m", model, "-u", address, "-i", protocol, "--shape", "INPUT0:100000", "--concurrency-range", "4", "--request-count", "4000"]
    spent = {}
    for way in ([], ["--shared-memory", "system", "--output-shared-memory-size", "400000"]):
        before = server.cpu_seconds()
        run = perf_tool.run(perf_tool.OURS, [*args, *way], tmp_path / f"run{len(spent)}", timeout=120)
        assert run.code == 0, run.out + run.err
        spent["region" if way else "socket"] = (server.cpu_seconds() - before) / 4000 * 1e6
    print(f"{protocol}: {spent['socket']:.0f} us of the processor for a request by socket, {spent['region']:.0f} by region")
    assert spent["region"] < spent["socket"]
