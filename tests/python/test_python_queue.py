"""How requests wait for Python models, the same on our server and on the real one; how such models are asked and ended."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import clients
import repositories
import servers

needs_triton = pytest.mark.skipif(not servers.has_triton(), reason="the real Triton could not be installed here")
BOTH = pytest.mark.parametrize("target", ["galatea", pytest.param("triton", marks=needs_triton)])
LIMIT = 60
# Begins with a request, and is done with it when a file is there that the request names; with the empty name at once.
GATE = """\
import os
import time

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            name = pb.get_input_tensor_by_name(request, "IN").as_numpy()[0].decode()
            if name:
                open(name + ".begun", "w").close()
                while not os.path.exists(name + ".go"):
                    time.sleep(0.002)
        return [pb.InferenceResponse([pb.Tensor("OUT", np.zeros(1, np.int32))]) for _ in requests]
"""
CONFIG = (
    'input [ { name: "IN" data_type: TYPE_STRING dims: [ 1 ] } ]\noutput [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\n'
)


def instances(count):
    return f"instance_group [ {{ kind: KIND_CPU count: {count} }} ]\n"


def until(happened, limit=LIMIT):
    deadline = time.monotonic() + limit
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


class Gates:
    """Requests to the model `gate`, which are complete when the test says so."""

    def __init__(self, server, folder):
        self.server, self.folder, self.threads = server, folder, ThreadPoolExecutor(32)

    def send(self, name=""):
        return self.threads.submit(self.answer, str(self.folder / name) if name else "")

    def answer(self, name):
        body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "BYTES", "data": [name]}]}
        return clients.ask(self.server.http, "POST", "/v2/models/gate/infer", body)[0]

    def has_begun(self, name):
        return (self.folder / f"{name}.begun").exists()

    def begin(self, *names):
        """Requests that each have an instance."""
        answers = [self.send(name) for name in names]
        until(lambda: all(map(self.has_begun, names)))
        return answers

    def permit(self, *names):
        for name in names:
            (self.folder / f"{name}.go").touch()

    def pending(self):
        return sum(v for (name, labels), v in clients.metrics(self.server).items()
                   if name == "nv_inference_pending_request_count" and 'model="gate"' in labels)

    def queue(self, *names):
        """Sends one after the other: each waits when the next is sent."""
        answers = []
        for number, name in enumerate(names, 1):
            answers.append(self.send(name))
            until(lambda: self.pending() == number)
        return answers


def started(target, tmp_path, count):
    repository, folder = tmp_path / "models", tmp_path / "gates"
    folder.mkdir()
    repositories.write_model(repository, "gate", target, "python", CONFIG + instances(count), {"1/model.py": GATE})
    return servers.TARGETS[target](repository), folder


@BOTH
def test_short_requests_do_not_wait_behind_a_long_one(target, tmp_path):
    """Both instances are busy, a long request is the first that waits: the short ones behind it need the other instance only."""
    server, folder = started(target, tmp_path, 2)
    with server:
        gates = Gates(server, folder)
        busy = gates.begin("x", "y")
        long, *short = gates.queue("long", *[""] * 7)
        gates.permit("x", "y")
        assert [answer.result(LIMIT) for answer in short] == [200] * 7
        assert gates.has_begun("long") and not long.done()
        gates.permit("long")
        assert [answer.result(LIMIT) for answer in [*busy, long]] == [200] * 3


@BOTH
def test_a_request_that_may_be_late_does_not_fail(target, tmp_path):
    """Its time-out is over while it waits and when it is executed, and the policy of its queue is DELAY."""
    policy = "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 100000 allow_timeout_override: true }"
    repository, folder = tmp_path / "models", tmp_path / "gates"
    folder.mkdir()
    config = "max_batch_size: 1\n" + CONFIG + f"dynamic_batching {{ {policy} }}\n"
    gate = GATE.replace("[0].decode()", "[0][0].decode()").replace("np.zeros(1", "np.zeros((1, 1)")
    repositories.write_model(repository, "gate", target, "python", config, {"1/model.py": gate})

    def send(server, name):
        tensor = {"name": "IN", "shape": [1, 1], "datatype": "BYTES", "data": [name and str(folder / name)]}
        body = {"inputs": [tensor], "parameters": {"timeout": 50000}}
        return clients.ask(server.http, "POST", "/v2/models/gate/infer", body)[0]

    with servers.TARGETS[target](repository) as server, ThreadPoolExecutor(2) as threads:
        first = threads.submit(send, server, "a")
        until((folder / "a.begun").exists)
        second = threads.submit(send, server, "")
        time.sleep(0.3)
        assert not first.done() and not second.done()
        (folder / "a.go").write_text("")
        assert [first.result(LIMIT), second.result(LIMIT)] == [200, 200]


@BOTH
def test_a_request_is_pending_and_queued_until_the_model_begins_with_it(target, tmp_path):
    server, folder = started(target, tmp_path, 1)
    with server:
        gates = Gates(server, folder)
        began = time.monotonic()
        answers = gates.begin("a")
        answers += gates.queue("b", "c", "d")
        for name, waiting in (("a", 2), ("b", 1), ("c", 0)):
            assert gates.pending() == waiting + 1
            time.sleep(0.2)
            following = chr(ord(name) + 1)
            assert not gates.has_begun(following)
            gates.permit(name)
            until(lambda: gates.has_begun(following))
            until(lambda: gates.pending() == waiting, 5)
        gates.permit("d")
        assert [answer.result(LIMIT) for answer in answers] == [200] * 4
        took = (time.monotonic() - began) * 1e9
        figures = clients.statistics(server, "gate")["inference_stats"]
        assert figures["compute_infer"]["ns"] <= took, "one at a time: no two were computed at once"
        # d waited for three others, c for two, b for one.
        assert figures["queue"]["ns"] >= 6 * 0.2e9


@BOTH
def test_a_long_request_among_many_short_ones_holds_up_none_of_them(target, tmp_path):
    """While short ones come as fast as they can, so that many are on their way to each instance."""
    server, folder = started(target, tmp_path, 2)
    with server:
        gates, has_ended = Gates(server, folder), threading.Event()
        counts = [0] * 16

        def ask_again_and_again(number):
            while not has_ended.is_set():
                assert gates.answer("") == 200
                counts[number] += 1

        short = [gates.threads.submit(ask_again_and_again, number) for number in range(len(counts))]
        until(lambda: all(count > 20 for count in counts))
        long = gates.begin("long")
        for _ in range(3):
            before = list(counts)
            until(lambda: all(now > then + 2 for now, then in zip(counts, before)))
        assert not long[0].done()
        has_ended.set()
        assert [answer.result(LIMIT) for answer in short] == [None] * len(counts)
        assert [gates.send().result(LIMIT) for _ in range(20)] == [200] * 20, "the other instance is free"
        assert not long[0].done()
        gates.permit("long")
        assert long[0].result(LIMIT) == 200


def test_what_nobody_waits_for_is_not_executed(tmp_path):
    """The real server executes it all the same."""
    server, folder = started("galatea", tmp_path, 1)
    with server:
        gates = Gates(server, folder)
        answers = gates.begin("a")
        answers += gates.queue("b")
        with clients.client(server, "grpc") as stock:
            tensor = clients.MODULES["grpc"].InferInput("IN", [1], "BYTES")
            tensor.set_data_from_numpy(np.array([str(folder / "gone").encode()], dtype=object))
            done = threading.Event()
            call = stock.async_infer("gate", [tensor], lambda result, error: done.set())
            until(lambda: gates.pending() == 2)
            call.cancel()
            assert done.wait(LIMIT)
        # Wherever it waits, twice a second it is looked for.
        until(lambda: gates.pending() == 1)
        answers.append(gates.send("c"))
        gates.permit("a", "b", "c", "gone")
        assert [answer.result(LIMIT) for answer in answers] == [200] * 3
        assert not gates.has_begun("gone")


def test_what_waits_longer_than_its_caller_is_rejected_and_not_executed(tmp_path):
    """The real server rejects it, too, but answers only when an instance is free, and only with a dynamic batcher."""
    server, folder = started("galatea", tmp_path, 1)
    with server:
        gates = Gates(server, folder)
        first = gates.begin("a")
        body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "BYTES", "data": [str(folder / "late")]}],
                "parameters": {"timeout": 100_000}}

        def ask_shortly():
            return clients.ask(server.http, "POST", "/v2/models/gate/infer", body)[0]

        late = [gates.threads.submit(ask_shortly) for _ in range(3)]
        until(lambda: gates.pending() == 3)
        time.sleep(0.15)
        gates.permit("a", "late")
        assert [answer.result(LIMIT) for answer in first] == [200]
        assert [answer.result(LIMIT) for answer in late] == [503] * 3
        assert not gates.has_begun("late")
        failures = {labels: v for (name, labels), v in clients.metrics(server).items() if name == "nv_inference_request_failure" and v}
        assert len(failures) == 1 and all('reason="REJECTED"' in labels for labels in failures), failures
        assert list(failures.values()) == [3]
        assert clients.statistics(server, "gate")["execution_count"] == 1


FINALIZES = """\
import os
import time

