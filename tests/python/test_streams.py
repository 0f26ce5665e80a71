"""ModelStreamInfer with the stock client: the same expectations for our server and for the real Triton."""

import asyncio
import queue

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.grpc.aio as grpc_aio
from tritonclient.grpc import service_pb2, service_pb2_grpc

import clients
import repositories
import servers
import tiers

LIMIT = 60
DELAYED = 'parameters { key: "execute_delay_ms" value { string_value: "400" } }\n'


def write(path, target):
    vector = repositories.identity_config()
    repositories.write_model(path, "repeat", target, "repeat", repositories.REPEAT_CONFIG)
    repositories.write_model(path, "quick", target, "identity", vector)
    repositories.write_model(path, "slow", target, "identity", vector + DELAYED)
    told = 'parameters { key: "fail" value { string_value: "execute" } }\n'
    repositories.write_model(path, "failing", target, "failing", vector + told)


@pytest.fixture(scope="module", params=tiers.BOTH)
def server(request, module_stage):
    return module_stage.get(request.param, write)


def repeat_arrays(values, delays=None, wait=0):
    delays = [0] * len(values) if delays is None else delays
    return {
        "IN": np.array(values, np.int32), "DELAY": np.array(delays, np.uint32), "WAIT": np.array([wait], np.uint32),
    }


def message(model, arrays, request_id="", **fields):
    request = service_pb2.ModelInferRequest(model_name=model, id=request_id, **fields)
    for name, array in arrays.items():
        datatype = {"float32": "FP32", "int32": "INT32", "uint32": "UINT32"}[array.dtype.name]
        request.inputs.add(name=name, datatype=datatype, shape=array.shape)
        request.raw_input_contents.append(array.tobytes())
    return request


def repeat(request_id, values, delays=None, empty_final=None, **fields):
    request = message("repeat", repeat_arrays(values, delays), request_id, **fields)
    if empty_final is not None:
        request.parameters["triton_enable_empty_final_response"].bool_param = empty_final
    return request


def vector(model, request_id):
    return message(model, {"INPUT0": np.array([1.5], np.float32)}, request_id)


def without_data(request):
    del request.raw_input_contents[:]
    return request


def brief(reply):
    """The parts of a reply: error, id, model, version, the final marker (None without one), outputs."""
    response = reply.infer_response
    marker = response.parameters.get("triton_final_response") if response.parameters else None
    return (
        reply.error_message, response.id, response.model_name, response.model_version,
        marker.bool_param if marker is not None else None, list(response.raw_output_contents),
    )


def play(server, requests, strict=False):
    """All replies to a stream, and the code and text it ended with."""
    replies = []
    metadata = [("triton_grpc_error", "true")] if strict else None
    with grpc.insecure_channel(server.grpc) as channel:
        call = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(
            iter(requests), metadata=metadata, timeout=LIMIT)
        try:
            replies += map(brief, call)
        except grpc.RpcError:
            pass
        return replies, call.code(), call.details()


def answered(request_id, values, finals=None):
    """Replies of `repeat` to one request."""
    finals = [False] * len(values) if finals is None else finals
    return [
        ("", request_id, "repeat", "1", final, [np.int32(value).tobytes(), np.uint32(index).tobytes()])
        for index, (value, final) in enumerate(zip(values, finals))
    ]


def identity(model, request_id):
    return "", request_id, model, "1", True, [np.float32(1.5).tobytes()]


def test_every_response_has_a_final_marker(server):
    for values in ([4, 5, 6], [7], []):
        replies, code, _ = play(server, [repeat("r", values)])
        assert (replies, code) == (answered("r", values), grpc.StatusCode.OK)


def test_an_empty_final_response_is_sent_on_request(server):
    end = ("", "r", "repeat", "", True, [])
    for values in ([4, 5], []):
        replies, _, _ = play(server, [repeat("r", values, empty_final=True)])
        assert replies == [*answered("r", values), end]
        replies, _, _ = play(server, [repeat("r", values, empty_final=False)])
        assert replies == answered("r", values)
    replies, _, _ = play(server, [repeat("r", [], empty_final=True, model_version="1")])
    assert replies == [("", "r", "repeat", "1", True, [])]


def test_decoupled_responses_may_overtake_slow_ordinary_ones(server):
    """A slow ordinary request delays later ordinary ones, but no decoupled one."""
    replies, code, _ = play(server, [
        vector("slow", "1"), vector("quick", "2"), vector("nope", "3"),
        without_data(repeat("4", [1])), repeat("5", [8, 9]), vector("quick", "6"),
    ])
    refused = [r for r in replies if r[1] == "4"]
    assert replies[0] == refused[0], replies
    assert refused[0][0].startswith("unable to find data for input tensor") and refused[0][2:] == ("", "", None, [])
    unknown = ("Request for unknown model: 'nope' is not found", "3", "", "", None, [])
    assert replies[1:] == [
        *answered("5", [8, 9]), identity("slow", "1"), identity("quick", "2"), unknown, identity("quick", "6"),
    ]
    assert code == grpc.StatusCode.OK


