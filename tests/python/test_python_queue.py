"""How requests wait for Python models, the same on our server and on the real one; how such models are asked and ended."""

import contextlib
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
import tiers
from waiting import LIMIT, eventually

# For test_queues and test_mixed_shapes.
BOTH = tiers.both
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
    eventually("it has happened", happened, limit)


class Gates:
    """Requests to a model with the code `GATE`, which are complete when the test says so."""

    def __init__(self, server, folder, model):
        self.server, self.folder, self.model, self.threads = server, folder, model, ThreadPoolExecutor(32)
        self.is_batched = False

    def send(self, name="", **parameters):
        return self.threads.submit(self.answer, str(self.folder / name) if name else "", **parameters)

    def answer(self, name, **parameters):
        shape = [1, 1] if self.is_batched else [1]
        body = {"inputs": [{"name": "IN", "shape": shape, "datatype": "BYTES", "data": [name]}], "parameters": parameters}
        return clients.ask(self.server.http, "POST", f"/v2/models/{self.model}/infer", body)[0]

    def has_begun(self, name):
        return (self.folder / f"{name}.begun").exists()

    def begin(self, *names):
        """Requests that each have an instance."""
        answers = [self.send(name) for name in names]
        eventually(f"the model begins with {names}", lambda: all(map(self.has_begun, names)))
        return answers

    def permit(self, *names):
        for name in names:
            (self.folder / f"{name}.go").touch()

    def pending(self):
        return sum(v for (name, labels), v in clients.metrics(self.server).items()
                   if name == "nv_inference_pending_request_count" and f'model="{self.model}"' in labels)

    def wait_for_pending(self, count):
        eventually(f"{count} requests wait", lambda: self.pending() == count)

    def queue(self, *names):
        """Sends one after the other: each waits when the next is sent."""
        answers = []
        for number, name in enumerate(names, 1):
            answers.append(self.send(name))
            self.wait_for_pending(number)
        return answers


@pytest.fixture
def started(tmp_path, shared):
    """`started(target, instances)` has a server with a model of gates: ours is shared."""
    with contextlib.ExitStack() as ends:

        def start(target, count, config=CONFIG, code=GATE):
            folder, repository = tmp_path / "gates", tmp_path / "models"
            folder.mkdir()
            config, files = config + instances(count), {"1/model.py": code}
            if target == "galatea":
                server = shared()
                return Gates(server, folder, server.add("gate", "python", config, files=files))
            repositories.write_model(repository, "gate", target, "python", config, files)
            return Gates(ends.enter_context(servers.TARGETS[target](repository)), folder, "gate")

        yield start


@tiers.both
def test_short_requests_do_not_wait_behind_a_long_one(target, started):
    """A long request waits first while both instances are busy; the short ones behind it need only the other instance."""
    gates = started(target, 2)
    busy = gates.begin("x", "y")
    long, *short = gates.queue("long", *[""] * 7)
    gates.permit("x", "y")
    assert [answer.result(LIMIT) for answer in short] == [200] * 7
    assert gates.has_begun("long") and not long.done()
    gates.permit("long")
    assert [answer.result(LIMIT) for answer in [*busy, long]] == [200] * 3


@tiers.both
def test_a_request_with_policy_delay_does_not_fail(target, started):
    """Its timeout ends while it waits; the queue policy is DELAY, so it is executed."""
    policy = "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 100000 allow_timeout_override: true }"
    code = GATE.replace("[0].decode()", "[0][0].decode()").replace("np.zeros(1", "np.zeros((1, 1)")
    gates = started(target, 1, "max_batch_size: 1\n" + CONFIG + f"dynamic_batching {{ {policy} }}\n", code)
    gates.is_batched = True
    # So short that it is over whenever the request is looked at.
    first = gates.send("a", timeout=1)
    eventually("the model begins with the first request", lambda: gates.has_begun("a"))
    second = gates.send("", timeout=1)
    gates.wait_for_pending(1)
    assert not first.done() and not second.done()
    gates.permit("a")
    assert [first.result(LIMIT), second.result(LIMIT)] == [200, 200]


def one_at_a_time(gates, hold):
    """Four requests to one instance; `hold` is called while each but the last is executed."""
    answers = gates.begin("a")
    answers += gates.queue("b", "c", "d")
    for name, waiting in (("a", 2), ("b", 1), ("c", 0)):
        assert gates.pending() == waiting + 1
        hold()
        following = chr(ord(name) + 1)
        assert not gates.has_begun(following)
        gates.permit(name)
        eventually(f"the model begins with {following}", lambda: gates.has_begun(following))
        gates.wait_for_pending(waiting)
    gates.permit("d")
    assert [answer.result(LIMIT) for answer in answers] == [200] * 4
    return clients.statistics(gates.server, gates.model)["inference_stats"]


@tiers.both
def test_a_request_is_pending_until_the_model_begins_it(target, started):
    figures = one_at_a_time(started(target, 1), lambda: None)
    assert (figures["queue"]["count"], figures["compute_infer"]["count"], figures["success"]["count"]) == (4, 4, 4)


@tiers.measure
@pytest.mark.parametrize("target", ["galatea", "triton"])
def test_queue_time_ends_when_the_model_begins(target, started):
    began = time.monotonic()
    figures = one_at_a_time(started(target, 1), lambda: time.sleep(0.2))
    took = (time.monotonic() - began) * 1e9
    assert figures["compute_infer"]["ns"] <= took, "one at a time: no two were computed at once"
    # d waited for three others, c for two, b for one.
    assert figures["queue"]["ns"] >= 6 * 0.2e9


