"""Called by other models: OUT is IN plus one, a negative IN fails, and SEEN has the properties of the request."""

import json

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            values = pb.get_input_tensor_by_name(request, "IN").as_numpy()
            if values.size and values.min() < 0:
                answers.append(pb.InferenceResponse(error=pb.TritonError("negative", pb.TritonError.INVALID_ARG)))
                continue
            seen = {
                "id": request.request_id(), "correlation": request.correlation_id(), "flags": request.flags(),
                "timeout": request.timeout(), "parameters": json.loads(request.parameters()),
                "outputs": sorted(request.requested_output_names()),
            }
            tensors = [pb.Tensor("OUT", values + 1), pb.Tensor("SEEN", np.array([json.dumps(seen)], dtype=object))]
            answers.append(pb.InferenceResponse(tensors))
        return answers
