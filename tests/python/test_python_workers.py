"""Python workers that end, fork and print; a server that is killed; several Pythons at once; memory of an idle worker."""

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import clients
import processes
import shared_flags
import tiers
from repositories import add_sub_config, tensor, write_model
from waiting import eventually

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("observed")
IN_OUT = tensor("input", "IN", "TYPE_INT32", "1") + tensor("output", "PID", "TYPE_INT32", "1")
RUNNER = '''
import os, subprocess, sys, time

import numpy as np
import triton_python_backend_utils as pb

# A new worker begins only when the test has removed this file.
HOLD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hold")
while os.path.exists(HOLD):
    time.sleep(0.002)


def act(case):
    if case == 1:
        time.sleep(0.004)
    if case == 2:
        os._exit(9)
    if case == 3:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    if case == 4 and os.fork() == 0:
        sys.stdin.close()
        time.sleep(30)
        os._exit(0)
    if case == 5:
        print("a line to stdout")
        print("a line to stderr", file=sys.stderr, flush=True)
    if case == 6:
        print("x" * 300_000)
    if case == 7:
        subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    if case == 8:
        os.write(1, b"\\xff\\xfe no text\\n")
    if case == 11:
        for _ in range(50):
            os.write(1, b"first half, ")
            os.write(1, b"second half\\n")
    if case == 10:
        for log in (pb.Logger.log_info, pb.Logger.log_verbose):
            log("said by the logger of the model")
    if case == 9:
        try:
            {}["weights"]
        except KeyError as error:
            raise RuntimeError("not loaded") from error


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            act(int(request.inputs()[0].as_numpy()[0]))
            answers.append(pb.InferenceResponse([pb.Tensor("PID", np.array([os.getpid()], np.int32))]))
        return answers
'''
VERSION = '''
import sys

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        said = "%d.%d numpy %s %s" % (*sys.version_info[:2], np.__version__, sys.prefix)
        return [pb.InferenceResponse([pb.Tensor("SAID", np.array([said], dtype=object))]) for _ in requests]
'''
ASK_VERSION = tensor("input", "IN", "TYPE_INT32", "1") + tensor("output", "SAID", "TYPE_STRING", "1")


def write(folder, name, source, config):
    (folder / name / "1").mkdir(parents=True)
    (folder / name / "1/model.py").write_text(source)
    (folder / name / "config.pbtxt").write_text(f'backend: "python"\n{config}')
    return folder / name


def post(server, name, case=0, timeout=20):
    """(status, answer) of one request; a fresh connection each time."""
    body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "INT32", "data": [case]}]}
    status, _, text = clients.ask(server.http, "POST", f"/v2/models/{name}/infer", body)
    return status, json.loads(text)


def pid_of(server, name):
    status, answer = post(server, name)
    assert status == 200, answer
    return answer["outputs"][0]["data"][0]


def is_ready(server, name):
    return clients.ask(server.http, "GET", f"/v2/models/{name}/ready")[0] == 200


def interpreter_start():
    """How long this machine takes now to start a Python with numpy."""
    begin = time.monotonic()
    subprocess.run([sys.executable, "-c", "import numpy"], check=True)
    return time.monotonic() - begin


def with_runner(server, more="", name="runner", files=None):
    """The server, with a model `runner` of the code `RUNNER`; `server.hold` is the file that holds up new workers of it."""
    folder = server.place(name, "python", IN_OUT + more, files={"1/model.py": RUNNER, **(files or {})})
    server.hold = folder / "1/hold"
    return server


@pytest.fixture
def runner(shared):
    return with_runner(shared())


def wait_for_another(server, name, first):
    """The process of the only instance once it is not `first`; a request that comes in between fails."""
    return eventually(f"another worker of {name} answers", lambda: (pid := pid_of(server, name)) != first and pid)


THREE = "instance_group [ { count: 3 kind: KIND_CPU } ]\n"


