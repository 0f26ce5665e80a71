"""TensorFlow models through the server: the answers are those of TensorFlow in a Python process."""

import concurrent.futures
import json
import os
import shutil
import subprocess

import ml_dtypes
import numpy as np
import pytest

import clients
import servers
import tiers

PYTHON = servers.PEERS / "engines/bin/python"
PORTS = ["--http-port=0", "--grpc-port=0", "--metrics-port=0", "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
WHEELS = servers.PEERS / "unpacked/engine-models"
pytestmark = [tiers.peers, pytest.mark.skipif(not PYTHON.exists(), reason="no Python with TensorFlow here: cargo xtask setup")]
# Models whose answers TensorFlow gave in the process that made them, and how near ours must be.
ANSWERED = {
    "perceptron": 1e-6, "convolutions": 1e-5, "texts": 0, "table": 0, "double": 0, "half": 0, "divide": 0, "frozen": 1e-6,
    "init_ops": 0, "old": 1e-6, "keras": 1e-6, "basic_pitch": 1e-5, "guesslang": 1e-5,
}


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("tensorflow")
    script = servers.ROOT / "tests/python/tensorflow_models.py"
    run = subprocess.run(
        [PYTHON, script, out, WHEELS], env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=300,
    )
    assert run.returncode == 0, run.stdout
    return out


@pytest.fixture(scope="module")
def server(made):
    with servers.galatea(made / "repository") as running:
        yield running


def answers(made, name):
    """Inputs and outputs, texts as the stock client has them."""
    with np.load(made / "answers" / f"{name}.npz") as file:
        arrays = {key: value.astype(object) if value.dtype.kind == "S" else value for key, value in file.items()}
    pick = lambda kind: {key.removeprefix(kind): value for key, value in arrays.items() if key.startswith(kind)}
    return pick("in:"), pick("out:")


def assert_same(got, wanted, tolerance):
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        assert got[name].shape == value.shape, name
        if tolerance and value.dtype.kind == "f":
            np.testing.assert_allclose(got[name], value, rtol=tolerance, atol=tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(got[name], value, err_msg=name)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("name", ANSWERED)
def test_outputs_equal_tensorflows(server, made, name, protocol):
    given, wanted = answers(made, name)
    with clients.client(server, protocol) as stock:
        assert_same(clients.infer(stock, protocol, name, given), wanted, ANSWERED[name])


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_half_and_brain_floats_keep_their_bits(server, made, protocol):
    """Compares the bits."""
    given, wanted = answers(made, "precision")
    module = clients.MODULES[protocol]
    with clients.client(server, protocol) as stock:
        half = module.InferInput("half", [3, 8], "FP16")
        half.set_data_from_numpy(given["half"].view(np.float16))
        brain = module.InferInput("brain", [3, 8], "BF16")
        brain.set_data_from_numpy(given["brain"].view(ml_dtypes.bfloat16))
        answer = stock.infer("precision", [half, brain])
        np.testing.assert_array_equal(answer.as_numpy("half_out").view(np.uint16), wanted["half_out"])
        brain = answer.as_numpy("brain_out").astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(brain.view(np.uint16), wanted["brain_out"])


def test_every_data_type_round_trips(server):
    kinds = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
    given = {kind: np.array([[1, 0]], kind) for kind in kinds}
    given |= {f"fp{8 * np.dtype(kind).itemsize}": np.array([[1.5, -2]], kind) for kind in ("float16", "float32", "float64")}
    module = clients.MODULES["http"]
    with clients.client(server, "http") as stock:
        tensors = clients.inputs(module, given)
        brain = module.InferInput("bf16", [1, 2], "BF16")
        brain.set_data_from_numpy(np.array([[1.5, -2]], ml_dtypes.bfloat16))
        answer = stock.infer("types", [*tensors, brain])
        for name, value in given.items():
            np.testing.assert_array_equal(answer.as_numpy(f"{name}_out"), value, err_msg=name)


def test_outputs_of_batched_requests_are_the_same(server, made):
    given, _ = answers(made, "perceptron_batched")
    before = clients.counts(server, "perceptron_batched")
    alone = {}
    with clients.client(server, "grpc") as stock:
        for row in range(4):
            alone[row] = clients.infer(stock, "grpc", "perceptron", {"x": given["x"][row : row + 1]})

    def ask(worker):
        with clients.client(server, "grpc") as stock:
            for n in range(20):
                row = (worker + n) % 4
                got = clients.infer(stock, "grpc", "perceptron_batched", {"x": given["x"][row : row + 1]})
                assert_same(got, alone[row], 1e-5)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    after = clients.counts(server, "perceptron_batched")
    grown = {key: after[key] - before[key] for key in after}
    assert grown["inferences"] == grown["success"] == 160
    assert grown["executions"] < 160, "requests were joined"


def test_batched_texts_return_to_their_requests(server):
    def ask(worker):
        with clients.client(server, "http") as stock:
            for n in range(10):
                words = np.array([[f"{worker}-{n}-{'x' * (n * 5)}"] for _ in range(1 + n % 3)], object)
                got = clients.infer(stock, "http", "texts", {"text": words})
                assert got["upper"].tolist() == [[word.upper().encode()] for [word] in words]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))


def test_instances_share_the_variables_of_a_version(server):
    """No addition is lost, and each output is a total that existed."""
    one = {"x": np.ones(1, np.float32)}

    def ask(_):
        with clients.client(server, "grpc") as stock:
            return [clients.infer(stock, "grpc", "counter", one)["total"][0] for _ in range(25)]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        totals = [total for one in pool.map(ask, range(4)) for total in one]
    assert max(totals) == 100
    with clients.client(server, "grpc") as stock:
        assert clients.infer(stock, "grpc", "counter", one)["total"][0] == 101


