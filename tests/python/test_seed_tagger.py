"""The first seed document's example: its script, its forms of configuration, and both peers beside ours."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tritonclient.http as httpclient

import perf_tool
import servers
import tiers

EXAMPLE = servers.ROOT / "examples/seeds/0-tagger"
sys.path[:0] = [str(EXAMPLE), str(EXAMPLE.parent)]

import client as tagger  # noqa: E402
import prepare  # noqa: E402
import run as seed  # noqa: E402
import walkthrough  # noqa: E402

HAS_LIBTORCH = "GALATEA_LIBTORCH" in os.environ or os.path.isfile("/usr/include/torch/script.h")
# Without CUDA's driver there is no GPU for anybody.
HAS_GPU = os.path.exists("/dev/nvidiactl")
EXCUSES = ("GPU", "Docker", "gigabytes")
PYTHON_MODELS = [prepare.TOKENIZATION, prepare.VITERBI, prepare.ONE_MODEL]


@pytest.fixture(scope="module")
def trained():
    if not HAS_LIBTORCH:
        pytest.skip("no libtorch: `cargo xtask setup` says why")
    try:
        return prepare.trained()
    except prepare.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def models(trained, tmp_path):
    shutil.copytree(EXAMPLE / "model_repository", tmp_path / "models")
    prepare.assemble(tmp_path / "models", trained)
    return tmp_path / "models"


def keep_only(models, names):
    for folder in models.iterdir():
        if folder.name not in names:
            shutil.rmtree(folder)


def play(script):
    env = {**os.environ, "GALATEA": str(servers.galatea_binary())}
    done = subprocess.run([sys.executable, "-B", script], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    return done.returncode, done.stdout


@tiers.peers
def test_the_document_is_reproduced(trained):
    code, said = play(EXAMPLE / "run.py")
    assert code == 0, said[-6000:]
    assert "checks hold" in said.splitlines()[-1] and "NOT SO" not in said
    left_out = [line for line in said.splitlines() if line.strip().startswith("not run: ")]
    assert all(any(excuse in line for excuse in EXCUSES) for line in left_out), left_out


@tiers.peers
def test_wrong_answers_fail_the_script(trained, models, tmp_path):
    """The script detects a wrong decoder and features that differ from PyTorch's."""
    decoder = models / prepare.VITERBI / "1/viterbi_decoder.py"
    kinds = '("ORG", "MISC", "PER", "LOC")'
    assert kinds in decoder.read_text()
    decoder.write_text(decoder.read_text().replace(kinds, '("ORG", "MISC", "LOC", "PER")'))
    walk = walkthrough.Walkthrough(tmp_path / "work", False)
    shutil.move(models, walk.folder / "model_repository")
    expected = dict(np.load(trained / "expected.npz"))
    expected["alone_1"] = expected["alone_1"] * 1.001
    with walk.serving(seed.SERVE) as server:
        seed.sentences(walk, server)
        assert {fault for fault in walk.faults if fault.startswith("the names of")} == {f"the names of: {s}" for s in seed.WANTED}
        walk.faults.clear()
        seed.against_torch(walk, server, expected)
    assert len(walk.faults) == 1 and walk.faults[0].startswith("one after another as PyTorch itself")


def test_configurations_keep_the_documents_forms():
    """Odd forms in the configurations are deliberate and stay."""
    for config in EXAMPLE.glob("model_repository/*/config.pbtxt"):
        text = config.read_text()
        assert not text.endswith("\n"), config
        if config.parent.name == prepare.ENSEMBLE:
            assert "input_map {" in text and "input_map: {" in text
        else:
            assert 'default_model_filename: "model.' in text
            assert ("instance_group {" in text) == (config.parent.name != prepare.ONE_MODEL)


@tiers.peers
@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
def test_the_documents_gpu_group_needs_a_gpu(models, serve):
    """The group has `gpus` as a scalar, like the document: it is read and refused for the missing GPU."""
    keep_only(models, [prepare.VITERBI])
    config = models / prepare.VITERBI / "config.pbtxt"
    config.write_text(config.read_text().replace("kind: KIND_CPU", "gpus: 0\n    kind: KIND_GPU"))
    server = serve(models, "--exit-on-error=false")
    assert f"instance group {prepare.VITERBI} of model {prepare.VITERBI} specifies invalid or unsupported gpu id 0" in server.text()


@tiers.peers
@pytest.mark.skipif(not servers.has_triton(), reason="the real Triton could not be installed here")
def test_python_models_answer_like_in_triton(models):
    """Runs the Python models of the document, one with an output tensor without a shape in a dictionary."""
    keep_only(models, PYTHON_MODELS)
    answers = {}
    for name, start in servers.TARGETS.items():
        with start(models) as server:
            client = tagger.connect(server.http)
            answers[name] = [one_model(client, sentences) for sentences in (tagger.SENTENCES, tagger.SENTENCES[1:2])] + steps(client)
    for ours, real in zip(answers["galatea"], answers["triton"], strict=True):
        assert ours == real


def one_model(client, sentences):
    values = np.array([[sentence] for sentence in sentences], dtype=object)
    answer = client.infer(prepare.ONE_MODEL, [tagger.tensor(client, "INPUT_0", values, "BYTES")])
    return answer.get_output("OUTPUT_0")["shape"], answer.as_numpy("OUTPUT_0").tolist()


def steps(client):
    """What the first step makes of a sentence, and the last one of even scores."""
    values = np.frombuffer(tagger.SENTENCES[0].encode(), dtype=np.uint8).astype(np.int64)
    sentence = tagger.tensor(client, "sentence_bytes", values, "INT64")
    made = client.infer(prepare.TOKENIZATION, [sentence])
    lengths, vectors = made.as_numpy("sorted_lengths"), made.as_numpy("sentence_tensor")
    features = np.random.default_rng(4).standard_normal((1, lengths[0], 20, 20)).astype(np.float32)
    inputs = [sentence, tagger.tensor(client, "features", features, "FP32"), tagger.tensor(client, "sorted_lengths", lengths, "INT64")]
    decoded = client.infer(prepare.VITERBI, inputs).as_numpy("tagged_sentences")
    return [lengths.tolist(), vectors.shape, vectors.tobytes(), decoded.tolist()]


@tiers.peers
@pytest.mark.skipif(not servers.has_perf_analyzer(), reason="perf_analyzer could not be installed here")
def test_the_load_tool_reports_like_perf_analyzer(models, serve, tmp_path):
    """Both tools run the document's command line against one server: the reports differ only in numbers."""
    server = serve(models)
    line = ["-m", prepare.ENSEMBLE, "--async", "--percentile=95", "--concurrency-range", "4", "--input-data",
            models / prepare.ENSEMBLE / "1/perf_analyzer_data.json", "--shape", "sentence_bytes:70", "-u", server.grpc, "-i", "grpc",
            "--measurement-interval", "30000", "-v", "-p", "400", "-s", "1000000", "-r", "3"]
    real, ours = (perf_tool.run(tool, line, tmp_path / tool) for tool in (perf_tool.REAL, perf_tool.OURS))
    assert (ours.code, real.code) == (0, 0), ours.err + real.err
    assert perf_tool.layout(ours.out) == perf_tool.layout(real.out)
    assert list(ours.report()["points"][0]["models"]) == [prepare.TAGGER, prepare.TOKENIZATION, prepare.VITERBI]
    counted = httpclient.InferenceServerClient(server.http).get_inference_statistics(prepare.ENSEMBLE)["model_stats"][0]
    assert counted["inference_stats"]["fail"]["count"] == 0
