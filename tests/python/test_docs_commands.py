"""Every command of README.md, of the pages in docs and of the examples' pages runs as it stands there, or has its reason here."""

import json
import re
import shutil
import wave

import pytest

import doc_pages
import speech_models
import tiers
from doc_pages import ROOT
from repositories import EXAMPLES, copy_example, tensor

# Pages whose commands a test of their own runs, with what comes out.
ELSEWHERE = {
    "docs/from-your-framework.md": "test_frameworks.py",
    "docs/first-start.md": "test_first_start.py",
    "docs/tune.md": "test_tune.py",
}

TASKS = "a task of the project that builds and fetches; `cargo xtask test` is what runs this"
PACKAGES = "needs what `cargo xtask dist` makes; test_dist.py installs each of them and asks it"
CLUSTER = "needs a cluster; test_deploy.py renders and checks the same, and starts servers by what is rendered"
SOCKET = "takes a path that all runs share; test_unix_sockets.py serves the same"
VENV = "python3 -m venv ~/galatea && . ~/galatea/bin/activate"
# Blocks that are not run, by page and first line, each with its reason.
NOT_RUN = {
    ("docs/c-backends.md", "galatea serve models --backend-directory=/opt/tritonserver/backends"): "needs libraries of NVIDIA's container; test_c_backends.py serves models with others",
    ("docs/fleet.md", "envoy --mode validate -c envoy.yaml && envoy -c envoy.yaml"): "needs Envoy; test_deploy_envoy.py runs both",
    ("docs/gpu.md", "python3 -m venv gpu"): "needs a GPU, and fetches two gigabytes",
    ("docs/kubernetes.md", "docker build -t registry.example.com/galatea:0.1.0 ."): "needs a container engine; test_container.py runs what the image is made by",
    ("docs/kubernetes.md", "helm install my deploy/helm/galatea --namespace models --create-namespace \\"): CLUSTER,
    ("docs/kubernetes.md", "kubectl create namespace models"): CLUSTER,
    ("docs/kubernetes.md", "kubectl --namespace models port-forward service/my-galatea 8000:8000 &"): CLUSTER,
    ("docs/kubernetes.md", "helm upgrade my deploy/helm/galatea --namespace models --reuse-values \\"): CLUSTER,
    ("docs/kubernetes.md", "helm upgrade my deploy/helm/galatea --namespace models --reuse-values --set gpu.count=1"): CLUSTER,
    ("docs/kubernetes.md", "kubectl apply -f deploy/kserve/clusterservingruntime.yaml"): CLUSTER,
    ("README.md", "cargo xtask demo   # build, fetch four real models, serve them, ask them something (--keep leaves it serving)"): TASKS,
    ("README.md", "curl -s localhost:8000/v2/models/file_type/infer -H 'Inference-Header-Content-Length: 0' \\"): "asks what `galatea up` serves; test_first_start.py runs the same",
    ("README.md", VENV): PACKAGES,
    ("docs/response-cache.md", "galatea serve models --cache-config=redis,host=redis.internal --cache-config=redis,port=6379"): "needs a Redis server; test_response_cache_redis.py starts servers with these options",
    ("docs/upgrade.md", "galatea serve models --takeover=/run/galatea/takeover"): "writes outside the page's folder; test_takeover.py starts servers with this option",
    ("docs/unix-sockets.md", "galatea serve models --allow-client-shm=true --http-address=unix:/tmp/galatea.sock"): SOCKET,
    ("docs/unix-sockets.md", "galatea serve models --http-address=unix:/tmp/http.sock --grpc-address=unix:/tmp/grpc.sock"): SOCKET,
    ("docs/install.md", "sha256sum --check --ignore-missing SHA256SUMS"): PACKAGES,
    ("docs/install.md", "mkdir -p ~/.local"): PACKAGES,
    ("docs/install.md", VENV): PACKAGES,
    ("docs/install.md", "sudo apt install ./galatea_*_amd64.deb"): "changes the machine; " + PACKAGES,
    ("docs/install.md", "docker build -t galatea ."): "needs a container engine; test_container.py runs what the image is made by",
    ("docs/install.md", "cargo build --release --package galatea"): TASKS,
    ("examples/pipelines/README.md", "cargo xtask demo sentences     # build, fetch the model, serve it all and print how close some sentences are"): TASKS,
    ("examples/pipelines/README.md", "target/release/galatea serve \\"): "fetches packages; test_real_packages.py serves the same and asks it",
    ("examples/seeds/README.md", "cargo build --release"): "builds; test_seeds.py runs the scripts",
}
# The languages of blocks that are no commands.
TEXTS = {"", "json", "dockerfile", "nginx", "pbtxt", "html", "toml"}


def simple(folder):
    copy_example(folder / "models", "simple")


def wrong_models(folder):
    """What docs/check.md finds."""
    (folder / "models/iris/1").mkdir(parents=True)
    shutil.copy(EXAMPLES / "simple/1/model.onnx", folder / "models/iris/1/iris.onnx")
    shutil.copy(EXAMPLES / "simple/1/model.onnx", folder / "iris.onnx")
    (folder / "models/iris/config.pbtxt").write_text('backend: "onnxruntime"\n')
    copy_example(folder / "models", "simple", 'backend: "onnxruntime"\ninput [ { name: "x" datatype: TYPE_FP32 } ]\n')


