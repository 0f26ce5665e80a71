"""Clients that cancel, leave, send nonsense or ask for more than there is room for."""

import json
import queue
import time

import grpc
import numpy as np

import clients
import raw_http
from tally import Refused
from users import TIMEOUT, Grpc, Http, grpcclient, must

BODY = json.dumps({
    "inputs": [{"name": n, "shape": [1, 16], "datatype": "INT32", "data": list(range(16))} for n in ("INPUT0", "INPUT1")]
}).encode()


class Cancels(Grpc):
    """gRPC: requests that are cancelled at any moment"""

    def step(self):
        value, answers = self.chance.random(), queue.Queue()
        inputs = clients.inputs(grpcclient, {"INPUT0": np.array([value], np.float32)})
        call = self.stock.async_infer("slow", inputs, lambda result, error: answers.put((result, error)), client_timeout=TIMEOUT)
        time.sleep(self.chance.random() * 0.04)
        call.cancel()
        result, error = answers.get(timeout=TIMEOUT)
        if error is not None:
            must("CANCEL" in str(error).upper(), str(error))
            return
        must(result.as_numpy("OUTPUT0")[0] == np.float32(value), "another value came back")


class Leaves(Http):
    """HTTP: clients that close before or while they are answered"""

    def step(self):
        document = {"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1]}]}
        sent = raw_http.post("/v2/models/slow/infer", json.dumps(document).encode())
        host, port = self.server.http.rsplit(":", 1)
        with raw_http.connect((host, int(port)), TIMEOUT) as connection:
            connection.sendall(sent[: self.chance.choice((len(sent), len(sent) // 2, 20))])
            time.sleep(self.chance.random() * 0.03)


class Malformed(Http):
    """HTTP and gRPC: requests with changed, missing or additional bytes"""

    def step(self):
        body = bytearray(BODY)
        for _ in range(self.chance.randrange(1, 6)):
            place = self.chance.randrange(len(body))
            change = self.chance.randrange(3)
            body[place:place + (change != 1)] = b"" if change == 2 else self.chance.choice((b"[", b"\\", b"9", b"\xff", b"null"))
        if self.chance.random() < 0.1:
            return self.message(bytes(body))
        status, _, content = self.ask("POST", "/v2/models/simple/infer", bytes(body))
        # As Triton's, what is no JSON is answered with 500.
        known = status in (200, 400) or status == 500 and b"arse" in content
        must(known, f"{status} {content[:200]!r} for {bytes(body)!r}")
        answer = json.loads(content)
        must("outputs" in answer if status == 200 else answer["error"], f"{content[:200]!r} for {bytes(body)!r}")

    def message(self, body):
        with grpc.insecure_channel(self.server.grpc) as channel:
            call = channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
            try:
                call(body, timeout=TIMEOUT)
            except grpc.RpcError as error:
                known = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE)
                must(error.code() in known, f"{error.code()} {error.details()}")


class FullQueue(Http):
    """HTTP: more requests than the queue of a slow model takes"""

    def step(self):
        value = float(self.chance.randrange(1000))
        tensor = {"name": "INPUT0", "shape": [1, 1], "datatype": "FP32", "data": [value]}
        status, _, content = self.ask("POST", "/v2/models/bounded/infer", {"inputs": [tensor]})
        if status == 503:
            must(b"Exceeds maximum queue size" in content, content[:200].decode(errors="replace"))
            raise Refused("queue")
        must(status == 200 and json.loads(content)["outputs"][0]["data"] == [value], f"{status} {content[:200]!r}")
