"""Says on which kind of device its instance runs."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.device = "cuda" if args["model_instance_kind"] == "GPU" else "cpu"
        self.said = np.array([self.device, args["model_instance_kind"], args["model_instance_device_id"]], dtype=np.object_)

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("SAID", self.said)]) for _ in requests]
