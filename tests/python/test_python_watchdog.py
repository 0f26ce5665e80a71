"""Python workers that stop: the callers are answered, readiness tells, and the next worker has all it needs."""

import base64
import os
import signal
import time

import pytest

import clients
import processes
import tiers
from shared_flags import LIMITED
from test_python_workers import IN_OUT, RUNNER, is_ready, pid_of, post, wait_for_another
from waiting import eventually

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("limited")
LOOPS = RUNNER.replace("    if case == 1:", "    if case == 77:\n        while True:\n            pass\n    if case == 1:")


@pytest.fixture
def looping(shared):
    server = shared(*LIMITED)
    server.hold = server.place("runner", "python", IN_OUT, files={"1/model.py": LOOPS}) / "1/hold"
    return server


def is_gone(pid):
    return not os.path.exists(f"/proc/{pid}")


def check_successor(server, first):
    pid = wait_for_another(server, "runner", first)
    eventually("the worker that was stopped is gone", lambda: is_gone(first))
    eventually("only the new worker is left", lambda: processes.children(server.pid) == [pid])


def test_a_stopped_worker_does_not_block_its_callers(looping):
    first = pid_of(looping, "runner")
    os.kill(first, signal.SIGSTOP)
    status, answer = post(looping, "runner")
    assert status == 503, answer
    for part in ("runner", "execution-timeout-secs"):
        assert part in answer["error"], answer
    check_successor(looping, first)


@tiers.measure
def test_callers_of_a_stopped_worker_wait_little_longer_than_the_limit(looping):
    os.kill(pid_of(looping, "runner"), signal.SIGSTOP)
    begin = time.monotonic()
    assert post(looping, "runner")[0] == 503 and time.monotonic() - begin < 8


def test_a_stopped_idle_worker_is_not_ready(looping):
    """Without any request the model is not ready until the worker is replaced."""
    first = pid_of(looping, "runner")
    looping.hold.touch()
    os.kill(first, signal.SIGSTOP)
    eventually("readiness tells that the worker is stopped", lambda: not is_ready(looping, "runner"))
    eventually("the worker is ended", lambda: is_gone(first))
    assert not is_ready(looping, "runner")
    looping.hold.unlink()
    eventually("the model is ready again", lambda: is_ready(looping, "runner"))
    check_successor(looping, first)


def test_a_model_in_an_endless_loop_is_replaced(looping):
    first = pid_of(looping, "runner")
    status, answer = post(looping, "runner", 77)
    assert status == 503, answer
    assert "did not respond within 2 s (execution-timeout-secs)" in answer["error"], answer
    looping.wait_for_line("did not respond within 2 s")
    check_successor(looping, first)


def test_a_model_loaded_from_a_request_restarts(shared):
    """The load request carried the files: they exist as long as the model, not only during the load."""
    server = shared()
    name = server.name("sent")
    files = {"config": '{"backend":"python","input":[{"name":"IN","data_type":"TYPE_INT32","dims":[1]}],'
                       '"output":[{"name":"PID","data_type":"TYPE_INT32","dims":[1]}]}',
             "file:1/model.py": base64.b64encode((RUNNER + "\nprint('files at', HOLD)\n").encode()).decode()}
    server.load(name, {"parameters": files})
    file = server.wait_for_line("files at").partition("files at ")[2]
    pid = pid_of(server, name)
    for _ in range(3):
        os.kill(pid, signal.SIGKILL)
        pid = wait_for_another(server, name, pid)
    place = os.path.dirname(file)
    assert os.path.exists(os.path.join(place, "model.py"))
    server.unload(name)
    eventually("the files are gone", lambda: not os.path.exists(place))
