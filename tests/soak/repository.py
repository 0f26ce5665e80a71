"""The models of the run."""

from repositories import REPEAT_CONFIG, add_sub_config, identity_config, tensor, write_model

SLOW = 'parameters { key: "execute_delay_ms" value { string_value: "20" } }\n'
QUEUE = "dynamic_batching { default_queue_policy { max_queue_size: 2 } }\n"
# Turns each text around.
TEXTS = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            texts = pb.get_input_tensor_by_name(request, "TEXT").as_numpy()
            turned = np.array([text[::-1] for text in texts.ravel()], dtype=object).reshape(texts.shape)
            answers.append(pb.InferenceResponse([pb.Tensor("TURNED", turned)]))
        return answers
"""
TEXTS_CONFIG = "max_batch_size: 8\n" + tensor("input", "TEXT", "TYPE_STRING", "-1") + tensor("output", "TURNED", "TYPE_STRING", "-1")


def ensemble_config():
    """(A, B) -> (A + B, A - B) -> (2A, 2B)"""
    pairs = [tensor(kind, name, "TYPE_INT32", "16") for kind, names in (("input", "AB"), ("output", "XY")) for name in names]
    step = (
        '{{ model_name: "simple" model_version: -1'
        ' input_map [ {{ key: "INPUT0" value: "{}" }}, {{ key: "INPUT1" value: "{}" }} ]'
        ' output_map [ {{ key: "OUTPUT0" value: "{}" }}, {{ key: "OUTPUT1" value: "{}" }} ] }}'
    )
    steps = ", ".join((step.format("A", "B", "sum", "difference"), step.format("sum", "difference", "X", "Y")))
    return "max_batch_size: 8\n" + "".join(pairs) + f"ensemble_scheduling {{ step [ {steps} ] }}\n"


def write(folder):
    """The names of the models that are loaded at the start."""
    write_model(folder, "simple", "galatea", "add_sub", add_sub_config())
    write_model(folder, "reloaded", "galatea", "add_sub", add_sub_config())
    write_model(folder, "comes_and_goes", "galatea", "add_sub", add_sub_config())
    write_model(folder, "vector", "galatea", "identity", identity_config())
    write_model(folder, "slow", "galatea", "identity", identity_config(more=SLOW))
    write_model(folder, "bounded", "galatea", "identity", identity_config(max_batch_size=1, more=SLOW + QUEUE))
    write_model(folder, "repeat", "galatea", "repeat", REPEAT_CONFIG)
    write_model(folder, "doubled", "galatea", "ensemble", ensemble_config())
    for name in ("texts", "texts_reloaded"):
        write_model(folder, name, "galatea", "python", TEXTS_CONFIG, {"1/model.py": TEXTS})
    write_model(folder, "broken", "galatea", "python", TEXTS_CONFIG, {"1/model.py": "this is no Python\n"})
    return ["reloaded", "vector", "slow", "bounded", "repeat", "doubled", "texts", "texts_reloaded"]
