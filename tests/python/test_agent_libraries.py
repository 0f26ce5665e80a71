"""Repository agents in libraries that were made for Triton: the same one of C on our server and on the real one."""

import json
import subprocess
import tempfile
from pathlib import Path

import pytest

import c_libraries
import clients
import server_pool
import servers
import tiers
from repositories import write_model
from waiting import eventually

TENSORS = 'input [ { name: "IN" data_type: TYPE_STRING dims: [ 1 ] } ]\noutput [ { name: "OUT" data_type: TYPE_STRING dims: [ 1 ] } ]\n'
# Answers with what the file `added` of its folder says.
CODE = """
import os

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        path = os.path.join(args["model_repository"], "added")
        self.said = open(path).read().strip() if os.path.exists(path) else "none"

    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", np.array([self.said.encode()], object))]) for _ in requests]
"""
# What the agents of a model do, in their order.
LOADS = {
    "plain": ["nothing"], "telling": ["tell"], "replaced": ["replace"], "replaced_twice": ["replace", "replace"], "moved": ["move"],
    "late": ["replace late"],
}
REFUSED = {
    "refused": ["refuse"], "refused_at_once": ["refuse to begin"], "refused_always": ["refuse every action"],
    "refused_by_the_second": ["nothing", "refuse"], "elsewhere": ["acquire elsewhere"], "moved_nowhere": ["move"],
}
SAID = {"replaced": "added", "replaced_twice": "added", "moved": "moved"}


def write_agent_model(folder, name, agents, code=CODE):
    """A model whose agents `first`, `second` do these things and write into the file NAME.log beside the repository."""
    parameters = {"log": f"{folder}/{name}.log", "to": f"{folder}/{'moved' if name == 'moved' else 'nowhere'}"}

    def agent(agent_name, does):
        pairs = {**parameters, "does": does}.items()
        return f'agents [ {{ name: "{agent_name}" ' + " ".join(f'parameters [ {{ key: "{k}" value: "{v}" }} ]' for k, v in pairs) + " } ]\n"

    text = "".join(agent(*pair) for pair in zip(("first", "second"), agents))
    config = f"{TENSORS}model_repository_agents {{\n{text}}}\n"
    write_model(folder / "models", name, "galatea", "python", config, {"1/model.py": code})


@pytest.fixture(scope="module", params=tiers.BOTH)
def server(request):
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("first", "second"):
            c_libraries.compile_library(folder / "agents", "agent", name)
        c_libraries.library_file(folder / "agents", "agent", "text").write_text("no library")
        for name, agents in {**LOADS, **REFUSED}.items():
            write_agent_model(folder, name, agents)
        write_agent_model(folder, "broken", ["replace"], "raise ValueError('broken')")
        write_model(folder, "moved", "galatea", "python", TENSORS, {"1/model.py": CODE, "added": "moved"})
        for name in ("none", "text"):
            config = f'{TENSORS}model_repository_agents {{ agents [ {{ name: "{name}" }} ] }}\n'
            write_model(folder / "models", f"agent_{name}", "galatea", "python", config, {"1/model.py": CODE})
        flags = (f"--repoagent-directory={folder}/agents", *server_pool.EXPLICIT)
        with servers.TARGETS[request.param](folder / "models", *flags) as running:
            running.target, running.folder = request.param, folder
            yield running


def load(server, name, action="load"):
    status, _, body = clients.ask(server.http, "POST", f"/v2/repository/models/{name}/{action}", {})
    return status, body.decode().replace(str(server.folder), "<folder>")


def told(server, name):
    """What the agents of a model were told, without the names of folders that the server has made for them."""
    path = server.folder / f"{name}.log"
    lines = path.read_text().replace(str(server.folder), "<folder>").splitlines() if path.exists() else []
    return ["files: <acquired>" if line.startswith("files: ") and "<folder>" not in line else line for line in lines]


@pytest.mark.parametrize("name", LOADS)
def test_agents_see_a_model_from_its_load_to_its_unload(server, recorded, name):
    assert load(server, name) == (200, "")
    body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "BYTES", "data": ["x"]}]}
    _, _, answer = clients.ask(server.http, "POST", f"/v2/models/{name}/infer", body)
    assert json.loads(answer)["outputs"][0]["data"] == [SAID.get(name, "none")]
    assert load(server, name, "unload")[0] == 200
    ends = len(LOADS[name])
    eventually("the agents have ended", lambda: told(server, name).count("finalize") == ends)
    recorded.holds(server.target, told(server, name))


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_an_agent_refuses_is_not_loaded(server, recorded, name):
    status, text = load(server, name)
    recorded.holds(server.target, [status, json.loads(text)["error"].partition(" (")[0].partition(": ")[0], told(server, name)])
    if server.target == "galatea" and name.startswith("refused"):
        assert "the agent was told " in text


def test_agents_learn_of_a_load_that_fails_later(server):
    """The real server does not end its agents then."""
    assert load(server, "broken")[0] == 400
    ends = [] if server.target == "triton" else ["release: done", "finalize"]
    eventually("the agent is told", lambda: told(server, "broken")[3:] == ["load fail", *ends])


OURS = pytest.mark.parametrize("server", ["galatea"], indirect=True)


@OURS
@pytest.mark.parametrize(("name", "text"), [
    ("none", "unable to find 'libtritonrepoagent_none.so' for repo agent 'none', searched: <folder>/agents. Correct"),
    ("text", "'<folder>/agents/text/libtritonrepoagent_text.so' cannot be opened as a Triton repository agent: it is no shared library"),
])
def test_an_agent_that_cannot_be_opened_is_named_with_its_file(server, name, text):
    assert load(server, f"agent_{name}")[0] >= 400
    server.wait_for_line(text.replace("<folder>", str(server.folder)))


@OURS
def test_folders_of_an_agent_are_removed_with_the_model(server, tmp_path_factory):
    write_agent_model(server.folder, "tidy", ["replace"])
    assert load(server, "tidy")[0] == 200
    status, _, config = clients.ask(server.http, "GET", "/v2/models/tidy/config")
    assert status == 200, config
    before = set(Path(tempfile.gettempdir()).glob("galatea-agent-*"))
    assert before
    load(server, "tidy", "unload")
    eventually("the folder is gone", lambda: before - set(Path(tempfile.gettempdir()).glob("galatea-agent-*")))


def test_check_looks_for_agents_and_calls_none(tmp_path):
    c_libraries.compile_library(tmp_path / "agents", "agent", "first")
    write_agent_model(tmp_path, "plain", ["refuse"])
    config = f'{TENSORS}model_repository_agents {{ agents [ {{ name: "none" }} ] }}\n'
    write_model(tmp_path / "models", "lost", "galatea", "python", config, {"1/model.py": CODE})
    command = [servers.galatea_binary(), "check", f"--repoagent-directory={tmp_path}/agents", "--json", tmp_path / "models"]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60).stdout)["findings"]
    [mistake] = [finding for finding in found if finding["severity"] == "error"]
    library = c_libraries.library_file(tmp_path / "agents", "agent", "first")
    [note] = [finding["text"] for finding in found if finding["field"] == "model_repository_agents" and finding["severity"] == "note"]
    facts = "it calls functions up to TRITONREPOAGENT 0.1, 0.1 is offered"
    assert note == f"repository agent 'first' of this model is '{library}': {facts}"
    assert mistake["model"] == "lost" and "unable to find 'libtritonrepoagent_none.so'" in mistake["text"]
    assert not (tmp_path / "plain.log").exists()
