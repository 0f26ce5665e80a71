"""Vectors of tokens to one vector of length 1: the mean of those that are no padding."""

import numpy as np
import triton_python_backend_utils as pb_utils


def answer(request):
    hidden = pb_utils.get_input_tensor_by_name(request, "last_hidden_state").as_numpy()
    mask = pb_utils.get_input_tensor_by_name(request, "attention_mask").as_numpy()
    weights = mask[:, :, None].astype(np.float32)
    means = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    vectors = means / np.linalg.norm(means, axis=1, keepdims=True)
    return pb_utils.InferenceResponse([pb_utils.Tensor("embedding", vectors)])


class TritonPythonModel:
    def execute(self, requests):
        return [answer(request) for request in requests]
