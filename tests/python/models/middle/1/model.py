"""Calls itself IN[0] times, then `add`: a chain of calls."""

import numpy as np
import triton_python_backend_utils as pb


def call(model, values):
    request = pb.InferenceRequest(model_name=model, requested_output_names=["OUT"], inputs=[pb.Tensor("IN", values)])
    response = request.exec()
    if response.has_error():
        return pb.InferenceResponse(error=pb.TritonError("below: " + response.error().message()))
    return pb.InferenceResponse([pb.Tensor("OUT", pb.get_output_tensor_by_name(response, "OUT").as_numpy() + 100)])


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            depth, value = pb.get_input_tensor_by_name(request, "IN").as_numpy()
            deeper = depth > 0
            values = np.array([depth - 1, value] if deeper else [value], np.int32)
            answers.append(call("middle" if deeper else "add", values))
        return answers
