"""What the worker costs: `python bench.py [PYTHON...]` prints one line per interpreter."""

import sys
import time

import numpy as np

import server

IDENTITY = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            tensor = pb_utils.get_input_tensor_by_name(request, "IN")
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", tensor.as_numpy())]))
        return responses
"""

CALLER = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            tensor = pb_utils.get_input_tensor_by_name(request, "IN")
            call = pb_utils.InferenceRequest(inputs=[tensor], requested_output_names=["OUT"], model_name="x")
            answer = call.exec()
            out = pb_utils.get_output_tensor_by_name(answer, "OUT")
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", out.as_numpy())]))
        return responses
"""


def per_request(worker, requests, rounds, **options):
    """(worker's CPU, wall time) per request in us."""
    for _ in range(200):
        worker.execute(*requests, id="warm", **options)
    cpu, start = worker.cpu_seconds(), time.perf_counter()
    for number in range(rounds):
        worker.execute(*requests, id=str(number), **options)
    total = rounds * len(requests)
    return (worker.cpu_seconds() - cpu) / total * 1e6, (time.perf_counter() - start) / total * 1e6


def measure(python):
    start = time.perf_counter()
    with server.Worker(IDENTITY, python=python, init=False) as worker:
        hello = time.perf_counter() - start
        start = time.perf_counter()
        worker.init()
        ready = time.perf_counter() - start
        rss = worker.rss_kb()
        small = {"IN": np.arange(16, dtype=np.float32)}
        one = per_request(worker, [small], 5000)
        eight = per_request(worker, [small] * 8, 1000)
        texts = per_request(worker, [{"IN": ["abc"] * 16}], 3000)
        large = measure_large(worker)
    with server.Worker(CALLER, python=python) as worker:
        worker.answering(lambda w, m: w.inferred(m.id, {"OUT": small["IN"]}))
        call = per_request(worker, [small], 2000)
    return hello, ready, rss, one, eight, texts, large, call


def measure_large(worker):
    """1 MB tensors through the arenas, blocks given back as they should be."""
    raw = server.of(np.zeros(262144, np.float32)).raw
    offset = worker.store(raw)
    tensor = server.Tensor(11, (262144,), b"")
    cpu, start, rounds = worker.cpu_seconds(), time.perf_counter(), 500
    for _ in range(rounds):
        head = server.REQUEST.pack(1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0)
        meta = head + server.TENSOR.pack(2, 11, 1, 1, offset, len(raw)) + (262144).to_bytes(8, "little") + b"IN"
        worker.send(worker.commands, 6, count=1, ident=1, meta=meta)
        packet = worker.commands.recv(1 << 17)
        at = 24 + 8 * server.HEADER.unpack_from(packet)[2] + server.RESPONSE.size
        worker.to_release = [server.TENSOR.unpack_from(packet, at)[4]]
    del tensor
    return (worker.cpu_seconds() - cpu) / rounds * 1e6, (time.perf_counter() - start) / rounds * 1e6


def main():
    form = "%-34s" + "%9s" * 9
    print(form % ("python", "HELLO ms", "READY ms", "RSS MB", "id us", "id wall", "batch8", "bytes16", "1MB", "BLS us"))
    for python in sys.argv[1:] or [sys.executable]:
        hello, ready, rss, one, eight, texts, large, call = measure(python)
        shown = [hello * 1e3, ready * 1e3, rss / 1024, one[0], one[1], eight[0], texts[0], large[0], call[1]]
        print(form % (python[-34:], *("%.1f" % value for value in shown)))


if __name__ == "__main__":
    main()
