"""Backends that are written in Python: a folder of the backend directory with one model.py for all their models.

`backends/words` is made like the backend of vLLM. What the real Triton answers with the same folder is recorded.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

import clients
import server_pool
import servers
import tiers
from repositories import write_model
from waiting import eventually

WORDS = Path(__file__).resolve().parent / "backends/words"
OF_TRITON = servers.PEERS / "triton/server/backends/python"
DATA = {"1/model.json": json.dumps({"greeting": "hello"})}
KIND_MODEL = 'instance_group [ { count: 1 kind: KIND_MODEL } ]\nparameters { key: "who" value { string_value: "ann" } }\n'
ECHO = '''
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
'''
TEXT = 'input [ { name: "INPUT0" data_type: TYPE_STRING dims: [ 1 ] } ]\noutput [ { name: "OUTPUT0" data_type: TYPE_STRING dims: [ 1 ] } ]\n'
# Models that load, and models that do not: the backend and the rest of the configuration.
GOOD = {"plain": ("words", ""), "named": ("vllm", f'runtime: "model.py"\n{KIND_MODEL}')}
BAD = {
    "nowhere": ("nobody", ""), "nowhere_by_runtime": ("nobody", 'runtime: "model.py"\n'), "empty": ("empty", ""),
    "empty_by_runtime": ("empty", 'runtime: "model.py"\n'), "another_library": ("words", 'runtime: "libtriton_words.so"\n'),
}


OURS = pytest.mark.parametrize("server", ["galatea"], indirect=True)


def write_backends(folder):
    """Two that are sound, one of them where vLLM's own would be; one whose settings name no interpreter, one whose environment
    is no archive, and a folder without code."""
    for name in ("words", "vllm", "elsewhere", "packed"):
        shutil.copytree(WORDS, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "packed/pb_exec_env_model.py.tar.gz").write_bytes(b"no archive")
    (folder / "empty").mkdir()


def write_models(folder):
    for name, (backend, config) in GOOD.items():
        write_model(folder, name, "galatea", backend, config, DATA)
    # Code in the model's own folders is none of the backend's.
    write_model(folder, "with_code", "galatea", "words", "", {**DATA, "model.py": "raise ValueError", "1/model.py": "raise ValueError"})
    write_model(folder, "without_data", "galatea", "words", "", {"1/.keep": ""})
    write_model(folder, "echo", "galatea", "python", TEXT, {"1/model.py": ECHO})
    for name in ("elsewhere", "packed"):
        write_model(folder, name, "galatea", name, "", DATA)
    for name, (backend, config) in BAD.items():
        write_model(folder, name, "galatea", backend, config, {"1/model.py": ECHO})


@pytest.fixture(scope="module", params=tiers.BOTH)
def server(request):
    with tempfile.TemporaryDirectory() as temporary:
        folder, flags = Path(temporary), list(server_pool.EXPLICIT)
        (folder / "backends").mkdir()
        write_backends(folder / "backends")
        write_models(folder / "models")
        if request.param == "triton":
            (folder / "backends/python").symlink_to(OF_TRITON.resolve())
        other = Path(sys.executable).with_name("no-such-python")
        flags += [f"--backend-config=elsewhere,python-interpreter={other}"]
        flags += [f"--backend-directory={folder}/backends", "--load-model=plain", "--load-model=named", "--load-model=echo"]
        with servers.TARGETS[request.param](folder / "models", *flags) as running:
            running.target, running.folder = request.param, folder
            yield running


def generate(server, text, model="plain", stream=False, **more):
    kind = "generate_stream" if stream else "generate"
    status, _, body = clients.ask(server.http, "POST", f"/v2/models/{model}/{kind}", {"text_input": text, "stream": stream, **more})
    return [status, body.decode().replace(str(server.folder), "<folder>")]


def said(server, text, model="plain"):
    status, body = generate(server, text, model)
    assert status == 200, body
    return json.loads(body)["text_output"]


def load(server, name):
    status, _, body = clients.ask(server.http, "POST", f"/v2/repository/models/{name}/load", {})
    return [status, body.decode().replace(str(server.folder), "<folder>")]


@pytest.mark.parametrize("model", GOOD)
def test_the_code_gets_what_triton_gives_it(server, recorded, model):
    about = json.loads(said(server, "about", model).replace(str(server.folder), "<folder>"))
    recorded.holds(server.target, about)


@pytest.mark.parametrize("model", GOOD)
def test_the_configuration_says_that_python_runs_the_model(server, recorded, model):
    config = json.loads(clients.ask(server.http, "GET", f"/v2/models/{model}/config")[2])
    assert config["runtime"] == "model.py"
    recorded.holds(server.target, config)


def test_code_in_the_folders_of_a_model_is_not_run(server):
    assert load(server, "with_code")[0] == 200
    assert said(server, "word", "with_code") == "word-0 word-1 word-2"


@pytest.mark.parametrize("text", ["word", "raise an error", "call echo", "call nobody"])
def test_answers_are_generated_and_streamed(server, recorded, text):
    answers = [generate(server, text, stream=stream, **more) for stream in (False, True) for more in ({}, {"max_tokens": 1})]
    recorded.holds(server.target, answers)


def test_a_cancelled_stream_ends_in_the_model(server):
    before, first = int(said(server, "cancelled")), threading.Event()
    with clients.client(server, "grpc") as stock:
        stock.start_stream(lambda result, error: first.set())
        inputs = {"text_input": np.array([b"endless"], object), "stream": np.array([True])}
        stock.async_stream_infer("plain", clients.inputs(grpcclient, inputs))
        assert first.wait(60)
        stock.stop_stream(cancel_requests=True)
    eventually("the model learned of it", lambda: int(said(server, "cancelled")) == before + 1)
    assert said(server, "word").startswith("word-0")


def test_metrics_of_the_backend_have_series_of_each_model(server):
    families = {name: clients.metrics(server).get(("words:generated_total", f'model="{name}",version="1"'), 0) for name in GOOD}
    for name in GOOD:
        assert said(server, "word", name)
    for name, count in families.items():
        assert clients.metrics(server)["words:generated_total", f'model="{name}",version="1"'] == count + 3


def test_an_error_of_the_code_names_the_file(server, recorded):
    status, text = load(server, "without_data")
    if server.target == "galatea":
        # Clients do not learn where the folders are.
        assert "<folder>" not in text
        text = text.replace("'without_data/1", "'<folder>/models/without_data/1").replace("  words/", "  <folder>/backends/words/")
    recorded.holds(server.target, [status, text])


@pytest.mark.parametrize("model", BAD)
def test_a_backend_that_is_nowhere_is_refused(server, recorded, model):
    """Ours says more behind Triton's sentence, and clients do not learn where the folders are."""
    status, text = load(server, model)
    if server.target == "triton":
        return recorded.holds("triton", [status, text])
    told_status, told = recorded.answer()
    sentence = json.loads(told)["error"].rpartition(";")[0].partition(", searched")[0]
    assert (status, json.loads(text)["error"].startswith(sentence)) == (told_status, True), [text, told]
    if model != "another_library":
        server.wait_for_line(f"{model}.*{server.folder}/backends/{BAD[model][0]}/model.py")
        assert ".../model.py'" in text and "<folder>" not in text


