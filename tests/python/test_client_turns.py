"""Clients with an identity take turns in a model's queue: the flood of one is no wait for another."""

import contextlib
import threading

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

import clients
import servers
from auth_cases import bearer, key_entry
from repositories import identity_config, write_model
from waiting import eventually

FLOOD = 200
PAIRS = "dynamic_batching { preferred_batch_size: [ 2 ] }\n"
# By model, the requests of a flood that may be executed before one of another client that came behind all of them: those of
# the batch that executes and of its turn, or, without a batcher, those that the process of the model was handed ahead.
FEW = {"single": 50, "pairs": 8}
# Executes nothing while there is a file `hold`, and notes whose requests it executes.
NOTES = """\
import os
import time

import triton_python_backend_utils as pb

FOLDER = {folder!r}


class TritonPythonModel:
    def execute(self, requests):
        while os.path.exists(os.path.join(FOLDER, "hold")):
            time.sleep(0.002)
        arrays = [pb.get_input_tensor_by_name(request, "INPUT0").as_numpy() for request in requests]
        with open(os.path.join(FOLDER, "noted"), "a") as file:
            file.writelines(f"{{int(array[0, 0])}}\\n" for array in arrays)
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", array)]) for array in arrays]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("turns")
    for name, more in {"single": "", "pairs": PAIRS}.items():
        (path / name).mkdir()
        config = identity_config(dims="4", max_batch_size=2, more=more)
        write_model(path / "models", name, "galatea", "python", config, {"1/model.py": NOTES.format(folder=str(path / name))})
    roles = {"flooder": "infer", "other": "infer", "admin": "admin"}
    (path / "policy.toml").write_text("".join(key_entry(name, f"secret-of-{name}", [role]) for name, role in roles.items()))
    return path


def key(name):
    return {"authorization": f"Bearer secret-of-{name}"}


@contextlib.contextmanager
def flood(server, model, headers):
    """Many requests of one client that wait; all are answered at the end."""
    answered, failed = threading.Semaphore(0), []

    def count(result, error):
        failed.extend([error] if error else [])
        answered.release()

    with clients.client(server, "grpc") as stock:
        for _ in range(FLOOD):
            stock.async_infer(model, clients.inputs(grpcclient, {"INPUT0": np.zeros([1, 4], np.float32)}), count, headers=headers)
        yield
        assert all(answered.acquire(timeout=60) for _ in range(FLOOD))
    assert failed == []


def under_way(server, model):
    """Requests to the model that are not answered."""
    page = clients.ask(server.metrics, "GET", "/metrics", headers=bearer("secret-of-admin"))[2].decode()
    (line,) = [line for line in page.splitlines() if line.startswith(f'galatea_inference_requests_in_flight{{model="{model}"')]
    return int(float(line.split()[-1]))


def executed_before(server, folder, protocol, model, headers):
    """How many requests of a flood by the first client are executed before one of the second, which came last."""
    hold, noted = folder / model / "hold", folder / model / "noted"
    noted.unlink(missing_ok=True)
    hold.touch()

    def ask():
        with clients.client(server, protocol) as stock:
            clients.infer(stock, protocol, model, {"INPUT0": np.ones([1, 4], np.float32)}, headers=headers[1])

    other = threading.Thread(target=ask, daemon=True)
    try:
        with flood(server, model, headers[0]):
            eventually("the flood waits", lambda: under_way(server, model) == FLOOD)
            other.start()
            eventually("the other request waits", lambda: under_way(server, model) == FLOOD + 1)
            hold.unlink()
    finally:
        hold.unlink(missing_ok=True)
    other.join()
    return noted.read_text().split().index("1")


@pytest.fixture(scope="module")
def with_keys(folder):
    with servers.galatea(folder / "models", f"--auth-policy={folder / 'policy.toml'}") as server:
        yield server


@pytest.mark.parametrize("protocol", clients.MODULES)
@pytest.mark.parametrize("model", FEW)
def test_a_flood_with_one_key_does_not_delay_another(with_keys, folder, protocol, model):
    assert executed_before(with_keys, folder, protocol, model, [key("flooder"), key("other")]) <= FEW[model]


def test_requests_of_one_key_keep_their_order(with_keys, folder):
    """Other keys are spared the wait; a client with the same key waits behind the flood."""
    assert executed_before(with_keys, folder, "http", "single", [key("flooder")] * 2) == FLOOD


def test_without_authentication_all_requests_share_one_turn(folder, stage):
    server = stage.serves(folder / "models")
    assert executed_before(server, folder, "http", "single", [None, None]) == FLOOD
