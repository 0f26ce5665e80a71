"""The rate limiter: which executions run beside each other and in which order, the same on our server and on the real one."""

import collections
import concurrent.futures
import contextlib
import os
import shutil
import signal

import numpy as np
import pytest

import clients
import repositories
import tiers
import waiting

ON, EXPLICIT = "--rate-limit=execution_count", "--model-control-mode=explicit"
# Notes that an execution begins and ends in a file for all models, and waits between while a file `hold` is there.
MODEL = """\
import os
import time

import triton_python_backend_utils as pb

FOLDER = {folder!r}


def note(what):
    with open(os.path.join(FOLDER, "events"), "a") as file:
        file.write(what + "\\n")


class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_name"]
        self.instance = args["model_instance_name"]

    def execute(self, requests):
        note(f"begins {{self.name}} {{self.instance}} {{os.getpid()}}")
        while os.path.exists(os.path.join(FOLDER, "hold")):
            time.sleep(0.002)
        note(f"ends {{self.name}} {{self.instance}} {{os.getpid()}}")
        return [
            pb.InferenceResponse([pb.Tensor("OUTPUT0", pb.get_input_tensor_by_name(r, "INPUT0").as_numpy())])
            for r in requests
        ]
"""


def until(happened):
    waiting.eventually("the executions are as they are to be", happened)


# What there is of each resource on the server that says so. Of `NONE` it says nothing, and of two counts the smaller one holds.
GIVEN = [f"--rate-limit-resource={resource}" for resource in (
    "R:4", "S:2", "SIX:6", "ONE:1", "THREE:3", "OTHER:10:10", "TWICE:9", "TWICE:2", "ALSO:9", "ALSO:2:0", "ANY:-1",
)]


def resource(name, count, is_global=False):
    return f'{{ name: "{name}" count: {count} global: {str(is_global).lower()} }}'


def limited(resources, priority=0, count=1):
    return f"{{ kind: KIND_CPU count: {count} rate_limiter {{ resources [ {resources} ] priority: {priority} }} }}"


class World:
    """A repository of models that note what they execute, and a server on it: ours is shared, so that the names of resources
    are of the test's own where they have no flag."""

    def __init__(self, folder, stage):
        self.stage = stage
        self.repository, self.notes = folder / "models", folder / "notes"
        self.repository.mkdir()
        self.notes.mkdir()
        self.pool = concurrent.futures.ThreadPoolExecutor(128)
        self.server = None

    def add(self, name, *groups, more="", batch=0):
        config = repositories.identity_config(max_batch_size=batch, more=more) + f"instance_group [ {', '.join(groups)} ]\n"
        files = {"1/model.py": MODEL.format(folder=str(self.notes))}
        repositories.write_model(self.repository, name, "galatea", "python", config, files)

    def hold(self):
        (self.notes / "hold").touch()

    def release(self):
        (self.notes / "hold").unlink()

    def infer(self, model, shape=(3,), parameters=None):
        body = {"inputs": [clients.tensor_json("INPUT0", np.ones(shape, np.float32))], "parameters": parameters or {}}
        status, _, text = clients.ask(self.server.http, "POST", f"/v2/models/{model}/infer", body)
        return status, text.decode()

    def send(self, model, count, shape=(3,)):
        return [self.pool.submit(self.infer, model, shape) for _ in range(count)]

    def events(self, what):
        path = self.notes / "events"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.split()[1:] for line in lines if line.startswith(what)]

    def running(self):
        """Models at work, one entry for each execution."""
        begun = collections.Counter(name for name, *_ in self.events("begins"))
        begun.subtract(collections.Counter(name for name, *_ in self.events("ends")))
        return sorted(begun.elements())

    def pending(self):
        samples = clients.metrics(self.server).items()
        return sum(value for (name, _), value in samples if name == "nv_inference_pending_request_count")

    def load(self, model):
        status, _, text = clients.ask(self.server.http, "POST", f"/v2/repository/models/{model}/load", {})
        return status, text.decode()

    def start(self, target, *flags):
        """Loads all models where the mode is not explicit."""
        flags = list(flags)
        if EXPLICIT in flags:
            flags.remove(EXPLICIT)
            self.server = self.stage.get(target, lambda *_: None, *flags)
            for name in (path.name for path in self.repository.iterdir()):
                shutil.copytree(self.repository / name, self.server.repository / name)
                if target == "galatea":
                    self.server.owns(name)
            return contextlib.nullcontext(self.server)

        def write(folder, _):
            shutil.copytree(self.repository, folder, dirs_exist_ok=True)

        self.server = self.stage.get(target, write, *flags)
        return contextlib.nullcontext(self.server)


@pytest.fixture
def world(tmp_path, stage):
    made = World(tmp_path, stage)
    yield made
    (made.notes / "hold").unlink(missing_ok=True)
    made.pool.shutdown()


