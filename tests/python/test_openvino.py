"""Models of OpenVINO through the server: the answers are those of OpenVINO itself, alone, joined and at the same time."""

import concurrent.futures
import subprocess

import numpy as np
import pytest

import clients
import servers

ENGINES = servers.PEERS / "engines/bin/python"
MODELS = servers.ROOT / "tests/python/openvino_models.py"

pytestmark = pytest.mark.skipif(not ENGINES.exists(), reason="no OpenVINO for Python here: `cargo xtask setup` installs it")


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


ANSWERED = ["mlp", "mlp_joined", "picture", "picture_one", "square", "dynamic", "number", "fixed", "padded", "reshaped"]
FILES = ["mlp_onnx", "mlp_saved_model", "mlp_frozen"]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("model", [*ANSWERED, *FILES, "isolated"])
def test_alone(server, answers, model, protocol):
    with clients.client(server, protocol) as stock:
        for case in answers[model]:
            got = clients.infer(stock, protocol, model, as_sent(case["in"]))
            wanted = {name: case["out"][name] for name in got}
            check(got, wanted)
