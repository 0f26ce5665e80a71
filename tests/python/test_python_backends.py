"""Backends that are written in Python: a folder of the backend directory with one model.py for all their models."""

import sys
from pathlib import Path

import pytest

import clients
import servers
import tiers
from repositories import tensor

MINE = '''
import json
import os
import sys

import numpy as np
import triton_python_backend_utils as pb

from words import GREETING


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_output({"name": "SAID", "data_type": "TYPE_STRING", "dims": [1]})
        return config

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.name = config["parameters"]["who"]["string_value"]
        self.said = "%s %s from %s" % (GREETING, self.name, config["backend"])

    def execute(self, requests):
        said = np.array([self.said], dtype=object)
        return [pb.InferenceResponse([pb.Tensor("SAID", said)]) for _ in requests]
'''


def write_backend(folder, name):
    (folder / name).mkdir(parents=True)
    (folder / name / "model.py").write_text(MINE)
    (folder / name / "words.py").write_text('GREETING = "hello"\n')
    return folder / name


def write_model(folder, name, backend="greeter"):
    """A model of the backend; its version folder is empty."""
    (folder / name / "1").mkdir(parents=True)
    (folder / name / "1/.keep").write_text("")
    config = tensor("input", "IN", "TYPE_INT32", "1") + f'parameters {{ key: "who" value: {{ string_value: "{name}" }} }}\n'
    (folder / name / "config.pbtxt").write_text(f'backend: "{backend}"\n{config}')


def said(server, model):
    body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "INT32", "data": [1]}]}
    status, _, text = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)
    assert status == 200, text
    return clients.json.loads(text)["outputs"][0]["data"]


def check(server):
    assert said(server, "ann") == ["hello ann from greeter"]
    assert said(server, "bob") == ["hello bob from greeter"]


@pytest.fixture(scope="module")
def backends(tmp_path_factory):
    """One that is sound, one whose settings name no interpreter, and one that brings an environment that is none."""
    folder = tmp_path_factory.mktemp("backends")
    write_backend(folder, "greeter")
    write_backend(folder, "elsewhere")
    (write_backend(folder, "packed") / "pb_exec_env_model.py.tar.gz").write_bytes(b"no archive")
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory, backends):
    """`ann` and `bob` are loaded at the start."""
    repository, other = tmp_path_factory.mktemp("models"), Path(sys.executable).with_name("no-such-python")
    for name in ("ann", "bob"):
        write_model(repository, name)
    flags = (f"--backend-directory={backends}", f"--backend-config=elsewhere,python-interpreter={other}")
    loaded = ("--model-control-mode=explicit", "--load-model=ann", "--load-model=bob")
    with servers.galatea(repository, *flags, *loaded) as running:
        running.repository = repository
        yield running


def refused(server, name, backend):
    """What the server says of a model that it cannot load."""
    write_model(server.repository, name, backend)
    status, _, text = clients.ask(server.http, "POST", f"/v2/repository/models/{name}/load", {})
    assert status >= 400
    assert clients.ask(server.http, "GET", f"/v2/models/{name}/ready")[0] != 200
    return text.decode()


def test_custom_python_backends_work(server, backends):
    check(server)
    server.wait_for_line(f"greeter.*{backends}/greeter/model.py")


@tiers.peers
def test_custom_python_backends_work_in_triton(backends, tmp_path):
    real = servers.PEERS / "triton/server/backends/python"
    (tmp_path / "backends").mkdir()
    (tmp_path / "backends/python").symlink_to(real.resolve())
    (tmp_path / "backends/greeter").symlink_to(backends / "greeter")
    for name in ("ann", "bob"):
        write_model(tmp_path / "models", name)
    with servers.triton(tmp_path / "models", f"--backend-directory={tmp_path / 'backends'}") as server:
        check(server)


def test_settings_of_the_backend_override_those_of_python(server):
    refused(server, "eve", "elsewhere")
    server.wait_for_line("no-such-python")


def test_the_backend_brings_its_environment(server):
    refused(server, "pat", "packed")
    server.wait_for_line("pb_exec_env_model.py.tar.gz")


def test_an_unknown_backend_is_refused(server):
    refused(server, "ned", "nobody")
    assert said(server, "bob") == ["hello bob from greeter"]
    server.wait_for_line("'ned'.*nobody")