@OURS
def test_the_log_names_the_code(server):
    server.wait_for_line(f"model 'plain' runs '{server.folder}/backends/words/model.py'")
    server.wait_for_line(f"words .*{server.folder}/backends/words/model.py")


def checked(folder, *more):
    command = [servers.galatea_binary(), "check", f"--backend-directory={folder}/backends", "--json", folder / "models", *more]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60)
    return json.loads(run.stdout)["findings"]


def test_check_names_the_code_and_its_mistakes(tmp_path):
    (tmp_path / "backends").mkdir()
    write_backends(tmp_path / "backends")
    write_model(tmp_path / "models", "plain", "galatea", "words", "", DATA)
    write_model(tmp_path / "models", "lost", "galatea", "nobody", 'runtime: "model.py"\n', DATA)
    found = {finding["model"]: finding for finding in checked(tmp_path) if "model.py'" in finding["text"]}
    code = f"{tmp_path}/backends/words/model.py"
    assert (found["plain"]["severity"], found["plain"]["field"]) == ("note", "backend") and code in found["plain"]["text"]
    assert found["lost"]["severity"] == "error" and "searched: '.../model.py'" in found["lost"]["text"]
    (tmp_path / "backends/words/model.py").write_text("class TritonPythonModel:\n    def execute(:\n")
    [mistake] = [finding for finding in checked(tmp_path) if finding["model"] == "plain" and finding["severity"] == "error"]
    assert (mistake["file"], mistake["line"]) == (code, 2)


@OURS
@pytest.mark.parametrize(("model", "named"), [("elsewhere", "no-such-python"), ("packed", "pb_exec_env_model.py.tar.gz")])
def test_settings_and_environment_of_the_backend_are_used(server, model, named):
    """Its settings go before those of `python`, and its environment is that of its models."""
    assert load(server, model)[0] >= 400
    server.wait_for_line(f"'{model}'.*{re.escape(named)}")
