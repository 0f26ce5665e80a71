"""Responds with the arguments of initialize and with what a model finds in its process."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb

import sibling
from package.part import PART

HERE = Path(__file__).resolve()


def case_args():
    return {**ARGS, "model_config": "", "model_repository": Path(ARGS["model_repository"]).name}


def case_arg_types():
    return {k: type(v).__name__ for k, v in ARGS.items()}


def case_model_config():
    return json.loads(ARGS["model_config"])


def case_configs():
    config = json.loads(ARGS["model_config"])
    return {
        "input": pb.get_input_config_by_name(config, "CASE"), "output": pb.get_output_config_by_name(config, "ANSWER"),
        "missing": [pb.get_input_config_by_name(config, "X"), pb.get_output_config_by_name(config, "X")],
        "decoupled": pb.using_decoupled_model_transaction_policy(config),
        "type": pb.triton_string_to_numpy(pb.get_output_config_by_name(config, "ANSWER")["data_type"])(0).dtype.name,
    }


def case_siblings():
    return [sibling.VALUE, PART, Path(sibling.__file__).name]


def case_files():
    return [(HERE.parent / "data.txt").read_text(), (HERE.parents[1] / "labels.txt").read_text()]


def case_file_place():
    return ["/".join(HERE.parts[-3:]), __name__, "/".join(Path(ARGS["model_repository"]).parts[-1:])]


def case_path():
    """Which of the model's own folders modules are found in."""
    model = HERE.parents[1]
    return [str(Path(p).resolve().relative_to(model)) for p in sys.path if model in [Path(p).resolve(), *Path(p).resolve().parents]]


def case_standard_input():
    return sys.stdin.read() if sys.stdin else None


def case_main():
    return "__main__" in sys.modules, __package__


def case_instance_of_request():
    return hasattr(pb, "InferenceRequest"), "triton_python_backend_utils" in sys.modules, "c_python_backend_utils" in sys.modules


class TritonPythonModel:
    def initialize(self, args):
        global ARGS
        ARGS = args

    def execute(self, requests):
        answers = []
        for request in requests:
            case = bytes(pb.get_input_tensor_by_name(request, "CASE").as_numpy()).decode()
            text = json.dumps(globals()["case_" + case]())
            answers.append(pb.InferenceResponse([pb.Tensor("ANSWER", np.frombuffer(text.encode(), np.uint8))]))
        return answers
