"""Completes its own configuration with every setter, and tries the ones that must fail."""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb

TRIED = Path(__file__).parent / "tried.json"


def outcome(call, *args):
    try:
        value = call(*args)
        return None if value is None else type(value).__name__
    except BaseException as error:
        return {"raised": type(error).__name__, "text": str(error)}


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        before = config.as_dict()
        tried = {"before": {k: before[k] for k in ("name", "backend", "max_batch_size", "input", "output") if k in before}}
        tried["type"] = type(config).__name__
        tried["input"] = outcome(config.add_input, {"name": "CASE", "data_type": "TYPE_UINT8", "dims": [-1]})
        tried["optional"] = outcome(config.add_input, {"name": "MORE", "data_type": "TYPE_INT32", "dims": [2], "optional": True})
        tried["again"] = outcome(config.add_input, {"name": "CASE", "data_type": "TYPE_UINT8", "dims": [-1]})
        tried["other_type"] = outcome(config.add_input, {"name": "CASE", "data_type": "TYPE_INT8", "dims": [-1]})
        tried["other_dims"] = outcome(config.add_input, {"name": "CASE", "data_type": "TYPE_UINT8", "dims": [3]})
        tried["no_name"] = outcome(config.add_input, {"data_type": "TYPE_UINT8", "dims": [-1]})
        tried["no_dims"] = outcome(config.add_input, {"name": "Y", "data_type": "TYPE_UINT8"})
        tried["no_type"] = outcome(config.add_input, {"name": "Z", "dims": [1]})
        tried["extra_key"] = outcome(config.add_input, {"name": "W", "data_type": "TYPE_UINT8", "dims": [1], "unknown": 1})
        tried["output"] = outcome(config.add_output, {"name": "ANSWER", "data_type": "TYPE_UINT8", "dims": [-1]})
        tried["output_again"] = outcome(config.add_output, {"name": "ANSWER", "data_type": "TYPE_FP32", "dims": [-1]})
        tried["output_optional"] = outcome(config.add_output, {"name": "OPT", "data_type": "TYPE_FP32", "dims": [-1], "optional": True})
        tried["batch"] = outcome(config.set_max_batch_size, 4)
        tried["batch_lower"] = outcome(config.set_max_batch_size, 2)
        tried["dynamic"] = outcome(config.set_dynamic_batching)
        tried["policy"] = outcome(config.set_model_transaction_policy, {"decoupled": False})
        tried["policy_wrong"] = outcome(config.set_model_transaction_policy, {"other": True})
        tried["policy_text"] = outcome(config.set_model_transaction_policy, {"decoupled": "yes"})
        after = config.as_dict()
        tried["after"] = {k: after[k] for k in ("max_batch_size", "input", "output", "dynamic_batching", "model_transaction_policy") if k in after}
        config.add_output({"name": "TRIED", "data_type": "TYPE_UINT8", "dims": [-1]})
        TRIED.write_text(json.dumps(tried))
        return config

    def execute(self, requests):
        answers = []
        for request in requests:
            text = np.frombuffer(TRIED.read_bytes(), np.uint8)[None]
            answers.append(pb.InferenceResponse([pb.Tensor("ANSWER", request.inputs()[0].as_numpy()), pb.Tensor("TRIED", text)]))
        return answers
