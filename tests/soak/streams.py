"""Clients of models with several responses, and such that read slowly."""

import json
import queue
import socket
import time

import numpy as np

import clients
import raw_http
from users import TIMEOUT, Grpc, Http, grpcclient, must


def wanted_of(values):
    return list(enumerate(values))


class GrpcStream(Grpc):
    """gRPC stream: several requests at once, a response for each element"""

    def __init__(self, *args):
        super().__init__(*args)
        self.answers = queue.Queue()
        self.stock.start_stream(lambda result, error: self.answers.put((result, error)))

    def step(self):
        sent = {str(number): self.values() for number in range(self.chance.randrange(1, 6))}
        for name, values in sent.items():
            count = len(values)
            arrays = {"IN": np.array(values, np.int32), "DELAY": np.zeros(count, np.uint32), "WAIT": np.zeros(1, np.uint32)}
            inputs = clients.inputs(grpcclient, arrays)
            self.stock.async_stream_infer("repeat", inputs, request_id=name, enable_empty_final_response=True)
        found = self.collect(set(sent))
        for name, values in sent.items():
            must(found.get(name, []) == wanted_of(values), f"{found.get(name)} for {values}")

    def close(self):
        """The stream stays open: the exit may not wait for it."""

    def values(self):
        return [self.chance.randrange(1000) for _ in range(self.chance.randrange(0, 8))]

    def collect(self, open_requests):
        found = {}
        while open_requests:
            result, error = self.answers.get(timeout=TIMEOUT)
            must(error is None, f"stream: {error}")
            answer = result.get_response()
            if answer.parameters["triton_final_response"].bool_param:
                open_requests.discard(answer.id)
            if answer.outputs:
                pair = (int(result.as_numpy("IDX")[0]), int(result.as_numpy("OUT")[0]))
                found.setdefault(answer.id, []).append(pair)
        return found


class Events(Http):
    """HTTP generate_stream: an event for each element"""

    def step(self):
        values = [self.chance.randrange(1000) for _ in range(self.chance.randrange(1, 8))]
        body = {"IN": values, "DELAY": [0] * len(values), "WAIT": [0]}
        status, _, content = self.ask("POST", "/v2/models/repeat/generate_stream", body)
        must(status == 200, f"{status} {content[:200]!r}")
        events = [json.loads(event.removeprefix("data: ")) for event in content.decode().split("\n\n") if event]
        found = [(event["IDX"], event["OUT"]) for event in events]
        must(found == wanted_of(values), f"{found} for {values}")


class SlowReader(Http):
    """HTTP, 400 KB answers read in small pieces; half of the clients leave in the middle"""

    SIZE = 100_000

    def step(self):
        data = self.chance.randbytes(4 * self.SIZE)
        tensor = {"name": "INPUT0", "shape": [self.SIZE], "datatype": "FP32", "parameters": {"binary_data_size": len(data)}}
        head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
        host, port = self.server.http.rsplit(":", 1)
        with raw_http.connect((host, int(port)), TIMEOUT, receive_buffer=8192) as connection:
            sent = raw_http.post("/v2/models/vector/infer", head + data, Inference_Header_Content_Length=len(head), Connection="close")
            connection.sendall(sent)
            leaves = self.chance.random() < 0.5
            content = self.read(connection, 50_000 if leaves else None)
        if not leaves:
            must(content.startswith(b"HTTP/1.1 200") and content.endswith(data), f"{len(content)} bytes: {content[:60]!r}")

    def read(self, connection: socket.socket, limit):
        content = bytearray()
        while limit is None or len(content) < limit:
            piece = connection.recv(16_384)
            if not piece:
                break
            content += piece
            time.sleep(0.02)
        return bytes(content)