def assert_one_at_a_time(world):
    lines = (world.notes / "events").read_text().splitlines()
    for begin, end in zip(lines[::2], lines[1::2]):
        assert begin.startswith("begins") and end == begin.replace("begins", "ends"), lines


def both_held(world, first, second, count):
    """All requests for both models are there before the second execution begins."""
    world.hold()
    answers = world.send(first, count)
    until(world.running)
    answers += world.send(second, count)
    until(lambda: world.pending() == 2 * count - 1)
    return answers


@tiers.both
@pytest.mark.parametrize("is_given", [False, True], ids=["default", "explicit"])
def test_models_that_share_a_resource_take_turns_by_priority(world, target, is_given):
    """The supply is the larger demand: one model executes at a time, the first twice as often."""
    world.add("one", limited(resource("R", 4)))
    world.add("two", limited(f"{resource('R', 2)}, {resource('S', 2, is_global=True)}", priority=2))
    with world.start(target, ON, *(GIVEN if is_given else [])):
        answers = both_held(world, "one", "two", 30)
        assert world.running() == ["one"], "the other waits"
        world.release()
        assert {answer.result()[0] for answer in answers} == {200}
        assert_one_at_a_time(world)
        # As long as requests for both wait.
        order = [name for name, *_ in world.events("begins")][:36]
        assert abs(order.count("one") - 24) <= 1, order


@tiers.both
def test_a_priority_of_zero_counts_as_one(world, target):
    world.add("one", limited(resource("R", 1), priority=0))
    world.add("two", limited(resource("R", 1), priority=1))
    with world.start(target, ON):
        answers = both_held(world, "one", "two", 15)
        world.release()
        assert {answer.result()[0] for answer in answers} == {200}
        assert_one_at_a_time(world)
        order = [name for name, *_ in world.events("begins")][:28]
        assert abs(order.count("one") - 14) <= 1, order


@tiers.both
def test_models_run_in_parallel_if_the_resource_suffices(world, target):
    world.add("one", limited(resource("SIX", 4)))
    world.add("two", limited(resource("SIX", 2), priority=2))
    with world.start(target, ON, *GIVEN):
        world.hold()
        answers = world.send("one", 2) + world.send("two", 2)
        until(lambda: world.running() == ["one", "two"])
        world.release()
        assert {answer.result()[0] for answer in answers} == {200}


@tiers.both
def test_instances_of_a_model_wait_for_each_other(world, target):
    world.add("m", limited(resource("R", 4)), limited(resource("R", 2), priority=2))
    with world.start(target, ON):
        world.hold()
        answers = world.send("m", 20)
        until(world.running)
        until(lambda: world.pending() == 19)
        world.release()
        assert {answer.result()[0] for answer in answers} == {200}
        assert_one_at_a_time(world)
        used = collections.Counter(instance for _, instance, _ in world.events("begins"))
        assert len(used) == 2, used
        if target == "galatea":
            # The real one hands the request of a turn to whichever instance's thread is first.
            assert abs(used["m_0_0"] - 13) <= 1 and abs(used["m_1_0"] - 7) <= 1, used


@tiers.both
def test_without_the_rate_limiter_nothing_waits(world, target):
    world.add("one", limited(resource("R", 4)))
    world.add("two", limited(resource("R", 4)))
    with world.start(target) as server:
        world.hold()
        answers = world.send("one", 1) + world.send("two", 1)
        until(lambda: world.running() == ["one", "two"])
        world.release()
        assert {answer.result()[0] for answer in answers} == {200}
        if target == "galatea":
            server.wait_for_line("instance_group.rate_limiter of model 'one' has no effect: start the server with")


def test_batches_are_full_while_the_other_instance_waits(world):
    """Any size is preferred, and still what comes while one instance executes is one batch for the next. The real one makes
    some of its batches before it knows how long they wait."""
    batching = "dynamic_batching { preferred_batch_size: [ 1, 2, 3, 4 ] }\n"
    world.add("m", limited(resource("R", 1), count=2), more=batching, batch=4)
    with world.start("galatea", ON) as server:
        world.hold()
        answers = world.send("m", 1, (1, 3))
        until(world.running)
        answers += world.send("m", 8, (1, 3))
        until(lambda: world.pending() == 8)
        world.release()
        assert {answer.result()[0] for answer in answers} == {200}
        assert_one_at_a_time(world)
        stats = clients.statistics(server, "m")["batch_stats"]
        sizes = {int(batch["batch_size"]): int(batch["compute_infer"]["count"]) for batch in stats}
        assert sizes == {1: 1, 4: 2}


