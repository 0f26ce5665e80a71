"""Stock clients and tools against the example model `simple`."""

import asyncio
import concurrent.futures
import json
import shutil
import socket
import subprocess

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.grpc.aio as grpc_aio
import tritonclient.http as httpclient
import tritonclient.http.aio as http_aio
from tritonclient.utils import InferenceServerException

import clients
import servers
import tiers


def check(answer, pair):
    np.testing.assert_array_equal(answer["OUTPUT0"], pair[0] + pair[1])
    np.testing.assert_array_equal(answer["OUTPUT1"], pair[0] - pair[1])


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_stock_client_infers_and_reads_metadata(examples_server, pair, protocol):
    with clients.client(examples_server, protocol) as stock:
        assert stock.is_server_live() and stock.is_server_ready() and stock.is_model_ready("simple")
        arrays = dict(zip(("INPUT0", "INPUT1"), pair))
        check(clients.infer(stock, protocol, "simple", arrays, request_id="mine"), pair)
        only = clients.infer(stock, protocol, "simple", arrays, outputs=["OUTPUT1"])
        assert list(only) == ["OUTPUT1"]


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_json_and_binary_tensors_give_the_same_outputs(examples_server, pair, binary_in, binary_out):
    with clients.client(examples_server, "http") as stock:
        tensors = clients.inputs(httpclient, dict(zip(("INPUT0", "INPUT1"), pair)), binary_data=binary_in)
        wanted = [httpclient.InferRequestedOutput(n, binary_data=binary_out) for n in ("OUTPUT0", "OUTPUT1")]
        result = stock.infer("simple", tensors, outputs=wanted)
        check({name: result.as_numpy(name) for name in ("OUTPUT0", "OUTPUT1")}, pair)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_many_concurrent_requests_get_their_own_outputs(examples_server, protocol):
    def arrays(n):
        return {"INPUT0": np.full((1, 16), n, np.int32), "INPUT1": np.arange(16, dtype=np.int32).reshape(1, 16)}

    if protocol == "http":
        with clients.client(examples_server, "http", concurrency=16) as stock:
            waiting = [stock.async_infer("simple", clients.inputs(httpclient, arrays(n))) for n in range(200)]
            results = [one.get_result() for one in waiting]
    else:
        waiting = [concurrent.futures.Future() for _ in range(200)]
        with clients.client(examples_server, "grpc") as stock:
            for n, future in enumerate(waiting):
                stock.async_infer("simple", clients.inputs(grpcclient, arrays(n)), wait_for_result(future))
            results = [future.result(60) for future in waiting]
    for n, result in enumerate(results):
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0")[0], n + np.arange(16))


def wait_for_result(future):
    """A callback for the gRPC client that fills a future."""
    return lambda result, error: future.set_exception(error) if error else future.set_result(result)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_asyncio_clients_infer(examples_server, pair, protocol):
    module, plain = (http_aio, httpclient) if protocol == "http" else (grpc_aio, grpcclient)
    address = examples_server.http if protocol == "http" else examples_server.grpc

    async def ask():
        async with module.InferenceServerClient(address) as stock:
            tensors = clients.inputs(plain, dict(zip(("INPUT0", "INPUT1"), pair)))
            results = await asyncio.gather(*(stock.infer("simple", tensors) for _ in range(20)))
            assert (await stock.get_model_metadata("simple")) is not None
            return results

    for result in asyncio.run(ask()):
        check({name: result.as_numpy(name) for name in ("OUTPUT0", "OUTPUT1")}, pair)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_stock_client_manages_models_and_settings(examples_server, protocol):
    more = {"as_json": True} if protocol == "grpc" else {}
    with clients.client(examples_server, protocol) as stock:
        assert stock.get_server_metadata(**more)["name"] == "triton"
        metadata = stock.get_model_metadata("simple", **more)
        assert metadata["platform"] == "onnxruntime_onnx"
        assert [int(d) for d in metadata["inputs"][0]["shape"]] == [-1, 16]
        config = stock.get_model_config("simple", **more)
        config = config["config"] if protocol == "grpc" else config
        assert config["max_batch_size"] == 8
        index = stock.get_model_repository_index(**more)
        models = index["models"] if protocol == "grpc" else index
        assert [m["name"] for m in models] == ["magika", "minilm_int8", "silero_vad", "simple"]
        assert all(m["state"] == "READY" for m in models)
        assert stock.get_inference_statistics("simple", **more)["model_stats"][0]["name"] == "simple"


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_errors_reach_the_client(examples_server, pair, protocol):
    with clients.client(examples_server, protocol) as stock:
        with pytest.raises(InferenceServerException, match="unknown model: 'nope' is not found"):
            clients.infer(stock, protocol, "nope", {"INPUT0": pair[0]})
        with pytest.raises(InferenceServerException, match="expected 2 inputs but got 1 inputs for model 'simple'"):
            clients.infer(stock, protocol, "simple", {"INPUT0": pair[0]})


