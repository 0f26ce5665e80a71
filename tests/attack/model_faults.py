"""Models that end, stop or lie, and requests that make them."""

import json
import os
import signal
import threading
import time

import models
import raw_http
from http_connections import ask_worker, wait
from processes import descendants
from registry import Achieved, attack

WORKER_CONFIG = {
    "name": "worker", "backend": "python",
    "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}],
    "output": [{"name": "PID", "data_type": "TYPE_INT32", "dims": [1]}],
}


@attack("onnx-least-by-minus-one", models=models.divide, loads=("divide",))
def least_by_minus_one(target):
    """an ONNX model divides the least INT32 by -1: SIGFPE"""
    body = {"inputs": [
        {"name": "A", "shape": [2], "datatype": "INT32", "data": [-2147483648, 8]},
        {"name": "B", "shape": [2], "datatype": "INT32", "data": [-1, 2]},
    ]}
    status, text = target.ask("POST", "/v2/models/divide/infer", body)
    if not target.is_alive():
        return "one request"
    body["inputs"][1]["data"] = [2, 2]
    after = wait(lambda: target.ask("POST", "/v2/models/divide/infer", body)[0] == 200, 10)
    if not after:
        raise Achieved("the model does not answer afterwards")
    return f"{status}: {text[:100]}"



@attack("stopped-worker", models=models.worker, loads=("worker",), new_flags=("--backend-config=python,execution-timeout-secs=3",))
def stopped_worker(target):
    """a Python worker is stopped (SIGSTOP) while it is asked: do requests end, does ready tell?"""
    pid = ask_worker(target)
    os.kill(pid, signal.SIGSTOP)
    try:
        body = b'{"inputs":[{"name":"IN","shape":[1],"datatype":"INT32","data":[0]}]}'
        sent = raw_http.post("/v2/models/worker/infer", body)
        answers = []
        asking = threading.Thread(target=lambda: answers.extend(raw_http.together(8, lambda _: raw_http.exchange(target.http, sent, 20)[0])))
        asking.start()
        told = wait(lambda: raw_http.exchange(target.http, raw_http.head("GET", "/v2/models/worker/ready"), 20)[0] != 200, 15)
        asking.join(40)
        again = wait(lambda: ask_worker(target) not in (None, pid), 15)
    finally:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
    faults = [what for what, is_so in (
        (f"requests hang ({raw_http.statuses(answers)})", 0 in answers), ("ready says 200", not told),
        ("no new worker", not again),
    ) if is_so]
    if faults:
        raise Achieved(", ".join(faults))
    return f"answers: {raw_http.statuses(answers)}"


@attack("overrides-killed", models=models.worker, loads=("worker",))
def overrides_killed(target):
    """a Python model loaded with file overrides: its worker is killed and must come again"""
    config = {**WORKER_CONFIG}
    status, text = target.load("worker", config, {"1/model.py": models.WORKER.encode()})
    if status != 200:
        return f"the load is refused: {text[:100]}"
    pid = ask_worker(target)
    os.kill(pid, signal.SIGKILL)
    if not wait(lambda: ask_worker(target) not in (None, pid), 20):
        raise Achieved("the worker does not come again")
    return ""


@attack("lying-worker", models=models.liar, loads=("liar",))
def lying_worker(target):
    """a Python model writes nonsense into its sockets and shared memory, 20 times"""
    answers = []
    for seed in range(1, 21):
        body = json.dumps({"inputs": [{"name": "IN", "shape": [1], "datatype": "INT32", "data": [seed]}]}).encode()
        answers.append(raw_http.exchange(target.http, raw_http.post("/v2/models/liar/infer", body), 20)[0])
        wait(lambda: target.ask("GET", "/v2/models/liar/ready")[0] == 200, 5)
    honest = b'{"inputs":[{"name":"IN","shape":[1],"datatype":"INT32","data":[0]}]}'
    if not wait(lambda: raw_http.exchange(target.http, raw_http.post("/v2/models/liar/infer", honest), 20)[0] == 200, 20):
        raise Achieved("the model does not answer afterwards")
    return "answers: " + raw_http.statuses(answers)


@attack("killed-workers", models=models.worker, loads=("worker",))
def killed_workers(target):
    """a Python worker is killed again and again for 5 s while ten clients ask it"""
    body = b'{"inputs":[{"name":"IN","shape":[1],"datatype":"INT32","data":[0]}]}'
    sent = raw_http.post("/v2/models/worker/infer", body)
    answers = []
    asking = threading.Thread(target=lambda: answers.extend(raw_http.together(10, lambda _: raw_http.exchange(target.http, sent, 20)[0], 5)))
    asking.start()
    while asking.is_alive():
        for pid in descendants(target.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.3)
    if not wait(lambda: ask_worker(target) is not None, 20):
        raise Achieved("the worker does not come again")
    return "answers: " + raw_http.statuses(answers)


@attack("readiness-of-python", models=models.worker, loads=("worker",))
def readiness(target):
    """ten clients ask whether a Python model is ready, as fast as they can"""
    return target.heavy(10, raw_http.head("GET", "/v2/models/worker/ready"), 4)