import triton_python_backend_utils as pb

HERE = os.path.dirname(os.path.abspath(__file__))


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([]) for _ in requests]

    def finalize(self):
        mark = os.path.join(HERE, "..", "..", "..", "%s")
        open(mark + ".begun", "w").close()
        time.sleep(3)
        open(mark + ".done", "w").close()
"""


@BOTH
def test_the_exit_waits_for_a_replaced_model_that_finalizes(target, tmp_path):
    repository = tmp_path / "models"
    folder = repositories.write_model(repository, "slow", target, "python", CONFIG, {"1/model.py": FINALIZES % "old"})
    flags = ["--model-control-mode=explicit", "--load-model=slow"]
    with servers.TARGETS[target](repository, *flags) as server:
        time.sleep(1.1)  # the real server compares times of files in seconds
        (folder / "1/model.py").write_text(FINALIZES % "new")
        (folder / "config.pbtxt").write_text((folder / "config.pbtxt").read_text() + instances(2))
        assert clients.ask(server.http, "POST", "/v2/repository/models/slow/load", {})[0] == 200
        until(lambda: (tmp_path / "old.begun").exists())
        assert not (tmp_path / "old.done").exists()
        server.process.send_signal(signal.SIGTERM)
        status = server.wait_for_exit()
        assert (tmp_path / "old.done").exists(), "killed in finalize()"
        assert (tmp_path / "new.done").exists()
        assert status == 0, server.text()


ASKS = """\
import os
import sys

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def is_ready(self):
        how = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "how")).read()
        if how == "raises":
            raise ValueError("not yet")
        return {"true": True, "false": False, "text": "yes"}[how]

    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", np.zeros(1, np.int32))]) for _ in requests]
