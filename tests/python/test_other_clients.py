"""Clients that others make for this protocol, as they are published."""

import json
import subprocess

import pytest

import repositories
import servers
import tiers

PYTHON = servers.PEERS / "other-clients/bin/python"
SCRIPT = servers.ROOT / "tests/python/other_clients.py"
ROW = [[1.5, 2.5, 3.5]]
MODEL = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
"""
EXPECTED = {
    "tritony-http": [ROW] * 5,
    "tritony-grpc": [ROW] * 5,
    "kserve-rest": [[True, True, True], ROW],
    "kserve-grpc": [[True, True, True], ROW],
}


def write(folder, target):
    config = repositories.identity_config(dims="3", max_batch_size=4, more="dynamic_batching { }\n")
    repositories.write_model(folder, "row", target, "python", config, {"1/model.py": MODEL})


@tiers.peers
@pytest.mark.skipif(not PYTHON.exists(), reason="the other clients are not installed: `cargo xtask setup other-clients`")
@pytest.mark.parametrize("name", EXPECTED)
def test_other_clients_work_unchanged(stage, name):
    server = stage.get("galatea", write)
    address = server.grpc if name.endswith("grpc") else server.http
    run = subprocess.run([PYTHON, SCRIPT, name, address, "row"], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-2000:]
    assert json.loads(run.stdout.splitlines()[-1]) == EXPECTED[name]