@tiers.both
def test_a_long_request_does_not_delay_many_short_ones(target, started):
    """Short requests arrive so fast that each instance prefetches many."""
    gates, has_ended = started(target, 2), threading.Event()
    counts = [0] * 16

    def ask_again_and_again(number):
        while not has_ended.is_set():
            assert gates.answer("") == 200
            counts[number] += 1

    short = [gates.threads.submit(ask_again_and_again, number) for number in range(len(counts))]
    eventually("every caller has had 20 answers", lambda: all(count > 20 for count in counts))
    long = gates.begin("long")
    for _ in range(3):
        before = list(counts)
        eventually("every caller has had 3 more answers", lambda: all(now > then + 2 for now, then in zip(counts, before)))
    assert not long[0].done()
    has_ended.set()
    assert [answer.result(LIMIT) for answer in short] == [None] * len(counts)
    assert [gates.send().result(LIMIT) for _ in range(20)] == [200] * 20, "the other instance is free"
    assert not long[0].done()
    gates.permit("long")
    assert long[0].result(LIMIT) == 200


def test_abandoned_requests_are_not_executed(started):
    """Triton executes abandoned requests anyway."""
    gates = started("galatea", 1)
    answers = gates.begin("a")
    answers += gates.queue("b")
    with clients.client(gates.server, "grpc") as stock:
        tensor = clients.MODULES["grpc"].InferInput("IN", [1], "BYTES")
        tensor.set_data_from_numpy(np.array([str(gates.folder / "gone").encode()], dtype=object))
        done = threading.Event()
        call = stock.async_infer(gates.model, [tensor], lambda result, error: done.set())
        gates.wait_for_pending(2)
        call.cancel()
        assert done.wait(LIMIT)
    # Wherever it waits, twice a second it is looked for.
    gates.wait_for_pending(1)
    answers.append(gates.send("c"))
    gates.permit("a", "b", "c", "gone")
    assert [answer.result(LIMIT) for answer in answers] == [200] * 3
    assert not gates.has_begun("gone")


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
        while not os.path.exists(mark + ".go"):
            time.sleep(0.002)
        open(mark + ".done", "w").close()
"""


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


def test_a_model_that_reports_itself_unready_is_not_ready(shared):
    """The real server that is installed does not know `is_ready` yet: the texts are those of its other models."""
    server = shared()
    folder = server.place("asked", "python", CONFIG, files={"1/model.py": ASKS, "1/how": "true"})
    with clients.client(server, "grpc") as stock:
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


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A server whose working directory is not that of the tests; the last test that uses it ends it."""
    place = tmp_path_factory.mktemp("elsewhere")
    for name in ("models", "here"):
        (place / name).mkdir()
    with servers.galatea(place / "models", "--model-control-mode=explicit", through=("env", "-C", place / "here")) as server:
        server.place = place
        yield server


def load(server, name):
    assert clients.ask(server.http, "POST", f"/v2/repository/models/{name}/load", {})[0] == 200


def test_a_relative_environment_path_is_tried_in_the_working_directory(elsewhere):
    (elsewhere.place / "here/envs").mkdir()
    os.symlink(sys.prefix, elsewhere.place / "here/envs/mine")
    config = CONFIG + 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "envs/mine" } }\n'
    folder = repositories.write_model(elsewhere.place / "models", "m", "galatea", "python", config, {"1/model.py": NAMES_ITS_ENVIRONMENT})
    # An empty folder in the model: found only if the working directory were not looked at first.
    (folder / "envs/mine").mkdir(parents=True)
    load(elsewhere, "m")
    line = elsewhere.wait_for_line("interpreter prefix")
    assert Path(line.split("interpreter prefix ")[1].strip('"}')).resolve() == Path(sys.prefix).resolve(), line


@tiers.both
def test_the_exit_waits_for_a_replaced_model_that_finalizes(target, tmp_path, request):
    if target == "galatea":
        server = request.getfixturevalue("elsewhere")
        place = server.place
    else:
        place = tmp_path
        (place / "models").mkdir()
        server = servers.triton(place / "models", "--model-control-mode=explicit")
        request.addfinalizer(server.stop)
    folder = repositories.write_model(place / "models", "slow", target, "python", CONFIG, {"1/model.py": FINALIZES % "old"})
    load(server, "slow")
    (folder / "1/model.py").write_text(FINALIZES % "new")
    (folder / "config.pbtxt").write_text((folder / "config.pbtxt").read_text() + instances(2))
    # The real server compares times of files in seconds.
    later = time.time() + 10
    for file in ("1/model.py", "config.pbtxt"):
        os.utime(folder / file, (later, later))
    load(server, "slow")
    eventually("the replaced model finalizes", (place / "old.begun").exists)
    server.process.send_signal(signal.SIGTERM)
    server.wait_for_line("Signal")
    assert not (place / "old.done").exists()
    for name in ("old.go", "new.go"):
        (place / name).touch()
    status = server.wait_for_exit()
    assert (place / "old.done").exists(), "killed in finalize()"
    assert (place / "new.done").exists()
    assert status == 0, server.text()
