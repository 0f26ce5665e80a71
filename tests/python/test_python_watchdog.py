"""Python workers that stop: the callers are answered, readiness tells, and the next worker has all it needs."""

import base64
import os
import signal
import time

import pytest

import clients
import processes
from test_python_workers import IN_OUT, RUNNER, is_ready, pid_of, post, until, write

LIMIT = "--backend-config=python,execution-timeout-secs=2"
LOOPS = RUNNER.replace("    if case == 1:", "    if case == 77:\n        while True:\n            pass\n    if case == 1:")


@pytest.fixture
def looping(tmp_path, serve):
    write(tmp_path, "runner", LOOPS, IN_OUT)
    return serve(tmp_path, LIMIT)


def is_gone(pid):
    return not os.path.exists(f"/proc/{pid}")


def test_a_stopped_worker_does_not_hang_its_callers(looping):
    first = pid_of(looping, "runner")
    os.kill(first, signal.SIGSTOP)
    begin = time.monotonic()
    status, answer = post(looping, "runner")
    assert status == 503 and time.monotonic() - begin < 8, answer
    for part in ("runner", "execution-timeout-secs"):
        assert part in answer["error"], answer
    until(lambda: is_ready(looping, "runner"), 20)
    assert pid_of(looping, "runner") != first and is_gone(first)
    assert processes.children(looping.pid) == [pid_of(looping, "runner")]


def test_readiness_tells_that_an_idle_worker_is_stopped(looping):
    """No request comes: not ready until the worker is replaced."""
    first = pid_of(looping, "runner")
    os.kill(first, signal.SIGSTOP)
    until(lambda: not is_ready(looping, "runner"), 20)
    until(lambda: is_ready(looping, "runner"), 20)
    assert pid_of(looping, "runner") != first and is_gone(first)


def test_a_model_in_an_endless_loop_is_replaced(looping):
    first = pid_of(looping, "runner")
    begin = time.monotonic()
    status, answer = post(looping, "runner", 77)
    assert status == 503 and time.monotonic() - begin < 8, answer
    assert "did not respond within 2 s (execution-timeout-secs)" in answer["error"], answer
    assert any("did not respond within 2 s" in line for line in looping.log)
    until(lambda: is_ready(looping, "runner"), 20)
    assert pid_of(looping, "runner") != first and is_gone(first)


def test_the_timeout_of_a_request_bounds_how_long_its_caller_waits(looping):
    """The worker is busy with it, and is not ended for it."""
    body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "INT32", "data": [77]}], "parameters": {"timeout": 200_000}}
    begin = time.monotonic()
    status, _, answer = clients.ask(looping.http, "POST", "/v2/models/runner/infer", body)
    assert status == 503 and b"Request timeout expired" in answer, answer
    assert time.monotonic() - begin < 1.5
    assert is_ready(looping, "runner")
    # The loop has no end: that is the watchdog's business.
    until(lambda: not is_ready(looping, "runner"), 10)
    until(lambda: is_ready(looping, "runner"), 20)
    pid_of(looping, "runner")


def test_a_model_loaded_with_its_files_restarts(tmp_path, serve):
    """Its files came over the network: they are there for as long as the model, not only for the load."""
    repository, temporary = tmp_path / "models", tmp_path / "temporary"
    repository.mkdir()
    temporary.mkdir()
    server = serve(repository, "--model-control-mode=explicit", env={"TMPDIR": str(temporary)})
    files = {"config": '{"backend":"python","input":[{"name":"IN","data_type":"TYPE_INT32","dims":[1]}],'
                       '"output":[{"name":"PID","data_type":"TYPE_INT32","dims":[1]}]}',
             "file:1/model.py": base64.b64encode(RUNNER.encode()).decode()}
    status, _, answer = clients.ask(server.http, "POST", "/v2/repository/models/sent/load", {"parameters": files})
    assert status == 200, answer
    for _ in range(3):
        pid = pid_of(server, "sent")
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_ready(server, "sent"), 5)
        until(lambda: is_ready(server, "sent"), 30)
        assert pid_of(server, "sent") != pid
    file = next(temporary.rglob("1/model.py"))
    assert clients.ask(server.http, "POST", "/v2/repository/models/sent/unload", {})[0] == 200
    until(lambda: not file.exists(), 20)
