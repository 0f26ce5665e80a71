"""Python models with real packages: scikit-learn on its own digits, and sentences to vectors by an ensemble."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

import clients
import processes
import repositories
import servers
import tiers
from repositories import tensor

pytestmark = tiers.peers

PACKAGES = servers.PEERS / "models-venv/bin/python"
PIPELINES = repositories.EXAMPLES.parent / "pipelines"
# Kept between runs: an environment is built once per machine, and found again after that.
HOME = servers.PEERS / "home"
TRAIN = """
import pickle, sys
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

images, labels = load_digits(return_X_y=True)
half = len(labels) // 2
model = LogisticRegression(max_iter=300).fit(images[:half] / 16, labels[:half])
with open(sys.argv[1] + "/digits.pickle", "wb") as file:
    pickle.dump(model, file)
import numpy
numpy.savez(sys.argv[1] + "/held_back.npz", images=(images[half:] / 16).astype("float32"), labels=labels[half:], said=model.predict(images[half:] / 16))
"""
SERVE = '''
import pickle
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        with open(Path(__file__).parent / "digits.pickle", "rb") as file:
            self.model = pickle.load(file)

    def execute(self, requests):
        images = [pb_utils.get_input_tensor_by_name(r, "IMAGE").as_numpy() for r in requests]
        digits = self.model.predict(np.concatenate(images)).astype(np.int32)
        ends = np.cumsum([len(i) for i in images])[:-1]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("DIGIT", part[:, None])]) for part in np.split(digits, ends)]
'''
FOOD, BREAD, BABY = "A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby."


@pytest.fixture
def digits(tmp_path, serve):
    version = tmp_path / "digits/1"
    version.mkdir(parents=True)
    subprocess.run([PACKAGES, "-c", TRAIN, version], check=True)
    (version / "model.py").write_text(SERVE)
    config = "max_batch_size: 64\n" + tensor("input", "IMAGE", "TYPE_FP32", "64") + tensor("output", "DIGIT", "TYPE_INT32", "1")
    (version.parent / "config.pbtxt").write_text(f'backend: "python"\n{config}dynamic_batching {{ }}\n')
    server = serve(tmp_path, f"--backend-config=python,python-interpreter={PACKAGES}")
    return server, np.load(version / "held_back.npz")


@pytest.fixture(scope="module")
def pipeline():
    """The example as it is committed: its environments come from its requirements.txt."""
    with servers.galatea(
        PIPELINES, f"--model-repository={repositories.EXAMPLES}", "--model-control-mode=explicit",
        "--load-model=sentence_embedding",
        env={"GALATEA_HOME": str(HOME), **processes.offline(processes.PIPELINE_WHEELS)},
    ) as running:
        yield running


def test_handwritten_digits_are_recognized(digits):
    server, held = digits
    with clients.client(server, "http") as stock:
        answers = [clients.infer(stock, "http", "digits", {"IMAGE": held["images"][i : i + 64]})["DIGIT"][:, 0] for i in range(0, 897, 64)]
    digits = np.concatenate(answers)
    assert (digits == held["said"][: len(digits)]).all()
    assert (digits == held["labels"][: len(digits)]).mean() > 0.85


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_sentence_vectors_have_the_reference_similarities(pipeline, protocol):
    """Text in, vector out; the similarities of the model's own reference."""
    sentences = np.array([[FOOD.encode()], [BREAD.encode()], [BABY.encode()]], dtype=object)
    with clients.client(pipeline, protocol) as stock:
        vectors = clients.infer(stock, protocol, "sentence_embedding", {"sentence": sentences})["embedding"]
        alone = clients.infer(stock, protocol, "sentence_embedding", {"sentence": sentences[:1]})["embedding"]
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] == pytest.approx(0.75, abs=0.05)
    assert vectors[0] @ vectors[2] == pytest.approx(-0.11, abs=0.05)
    assert alone[0] @ vectors[0] == pytest.approx(1, abs=0.01)


def test_python_models_use_their_own_environments(pipeline):
    """Each of the two Python models runs in the environment of its own requirements.txt."""
    pythons = {Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0] for pid in processes.children(pipeline.pid)}
    assert len(pythons) == 2
    assert all(python.startswith(f"{HOME}/python-environments/") for python in pythons), pythons
