"""Callers that each send a request after the other, and what became of every request."""

import collections
import http.client
import itertools
import json
import threading
import time
from dataclasses import dataclass

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.utils

import clients
from waiting import eventually

# Answers that say no where a server or a proxy may say so: too much, not there now, too late.
REFUSALS = (429, 503, 504)
GRPC_REFUSALS = ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED")
KEPT = 5


@dataclass
class Answer:
    """The value and the version of the model that came back, or the refusal or failure in their place."""

    value: int = 0
    version: int = 0
    fate: str = "right"
    text: str = ""


class HttpConnection:
    """One connection over HTTP."""

    def __init__(self, address, model):
        self.connection = http.client.HTTPConnection(address, timeout=120)
        self.path = f"/v2/models/{model}/infer"

    def ask(self, value):
        body = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "INT64", "data": [value]}]})
        try:
            self.connection.request("POST", self.path, body)
            reply = self.connection.getresponse()
            content = reply.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            return Answer(fate="lost", text=repr(error))
        if reply.status != 200:
            return Answer(fate="refused" if reply.status in REFUSALS else "failed", text=f"{reply.status}: {content[:200]!r}")
        found = json.loads(content)
        return Answer(found["outputs"][0]["data"][0], int(found["model_version"]))

    def close(self):
        self.connection.close()


class GrpcConnection:
    """One connection over gRPC."""

    def __init__(self, address, model):
        self.stock, self.model = grpcclient.InferenceServerClient(address), model

    def ask(self, value):
        inputs = clients.inputs(grpcclient, {"INPUT0": np.array([value], np.int64)})
        try:
            found = self.stock.infer(self.model, inputs, client_timeout=120)
        except tritonclient.utils.InferenceServerException as error:
            status = str(error.status()).removeprefix("StatusCode.")
            return Answer(fate="refused" if status in GRPC_REFUSALS else "failed", text=str(error))
        return Answer(int(found.as_numpy("OUTPUT0")[0]), int(found.get_response().model_version))

    def close(self):
        self.stock.close()


CONNECTIONS = {"http": HttpConnection, "grpc": GrpcConnection}


class Versions:
    """The versions of a model that may answer: from the oldest that some server has to the newest."""

    def __init__(self, oldest=1, newest=1):
        self.oldest, self.newest = oldest, newest


class Callers:
    """Threads that call until the block ends. `fates` counts what became of requests, `faults` has some that were not right."""

    def __init__(self, address, protocol="http", count=16, versions=None, model="vector"):
        self.address, self.protocol, self.model = address, protocol, model
        self.versions = versions or Versions()
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.fates, self.faults, self.seconds = collections.Counter(), [], []
        self.values = itertools.count(1)
        self.threads = [threading.Thread(target=self.call) for _ in range(count)]

    def call(self):
        connection = CONNECTIONS[self.protocol](self.address, self.model)
        while not self.ended.is_set():
            value, oldest, begin = next(self.values), self.versions.oldest, time.monotonic()
            answer = connection.ask(value)
            self.note(value, oldest, answer, time.monotonic() - begin)
        connection.close()

    def note(self, value, oldest, answer, seconds):
        if answer.fate == "right" and answer.value != value:
            answer.fate, answer.text = "wrong", f"{answer.value} in place of {value}"
        elif answer.fate == "right" and not oldest <= answer.version <= self.versions.newest:
            answer.fate, answer.text = "wrong", f"version {answer.version}, not {oldest} to {self.versions.newest}"
        with self.lock:
            self.fates[answer.fate] += 1
            self.seconds.append(seconds)
            if answer.fate != "right" and len(self.faults) < KEPT:
                self.faults.append(f"{answer.fate}: {answer.text}")

    @property
    def count(self):
        return len(self.seconds)

    def more(self, count):
        """Waits for so many further answers."""
        self.reach(self.count + count)

    def reach(self, goal):
        """Waits until so many requests have ended; each part of them within the limit of a test."""
        while self.count < goal:
            part = min(goal, self.count + 1000)
            eventually(f"{part} requests have ended", lambda: self.count >= part)

    def percentile(self, part, begin=0, end=None):
        """Milliseconds, of the requests that ended from number `begin` on."""
        with self.lock:
            ordered = sorted(self.seconds[begin:end])
        return 1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))]

    def longest(self, begin=0):
        return self.percentile(1, begin)

    def told(self):
        """The counts as text."""
        return ", ".join(f"{count} {fate}" for fate, count in sorted(self.fates.items()))

    def are_right(self):
        return set(self.fates) == {"right"}

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()