@tiers.both
def test_a_sequence_stays_with_its_instance(world, target):
    """The next turn may belong to another instance. Two sequences execute one at a time."""
    batching = "sequence_batching { max_sequence_idle_microseconds: 60000000 }\n"
    groups = [limited(resource("R", 4)), limited(resource("R", 2), priority=5)]
    world.add("m", *groups, more=batching, batch=1)

    def step(sequence, number):
        parameters = {"sequence_id": sequence, "sequence_start": number == 0, "sequence_end": number == 4}
        assert world.infer("m", (1, 3), parameters)[0] == 200

    def play(sequence):
        begun = len(world.events("begins"))
        for number in range(5):
            step(sequence, number)
        return {instance for _, instance, _ in world.events("begins")[begun:]}

    with world.start(target, ON):
        assert len(play(1)) == 1
        together = [world.pool.submit(play, sequence) for sequence in (2, 3)]
        for played in together:
            played.result()
        assert_one_at_a_time(world)
        used = collections.Counter(instance for _, instance, _ in world.events("begins"))
        assert sorted(used.values()) in ([5, 10], [15]), used


@tiers.both
@pytest.mark.parametrize(("name", "there"), [
    ("ONE", 1), ("THREE", 3), ("OTHER", 0), ("NONE", 0), ("TWICE", 2), ("ALSO", None), ("ANY", None),
])
def test_a_model_with_a_demand_above_the_supply_does_not_load(world, target, name, there):
    world.add("m", limited(resource(name, 4)))
    with world.start(target, ON, EXPLICIT, *GIVEN):
        status, text = world.load("m")
        if there is None:
            assert (status, text) == (200, "")
            assert world.infer("m")[0] == 200
        else:
            assert status == 400
            reason = (
                f'Resource count for "{name}" is limited to {there} which will prevent scheduling of one or more model '
                "instances, the minimum required count is 4"
            )
            assert reason.replace('"', '\\"') in text, text


@tiers.both
def test_a_resource_is_either_global_or_per_device(world, target):
    world.add("one", limited(resource("R", 1, is_global=True)))
    world.add("two", limited(resource("R", 1)))
    with world.start(target, ON, EXPLICIT):
        assert world.load("one") == (200, "")
        status, text = world.load("two")
        reason = 'Resource "R" is present as both global and device-specific resource in the model configuration.'
        assert status == 400 and reason.replace('"', '\\"') in text, text
        assert world.infer("one")[0] == 200
        # Nothing stays of what was refused.
        status, _, _ = clients.ask(world.server.http, "POST", "/v2/repository/models/one/unload", {})
        assert status == 200
        until(lambda: world.load("two") == (200, ""))
        assert world.infer("two")[0] == 200


def test_the_default_supply_follows_the_loaded_models(world):
    """The supply changes while others execute; in Triton such a load waits."""
    world.add("small", limited(resource("R", 1), count=2))
    world.add("large", limited(resource("R", 2)))
    with world.start("galatea", ON, EXPLICIT):
        assert world.load("small") == (200, "")
        world.hold()
        answers = world.send("small", 2)
        until(world.running)
        assert world.load("large") == (200, "")
        until(lambda: world.running() == ["small", "small"])
        world.release()
        assert {answer.result()[0] for answer in answers} == {200}


def test_a_dead_worker_returns_its_permits(world):
    world.add("one", limited(resource("R", 1)))
    world.add("two", limited(resource("R", 1)))
    with world.start("galatea", ON):
        world.hold()
        (first,) = world.send("one", 1)
        until(world.running)
        (second,) = world.send("two", 1)
        until(lambda: world.pending() == 1)
        (_, _, worker), = world.events("begins")
        os.kill(int(worker), signal.SIGKILL)
        assert first.result()[0] in (500, 503)
        until(lambda: "two" in world.running())
        world.release()
        assert second.result()[0] == 200
        assert world.infer("one")[0] == 200, "its worker was replaced"


def test_requests_waiting_for_a_permit_expire_and_can_be_cancelled(world):
    policy = "dynamic_batching { default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 50000 } }\n"
    world.add("one", limited(resource("R", 1)))
    world.add("two", limited(resource("R", 1)), more=policy, batch=4)
    with world.start("galatea", ON):
        world.hold()
        (first,) = world.send("one", 1)
        until(world.running)
        status, text = world.infer("two", (1, 3))
        assert (status, "Request timeout expired" in text) == (503, True), text
        assert world.running() == ["one"]
        world.release()
        assert first.result()[0] == 200
        assert world.infer("two", (1, 3))[0] == 200


def test_an_unload_first_executes_requests_waiting_for_a_permit(world):
    """Requests wait for a permit during an unload: they are executed."""
    world.add("one", limited(resource("R", 1)))
    world.add("two", limited(resource("R", 1), count=2))
    with world.start("galatea", ON):
        world.hold()
        answers = world.send("one", 1)
        until(world.running)
        answers += world.send("two", 5)
        until(lambda: world.pending() == 5)
        status, _, _ = clients.ask(world.server.http, "POST", "/v2/repository/models/two/unload", {})
        assert status == 200
        assert world.running() == ["one"]
        world.release()
        assert {answer.result()[0] for answer in answers} == {200}
        assert world.infer("one")[0] == 200
