"""The gauges galatea_load and galatea_model_load of a running server: what an autoscaler reads. They measure a second, so
nothing else may run beside these tests."""

import threading
import time

import numpy as np

import clients
import tiers
import waiting
from repositories import REPEAT_CONFIG, identity_config, tensor

pytestmark = tiers.measure
LIMIT = 30
# What an execution takes in milliseconds: much more than a client of a busy machine takes to send its next request, as
# the instance and the queue lack that request until it has come.
EXECUTION = 250
# Until a load that was is no more: the window, the time between two samples, and some for a busy machine.
FORGOTTEN = 2.5
SLEEPS = """\
import time

import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        time.sleep({seconds} * len(requests))
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
"""


def delayed(ms, more=""):
    return identity_config(more=f'parameters {{ key: "execute_delay_ms" value {{ string_value: "{ms}" }} }}\n{more}')


def one_row(shape=(3,)):
    return {"inputs": [clients.tensor_json("INPUT0", np.ones(shape, np.float32))]}


class Clients:
    """So many clients that each send a request after the other until the block ends."""

    def __init__(self, server, model, count, body=None):
        self.ended = threading.Event()
        self.failed = []
        ask = (server.http, "POST", f"/v2/models/{model}/infer", body or one_row())
        self.threads = [threading.Thread(target=self.run, args=ask) for _ in range(count)]

    def run(self, *ask):
        while not self.ended.is_set():
            status, _, body = clients.ask(*ask)
            if status != 200:
                self.failed.append(body)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()
        assert not self.failed, self.failed[0]


def load(server, model):
    return clients.metrics(server)["galatea_model_load", f'model="{model}",version="1"']


def until(server, model, is_right, limit=LIMIT):
    """Waits for a load, and returns it."""

    def look():
        seen = load(server, model)
        assert is_right(seen), seen
        return [seen]

    return waiting.eventually(f"galatea_model_load of {model} is right", look, limit)[0]


def mean(server, model, seconds):
    seen, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        seen.append(load(server, model))
        time.sleep(0.02)
    return sum(seen) / len(seen)


def test_a_saturated_instance_has_load_one_plus_its_queue(repository, serve):
    repository.add("slow", "identity", delayed(EXECUTION))
    repository.add("other", "identity", delayed(EXECUTION))
    server = serve(repository.path)
    assert load(server, "slow") == load(server, "other") == 0
    with Clients(server, "slow", 1):
        until(server, "slow", lambda seen: seen > 0.8)
        assert 0.8 < mean(server, "slow", 2) < 1.4
    with Clients(server, "slow", 4):
        until(server, "slow", lambda seen: seen > 3.4)
        assert 3.4 < mean(server, "slow", 2) < 4.4
        page = clients.metrics(server)
        assert page["galatea_load", ""] > 3 and page["galatea_model_load", 'model="other",version="1"'] == 0
    until(server, "slow", lambda seen: seen == 0, FORGOTTEN)
    assert clients.metrics(server)["galatea_load", ""] == 0


def test_half_of_the_time_is_a_load_of_one_half_for_any_reader(repository, serve):
    """Sends a request of 100 ms every 200 ms while a reader polls without pause."""
    repository.add("half", "identity", delayed(100))
    server = serve(repository.path)
    ended = threading.Event()

    def send():
        begun, count = time.monotonic(), 0
        while not ended.wait(max(0, begun + 0.2 * count - time.monotonic())):
            assert clients.ask(server.http, "POST", "/v2/models/half/infer", one_row())[0] == 200
            count += 1

    def read():
        while not ended.is_set():
            load(server, "half")

    others = [threading.Thread(target=send), threading.Thread(target=read)]
    for thread in others:
        thread.start()
    try:
        until(server, "half", lambda seen: seen > 0.4)
        assert 0.4 < mean(server, "half", 3) < 0.62
    finally:
        ended.set()
        for thread in others:
            thread.join()