def test_a_kill_under_load_fails_one_request(runner):
    """Eight callers wait: only the executing request fails; the next worker answers the others."""
    first, stop, answers = pid_of(runner, "runner"), [], []

    def call():
        while not stop:
            answers.append(post(runner, "runner", 1, timeout=60))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        callers = [pool.submit(call) for _ in range(8)]
        try:
            eventually("100 requests are answered", lambda: len(answers) > 100)
            runner.hold.touch()
            os.kill(first, signal.SIGKILL)
            eventually("readiness tells that the worker is gone", lambda: not is_ready(runner, "runner"))
            runner.hold.unlink()
            eventually("the model is ready again", lambda: is_ready(runner, "runner"))
            seen = len(answers)
            eventually("100 more are answered", lambda: len(answers) > seen + 100)
        finally:
            stop.append(True)
            runner.hold.unlink(missing_ok=True)
        assert not [caller.exception() for caller in callers if caller.exception()]
    failed = [answer for status, answer in answers if status != 200]
    assert len(failed) <= 1, failed
    assert all(status in (200, 500, 503) for status, _ in answers)
    assert all("runner" in answer["error"] for answer in failed), failed
    assert {a["outputs"][0]["data"][0] for s, a in answers[seen + 8 :] if s == 200} == {pid_of(runner, "runner")} != {first}


@tiers.measure
def test_a_killed_worker_is_restarted_quickly(runner):
    first = pid_of(runner, "runner")
    begin = time.monotonic()
    os.kill(first, signal.SIGKILL)
    wait_for_another(runner, "runner", first)
    assert time.monotonic() - begin < 1 + interpreter_start()


def test_killed_workers_leave_no_processes_or_files(runner):
    """Six kills in a row leave as many processes and files as the first one."""
    pid, files = pid_of(runner, "runner"), None
    for _ in range(6):
        os.kill(pid, signal.SIGKILL)
        pid = wait_for_another(runner, "runner", pid)
        eventually("one worker is left", lambda: processes.children(runner.pid) == [pid])
        files = files or processes.open_files(runner.pid)
    eventually("files are closed", lambda: processes.open_files(runner.pid) <= files + 2)


def test_an_exit_in_execute_fails_the_request_and_restarts_the_worker(runner):
    status, answer = post(runner, "runner", 2)
    assert status in (500, 503) and "runner" in answer["error"]
    eventually("the model answers again", lambda: post(runner, "runner")[0] == 200)


def with_workers(folder, serve, *flags):
    """A server with four Python workers, one of which has been sent much, and a model isolated in a fifth process."""
    write(folder, "runner", RUNNER, IN_OUT + THREE)
    write(folder, "big", open_identity(), tensor("input", "IN", "TYPE_FP32", "-1") + tensor("output", "OUT", "TYPE_FP32", "-1"))
    isolated = 'parameters { key: "isolation" value { string_value: "process" } }\n'
    write_model(folder, "isolated", "galatea", "add_sub", add_sub_config(more=isolated + "instance_group [ { count: 1 kind: KIND_CPU } ]\n"))
    server = serve(folder, *flags)
    with clients.client(server, "http") as stock:
        clients.infer(stock, "http", "big", {"IN": np.zeros(4 << 20, np.float32)})
    assert clients.ask(server.http, "POST", "/v2/models/isolated/infer", clients.pair_json())[0] == 200
    workers = processes.descendants(server.pid)
    assert len(workers) == 5
    return server, workers


def test_a_killed_server_leaves_no_workers_or_memory(tmp_path, serve):
    """After kill -9 of the server no worker survives, and /dev/shm holds nothing of it."""
    server, workers = with_workers(tmp_path, serve)
    assert not [memory for pid in (server.pid, *workers) for memory in processes.named_memory(pid)]
    server.process.kill()
    server.wait_for_exit()
    assert processes.wait_for_end(workers, 60) == []


def open_identity():
    import python_cases

    return (python_cases.MODELS / "plain_identity/1/model.py").read_text()


def test_a_stopped_server_leaves_no_workers_and_valid_logs(tmp_path, serve):
    """No worker is left, and the last lines of a JSON log are JSON too."""
    server, workers = with_workers(tmp_path, serve, "--log-format=json")
    assert server.stop() == 0
    assert processes.wait_for_end(workers, 60) == []
    lines = [json.loads(line) for line in server.log]
    assert all(line["time"] and line["level"] and line["text"] and line["pid"] == server.pid for line in lines)
    assert any(line["text"] == "Signal (15) received." for line in lines)


