"""Policies of queues: sizes, time-outs and priorities, as upstream's own tests use them, here and on the real server."""

from concurrent.futures import ThreadPoolExecutor

import clients
import repositories
import tiers
from waiting import LIMIT, eventually

# Writes down the names of each batch; is done with a name that begins with `gate` when there is a file of that name.
NOTES = """\
import os
import time

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        rows = [pb.get_input_tensor_by_name(request, "IN").as_numpy() for request in requests]
        folder = rows[0][0][1].decode()
        names = [row[0][0].decode() for row in rows]
        with open(os.path.join(folder, "batches"), "a") as file:
            file.write(" ".join(names) + "\\n")
        for name in names:
            while name.startswith("gate") and not os.path.exists(os.path.join(folder, name)):
                time.sleep(0.002)
        return [pb.InferenceResponse([pb.Tensor("OUT", np.zeros((len(row), 1), np.int32))]) for row in rows]
"""
CONFIG = (
    'max_batch_size: 32\ninput [ { name: "IN" data_type: TYPE_STRING dims: [ 2 ] } ]\n'
    'output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n'
)


class Queue:
    """Requests to a model with one instance, each with its name."""

    def __init__(self, target, stage, folder, batching, more="", model="notes", env=None):
        self.folder, self.model = folder / model, model
        self.folder.mkdir()
        config = f"{CONFIG}dynamic_batching {{ {batching} }}\n{more}"
        files = {"1/model.py": NOTES}
        self.server = stage.get(target, lambda path, _: repositories.write_model(path, model, target, "python", config, files), env=env)
        self.threads = ThreadPoolExecutor(32)
        # The real server is ready before its metrics are.
        eventually("there are metrics", self.has_metrics)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.permit("gate")
        self.threads.shutdown()

    def send(self, name, rows=1, **parameters):
        return self.threads.submit(self.answer, name, rows, parameters)

    def answer(self, name, rows, parameters):
        """The status, and what the answer says if it is a failure."""
        data = [[name, str(self.folder)]] * rows
        body = {"inputs": [{"name": "IN", "shape": [rows, 2], "datatype": "BYTES", "data": data}], "parameters": parameters}
        status, _, text = clients.ask(self.server.http, "POST", f"/v2/models/{self.model}/infer", body)
        return status, None if status == 200 else text.decode()

    def batches(self):
        """The batches that were begun: the names of the requests of each."""
        file = self.folder / "batches"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def occupy(self, **parameters):
        """Has the only instance execute a request until that is permitted."""
        answer = self.send("gate", 8, **parameters)
        eventually("the instance is occupied", lambda: self.batches() == [["gate"]])
        return answer

    def permit(self, name):
        (self.folder / name).touch()

    def figures(self, name):
        found = clients.metrics(self.server).items()
        return {labels: value for (metric, labels), value in found if metric == name and f'model="{self.model}"' in labels and value}

    def has_metrics(self):
        try:
            return bool(clients.metrics(self.server))
        except ConnectionError:
            return False

    def has_rejected(self, count):
        """The real server counts a request after its answer."""
        eventually("the rejections are counted", lambda: sum(self.figures("nv_inference_request_failure").values()) == count)
        assert all('reason="REJECTED"' in labels for labels in self.figures("nv_inference_request_failure"))

    def pending(self):
        return sum(self.figures("nv_inference_pending_request_count").values())

    def queue(self, *names, rows=1, **parameters):
        """Sends one after the other: each waits when the next is sent."""
        answers = []
        for name in names:
            before = self.pending()
            answers.append(self.send(name, rows, **parameters))
            eventually("the request waits", lambda: self.pending() == before + 1)
        return answers


def statuses(answers):
    return [answer.result(LIMIT)[0] for answer in answers]


FULL = '{"error":"[request id: <id_unknown>] Exceeds maximum queue size"}'
EXPIRED = '{"error":"Request timeout expired"}'


