"""The built-in backends are twins of Triton's test backends, give way to a user's own, and are named to nobody."""

import subprocess

import numpy as np
import pytest

import clients
import servers
from repositories import identity_config, tensor

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


def test_identity_adds_triton_s_response_parameters(repository, serve):
    repository.add("same", "identity", identity_config())
    server = serve(repository.path)
    assert infer(server, "same", ONE)[1]["parameters"] == EXAMPLES
    with clients.client(server, "grpc") as stock:
        inputs = clients.inputs(clients.MODULES["grpc"], {"INPUT0": np.ones(1, np.float32)})
        found = stock.infer("same", inputs).get_response().parameters
    assert found["param0"].string_param == EXAMPLES["param0"] and found["param1"].int64_param == 42
    assert not found["param2"].bool_param and found["param3"].double_param == 123.123


def test_repeat_that_is_not_decoupled_answers_one_element(repository, serve):
    config = "".join([
        tensor("input", "IN", "TYPE_INT32", "-1"), tensor("input", "DELAY", "TYPE_UINT32", "-1"),
        tensor("input", "WAIT", "TYPE_UINT32", "1"), tensor("output", "OUT", "TYPE_INT32", "1"),
        tensor("output", "IDX", "TYPE_UINT32", "1"),
    ])
    repository.add("repeat", "repeat", config)
    server = serve(repository.path)

    def answer(values):
        def of(name, kind, data):
            return {"name": name, "datatype": kind, "shape": [len(data)], "data": data}

        inputs = [of("IN", "INT32", values), of("DELAY", "UINT32", [0] * len(values)), of("WAIT", "UINT32", [0])]
        return infer(server, "repeat", {"inputs": inputs})

    status, one = answer([7])
    assert status == 200 and [output["data"] for output in one["outputs"]] == [[7], [0]]
    assert answer([7, 8]) == (500, {"error": "expected a single response, got 3"})


@pytest.mark.parametrize("name", ["identity", "failing"])
def test_a_user_s_backend_of_the_same_name_is_used(repository, serve, tmp_path_factory, name):
    folder = tmp_path_factory.mktemp("backends") / name
    folder.mkdir()
    (folder / "model.py").write_text(MINE)
    repository.add("mine", name, identity_config())
    server = serve(repository.path, f"--backend-directory={folder.parent}")
    assert infer(server, "mine", ONE)[1]["outputs"][0]["data"] == [42.0]


def test_a_user_s_library_of_the_same_name_is_not_replaced(repository, serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("backends") / "identity"
    folder.mkdir()
    (folder / "libtriton_identity.so").write_bytes(b"\x7fELF")
    repository.add("mine", "identity", identity_config())
    server = serve(repository.path, f"--backend-directory={folder.parent}", "--exit-on-error=false")
    index = clients.json.loads(clients.ask(server.http, "POST", "/v2/repository/index", {})[2])
    assert "libtriton_identity.so, which this server cannot open" in index[0]["reason"], index


def test_they_are_named_to_nobody(repository, serve):
    repository.add("lacks", "nowhere", identity_config())
    server = serve(repository.path, "--exit-on-error=false")
    index = clients.ask(server.http, "POST", "/v2/repository/index", {})[2].decode()
    assert "unable to find backend library for backend 'nowhere'" in index and "onnxruntime" in index
    help_text = subprocess.run(
        [servers.galatea_binary(), "serve", "--help"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    for text in (index, help_text, *(line for line in server.log if "nowhere" in line)):
        assert not any(word in text for word in HIDDEN), text