def test_child_processes_do_not_hide_a_workers_end(runner):
    """A child that ends has no effect; one that lives on does not hide the death of the worker."""
    first = pid_of(runner, "runner")
    assert post(runner, "runner", 3)[0] == 200
    assert pid_of(runner, "runner") == first
    assert post(runner, "runner", 4)[0] == 200
    fork = next(pid for pid in processes.children(first))
    try:
        status, answer = post(runner, "runner", 2)
        assert status in (500, 503) and "runner" in answer["error"]
        wait_for_another(runner, "runner", first)
    finally:
        if processes.wait_for_end([fork], 0):
            os.kill(fork, signal.SIGKILL)


def test_printed_lines_are_passed_on_unchanged(runner):
    """The server passes on the output of a model and its children unchanged, long and partial lines included."""
    printed = {5: ["^a line to stdout$", "^a line to stderr$"], 6: [f"^{'x' * 300_000}$"], 7: ["^from a child$"], 8: ["no text$"]}
    # One after the other: what comes from stderr while a long line of stdout is still coming stands in the middle of it.
    for case, lines in printed.items():
        assert post(runner, "runner", case)[0] == 200
        for line in lines:
            runner.wait_for_line(line)


def test_lines_of_two_models_do_not_mix(shared):
    server = shared()
    for name in "ab":
        with_runner(server, name=name)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert [status for status, *_ in pool.map(lambda name: post(server, name, 11), "ab")] == [200, 200]
    said = lambda: [line for line in server.text().splitlines() if "half" in line]  # noqa: E731
    eventually("all lines come", lambda: len(said()) == 100)
    assert set(said()) == {"first half, second half"}


def test_printed_lines_become_json_in_a_json_log(shared):
    """Each line is a JSON object; lines of a model name the model."""
    server = with_runner(shared(*shared_flags.in_json()))
    for case in (5, 6, 7, 8):
        assert post(server, "runner", case)[0] == 200
    for text in ("a line to stdout", "a line to stderr", "from a child"):
        line = json.loads(server.wait_for_line(text))
        assert (line["model"], line["text"]) == ("runner", text), line
    server.wait_for_line("no text")
    assert post(server, "runner", 9)[0] == 500
    server.wait_for_line("KeyError: 'weights'")
    said = lambda: [json.loads(line) for line in server.text().splitlines()]  # noqa: E731
    long = lambda: sum(len(line["text"]) for line in said() if set(line["text"]) == {"x"})  # noqa: E731
    eventually("the whole of the long line has come", lambda: long() == 300_000)
    assert all(line["time"] and line["level"] and line["text"] and line["pid"] == server.pid for line in said())


def test_log_settings_reach_running_models(runner):
    """Loggers of running models follow the change at once."""
    try:
        for change, more in (({}, 1), ({"log_verbose_level": 1}, 2), ({"log_info": False}, 1), ({"log_verbose_level": 0}, 0)):
            set_log(runner, change)
            # The change is on its way to the model beside the requests.
            eventually(f"a request makes {more} lines after {change}", lambda: lines_of_a_request(runner) == more)
    finally:
        set_log(runner, {"log_info": True, "log_verbose_level": 0})


def set_log(server, change):
    assert clients.ask(server.http, "POST", "/v2/logging", change)[0] == 200


def lines_of_a_request(server):
    """How many lines the model's logger makes of a request; what is printed by the next one comes behind them in the log."""
    begin = len(server.log)
    assert post(server, "runner", 10)[0] == 200
    assert post(server, "runner", 5)[0] == 200
    server.wait(lambda: any("a line to stdout" in line for line in server.log[begin:]), "what it prints")
    return sum("said by the logger of the model" in line for line in server.log[begin:])


