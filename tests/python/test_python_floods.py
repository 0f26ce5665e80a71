"""Python models that do too much of something: the server and its other models go on, and so does the model."""

import json
import os

import pytest

import clients
import processes
import tiers
from repositories import add_sub_config
from test_python_workers import IN_OUT, RUNNER, is_ready, pid_of

# Calls itself for as long as its input is not 0, each call in a coroutine of its own.
CALLS_ITSELF = '''
import asyncio
import threading

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def execute(self, requests):
        for request in requests:
            value = request.inputs()[0].as_numpy()
            asyncio.run_coroutine_threadsafe(self.answer(value, request.get_response_sender()), self.loop)

    async def answer(self, value, sender):
        response = pb.InferenceResponse([pb.Tensor("PID", value)])
        if value[0] != 0:
            call = pb.InferenceRequest(model_name="again", requested_output_names=["PID"], inputs=[pb.Tensor("IN", value)])
            inner = await call.async_exec()
            if inner.has_error():
                response = pb.InferenceResponse(error=pb.TritonError(inner.error().message()[-300:]))
        sender.send(response, flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
'''

FLOODS = '''
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for n in range(int(request.inputs()[0].as_numpy()[0])):
                print("line", n, "of a flood")
                sender.send(pb.InferenceResponse([pb.Tensor("PID", np.array([n], np.int32))]))
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
'''


@pytest.fixture
def server(shared):
    running = shared()
    decoupled = IN_OUT + "model_transaction_policy { decoupled: true }\n"
    for name, code, config in (("again", CALLS_ITSELF, IN_OUT), ("floods", FLOODS, decoupled), ("runner", RUNNER, IN_OUT)):
        running.place(name, "python", config, files={"1/model.py": code})
    running.place("simple", "add_sub", add_sub_config())
    return running


def ask(server, model, value, **headers):
    body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "INT32", "data": [value]}]}
    status, _, answer = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body, headers)
    return status, answer


def rss(pid):
    return int(processes.status(pid)["VmRSS"].split()[0]) << 10


def others_answer(server):
    assert clients.ask(server.http, "POST", "/v2/models/simple/infer", clients.pair_json())[0] == 200
    pid_of(server, "runner")


def test_a_model_that_calls_itself_endlessly_does_not_end_the_server(server):
    before = rss(server.pid)
    status, answer = ask(server, "again", 1)
    assert status == 500 and b"already has 4096 open calls" in answer, answer[-500:]
    others_answer(server)
    assert ask(server, "again", 0)[0] == 200
    assert rss(server.pid) - before < 200 << 20


@pytest.mark.parametrize("count", [3_000, pytest.param(50_000, marks=tiers.measure)])
def test_a_flood_of_lines_and_responses_affects_only_its_model(server, count):
    before = rss(server.pid)
    status, answer = ask(server, "floods", count, Accept="application/x-ndjson")
    assert status == 200
    lines = [json.loads(line) for line in answer.splitlines() if line]
    assert sum(1 for line in lines if line.get("outputs")) == count
    others_answer(server)
    assert rss(server.pid) - before < 200 << 20
    assert is_ready(server, "floods") and os.path.exists(f"/proc/{server.pid}")
