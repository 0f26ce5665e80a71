"""The sum of what a decoupled model responds."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()) for request in requests]

    def answer(self, values):
        count = int(values[0])
        inputs = [
            pb_utils.Tensor("IN", np.arange(count, dtype=np.int32)), pb_utils.Tensor("DELAY", np.zeros(count, np.uint32)),
            pb_utils.Tensor("WAIT", np.zeros(1, np.uint32)),
        ]
        call = pb_utils.InferenceRequest(model_name="example_repeat", model_version=np.int64(1), inputs=inputs, requested_output_names=["OUT"])
        total = 0
        for response in call.exec(decoupled=True):
            if response.has_error():
                raise pb_utils.TritonModelException(response.error().message())
            if len(response.output_tensors()) > 0:
                total += int(pb_utils.get_output_tensor_by_name(response, "OUT").as_numpy()[0])
        return pb_utils.InferenceResponse([pb_utils.Tensor("SUM", np.array([total], np.int32))])
