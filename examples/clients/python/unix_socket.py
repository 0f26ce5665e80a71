"""Asks a server on the same machine over a Unix socket, with tensors in memory that has no name."""

import http.client
import json
import mmap
import os
import socket
import sys

import numpy as np

ROW, ONES = np.arange(16, dtype=np.int32), np.ones(16, np.int32)


class Client(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path, self.descriptors = path, []

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def send(self, data):
        """The descriptors go with the first byte of the request."""
        if self.sock is None:
            self.connect()
        sent = socket.send_fds(self.sock, [data], self.descriptors)
        self.descriptors = []
        self.sock.sendall(data[sent:])

    def post(self, path, body, descriptors=()):
        self.descriptors = list(descriptors)
        self.request("POST", path, json.dumps(body).encode())
        answer = self.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(json.loads(text)["error"])
        return json.loads(text or b"{}")


def main(path="/tmp/galatea.sock"):
    client, size = Client(path), ROW.nbytes
    descriptor = os.memfd_create("tensors")
    os.ftruncate(descriptor, 3 * size)
    memory = np.frombuffer(mmap.mmap(descriptor, 3 * size), np.int32).reshape(3, 16)
    memory[:2] = ROW, ONES
    region = "/v2/systemsharedmemory/region/tensors"
    client.post(f"{region}/register", {"byte_size": 3 * size}, [descriptor])

    def place(name, row, **more):
        span = {"shared_memory_region": "tensors", "shared_memory_offset": row * size, "shared_memory_byte_size": size}
        return {"name": name, "parameters": span, **more}

    inputs = [place(f"INPUT{row}", row, shape=[1, 16], datatype="INT32") for row in (0, 1)]
    client.post("/v2/models/simple/infer", {"inputs": inputs, "outputs": [place("OUTPUT0", 2)]})
    print("sum:", *memory[2])
    client.post(f"{region}/unregister", {})


if __name__ == "__main__":
    main(*sys.argv[1:])
