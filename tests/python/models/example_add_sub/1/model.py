"""Adds and subtracts; its configuration is made by itself."""

import json

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        config = auto_complete_model_config.as_dict()
        known = {kind: [tensor["name"] for tensor in config[kind]] for kind in ("input", "output")}
        for name in ("INPUT0", "INPUT1"):
            if name not in known["input"]:
                auto_complete_model_config.add_input({"name": name, "data_type": "TYPE_FP32", "dims": [4]})
        for name in ("OUTPUT0", "OUTPUT1"):
            if name not in known["output"]:
                auto_complete_model_config.add_output({"name": name, "data_type": "TYPE_FP32", "dims": [4]})
        auto_complete_model_config.set_max_batch_size(0)
        return auto_complete_model_config

    def initialize(self, args):
        self.model_config = model_config = json.loads(args["model_config"])
        outputs = [pb_utils.get_output_config_by_name(model_config, name) for name in ("OUTPUT0", "OUTPUT1")]
        self.types = [pb_utils.triton_string_to_numpy(output["data_type"]) for output in outputs]

    def execute(self, requests):
        responses = []
        for request in requests:
            left, right = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("INPUT0", "INPUT1"))
            results = [left + right, left - right]
            tensors = [pb_utils.Tensor(f"OUTPUT{i}", result.astype(self.types[i])) for i, result in enumerate(results)]
            responses.append(pb_utils.InferenceResponse(output_tensors=tensors))
        return responses

    def finalize(self):
        print("Cleaning up...")
