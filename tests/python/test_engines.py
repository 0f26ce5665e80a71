"""One model of each engine, asked on one server. The tests of each engine in full are in the tier peers."""

import os
from pathlib import Path

import numpy as np
import pytest

import clients
import repositories
import servers
import torchscript
from test_pytorch import port, write_model

EXAMPLES = servers.ROOT / "examples"


def needs(engine):
    """Skips where the library of an engine is not installed."""
    home = Path(os.environ.get("GALATEA_HOME") or Path.home() / ".local/share/galatea")
    is_there = servers.has_libtorch() if engine == "pytorch" else any(home.glob(f"runtimes/{engine}/*"))
    reason = f"no {engine} here: `cargo xtask setup`, or `galatea runtime install {engine}`"
    return pytest.mark.skipif(not is_there, reason=reason)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    models = tmp_path_factory.mktemp("engines")
    repositories.copy_example(models, "simple")
    config = f'platform: "pytorch_libtorch" input {port("x", "FP32", -1)} output {port("y", "FP32", -1)}'
    torchscript.write_script(write_model(models, "doubles", config), "x: Tensor) -> Tensor:\n    return torch.add(x, x)")
    write_model(models, "broken", config).write_bytes(b"PK no archive")
    more = [f"--model-repository={EXAMPLES / name}" for name in ("tensorflow", "openvino")]
    with servers.galatea(models, *more, "--exit-on-error=false", "--strict-readiness=false") as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def ask(server, request):
    """Asks a model over each protocol."""
    with clients.client(server, request.param) as stock:
        yield lambda model, arrays: clients.infer(stock, request.param, model, arrays)


def test_onnx_runtime_answers(ask, pair):
    answer = ask("simple", {"INPUT0": pair[0], "INPUT1": pair[1]})
    np.testing.assert_array_equal(answer["OUTPUT0"], pair[0] + pair[1])


@needs("pytorch")
def test_pytorch_answers(ask):
    assert ask("doubles", {"x": np.array([1, 2.5], np.float32)})["y"].tolist() == [2, 5]


@needs("pytorch")
def test_a_broken_model_does_not_affect_others(server):
    _, _, index = clients.ask(server.http, "POST", "/v2/repository/index")
    assert b"failed to load model 'broken': " in index


@needs("tensorflow")
def test_tensorflow_answers(ask):
    texts = np.array([["Great, it works!"], ["It is slow and it crashes."], ["A table."]], object)
    answer = ask("word_scores", {"text": texts})
    assert answer["score"].tolist() == [[4], [-3], [0]]
    assert answer["verdict"].tolist() == [[b"good"], [b"bad"], [b"neither"]]


@needs("openvino")
def test_openvino_answers(ask):
    answer = ask("temperature", {"CELSIUS": np.array([[0], [100], [-40]], np.float32)})
    np.testing.assert_allclose(answer["FAHRENHEIT_KELVIN"], [[32, 273.15], [212, 373.15], [-40, 233.15]], rtol=1e-6)
