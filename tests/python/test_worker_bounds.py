"""What the answers and the memory of Python workers are bounded by, and how an unload ends one that hangs; SIGHUP."""

import json
import signal

import pytest

import clients
import processes
import raw_http
import servers
from repositories import tensor, write_model
from waiting import eventually

# Runs the Python that it is sent, which sets `result` to the array of the answer.
MODEL = '''
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            scope = {"np": np, "pb": pb, "result": np.zeros(1, np.int32)}
            exec(request.inputs()[0].as_numpy()[0].decode(), scope)
            answers.append(pb.InferenceResponse([pb.Tensor("OUT", scope["result"])]))
        return answers
'''
CONFIG = tensor("input", "IN", "TYPE_STRING", "1") + tensor("output", "OUT", "TYPE_INT32", "-1")
TEXTS = tensor("input", "IN", "TYPE_STRING", "1") + tensor("output", "OUT", "TYPE_STRING", "-1")
MB = 1 << 20
BUDGET = 128 * MB


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    for name, config in (("numbers", CONFIG), ("texts", TEXTS), ("hangs", CONFIG)):
        write_model(repository, name, "galatea", "python", config, {"1/model.py": MODEL})
    flags = ("--memory-budget=128M", "--python-memory=600M", "--backend-config=python,unload-timeout-secs=1",
             "--model-control-mode=explicit", "--load-model=*")
    with servers.galatea(repository, *flags) as running:
        yield running


def request(code):
    return json.dumps({"inputs": [{"name": "IN", "shape": [1], "datatype": "BYTES", "data": [code]}]}).encode()


def run(server, model, code):
    """Status, and the error or the shape of the answer."""
    status, _, text = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", json.loads(request(code)))
    answer = json.loads(text)
    return status, answer["outputs"][0]["shape"] if status == 200 else answer["error"]



@pytest.mark.parametrize("code", [
    "result = np.zeros(64 << 20, np.int32)", "result = np.broadcast_to(np.int32(0), (1 << 40,))",
], ids=["long", "without end"])
def test_an_output_over_the_limit_fails_only_its_request(server, code):
    before = peak(server)
    status, error = run(server, "numbers", code)
    assert status == 500 and "shm-max-byte-size" in error, (status, error)
    assert run(server, "numbers", "") == (200, [1])
    assert peak(server) - before < 1.5 * BUDGET


def test_outputs_of_many_requests_stay_within_the_budget(server):
    before = peak(server)
    sent = raw_http.post("/v2/models/numbers/infer", request("result = np.zeros(10 << 20, np.int32)"))
    host, port = server.http.rsplit(":", 1)
    held = raw_http.many((host, int(port)), 12, sent)
    # Nobody reads them; what does not fit is refused.
    eventually("all are answered", lambda: clients.statistics(server, "numbers")["execution_count"] >= 12)
    assert peak(server) - before < 1.5 * BUDGET
    raw_http.close(held)


def peak(server):
    return int(processes.status(server.pid)["VmHWM"].split()[0]) * 1024


def test_a_workers_memory_is_limited(server):
    status, error = run(server, "texts", "result = np.broadcast_to(np.array([b'x'], object), (1 << 34,))")
    assert status == 500 and "MemoryError" in error, (status, error)
    assert run(server, "texts", "result = np.array([b'x'], object)") == (200, [1])
    # In shared memory and children, where a process has no limit of its own.
    take = "import os, mmap, threading\nf = os.memfd_create('m'); os.ftruncate(f, 800 << 20)\nm = mmap.mmap(f, 800 << 20)\n" \
           "for i in range(0, 800 << 20, 4096): m[i] = 1\nthreading.Event().wait()"
    status, error = run(server, "texts", take)
    assert status == 503 and "take more than 629145600 bytes of memory (--python-memory)" in error, (status, error)
    eventually("the model answers again", lambda: run(server, "texts", "result = np.array([b'x'], object)") == (200, [1]))


def test_an_unload_ends_a_hanging_worker_without_a_client(server):
    before = set(processes.running(server.pid))
    assert run(server, "hangs", "") == (200, [1])
    host, port = server.http.rsplit(":", 1)
    hang = "import threading; pb.Logger.log_info('the model hangs now'); threading.Event().wait()"
    held = raw_http.many((host, int(port)), 1, raw_http.post("/v2/models/hangs/infer", request(hang)))
    # A request that is in flight may still be on its way to the queue, and a client that leaves then cancels it.
    server.wait_for_line("the model hangs now")
    raw_http.close(held)
    assert clients.ask(server.http, "POST", "/v2/repository/models/hangs/unload", {})[0] == 200
    server.wait_for_line("its model is being unloaded, and it did not end an execution that nobody waits for within 1 s")
    server.wait_for_line("successfully unloaded 'hangs' version 1")
    eventually("its process is gone", lambda: len(processes.running(server.pid)) == len(before) - 1)
    assert not any("is being restarted" in line and "hangs" in line for line in server.log)


def test_sighup_without_log_files_changes_nothing(server):
    """There is neither an access log nor a log file here."""
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_line("SIGHUP: opening the logs again, reading the TLS files and the policy again")
    assert run(server, "numbers", "") == (200, [1])
