"""The repository of the server under attack: the examples, and small models that the attacks need."""

from pathlib import Path

import onnx
from onnx import TensorProto, helper

from repositories import REPEAT_CONFIG, add_sub_config, copy_example, identity_config, tensor, write_model

EXAMPLES = ("simple", "magika", "silero_vad", "minilm_int8")
SLOW = 'parameters { key: "execute_delay_ms" value { string_value: "200" } }\n'
SLOW_LOAD = 'parameters { key: "creation_delay_sec" value { string_value: "8" } }\n'
# A decoupled model: so many answers of so many bytes to one request.
MANY_ANSWERS = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            count, size = (int(t.as_numpy()[0]) for t in request.inputs())
            sender = request.get_response_sender()
            answer = np.zeros(size, np.uint8)
            for _ in range(count):
                if sender.is_cancelled():
                    break
                sender.send(pb.InferenceResponse([pb.Tensor("OUT", answer)]))
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
MANY_ANSWERS_CONFIG = "".join([
    tensor("input", "COUNT", "TYPE_INT32", "1"), tensor("input", "SIZE", "TYPE_INT32", "1"),
    tensor("output", "OUT", "TYPE_UINT8", "-1"), "model_transaction_policy { decoupled: true }\n",
])
WORKER = """\
import os

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("PID", np.array([os.getpid()], np.int32))]) for _ in requests]
"""
# On request, writes nonsense into every socket it finds in its process before it answers, as a model could.
LIAR = """\
import os
import random
import stat

import numpy as np
import triton_python_backend_utils as pb


def nonsense(seed):
    chance = random.Random(seed)
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                for size in (1, 7, 64, 4096):
                    os.write(number, chance.randbytes(size))
            elif "memfd" in os.readlink(f"/proc/self/fd/{number}"):
                os.pwrite(number, chance.randbytes(4096), 0)
        except OSError:
            pass


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            seed = int(request.inputs()[0].as_numpy()[0])
            if seed:
                nonsense(seed)
        return [pb.InferenceResponse([pb.Tensor("PID", np.array([os.getpid()], np.int32))]) for _ in requests]
"""
WORKER_CONFIG = tensor("input", "IN", "TYPE_INT32", "1") + tensor("output", "PID", "TYPE_INT32", "1")


def python_model(folder, name, source, config):
    (Path(folder) / name / "1").mkdir(parents=True)
    (Path(folder) / name / "1/model.py").write_text(source)
    (Path(folder) / name / "config.pbtxt").write_text(f'backend: "python"\n{config}')


def divide(folder):
    """An ONNX model that divides INT32 by INT32: the least number by -1 is a fault of the processor."""
    tensors = [helper.make_tensor_value_info(n, TensorProto.INT32, [None]) for n in ("A", "B", "C")]
    graph = helper.make_graph([helper.make_node("Div", ["A", "B"], ["C"])], "divide", tensors[:2], tensors[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    place = Path(folder) / "divide/1"
    place.mkdir(parents=True)
    onnx.save(model, place / "model.onnx")
    config = tensor("input", "A", "TYPE_INT32", "-1") + tensor("input", "B", "TYPE_INT32", "-1") + tensor("output", "C", "TYPE_INT32", "-1")
    (Path(folder) / "divide/config.pbtxt").write_text(f'name: "divide"\nbackend: "onnxruntime"\n{config}')


def write_all(folder, kind):
    """What every server under attack starts with; names of the models."""
    write_model(folder, "vector", kind, "identity", identity_config())
    write_model(folder, "strings", kind, "identity", identity_config("TYPE_STRING"))
    write_model(folder, "slow", kind, "identity", identity_config(more=SLOW))
    write_model(folder, "repeat", kind, "repeat", REPEAT_CONFIG)
    if kind == "triton":
        write_model(folder, "simple", kind, "add_sub", add_sub_config())
        return ["simple", "vector", "strings", "slow", "repeat"]
    for example in EXAMPLES:
        copy_example(folder, example)
    return [*EXAMPLES, "vector", "strings", "slow", "repeat"]


def many_answers(folder):
    python_model(folder, "many_answers", MANY_ANSWERS, MANY_ANSWERS_CONFIG)


def worker(folder):
    python_model(folder, "worker", WORKER, WORKER_CONFIG)


def liar(folder):
    python_model(folder, "liar", LIAR, WORKER_CONFIG)


def slow_load(folder):
    write_model(folder, "slow_load", "galatea", "identity", identity_config(more=SLOW_LOAD))


def many(folder):
    """A large repository: folders that are listed, not loaded."""
    for number in range(3000):
        write_model(folder, f"listed_{number}", "galatea", "identity", identity_config())
