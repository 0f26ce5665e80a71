"""Ten times the load that a model can answer, without and with admission, and on the real server: what clients still get in time.

The model takes SERVICE seconds for a request. Requests come at a steady rate whatever becomes of the earlier ones, over gRPC; each
client waits for PATIENCE times that long.
"""

import asyncio
import http.client
import json
import tempfile
import threading
import time
from pathlib import Path

import grpc
import numpy as np
import servers
from repositories import write_model
from tritonclient.grpc import service_pb2, service_pb2_grpc

SERVICE = 0.1
PATIENCE = 10
TIMES = 10
# Of a run, left out: the server has just met the overload.
SETTLES = 4.0
CONFIG = (
    'input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]\noutput [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
    "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
)
MODEL = f"""\
import time

import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            time.sleep({SERVICE})
            answers.append(pb.InferenceResponse([pb.Tensor("OUT", request.inputs()[0].as_numpy())]))
        return answers
"""


def message():
    asked = service_pb2.ModelInferRequest(model_name="slow", raw_input_contents=[np.zeros(1, np.int32).tobytes()])
    asked.inputs.add(name="IN", datatype="INT32", shape=[1])
    return asked


async def send(stub, asked, timeout, found):
    begun = time.perf_counter()
    try:
        await stub.ModelInfer(asked, timeout=timeout)
        found.append((begun, "OK", time.perf_counter() - begun))
    except grpc.RpcError as error:
        found.append((begun, error.code().name, time.perf_counter() - begun))


async def load(address, per_second, seconds):
    """(when it was sent, status, seconds to the answer) of each request."""
    found, calls, asked = [], set(), message()
    async with grpc.aio.insecure_channel(address) as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        begun, count = time.perf_counter(), 0
        while (now := time.perf_counter() - begun) < seconds:
            while count < now * per_second:
                calls.add(task := asyncio.create_task(send(stub, asked, PATIENCE * SERVICE, found)))
                task.add_done_callback(calls.discard)
                count += 1
            await asyncio.sleep(0.001)
        await asyncio.gather(*calls)
    return begun, found


def run(server, times, seconds):
    before = server.cpu_seconds()
    begun, found = asyncio.run(load(server.grpc, times / SERVICE, seconds))
    cpu = server.cpu_seconds() - before
    counted = [(status, after) for sent, status, after in found if sent - begun >= SETTLES]
    times_of = lambda wanted: [after * 1e6 for status, after in counted if status == wanted]  # noqa: E731
    answered, refused = times_of("OK"), times_of("UNAVAILABLE")
    figures = {"infer/s": len(answered) / (seconds - SETTLES), "CPU us/req": cpu * 1e6 / len(found)}
    if answered:
        figures |= {"p50 us": float(np.percentile(answered, 50)), "p99 us": float(np.percentile(answered, 99))}
    if refused:
        figures["refused p50 us"] = float(np.percentile(refused, 50))
    return figures


def refusals(server, seconds):
    """CPU microseconds of the server for each refused request, on one connection; what keeps the model busy is subtracted."""
    body = json.dumps({"inputs": [{"name": "IN", "shape": [1], "datatype": "INT32", "data": [0]}]})
    path, is_done = "/v2/models/slow/infer", threading.Event()

    def ask(connection, headers):
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def keep_busy():
        connection = http.client.HTTPConnection(server.http)
        while not is_done.is_set():
            ask(connection, {})

    busy = [threading.Thread(target=keep_busy) for _ in range(2)]
    for thread in busy:
        thread.start()
    begun, before = time.perf_counter(), server.cpu_seconds()
    time.sleep(seconds)
    usual = (server.cpu_seconds() - before) / (time.perf_counter() - begun)
    connection, refused = http.client.HTTPConnection(server.http), 0
    begun, before = time.perf_counter(), server.cpu_seconds()
    while (passed := time.perf_counter() - begun) < seconds:
        refused += ask(connection, {"X-Request-Timeout-Ms": "0"}) == 503
    cpu = server.cpu_seconds() - before - usual * passed
    is_done.set()
    for thread in busy:
        thread.join()
    return {"refused/s": refused / passed, "CPU us/refusal": cpu * 1e6 / max(refused, 1)}


def started(name, folder):
    if name == "triton":
        return servers.triton(folder)
    return servers.galatea(folder, f"--admission={name}")


def compared(args):
    rows, raw = [], []
    for name in ["off", "on"] + (["triton"] if "triton" in args.targets else []):
        with tempfile.TemporaryDirectory() as folder:
            target = "triton" if name == "triton" else "galatea"
            write_model(Path(folder), "slow", target, "python", CONFIG, {"1/model.py": MODEL})
            with started(name, folder) as server:
                seconds = SETTLES + 2 * args.seconds
                # A quarter of what it can answer, at a steady rate, so that no request waits for another.
                idle, full = run(server, 0.25, seconds), run(server, TIMES, seconds)
                cost = refusals(server, args.seconds) if name == "on" else {}
        goodput = full["infer/s"] * SERVICE
        slower = full.get("p99 us", float("nan")) / idle["p99 us"]
        what = f"{TIMES} times the load, admission {name}" if target == "galatea" else f"{TIMES} times the load"
        goal = ">= 0.9, <= 2" if name == "on" else None
        rows.append({"what": what, "server": target, **full, "other": f"goodput {goodput:.2f}, p99 {slower:.2f} x unloaded", "goal": goal})
        raw.append({"what": what, "runs": {"unloaded": idle, "overloaded": full, "refusals": cost}})
        if cost:
            row = {"what": "a refused request, HTTP", "server": target, "CPU us/req": cost["CPU us/refusal"]}
            rows.append({**row, "other": f"{cost['refused/s']:.0f} a second on one connection", "goal": "<= 10"})
    return rows, raw