def test_a_division_by_zero_fails_its_request_alone(server):
    with clients.client(server, "http") as stock:
        pair = lambda a, b: {"a": np.array([[a]], np.int32), "b": np.array([[b]], np.int32)}
        with pytest.raises(Exception, match="(?i)division by zero"):
            clients.infer(stock, "http", "divide", pair(1, 0))
        assert clients.infer(stock, "http", "divide", pair(9, 4))["quotient"].tolist() == [[2]]


def config_of(server, name):
    status, _, body = clients.ask(server.http, "GET", f"/v2/models/{name}/config")
    assert status == 200
    return json.loads(body)


def test_omitted_fields_are_completed(server):
    config = config_of(server, "perceptron")
    assert (config["platform"], config["max_batch_size"]) == ("tensorflow_savedmodel", 4)
    assert config["dynamic_batching"]["preferred_batch_size"] == [4]
    assert [(i["name"], i["data_type"], i["dims"]) for i in config["input"]] == [("x", "TYPE_FP32", [64])]
    assert [o["name"] for o in config["output"]] == ["logits", "probabilities"]
    assert config_of(server, "counter")["max_batch_size"] == 0


def test_the_example_works():
    with servers.galatea(servers.ROOT / "examples/tensorflow") as running, clients.client(running, "http") as stock:
        texts = np.array([["Great, it works!"], ["It is slow and it crashes."], ["A table."]], object)
        got = clients.infer(stock, "http", "word_scores", {"text": texts})
        assert got["score"].tolist() == [[4], [-3], [0]]
        assert got["verdict"].tolist() == [[b"good"], [b"bad"], [b"neither"]]


def test_check_works_without_the_library(made, tmp_path):
    environment = {**os.environ, "GALATEA_TENSORFLOW_LIB": str(tmp_path / "none.so")}
    run = subprocess.run(
        [servers.galatea_binary(), "check", made / "repository"], env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=60,
    )
    assert run.returncode == 0, run.stdout


def test_broken_models_do_not_affect_others(made, tmp_path):
    source = made / "repository/double"
    for name in ("sound", "truncated", "no_weights", "torn_weights"):
        shutil.copytree(source, tmp_path / name)
    model = lambda name: tmp_path / name / "1/model.savedmodel"
    file = model("truncated") / "saved_model.pb"
    file.write_bytes(file.read_bytes()[:-100])
    for data in (model("no_weights") / "variables").glob("*.data-*"):
        data.unlink()
    for data in (model("torn_weights") / "variables").glob("*.data-*"):
        data.write_bytes(data.read_bytes()[:2])
    with servers.galatea(tmp_path, "--exit-on-error=false", "--strict-readiness=false") as running:
        with clients.client(running, "http") as stock:
            assert clients.infer(stock, "http", "sound", {"x": np.float32([[4]])})["y"].tolist() == [[8]]
        reasons = {row["name"]: row.get("reason", "") for row in json.loads(clients.ask(running.http, "POST", "/v2/repository/index")[2])}
        assert "saved_model.pb" in reasons["truncated"]
        assert "variables.data-00000-of-00001" in reasons["no_weights"]
        assert "torn_weights" in reasons["torn_weights"] and reasons["torn_weights"], reasons


def test_an_isolated_model_answers(made, tmp_path):
    shutil.copytree(made / "repository/texts", tmp_path / "texts")
    (tmp_path / "texts/config.pbtxt").write_text('parameters { key: "isolation" value { string_value: "process" } }')
    given, wanted = answers(made, "texts")
    with servers.galatea(tmp_path) as running, clients.client(running, "grpc") as stock:
        assert_same(clients.infer(stock, "grpc", "texts", given), wanted, 0)


def test_the_log_is_quiet_without_errors(made, tmp_path):
    # A server of its own: TensorFlow says more once a request of another test has failed.
    shutil.copytree(made / "repository/perceptron", tmp_path / "perceptron")
    given, wanted = answers(made, "perceptron")
    with servers.galatea(tmp_path) as server, clients.client(server, "http") as stock:
        assert_same(clients.infer(stock, "http", "perceptron", given), wanted, 1e-6)
    noise = [line for line in server.log if "cpu_feature_guard" in line or "reader.cc" in line or "absl::" in line]
    assert not noise


@pytest.mark.parametrize("path", ["model.savedmodel", "model.savedmodel/saved_model.pb", "flowers.savedmodel", "flowers"])
def test_a_saved_model_is_served_by_its_path(made, path, tmp_path):
    folder = made / "repository/perceptron/1"
    if path.startswith("flowers"):
        # A name of its own, as people export it.
        shutil.copytree(folder / "model.savedmodel", tmp_path / path)
        folder = tmp_path
        config = subprocess.run([servers.galatea_binary(), "config", folder / path], capture_output=True, text=True, timeout=60)
        assert 'platform: "tensorflow_savedmodel"' in config.stdout, config
    given, wanted = answers(made, "perceptron")
    with servers.Server([servers.galatea_binary(), "serve", folder / path, *PORTS]) as running, clients.client(running, "http") as stock:
        name = json.loads(clients.ask(running.http, "POST", "/v2/repository/index")[2])[0]["name"]
        assert_same(clients.infer(stock, "http", name, given), wanted, 1e-6)
