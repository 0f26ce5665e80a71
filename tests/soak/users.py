"""Clients that ask, wait and check every value."""

import gzip
import http.client
import json
import struct

import numpy as np
import tritonclient.grpc as grpcclient

import clients
from tally import Lost, Refused, Wrong

TIMEOUT = 30


def must(holds, what):
    if not holds:
        raise Wrong(what)


class Http:
    """A client with one connection that it keeps."""

    def __init__(self, server, folder, chance, stop):
        self.server, self.folder, self.chance, self.stop = server, folder, chance, stop
        self.connection = http.client.HTTPConnection(server.http, timeout=TIMEOUT)

    def close(self):
        self.connection.close()

    def ask(self, method, path, body=None, headers=None):
        """(status, headers, body). A kept connection that the server has closed between requests is opened again."""
        if isinstance(body, dict):
            body = json.dumps(body).encode()
        try:
            self.connection.request(method, path, body, headers or {})
            reply = self.connection.getresponse()
            return reply.status, reply.headers, reply.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Lost(f"{method} {path}: {type(error).__name__}: {error}") from error

    def infer(self, model, body, headers=None):
        status, headers, content = self.ask("POST", f"/v2/models/{model}/infer", body, headers)
        if status == 503:
            raise Refused(content.decode(errors="replace"))
        must(status == 200, f"{model}: {status} {content[:200]!r}")
        return headers, content

    def rows(self):
        return [self.chance.randrange(-1000, 1000) for _ in range(16)]

    def pair(self, model):
        """One request with two rows of numbers; their sums and differences."""
        a, b = self.rows(), self.rows()
        tensors = [
            {"name": name, "shape": [1, 16], "datatype": "INT32", "data": data} for name, data in (("INPUT0", a), ("INPUT1", b))
        ]
        _, content = self.infer(model, {"id": str(a[0]), "inputs": tensors})
        answer = json.loads(content)
        found = {output["name"]: output["data"] for output in answer["outputs"]}
        wanted = {"OUTPUT0": [x + y for x, y in zip(a, b)], "OUTPUT1": [x - y for x, y in zip(a, b)]}
        must(found == wanted and answer["id"] == str(a[0]), f"{model}: {found} for {a} and {b}")


class JsonPairs(Http):
    """HTTP, JSON: sums and differences"""

    def step(self):
        self.pair("simple")


class BinaryVectors(Http):
    """HTTP, binary, up to 400 KB, compressed now and then"""

    def step(self):
        data = self.chance.randbytes(4 * self.chance.choice((1, 16, 1000, 100_000)))
        tensor = {"name": "INPUT0", "shape": [len(data) // 4], "datatype": "FP32", "parameters": {"binary_data_size": len(data)}}
        head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
        body, headers = head + data, {"Inference-Header-Content-Length": str(len(head))}
        if self.chance.random() < 0.2:
            body = gzip.compress(body, 1)
            headers["Content-Encoding"] = "gzip"
        if self.chance.random() < 0.2:
            headers["Accept-Encoding"] = "gzip"
        found, content = self.infer("vector", body, headers)
        if found.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        must(content[int(found["Inference-Header-Content-Length"]):] == data, f"{len(data)} other bytes came back")


class Ensemble(Http):
    """HTTP, JSON: an ensemble of two steps"""

    def step(self):
        a, b = self.rows(), self.rows()
        tensors = [{"name": n, "shape": [1, 16], "datatype": "INT32", "data": d} for n, d in (("A", a), ("B", b))]
        found = {o["name"]: o["data"] for o in json.loads(self.infer("doubled", {"inputs": tensors})[1])["outputs"]}
        must(found == {"X": [2 * x for x in a], "Y": [2 * x for x in b]}, f"{found} for {a} and {b}")


class PythonTexts(Http):
    """HTTP: texts through a Python model"""

    MODEL = "texts"

    def step(self):
        texts = [self.chance.randbytes(self.chance.choice((0, 3, 50, 20_000))).hex() for _ in range(self.chance.randrange(1, 5))]
        packed = b"".join(struct.pack("<I", len(text)) + text.encode() for text in texts)
        tensor = {"name": "TEXT", "shape": [1, len(texts)], "datatype": "BYTES", "parameters": {"binary_data_size": len(packed)}}
        head = json.dumps({"inputs": [tensor]}).encode()
        body = head + packed
        _, content = self.infer(self.MODEL, body, {"Inference-Header-Content-Length": str(len(head))})
        must(json.loads(content)["outputs"][0]["data"] == [text[::-1] for text in texts], "texts are not turned")


class Grpc:
    """A client with a channel of its own."""

    def __init__(self, server, folder, chance, stop):
        self.server, self.folder, self.chance, self.stop = server, folder, chance, stop
        self.stock = grpcclient.InferenceServerClient(server.grpc)

    def close(self):
        self.stock.close()

    def array(self, rows):
        return np.array([[self.chance.randrange(-1000, 1000) for _ in range(16)] for _ in range(rows)], np.int32)


class GrpcPairs(Grpc):
    """gRPC: sums and differences of up to eight rows"""

    def step(self):
        rows = self.chance.randrange(1, 9)
        a, b = self.array(rows), self.array(rows)
        inputs = clients.inputs(grpcclient, {"INPUT0": a, "INPUT1": b})
        answer = self.stock.infer("simple", inputs, client_timeout=TIMEOUT)
        must(np.array_equal(answer.as_numpy("OUTPUT0"), a + b), "sums are wrong")
        must(np.array_equal(answer.as_numpy("OUTPUT1"), a - b), "differences are wrong")
