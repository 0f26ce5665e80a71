"""Backends that are written in Python: a folder of the backend directory with one model.py for all their models."""

import sys
from pathlib import Path

import pytest

import clients
import servers
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


@pytest.fixture
def backends(tmp_path):
    folder = tmp_path / "backends/greeter"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(MINE)
    (folder / "words.py").write_text('GREETING = "hello"\n')
    return folder.parent


@pytest.fixture
def models(tmp_path):
    """Two models of the backend; their version folders are empty."""
    for who in ("ann", "bob"):
        folder = tmp_path / "models" / who
        (folder / "1").mkdir(parents=True)
        (folder / "1/.keep").write_text("")
        config = tensor("input", "IN", "TYPE_INT32", "1") + f'parameters {{ key: "who" value: {{ string_value: "{who}" }} }}\n'
        (folder / "config.pbtxt").write_text(f'backend: "greeter"\n{config}')
    return tmp_path / "models"


def said(server, model):
    body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "INT32", "data": [1]}]}
    status, _, text = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)
    assert status == 200, text
    return clients.json.loads(text)["outputs"][0]["data"]


def check(server):
    assert said(server, "ann") == ["hello ann from greeter"]
    assert said(server, "bob") == ["hello bob from greeter"]


def test_ours(backends, models, serve):
    server = serve(models, f"--backend-directory={backends}")
    check(server)
    assert any("greeter" in line and str(backends / "greeter/model.py") in line for line in server.log)


@pytest.mark.skipif(not servers.has_triton(), reason="the real Triton could not be installed here")
def test_real(backends, models):
    real = servers.PEERS / "triton/server/backends/python"
    (backends / "python").symlink_to(real.resolve())
    with servers.triton(models, f"--backend-directory={backends}") as server:
        check(server)


def test_settings_of_the_backend_go_before_those_of_python(backends, models, serve):
    other = Path(sys.executable).with_name("no-such-python")
    server = serve(models, f"--backend-directory={backends}", f"--backend-config=greeter,python-interpreter={other}", "--exit-on-error=false")
    status, _, _ = clients.ask(server.http, "GET", "/v2/models/ann/ready")
    assert status != 200
    assert any("no-such-python" in line for line in server.log)


def test_the_backend_brings_its_environment(backends, models, serve):
    (backends / "greeter/pb_exec_env_model.py.tar.gz").write_bytes(b"no archive")
    server = serve(models, f"--backend-directory={backends}", "--exit-on-error=false")
    assert clients.ask(server.http, "GET", "/v2/models/ann/ready")[0] != 200
    assert any("pb_exec_env_model.py.tar.gz" in line for line in server.log)


def test_no_such_backend(backends, models, serve):
    (models / "ann/config.pbtxt").write_text((models / "ann/config.pbtxt").read_text().replace("greeter", "nobody"))
    server = serve(models, f"--backend-directory={backends}", "--exit-on-error=false")
    assert said(server, "bob") == ["hello bob from greeter"]
    assert any("'ann'" in line and "nobody" in line for line in server.log)