def test_a_stalled_log_reader_blocks_no_request(runner):
    """Output exceeds the pipe and the buffer while nobody reads; the log counts the lost lines."""
    # The thread that reads the server's output waits for this lock at the next line.
    with runner._changed:
        for _ in range(16):
            assert post(runner, "runner", 6)[0] == 200
        for level in (1, 0):
            status, _, text = clients.ask(runner.http, "POST", "/v2/logging", {"log_verbose_level": level})
            assert (status, json.loads(text)["log_verbose_level"]) == (200, level)
    runner.wait_for_line(r'\] "\d+ lines are missing here: the disk was full, or the reader of this log was too slow"')
    assert post(runner, "runner", 5)[0] == 200
    runner.wait_for_line("^a line to stdout$")


def test_an_exception_is_logged_once_with_its_traceback(runner):
    """The log has model, version, request id and cause; clients get only the message."""
    status, answer = post(runner, "runner", 9)
    assert status == 500 and "RuntimeError: not loaded" in answer["error"], answer
    assert "KeyError" not in answer["error"]
    runner.wait_for_line("KeyError: 'weights'")
    assert post(runner, "runner")[0] == 200
    failures = [line for line in runner.text().splitlines() if "not loaded" in line and "request id" in line]
    assert len(failures) == 1, failures
    assert "model 'runner' version 1" in failures[0] and "Traceback (most recent call last)" in failures[0]
    assert runner.text().count("KeyError: 'weights'") == 1


def test_a_model_answers_with_one_of_three_workers_lost(shared):
    """The model answers with the two remaining instances."""
    server = with_runner(shared(), THREE)
    workers = eventually("three workers run", lambda: len(found := processes.running(server.pid)) == 3 and found)
    server.hold.touch()
    os.kill(workers[0], signal.SIGKILL)
    answers = [post(server, "runner") for _ in range(60)]
    server.hold.unlink()
    assert sum(status != 200 for status, _ in answers) <= 1
    eventually("three workers run again", lambda: len(processes.running(server.pid)) == 3)


def test_an_unload_ends_the_workers(shared):
    server = with_runner(shared())
    worker, files = pid_of(server, "runner"), None
    for _ in range(3):
        server.unload("runner")
        assert processes.wait_for_end([worker], 60) == []
        server.load("runner")
        worker = pid_of(server, "runner")
        files = files or processes.open_files(server.pid)
    eventually("files are closed", lambda: processes.open_files(server.pid) <= files + 1)
    eventually("one worker is left", lambda: processes.children(server.pid) == [worker])


@tiers.peers
def test_several_python_versions_run_in_one_server(tmp_path, serve, capsys):
    """One server runs all Python versions of the machine, chosen by parameter, requirements.txt or option."""
    found = processes.venvs()
    assert found, "the setup found no Python"
    names = {}
    for version, folder in found.items():
        name = "python_{}_{}".format(*version)
        environment = f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{folder}" }} }}\n'
        write(tmp_path, name, VERSION, ASK_VERSION + environment)
        names[name] = "{}.{}".format(*version)
    by_option, option = list(found.items())[-1]
    write(tmp_path, "by_option", VERSION, ASK_VERSION)
    write(tmp_path, "by_requirements", VERSION, ASK_VERSION)
    (tmp_path / "by_requirements/requirements.txt").write_text("numpy\n")
    names.update(by_option="{}.{}".format(*by_option), by_requirements="{}.{}".format(*by_option))
    server = serve(
        tmp_path, f"--backend-config=python,python-interpreter={option}/bin/python",
        env={**processes.offline(), "GALATEA_HOME": str(tmp_path.parent / "home")},
    )
    said = {name: post(server, name)[1]["outputs"][0]["data"][0] for name in names}
    assert {name: text.split()[0] for name, text in said.items()} == names
    assert all(" numpy " in text for text in said.values())
    assert "python-environments" in said["by_requirements"]
    with capsys.disabled():
        print("\nPythons served at once: " + "; ".join(f"{name}: {text.rsplit(' ', 1)[0]}" for name, text in said.items()))


@tiers.measure
def test_an_idle_worker_uses_little_memory(runner, capsys):
    worker = pid_of(runner, "runner")
    own, resident = processes.private_mb(worker), processes.rss_mb(worker)
    with capsys.disabled():
        print(f"\nidle worker: {own:.1f} MB of its own, {resident:.1f} MB resident")
    assert own <= 40