def tensorflow_models(folder):
    shutil.copytree(ROOT / "examples/tensorflow", folder / "examples/tensorflow")


def speech(folder):
    """The example that listens, and something to hear."""
    shutil.copytree(ROOT / "examples/sequences", folder / "examples/sequences")
    with wave.open(str(folder / "speech.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes((speech_models.speech(1, 60) * 32767).clip(-32768, 32767).astype("int16").tobytes())


def load_models(folder):
    simple(folder)
    tagger = folder / "models/tagger"
    (tagger / "1").mkdir(parents=True)
    tensors = tensor("input", "INPUT0", "TYPE_STRING", "-1") + tensor("output", "OUTPUT0", "TYPE_STRING", "-1")
    (tagger / "config.pbtxt").write_text(f'backend: "identity"\n{tensors.replace("INPUT0", "text")}')
    (folder / "data.json").write_text(json.dumps({"data": [{"text": ["word"] * 70}]}))


def client_models(folder):
    (folder / "examples/models").mkdir(parents=True)
    copy_example(folder / "examples/models", "simple")
    shutil.copytree(ROOT / "examples/clients/models", folder / "examples/clients/models")


def trace_file(folder):
    shutil.copy(ROOT / "crates/perf/trace-view/testdata/kinds.json", folder / "trace.json")


# What lies in the folder of a page before its first command: `models` with the model `simple`, or what is named here.
PREPARED = {"examples/sequences/README.md": speech, "docs/sequences.md": speech, "examples/clients/README.md": client_models, "docs/check.md": wrong_models, "docs/tensorflow.md": tensorflow_models, "docs/perf.md": load_models, "docs/trace-files.md": trace_file, "docs/migrate-from-torchserve.md": lambda folder: None}
# Pages whose commands ask a server that is there already: one for all of them, with the models of `load_models`.
SERVED = {"docs/batching.md", "docs/console.md", "docs/commands.md", "docs/perf.md", "docs/performance.md", "docs/clients.md", "README.md"}


def is_command(block):
    return block.kind in ("sh", "console", "python")


def commands(page):
    return [block for block in doc_pages.blocks(page) if is_command(block)]


PAGES = [page for page in doc_pages.pages() if commands(page)]


def starts_servers(page):
    """Whether the page starts servers of its own. The README's commands are tested in the tier commit all the same."""
    return page != "README.md" and any(doc_pages.STAYS.match(block.text) for block in commands(page) if block.kind == "sh")


def in_tiers(pages):
    """Pages that start servers are in the tier peers: what they say of flags has tests of its own."""
    for page in pages:
        yield pytest.param(page, id=page, marks=[tiers.peers] if starts_servers(page) else [])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The server that the pages of SERVED ask."""
    folder = tmp_path_factory.mktemp("served")
    place = doc_pages.Place(folder, folder / "tools")
    load_models(folder)
    place.serve("galatea serve models")
    yield place.server
    place.stop()


@pytest.mark.parametrize("page", list(in_tiers(page for page in PAGES if page not in ELSEWHERE)))
def test_the_commands_of_a_page_run(page, request, tmp_path):
    to_run = [block for block in commands(page) if (page, block.first) not in NOT_RUN]
    if not to_run:
        return
    folder = tmp_path / "place"
    folder.mkdir()
    PREPARED.get(page, simple)(folder)
    place = doc_pages.Place(folder, tmp_path / "tools")
    if any(re.search(r"galatea (cache|runtime remove)", block.text) for block in to_run):
        # They would remove what others of this user have.
        place.environment["GALATEA_HOME"] = str(tmp_path / "home")
    try:
        if page in SERVED:
            place.use(request.getfixturevalue("server"))
        for block in to_run:
            place.run(block)
    finally:
        place.stop()


def test_every_command_block_is_run():
    """A block with an unknown language, or without one but with a command, would never run."""
    for page in doc_pages.pages():
        for block in doc_pages.blocks(page):
            assert is_command(block) or block.kind in TEXTS, f"{block}: a block in '{block.kind}'"
            is_hidden = not is_command(block) and doc_pages.COMMAND.match(block.first)
            assert not is_hidden, f"{block}: a command; make it a block in sh or console"
            if block.kind == "json":
                json.loads(block.text)
        indented = re.findall(r"\n\n {4}(\S[^\n]*)", doc_pages.FENCE.sub("", (ROOT / page).read_text()))
        assert not [line for line in indented if doc_pages.COMMAND.match(line)], f"{page}: commands in an indented block"


def test_every_exception_belongs_to_an_existing_block():
    there = {(block.page, block.first) for page in PAGES for block in commands(page)}
    assert set(NOT_RUN) <= there, set(NOT_RUN) - there
    for page, test in ELSEWHERE.items():
        assert page in (ROOT / "tests/python" / test).read_text(), f"{test} does not read {page}"