@tiers.both
def test_each_priority_level_has_its_queue_size(target, tmp_path, stage):
    levels = (
        "priority_levels: 2 default_priority_level: 2 default_queue_policy { max_queue_size: 2 } "
        "priority_queue_policy { key: 1 value { max_queue_size: 3 } }"
    )
    with Queue(target, stage, tmp_path, levels) as queue:
        first = queue.occupy()
        low = queue.queue("low", "low")
        high = queue.queue("high", "high", "high", priority=1)
        for priority in (0, 1, 2, 7):
            status, text = queue.answer("full", 1, {"priority": priority})
            assert (status, text) == (503, FULL), priority
        queue.permit("gate")
        assert statuses([first, *low, *high]) == [200] * 6
        if target == "galatea":  # the real server counts none of them
            queue.has_rejected(4)


@tiers.both
def test_higher_priority_levels_go_first(target, tmp_path, stage):
    """A missing or unknown level is the default one. Any number of levels is allowed."""
    levels = f"priority_levels: {2**64 - 1} default_priority_level: {2**32}"
    with Queue(target, stage, tmp_path, levels) as queue:
        first = queue.occupy()
        answers = queue.queue("last", priority=2**64 - 1)
        answers += queue.queue("default", priority=0)
        answers += queue.queue("same", priority=2**32)
        answers += queue.queue("high", priority=1)
        queue.permit("gate")
        assert statuses([first, *answers]) == [200] * 5
        assert queue.batches()[1:] == [["high", "default", "same", "last"]]


@tiers.both
def test_delayed_requests_are_executed_after_the_others_of_their_level(target, tmp_path, stage):
    policies = (
        "preferred_batch_size: [ 4 ] priority_levels: 2 default_priority_level: 2 "
        "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 3600000000 allow_timeout_override: true }"
    )
    with Queue(target, stage, tmp_path, policies) as queue:
        first = queue.occupy()
        late = queue.queue("late", priority=1, timeout=1, rows=2)
        answers = queue.queue("a", "b", priority=1, rows=2)
        answers += queue.queue("low", rows=2)
        queue.permit("gate")
        assert statuses([first, *late, *answers]) == [200] * 5
        assert queue.batches()[1:] == [["a", "b"], ["late", "low"]]


@tiers.both
def test_a_request_may_only_shorten_its_timeout_and_only_if_allowed(target, tmp_path, stage):
    policies = (
        "priority_levels: 3 default_priority_level: 1 "
        "default_queue_policy { default_timeout_microseconds: 1000 allow_timeout_override: true } "
        "priority_queue_policy { key: 2 value { default_timeout_microseconds: 3600000000 } } "
        "priority_queue_policy { key: 3 value { allow_timeout_override: true } }"
    )
    with Queue(target, stage, tmp_path, policies) as queue:
        # The level without a short time-out: a busy machine may take a millisecond to begin.
        first = queue.occupy(priority=2)
        kept = queue.queue("kept", priority=2, timeout=1000)
        # Without a time-out of the level there is none to shorten.
        unlimited = queue.queue("unlimited", priority=3, timeout=3600000000)
        late = [queue.send("long", timeout=3600000000), queue.send("short", timeout=1)]
        if target == "galatea":
            assert statuses(late) == [503] * 2
        else:
            # It answers them when the instance is free.
            eventually("all requests wait", lambda: queue.pending() == 4)
        queue.permit("gate")
        assert statuses([first, *kept, *unlimited]) == [200] * 3
        assert [answer.result(LIMIT) for answer in late] == [(503, EXPIRED)] * 2
        assert queue.batches()[1:] == [["kept", "unlimited"]]
        queue.has_rejected(2)


@tiers.both
def test_the_largest_preferred_size_is_used_even_if_more_requests_wait(target, tmp_path, stage):
    hold = {"TRITONSERVER_DELAY_SCHEDULER": "8"}
    with Queue(target, stage, tmp_path, "preferred_batch_size: [ 2, 4 ]", env=hold) as queue:
        answers = queue.queue(*"abcdef") + queue.queue("g", rows=3)
        assert not queue.batches(), "nothing is executed until eight wait"
        answers.append(queue.send("h"))
        assert statuses(answers) == [200] * 8
        assert queue.batches() == [list("abcd"), list("ef"), list("gh")]


