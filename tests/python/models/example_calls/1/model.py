"""Calls the model that the request names."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            inputs = [pb_utils.get_input_tensor_by_name(request, name) for name in ("INPUT0", "INPUT1")]
            model_name = pb_utils.get_input_tensor_by_name(request, "MODEL_NAME").as_numpy()[0]
            call = pb_utils.InferenceRequest(model_name=model_name, requested_output_names=["OUTPUT0", "OUTPUT1"], inputs=inputs)
            response = call.exec()
            if response.has_error():
                raise pb_utils.TritonModelException(response.error().message())
            outputs = [pb_utils.get_output_tensor_by_name(response, name) for name in ("OUTPUT0", "OUTPUT1")]
            responses.append(pb_utils.InferenceResponse(output_tensors=outputs))
        return responses
