"""Writes model repositories: the same models on our built-in backends and as Python models of the real Triton."""

import shutil
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/models"

# Our built-in backends as Python models, for the real server.
PYTHON_TWINS = {
    "identity": """\
import json
import time

import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.delay = int(parameters.get("execute_delay_ms", {}).get("string_value", "0")) / 1000

    def execute(self, requests):
        time.sleep(self.delay)
        return [
            pb.InferenceResponse([pb.Tensor(t.name().replace("INPUT", "OUTPUT"), t.as_numpy()) for t in r.inputs()])
            for r in requests
        ]
""",
    "failing": """\
import json

import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.fail = json.loads(args["model_config"])["parameters"].get("fail", {}).get("string_value")

    def execute(self, requests):
        if self.fail == "panic":
            raise RuntimeError("told to panic")
        text = "model 'failing' was told to fail"
        return [pb.InferenceResponse(error=pb.TritonError(text)) for _ in requests]
""",
    "repeat": """\
import threading
import time

import numpy as np
import triton_python_backend_utils as pb

FINAL = pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def initialize(self, args):
        self.threads = []

    def execute(self, requests):
        for request in requests:
            arrays = [pb.get_input_tensor_by_name(request, name).as_numpy() for name in ("IN", "DELAY", "WAIT")]
            self.threads.append(threading.Thread(target=self.answer, args=(request.get_response_sender(), *arrays)))
            self.threads[-1].start()
            time.sleep(int(arrays[2][0]) / 1000)

    def answer(self, sender, values, delays, wait):
        for index, (value, delay) in enumerate(zip(values, delays)):
            time.sleep(int(delay) / 1000)
            if sender.is_cancelled():
                break
            outputs = [pb.Tensor("OUT", np.array([value], np.int32)), pb.Tensor("IDX", np.array([index], np.uint32))]
            sender.send(pb.InferenceResponse(outputs))
        sender.send(flags=FINAL)

    def finalize(self):
        for thread in self.threads:
            thread.join()
""",
    "add_sub": """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            a = pb.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            b = pb.get_input_tensor_by_name(request, "INPUT1").as_numpy()
            answers.append(pb.InferenceResponse([pb.Tensor("OUTPUT0", a + b), pb.Tensor("OUTPUT1", a - b)]))
        return answers
""",
}


# What passes tensors on and adds no parameters to the response, on each server.
PASSES_ON = {"galatea": "failing", "triton": "identity"}


def write_model(repository, name, target, backend, config, files=None, versions=(1,)):
    """One model, or with backend `ensemble` or `python` none but configuration and files. `config` is config.pbtxt without name
    and backend; None leaves the file out."""
    folder = Path(repository) / name
    folder.mkdir(parents=True, exist_ok=True)
    for version in versions:
        (folder / str(version)).mkdir(parents=True, exist_ok=True)
        if target == "triton" and backend in PYTHON_TWINS:
            (folder / str(version) / "model.py").write_text(PYTHON_TWINS[backend])
    if config is not None:
        runs_on = "python" if target == "triton" and backend in PYTHON_TWINS else backend
        how = 'platform: "ensemble"' if backend == "ensemble" else f'backend: "{runs_on}"'
        (folder / "config.pbtxt").write_text(f'name: "{name}"\n{how}\n{config}')
    for path, text in (files or {}).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def tensor(kind, name, data_type, dims, more=""):
    return f'{kind} [ {{ name: "{name}" data_type: {data_type} dims: [ {dims} ] {more} }} ]\n'


def add_sub_config(max_batch_size=8, more="dynamic_batching { }\n"):
    tensors = [tensor(kind, f"{kind.upper()}{i}", "TYPE_INT32", "16") for kind in ("input", "output") for i in (0, 1)]
    return f"max_batch_size: {max_batch_size}\n" + "".join(tensors) + more


REPEAT_CONFIG = "".join([
    tensor("input", "IN", "TYPE_INT32", "-1"), tensor("input", "DELAY", "TYPE_UINT32", "-1"),
    tensor("input", "WAIT", "TYPE_UINT32", "1"), tensor("output", "OUT", "TYPE_INT32", "1"),
    tensor("output", "IDX", "TYPE_UINT32", "1"), "model_transaction_policy { decoupled: true }\n",
])


def identity_config(data_type="TYPE_FP32", dims="-1", max_batch_size=0, more=""):
    tensors = tensor("input", "INPUT0", data_type, dims) + tensor("output", "OUTPUT0", data_type, dims)
    return f"max_batch_size: {max_batch_size}\n{tensors}{more}"


def copy_example(repository, example, config=None, name=None):
    """One of the example models, with another configuration and under another name if they are given."""
    folder = Path(repository) / (name or example)
    shutil.copytree(EXAMPLES / example, folder)
    if config is not None:
        (folder / "config.pbtxt").write_text(config)
    return folder
