"""Which code and which file complete a configuration, on our server and on the real one."""

import json

import clients
import repositories
import tiers

MODULE = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        for add, name in ((config.add_input, "IN"), (config.add_output, "OUT")):
            add({"name": name, "data_type": "TYPE_INT32", "dims": [-1]})
        config.set_max_batch_size(0)
        return config

    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]
"""
IMPORT = "import os, sys\nsys.path.append(os.path.dirname(__file__))\n"
# Each takes the class of the model from a module.
IMPORTS = {
    "star": "from {module} import *\n",
    "named": "from {module} import TritonPythonModel\n",
    "derived": "import {module}\n\n\nclass TritonPythonModel({module}.TritonPythonModel):\n    pass\n",
}


def write(folder, target):
    for name, text in IMPORTS.items():
        module = f"module_{name}"
        files = {"1/model.py": IMPORT + text.format(module=module), f"1/{module}.py": MODULE}
        repositories.write_model(folder, name, target, "python", "", files)
    files = {"1/model.py": "raise SystemExit('not the version that is wanted')\n", "2/model.py": MODULE}
    repositories.write_model(folder, "second", target, "python", "version_policy { specific { versions: [ 2 ] } }\n", files, versions=(1, 2))


@tiers.both
def test_a_model_class_may_come_from_a_module(stage, target):
    server = stage.get(target, write)
    for name in IMPORTS:
        status, _, text = clients.ask(server.http, "GET", f"/v2/models/{name}")
        assert status == 200 and [t["name"] for t in json.loads(text)["inputs"]] == ["IN"], (name, text)


@tiers.both
def test_a_loaded_version_may_complete_the_configuration(stage, target):
    status, _, text = clients.ask(stage.get(target, write).http, "GET", "/v2/models/second")
    assert status == 200 and [t["name"] for t in json.loads(text)["outputs"]] == ["OUT"], text