"""


def test_a_model_that_is_not_ready_by_its_own_check(tmp_path):
    """The real server that is installed does not know `is_ready` yet: the texts are those of its other models."""
    folder = repositories.write_model(tmp_path, "asked", "galatea", "python", CONFIG, {"1/model.py": ASKS, "1/how": "true"})
    with servers.galatea(tmp_path) as server, clients.client(server, "grpc") as stock:
        def both():
            answer = clients.ask(server.http, "GET", "/v2/models/asked/versions/1/ready")
            return answer[0], answer[2], stock.is_model_ready("asked", "1")

        assert both() == (200, b"", True)
        for how in ("false", "text", "raises"):
            (folder / "1/how").write_text(how)
            assert both() == (400, b'{"error":"Model version not ready"}', False), how
        (folder / "1/how").write_text("true")
        assert both() == (200, b"", True)


NAMES_ITS_ENVIRONMENT = """\
import sys

import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        pb.Logger.log_info("interpreter prefix " + sys.prefix)

    def execute(self, requests):
        return []
"""


def test_a_relative_environment_begins_in_the_working_directory(tmp_path):
    repository, here = tmp_path / "models", tmp_path / "here"
    (here / "envs").mkdir(parents=True)
    os.symlink(sys.prefix, here / "envs/mine")
    parameter = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "envs/mine" } }\n'
    folder = repositories.write_model(repository, "m", "galatea", "python", CONFIG + parameter, {"1/model.py": NAMES_ITS_ENVIRONMENT})
    (folder / "envs/mine").mkdir(parents=True)
    # An empty folder in the model: found only if the working directory were not looked at first.
    with servers.galatea(repository, through=("env", "-C", here)) as server:
        line = server.wait_for_line("interpreter prefix")
        assert Path(line.split("interpreter prefix ")[1].strip('"}')).resolve() == Path(sys.prefix).resolve(), line
