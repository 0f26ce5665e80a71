"""Decoupled: IN[0] responses; IN[1] selects how they end."""

import numpy as np
import triton_python_backend_utils as pb

FINAL = pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            count, how = pb.get_input_tensor_by_name(request, "IN").as_numpy()[:2]
            sender = request.get_response_sender()
            for i in range(count):
                tensor = pb.Tensor("OUT", np.array([i], np.int32))
                last = i == count - 1
                sender.send(pb.InferenceResponse([tensor]), flags=FINAL if last and how == 1 else 0)
            if how == 2:
                sender.send(pb.InferenceResponse(error=pb.TritonError("failed at the end")))
            if how != 1 or count == 0:
                sender.send(flags=FINAL)
