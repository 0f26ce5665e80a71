"""The built-in backends are twins of Triton's test backends, give way to a user's own, and are named to nobody."""

import subprocess

import numpy as np
import pytest

import clients
import servers
from repositories import identity_config, tensor, write_model

EXAMPLES = {"param0": "an example string parameter", "param1": 42, "param2": False, "param3": 123.123}

MINE = """
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", np.array([42], np.float32))]) for _ in requests]
"""

# What would name one of them.
HIDDEN = ("add_sub", "failing", "'repeat'", ", repeat", "square", "dyna_sequence", "iterative_sequence", "implicit_state", "'sequence'", ", sequence,")
ONE = {"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1]}]}


def infer(server, model, body):
    status, _, text = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)
    return status, clients.json.loads(text)


def test_identity_adds_tritons_response_parameters(repository, stage):
    repository.add("same", "identity", identity_config())
    server = stage.serves(repository.path)
    assert infer(server, "same", ONE)[1]["parameters"] == EXAMPLES
    with clients.client(server, "grpc") as stock:
        inputs = clients.inputs(clients.MODULES["grpc"], {"INPUT0": np.ones(1, np.float32)})
        found = stock.infer("same", inputs).get_response().parameters
    assert found["param0"].string_param == EXAMPLES["param0"] and found["param1"].int64_param == 42
    assert not found["param2"].bool_param and found["param3"].double_param == 123.123


def test_repeat_returns_one_element_when_not_decoupled(repository, stage):
    config = "".join([
        tensor("input", "IN", "TYPE_INT32", "-1"), tensor("input", "DELAY", "TYPE_UINT32", "-1"),
        tensor("input", "WAIT", "TYPE_UINT32", "1"), tensor("output", "OUT", "TYPE_INT32", "1"),
        tensor("output", "IDX", "TYPE_UINT32", "1"),
    ])
    repository.add("repeat", "repeat", config)
    server = stage.serves(repository.path)

    def answer(values):
        def of(name, kind, data):
            return {"name": name, "datatype": kind, "shape": [len(data)], "data": data}

        inputs = [of("IN", "INT32", values), of("DELAY", "UINT32", [0] * len(values)), of("WAIT", "UINT32", [0])]
        return infer(server, "repeat", {"inputs": inputs})

    status, one = answer([7])
    assert status == 200 and [output["data"] for output in one["outputs"]] == [[7], [0]]
    assert answer([7, 8]) == (500, {"error": "expected a single response, got 3"})


@pytest.fixture(scope="module")
def with_backends(tmp_path_factory):
    """A server with backends of a user that have the names of built-in ones, and a model of a backend that nobody has."""
    models, backends = tmp_path_factory.mktemp("models"), tmp_path_factory.mktemp("backends")
    for name in ("identity", "failing", "square"):
        (backends / name).mkdir()
        write_model(models, f"mine_{name}", "galatea", name, identity_config())
    for name in ("identity", "failing"):
        (backends / name / "model.py").write_text(MINE)
    (backends / "square/libtriton_square.so").write_bytes(b"\x7fELF")
    write_model(models, "lacks", "galatea", "nowhere", identity_config())
    with servers.galatea(models, f"--backend-directory={backends}", "--exit-on-error=false") as server:
        yield server


@pytest.mark.parametrize("name", ["identity", "failing"])
def test_a_users_backend_of_the_same_name_takes_precedence(with_backends, name):
    assert infer(with_backends, f"mine_{name}", ONE)[1]["outputs"][0]["data"] == [42.0]


def reasons(server):
    rows = clients.json.loads(clients.ask(server.http, "POST", "/v2/repository/index", {})[2])
    return {row["name"]: row.get("reason", "") for row in rows}


def test_a_users_library_of_the_same_name_is_not_replaced(with_backends):
    assert "libtriton_square.so' cannot be opened as a Triton backend" in reasons(with_backends)["mine_square"]


def test_builtin_test_backends_are_not_advertised(with_backends):
    reason = reasons(with_backends)["lacks"]
    assert "unable to find backend library for backend 'nowhere'" in reason and "onnxruntime" in reason
    help_text = subprocess.run(
        [servers.galatea_binary(), "serve", "--help"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    for text in (reason, help_text, *(line for line in with_backends.log if "nowhere" in line)):
        # Those that the user has are named to him.
        told = text.replace("failing", "").replace("square", "")
        assert not any(word in told for word in HIDDEN), text