HOUR = "max_queue_delay_microseconds: 3600000000 "


@tiers.both
def test_a_batch_waits_for_a_preferred_size_or_the_end_of_the_delay(target, tmp_path, stage):
    """A batch with a delay of an hour runs when its size is reached; one with a tenth of a second runs without it."""
    with Queue(target, stage, tmp_path, HOUR + "preferred_batch_size: [ 4 ]", model="patient") as queue:
        assert statuses([queue.send(name, rows) for name, rows in (("a", 1), ("b", 2), ("c", 1))]) == [200] * 3
        assert [sorted(batch) for batch in queue.batches()] == [["a", "b", "c"]]
    short = "preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 100000"
    with Queue(target, stage, tmp_path, short, model="hasty") as queue:
        assert queue.answer("d", 1, {})[0] == 200
        assert queue.batches() == [["d"]]


@tiers.both
def test_a_request_times_out_while_its_batch_grows(target, tmp_path, stage):
    """The first request is rejected before the others come, although an instance was free."""
    policy = "default_queue_policy { default_timeout_microseconds: 3600000000 allow_timeout_override: true }"
    with Queue(target, stage, tmp_path, f"preferred_batch_size: [ 4, 8 ] {HOUR} {policy}") as queue:
        assert queue.answer("late", 1, {"timeout": 100_000}) == (503, EXPIRED)
        assert statuses([queue.send("a", 2), queue.send("b", 2)]) == [200] * 2
        assert [sorted(batch) for batch in queue.batches()] == [["a", "b"]]


@tiers.both
def test_a_delayed_request_leaves_a_growing_batch(target, tmp_path, stage):
    """The late request runs when the delay is over, which leaves time for the others on any machine."""
    policy = "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 3600000000 allow_timeout_override: true }"
    with Queue(target, stage, tmp_path, f"preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 8000000 {policy}") as queue:
        late = queue.queue("late", timeout=1)
        assert statuses([queue.send("a", 2), queue.send("b", 2)]) == [200] * 2
        assert [sorted(batch) for batch in queue.batches()] == [["a", "b"]]
        assert statuses(late) == [200]
        assert [sorted(batch) for batch in queue.batches()] == [["a", "b"], ["late"]]


def test_a_rejection_is_sent_when_the_timeout_ends(tmp_path, stage):
    """Triton rejects it only when an instance is free."""
    for model, order in {"plain": "", "ordered": "preserve_ordering: true"}.items():
        policy = "default_queue_policy { default_timeout_microseconds: 3600000000 allow_timeout_override: true } "
        with Queue("galatea", stage, tmp_path, policy + order, model=model) as queue:
            first = queue.occupy()
            patient = queue.queue("patient")
            late = [queue.send("late", timeout=200_000) for _ in range(20)]
            assert [answer.result(LIMIT) for answer in late] == [(503, EXPIRED)] * 20
            assert not first.done()
            eventually("one request waits", lambda: queue.pending() == 1)
            refused = queue.figures("galatea_inference_requests_refused_total")
            assert list(refused.values()) == [20] and all("timeout" in labels for labels in refused), refused
            queue.permit("gate")
            assert statuses([first, *patient]) == [200] * 2
            assert queue.batches() == [["gate"], ["patient"]]


AUTO = 'parameters { key: "batch_delay" value { string_value: "auto" } }\n'


def test_a_lone_caller_has_no_learned_delay(tmp_path, stage):
    """The longest delay is an hour, so any wait would block. Simulations test several callers."""
    with Queue("galatea", stage, tmp_path, "max_queue_delay_microseconds: 3600000000", AUTO) as queue:
        for _ in range(50):
            assert queue.answer("again", 1, {})[0] == 200
        assert queue.batches() == [["again"]] * 50
        found = clients.metrics(queue.server)
        assert found["galatea_batch_delay_duration_seconds", 'model="notes",version="1"'] == 0


def test_delays_are_learned_only_on_request(tmp_path, stage):
    with Queue("galatea", stage, tmp_path, "") as queue:
        assert queue.answer("one", 1, {})[0] == 200
        assert not queue.figures("galatea_batch_delay_duration_seconds")
