"""The words of a text, each a response of its own."""

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            text = pb.get_input_tensor_by_name(request, "TEXT").as_numpy()[0].decode()
            sender = request.get_response_sender()
            for word in text.split():
                sender.send(pb.InferenceResponse([pb.Tensor("WORD", np.array([word.encode()], dtype=object))]))
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
