"""Decodes images (binary PPM, so that no library is needed), normalizes them, and puts their channels in front."""

import io
import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.mean = np.array(json.loads(config["parameters"]["mean"]["string_value"]), np.float32)
        self.type = pb_utils.triton_string_to_numpy(pb_utils.get_output_config_by_name(config, "PIXELS")["data_type"])
        self.logger = pb_utils.Logger

    def execute(self, requests):
        responses = []
        for request in requests:
            images = pb_utils.get_input_tensor_by_name(request, "IMAGE").as_numpy()
            pixels = np.stack([self.decoded(io.BytesIO(image.tobytes())) for image in images])
            self.logger.log_info(f"decoded {pixels.shape}")
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("PIXELS", pixels.astype(self.type))]))
        return responses

    def decoded(self, file):
        kind, size, depth = file.readline().strip(), file.readline().split(), int(file.readline())
        if kind != b"P6":
            raise pb_utils.TritonModelException("no PPM image")
        width, height = map(int, size)
        raw = np.frombuffer(file.read(), np.uint8).reshape(height, width, 3)
        return np.transpose(raw / depth - self.mean, (2, 0, 1))