def test_a_running_execution_counts(repository, serve):
    repository.add("long", "identity", delayed(3500, "instance_group { count: 2 kind: KIND_CPU }\n"))
    server = serve(repository.path)
    with Clients(server, "long", 1) as client:
        until(server, "long", lambda seen: 0.49 < seen < 0.51)
        assert clients.counts(server, "long")["success"] == 0, "the first request is still under way"
        client.ended.set()


def test_queued_requests_count_by_the_executions_they_need(repository, serve):
    config = delayed(EXECUTION, "dynamic_batching { }\n").replace("max_batch_size: 0", "max_batch_size: 8")
    repository.add("batching", "identity", config)
    server = serve(repository.path)
    with Clients(server, "batching", 24, one_row((1, 3))):
        # 8 are executed and 16 wait: two more executions.
        until(server, "batching", lambda seen: seen > 2.3)
        assert 2.3 < mean(server, "batching", 2) < 3.4


def test_an_open_stream_keeps_a_decoupled_model_busy(repository, serve):
    repository.add("repeat", "repeat", REPEAT_CONFIG)
    server = serve(repository.path)
    body = {"inputs": [
        clients.tensor_json("IN", np.arange(20, dtype=np.int32)), clients.tensor_json("DELAY", np.full(20, 100, np.uint32)),
        clients.tensor_json("WAIT", np.zeros(1, np.uint32)),
    ]}
    stream = threading.Thread(target=clients.ask, args=(server.http, "POST", "/v2/models/repeat/infer", body, {"Accept": "application/x-ndjson"}))
    stream.start()
    until(server, "repeat", lambda seen: seen > 0.95)
    stream.join()
    until(server, "repeat", lambda seen: seen == 0, FORGOTTEN)


def test_a_python_model_with_prefetched_requests_has_the_right_load(repository, serve):
    repository.add("python", "python", identity_config(), files={"1/model.py": SLEEPS.format(seconds=EXECUTION / 1000)})
    server = serve(repository.path)
    with Clients(server, "python", 3):
        until(server, "python", lambda seen: seen > 2.4)
        assert 2.4 < mean(server, "python", 2) < 3.4
    until(server, "python", lambda seen: seen == 0, FORGOTTEN)


ENDS = """\
import os
import time

import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        {senders}
        time.sleep(0.4)
        os._exit(1)
"""


def test_unfinished_work_of_an_ended_process_no_longer_counts(repository, serve):
    """Tests an execution and a stream."""
    repository.add("executes", "python", identity_config(), files={"1/model.py": ENDS.format(senders="")})
    stream = identity_config(more="model_transaction_policy { decoupled: true }\n")
    senders = "self.kept = [request.get_response_sender() for request in requests]"
    repository.add("streams", "python", stream, files={"1/model.py": ENDS.format(senders=senders)})
    server = serve(repository.path)
    for model in ("executes", "streams"):
        assert clients.ask(server.http, "POST", f"/v2/models/{model}/generate", {"INPUT0": [1.0]})[0] >= 400
        until(server, model, lambda seen: seen > 0)
        until(server, model, lambda seen: seen == 0, FORGOTTEN)


def test_the_load_of_an_ensemble_is_that_of_its_steps(repository, serve):
    repository.add("step", "identity", delayed(EXECUTION))
    tensors = tensor("input", "INPUT0", "TYPE_FP32", "-1") + tensor("output", "OUTPUT0", "TYPE_FP32", "-1")
    maps = "".join(f'{kind}_map {{ key: "{kind.upper()}0" value: "{kind.upper()}0" }} ' for kind in ("input", "output"))
    repository.add("whole", "ensemble", f'{tensors}ensemble_scheduling {{ step [ {{ model_name: "step" model_version: -1 {maps} }} ] }}\n')
    server = serve(repository.path)
    with Clients(server, "whole", 2):
        until(server, "step", lambda seen: seen > 1.4)
        assert ("galatea_model_load", 'model="whole",version="1"') not in clients.metrics(server)


def test_a_server_without_models_has_load_zero(repository, serve):
    server = serve(repository.path)
    page = clients.metrics(server)
    assert page["galatea_load", ""] == 0 and not [name for name, _ in page if name == "galatea_model_load"]