def test_a_slow_decoupled_request_delays_no_other(server):
    """Its second response would come a minute later, and nobody waits for it."""
    requests = [repeat("slow", [1, 2], [0, 60_000]), repeat("quick", [3, 4]), vector("quick", "v")]
    with grpc.insecure_channel(server.grpc) as channel:
        call = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(iter(requests), timeout=LIMIT)
        replies = [brief(next(call)) for _ in range(4)]
        call.cancel()
    assert [r for r in replies if r[1] == "slow"] == answered("slow", [1, 2])[:1]
    assert [r for r in replies if r[1] == "quick"] == answered("quick", [3, 4])
    assert identity("quick", "v") in replies


def test_errors_leave_the_stream_open(server):
    failed = ("model 'failing' was told to fail", "f", "failing", "", True, [])
    replies, code, _ = play(server, [vector("nope", "n"), vector("failing", "f"), vector("quick", "q")])
    assert replies[0][1:] == ("n", "", "", None, [])
    assert replies[1:] == [failed, identity("quick", "q")]
    assert code == grpc.StatusCode.OK


def test_a_strict_stream_ends_with_the_error_of_a_model(server):
    replies, code, text = play(server, [vector("nope", "n"), vector("quick", "q"), vector("failing", "f")], strict=True)
    if server.target == "galatea" or len(replies) > 1:
        # In the real server the error overtakes the answer before it now and then.
        assert replies[1:] == [identity("quick", "q")]
    assert replies[0][1] == "n"
    assert (code, text) == (grpc.StatusCode.INTERNAL, "model 'failing' was told to fail")


def test_model_infer_refuses_a_decoupled_model(server):
    with clients.client(server, "grpc") as stock:
        with pytest.raises(grpcclient.InferenceServerException) as raised:
            stock.infer("repeat", clients.inputs(grpcclient, repeat_arrays([1])))
    assert raised.value.status() == "StatusCode.UNIMPLEMENTED"
    assert raised.value.message() == "ModelInfer RPC doesn't support models with decoupled transaction policy"


def test_the_stock_client_streams(server):
    came = queue.Queue()
    with clients.client(server, "grpc") as stock:
        stock.start_stream(callback=lambda result, error: came.put((result, error)))
        for request_id in "abc":
            stock.async_stream_infer(
                "repeat", clients.inputs(grpcclient, repeat_arrays(range(20))), request_id=request_id,
                enable_empty_final_response=True)
        seen = {"a": [], "b": [], "c": []}
        open_requests = set(seen)
        while open_requests:
            result, error = came.get(timeout=LIMIT)
            assert error is None, error and error.message()
            response = result.get_response()
            if response.outputs:
                seen[response.id].append(int(result.as_numpy("OUT")[0]))
            if response.parameters["triton_final_response"].bool_param:
                open_requests.remove(response.id)
        assert seen == {"a": list(range(20)), "b": list(range(20)), "c": list(range(20))}
        stock.stop_stream()


def test_the_stock_client_cancels_a_stream(server):
    """The model stops long before its last response, and its request is no longer pending."""
    came = queue.Queue()
    with clients.client(server, "grpc") as stock:
        stock.start_stream(callback=lambda result, error: came.put((result, error)))
        values = list(range(1000))
        stock.async_stream_infer("repeat", clients.inputs(grpcclient, repeat_arrays(values, [100] * 1000)))
        result, error = came.get(timeout=LIMIT)
        assert error is None, error and error.message()
        assert int(result.as_numpy("OUT")[0]) == 0
        stock.stop_stream(cancel_requests=True)
        while error is None:
            _, error = came.get(timeout=LIMIT)
        assert error.status() == "StatusCode.CANCELLED"
    replies, code, _ = play(server, [repeat("again", [1, 2])])
    assert (replies, code) == (answered("again", [1, 2]), grpc.StatusCode.OK)


def test_a_deadline_ends_the_stream(server):
    requests = [repeat("r", [1, 2], [0, 60_000])]
    with grpc.insecure_channel(server.grpc) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        # Long enough for the first answer, whatever else the machine does.
        call = stub.ModelStreamInfer(iter(requests), timeout=4)
        assert brief(next(call)) == answered("r", [1])[0]
        with pytest.raises(grpc.RpcError) as raised:
            next(call)
    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_the_stock_aio_client_streams(server):
    async def asked():
        async def requests():
            for request_id in "ab":
                yield {
                    "model_name": "repeat", "request_id": request_id,
                    "inputs": clients.inputs(grpcclient, repeat_arrays([1, 2, 3])),
                }

        seen = {"a": [], "b": []}
        async with grpc_aio.InferenceServerClient(server.grpc) as stock:
            async for result, error in stock.stream_infer(requests(), stream_timeout=LIMIT):
                assert error is None, error and error.message()
                seen[result.get_response().id].append(int(result.as_numpy("OUT")[0]))
        return seen

    assert asyncio.run(asked()) == {"a": [1, 2, 3], "b": [1, 2, 3]}


@pytest.mark.parametrize("model", ["repeat", "quick"])
def test_perf_analyzer_streams(server, model, tmp_path):
    if not servers.has_perf_analyzer():
        pytest.skip("perf_analyzer is not installed")
    shapes = {"repeat": ["--shape", "IN:4", "--shape", "DELAY:4", "--shape", "WAIT:1", "--input-data", "zero"], "quick": ["--shape", "INPUT0:4"]}
    report = servers.perf_analyzer(
        "-m", model, "-u", server.grpc, "-i", "grpc", "--async", "--streaming", "--concurrency-range", "4",
        "--request-count", "20", *shapes[model])
    assert "Throughput:" in report and " 0 infer/sec" not in report, report
