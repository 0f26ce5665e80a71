"""Calls two models at once; the first output is the first one's, the second the other's."""

import asyncio

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    async def execute(self, requests):
        return [await self.answer(request) for request in requests]

    async def answer(self, request):
        inputs = [pb_utils.get_input_tensor_by_name(request, name) for name in ("INPUT0", "INPUT1")]
        names = pb_utils.get_input_tensor_by_name(request, "MODEL_NAMES").as_numpy()
        calls = []
        for name, output in zip(names, ("OUTPUT0", "OUTPUT1")):
            call = pb_utils.InferenceRequest(model_name=name, requested_output_names=[output], inputs=inputs, request_id=name + b" of " + request.request_id().encode())
            calls.append(call.async_exec())
        answers = await asyncio.gather(*calls)
        failed = [answer.error().message() for answer in answers if answer.has_error()]
        if failed:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("; ".join(failed)))
        return pb_utils.InferenceResponse([answer.output_tensors()[0] for answer in answers])
