"""Calls models with await, in a model that is decoupled because only there execute may be a coroutine."""

import asyncio
import json

import numpy as np
import triton_python_backend_utils as pb


async def outcome(call):
    try:
        return await call()
    except BaseException as error:
        return {"raised": type(error).__name__, "text": str(error)}


def asked(model, values):
    tensor = pb.Tensor("IN", np.array(values, np.int32))
    return pb.InferenceRequest(model_name=model, requested_output_names=["OUT"], inputs=[tensor])


def told(response):
    if response.has_error():
        return {"error": response.error().message()}
    return {t.name(): t.as_numpy().tolist() for t in response.output_tensors()}


async def case_await():
    return told(await asked("add", [1, 2]).async_exec())


async def case_gather():
    return [told(r) for r in await asyncio.gather(*(asked("add", [i]).async_exec() for i in range(20)))]


async def case_error():
    return told(await asked("add", [-1]).async_exec())


async def case_unknown_model():
    return told(await asked("nobody", [1]).async_exec())


async def case_decoupled():
    return [told(r) for r in await asked("count", [3, 0]).async_exec(decoupled=True)]


async def case_decoupled_two():
    first, second = await asyncio.gather(*(asked("count", [2, 0]).async_exec(decoupled=True) for _ in range(2)))
    return [[told(r) for r in first], [told(r) for r in second]]


async def case_exec_inside():
    return told(asked("add", [5]).exec())


async def case_sleeps():
    await asyncio.sleep(0.01)
    return "slept"


async def case_loop():
    return type(asyncio.get_running_loop()).__name__ != ""


async def case_raises():
    raise ValueError("inside a coroutine")


class TritonPythonModel:
    async def execute(self, requests):
        await asyncio.gather(*(self.answer(request) for request in requests))

    @staticmethod
    async def answer(request):
        case = bytes(pb.get_input_tensor_by_name(request, "CASE").as_numpy()).decode()
        text = json.dumps(await outcome(globals()["case_" + case]), default=repr)
        sender = request.get_response_sender()
        tensor = pb.Tensor("ANSWER", np.frombuffer(text.encode(), dtype=np.uint8))
        sender.send(pb.InferenceResponse([tensor]), flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
