"""The example models answer bit for bit what ONNX Runtime answers in-process, alone and joined in batches."""

import concurrent.futures
import json

import numpy as np
import onnxruntime
import pytest

import clients
import repositories

MODELS = ["simple", "silero_vad", "magika", "minilm_int8"]


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(repositories.EXAMPLES / model / "1/model.onnx", options)


def sample(model, n, length=12):
    """Inputs number `n` of a model, one row; for minilm of `length` tokens."""
    random = np.random.default_rng(n)
    if model == "simple":
        return {name: random.integers(-1000, 1000, (1, 16), dtype=np.int32) for name in ("INPUT0", "INPUT1")}
    if model == "magika":
        return {"bytes": random.integers(0, 257, (1, 2048), dtype=np.int32)}
    if model == "minilm_int8":
        ids = random.integers(1000, 20000, (1, length), dtype=np.int64)
        return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return {
        "input": random.standard_normal((1, 576), dtype=np.float32),
        "state": random.standard_normal((2, 1, 128), dtype=np.float32),
        "sr": np.array([16000], dtype=np.int64),
    }


def in_process(direct, arrays):
    """What the library answers; the scalar that the protocol must write as [1] is one again."""
    arrays = {k: v.reshape(()) if k == "sr" else v for k, v in arrays.items()}
    return dict(zip([o.name for o in direct.get_outputs()], direct.run(None, arrays)))


def same_bits(got, wanted):
    assert got.keys() == wanted.keys()
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype and got[name].shape == array.shape, name
        assert got[name].tobytes() == array.tobytes(), f"{name} differs by {np.abs(got[name] - array).max()}"


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("model", MODELS)
def test_single_requests_equal_onnx_runtime(examples_server, model, protocol):
    direct = session(model)
    with clients.client(examples_server, protocol) as stock:
        for n in range(5):
            arrays = sample(model, n, length=5 + n)
            same_bits(clients.infer(stock, protocol, model, arrays), in_process(direct, arrays))


@pytest.mark.parametrize("model", ["simple", "magika", "minilm_int8"])
def test_a_client_batch_equals_onnx_runtime(examples_server, model):
    """A client's batch of 8 rows is one run of the library over the same 8 rows."""
    arrays = stacked([sample(model, n) for n in range(8)])
    with clients.client(examples_server, "grpc") as stock:
        same_bits(clients.infer(stock, "grpc", model, arrays), in_process(session(model), arrays))


def stacked(rows):
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.parametrize("model", ["simple", "magika", "minilm_int8"])
def test_requests_batched_by_the_server_equal_onnx_runtime(stage, tmp_path, model):
    """Eight requests joined into one execution: each row is what the library computes for it in a batch of 8.

    The order of rows in the batch is the order of arrival, which we do not know, so each row may be any
    of the results that the library gives for it at the eight places.
    """
    folder = repositories.copy_example(tmp_path, model)
    # One execution only: nothing is sent before eight requests wait.
    config = folder / "config.pbtxt"
    config.write_text(config.read_text().split("dynamic_batching")[0] + "dynamic_batching { }\n")
    server = stage.serves(tmp_path, env={"TRITONSERVER_DELAY_SCHEDULER": "8"})
    rows = [sample(model, n) for n in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda row: alone(server, model, row), rows))
    counted = clients.statistics(server, model)
    assert (counted["inference_count"], counted["execution_count"]) == (8, 1)
    assert [b["batch_size"] for b in counted["batch_stats"]] == [8]

    direct = session(model)
    allowed = [set() for _ in rows]
    for turn in range(8):
        order = [(turn + place) % 8 for place in range(8)]
        results = in_process(direct, stacked([rows[n] for n in order]))
        for place, n in enumerate(order):
            allowed[n].add(tuple(array[place : place + 1].tobytes() for array in results.values()))
    for n, answer in enumerate(answers):
        assert tuple(array.tobytes() for array in answer.values()) in allowed[n], f"row {n}"


def alone(server, model, arrays):
    with clients.client(server, "grpc") as stock:
        return clients.infer(stock, "grpc", model, arrays)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_concurrent_clients_get_correct_rows(examples_server, protocol):
    """Sixteen clients, rows of several lengths: whatever the server joins, every row is right. Any two of the rows are
    much further apart than a processor's kernels."""
    direct = session("minilm_int8")
    rows = [sample("minilm_int8", n, length=6 + n % 3) for n in range(96)]
    wanted = [in_process(direct, row) for row in rows]
    for one, other in zip(wanted, wanted[3:]):
        assert all(np.abs(one[name] - other[name]).max() > 0.3 * np.abs(one[name]).max() for name in one)

    def worker(share):
        with clients.client(examples_server, protocol) as stock:
            return [(n, clients.infer(stock, protocol, "minilm_int8", rows[n])) for n in share]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for answers in pool.map(worker, (range(k, 96, 16) for k in range(16))):
            for n, answer in answers:
                # A joined row and the row alone may take different kernels, and one rounding apart is a step of int8.
                for name, array in wanted[n].items():
                    apart = np.abs(answer[name] - array).max() / np.abs(array).max()
                    assert answer[name].shape == array.shape and apart < 0.05, f"row {n}: {name} is {apart:.2f} apart"


def test_scalar_inputs_and_true_output_shapes_are_kept(examples_server):
    """silero_vad: `sr` is a scalar in the graph and [1] on the wire; stateN comes in its true shape."""
    arrays = {**sample("silero_vad", 1), "state": np.zeros((2, 1, 128), np.float32)}
    with clients.client(examples_server, "http") as stock:
        answer = clients.infer(stock, "http", "silero_vad", arrays)
    assert answer["stateN"].shape == (2, 1, 128) and answer["output"].shape == (1, 1)


def test_magika_returns_labels(examples_server):
    """The server returns the label of the file type."""
    from pathlib import Path

    content = Path(__file__).read_bytes()
    head, tail = content[:4096].lstrip()[:1024], content[-4096:].rstrip()[-1024:]
    request = {
        "inputs": [clients.tensor_json("bytes", np.array([list(head + tail)], dtype=np.int32))],
        "outputs": [{"name": "target_label", "parameters": {"classification": 1}}],
    }
    _, _, body = clients.ask(examples_server.http, "POST", "/v2/models/magika/infer", request)
    assert json.loads(body)["outputs"][0]["data"][0].endswith(":python")
