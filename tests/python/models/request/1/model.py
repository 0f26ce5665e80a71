"""Responds with every property of its request."""

import json

import numpy as np
import triton_python_backend_utils as pb


def said(request):
    return {
        "id": request.request_id(), "correlation": request.correlation_id(), "correlation_type": type(request.correlation_id()).__name__,
        "flags": request.flags(), "timeout": request.timeout(), "parameters": json.loads(request.parameters()),
        "parameters_type": type(request.parameters()).__name__, "outputs": sorted(request.requested_output_names()),
        "outputs_type": type(request.requested_output_names()).__name__,
        "inputs": [t.name() for t in request.inputs()], "inputs_type": type(request.inputs()).__name__,
        "cancelled": request.is_cancelled(), "trace": request.trace().get_context(),
        "none": pb.get_input_tensor_by_name(request, "NONE"),
        "same_tensor": request.inputs()[0] is request.inputs()[0],
    }


class TritonPythonModel:
    def execute(self, requests):
        assert isinstance(requests, list)
        answers = []
        for request in requests:
            text = json.dumps(said(request)).encode()
            rows = request.inputs()[0].shape()[0]
            said_of_it = np.tile(np.frombuffer(text, np.uint8), (rows, 1))
            count = np.full((rows, 1), len(requests), np.int32)
            answers.append(pb.InferenceResponse([pb.Tensor("SAID", said_of_it), pb.Tensor("COUNT", count)]))
        return answers