def curl(*args, **more):
    run = subprocess.run(["curl", "-sS", "--max-time", "30", *args], capture_output=True, **more)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_curl_sends_json_and_reads_binary_outputs(examples_server):
    url = f"http://{examples_server.http}/v2/models/simple/infer"
    body = json.dumps(clients.pair_json())
    plain = json.loads(curl(url, "-d", body))
    assert plain["outputs"][0]["data"] == [n + 1 for n in range(16)]
    waits = curl(url, "-H", "Expect: 100-continue", "-d", body, "-v", "-w", "%{http_code}")
    assert waits.endswith(b"200")
    chunked = curl(url, "-H", "Transfer-Encoding: chunked", "-d", body)
    assert json.loads(chunked) == plain
    old = curl("--http1.0", url, "-d", body)
    assert json.loads(old) == plain


def test_a_large_body_is_accepted_after_100_continue(examples_server, tmp_path):
    """curl sends the body of a big request only after the server said 100 Continue."""
    rows = np.zeros((8, 16), dtype=np.int32)
    request = {"id": "big", "inputs": [clients.tensor_json(n, rows) for n in ("INPUT0", "INPUT1")]}
    file = tmp_path / "body.json"
    file.write_text(json.dumps(request) + " " * 3_000_000)
    url = f"http://{examples_server.http}/v2/models/simple/infer"
    answer = curl(url, "-H", "Expect: 100-continue", "--expect100-timeout", "20", "--data-binary", f"@{file}")
    assert json.loads(answer)["id"] == "big"


def test_pipelined_requests_are_answered_in_order(examples_server):
    """Three requests in one write are answered in order on one connection."""
    bodies = [json.dumps({"id": str(n), **clients.pair_json()}).encode() for n in range(3)]
    head = b"POST /v2/models/simple/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    host, port = examples_server.http.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"".join(head % len(b) + b for b in bodies))
        received = b""
        while received.count(b'"OUTPUT1"') < 3:
            part = connection.recv(65536)
            assert part, received
            received += part
    assert [received.index(b'"id":"%d"' % n) for n in range(3)] == sorted(received.index(b'"id":"%d"' % n) for n in range(3))


@pytest.mark.skipif(shutil.which("ab") is None, reason="ab is not installed")
@pytest.mark.parametrize("keep_alive", [[], ["-k"]])
def test_apache_bench_works_with_and_without_keep_alive(examples_server, tmp_path, keep_alive):
    """HTTP/1.0, with and without keep-alive, 100 connections at once."""
    body = tmp_path / "body.json"
    body.write_text(json.dumps(clients.pair_json()))
    url = f"http://{examples_server.http}/v2/models/simple/infer"
    run = subprocess.run(
        ["ab", *keep_alive, "-p", body, "-T", "application/json", "-c", "100", "-n", "1000", url],
        capture_output=True, text=True, timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "Complete requests:      1000" in run.stdout
    assert "Failed requests:        0" in run.stdout
    assert "Non-2xx" not in run.stdout


@pytest.mark.skipif(not servers.has_perf_analyzer(), reason="perf_analyzer could not be installed here")
@pytest.mark.parametrize(
    "options",
    [
        ["-i", "http"],
        ["-i", "grpc", "-b", "4", "--concurrency-range", "4"],
        pytest.param(["-i", "grpc"], marks=tiers.peers),
        pytest.param(["-i", "http", "--input-tensor-format", "json", "--output-tensor-format", "json"], marks=tiers.peers),
        pytest.param(["-i", "http", "--concurrency-range", "1:2"], marks=tiers.peers),
    ],
    ids=" ".join,
)
def test_perf_analyzer_measures_the_server(examples_server, options):
    address = examples_server.grpc if "grpc" in options else examples_server.http
    report = servers.perf_analyzer(
        "-m", "simple", "-u", address, *options,
        "--measurement-mode", "count_windows", "--measurement-request-count", "50", "-s", "999", "-r", "10",
    )
    assert "Throughput: " in report and "infer/sec" in report
    assert "Server:" in report and "Inference count:" in report
    assert "Failed" not in report


@pytest.mark.skipif(not servers.has_perf_analyzer(), reason="perf_analyzer could not be installed here")
def test_perf_analyzer_accepts_the_outputs(examples_server, tmp_path, pair):
    """perf_analyzer compares every answer with the outputs it is given."""
    row = {"INPUT0": pair[0][0].tolist(), "INPUT1": pair[1][0].tolist()}
    right = {"OUTPUT0": (pair[0] + pair[1])[0].tolist(), "OUTPUT1": (pair[0] - pair[1])[0].tolist()}
    file = tmp_path / "data.json"
    file.write_text(json.dumps({"data": [row], "validation_data": [right]}))
    report = servers.perf_analyzer(
        "-m", "simple", "-u", examples_server.http, "--input-data", file, "--concurrency-range", "4",
        "--measurement-mode", "count_windows", "--measurement-request-count", "50", "-s", "999", "-r", "10",
    )
    assert "Throughput: " in report
