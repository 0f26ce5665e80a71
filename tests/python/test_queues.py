"""Policies of queues: sizes, time-outs and priorities, as upstream's own tests use them, here and on the real server."""

import time
from concurrent.futures import ThreadPoolExecutor

import clients
import repositories
import servers
from test_python_queue import BOTH, LIMIT, until

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

    def __init__(self, target, tmp_path, batching, more="", **options):
        repository, self.folder = tmp_path / "models", tmp_path / "notes"
        self.folder.mkdir()
        config = f"{CONFIG}dynamic_batching {{ {batching} }}\n{more}"
        repositories.write_model(repository, "notes", target, "python", config, {"1/model.py": NOTES})
        self.server = servers.TARGETS[target](repository, **options)
        self.threads = ThreadPoolExecutor(32)
        # The real server is ready before its metrics are.
        until(self.has_metrics, 20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.permit("gate")
        self.server.stop()
        self.threads.shutdown()

    def send(self, name, rows=1, **parameters):
        return self.threads.submit(self.answer, name, rows, parameters)

    def answer(self, name, rows, parameters):
        """The status, what the answer says if it is a failure, and when it came."""
        data = [[name, str(self.folder)]] * rows
        body = {"inputs": [{"name": "IN", "shape": [rows, 2], "datatype": "BYTES", "data": data}], "parameters": parameters}
        status, _, text = clients.ask(self.server.http, "POST", "/v2/models/notes/infer", body)
        return status, None if status == 200 else text.decode(), time.monotonic()

    def batches(self):
        """The batches that were begun: the names of the requests of each."""
        file = self.folder / "batches"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def occupy(self):
        """Has the only instance execute a request until that is permitted."""
        answer = self.send("gate", 8)
        until(lambda: self.batches() == [["gate"]])
        return answer

    def permit(self, name):
        (self.folder / name).touch()

    def figures(self, name):
        found = clients.metrics(self.server).items()
        return {labels: value for (metric, labels), value in found if metric == name and 'model="notes"' in labels and value}

    def has_metrics(self):
        try:
            return bool(clients.metrics(self.server))
        except ConnectionError:
            return False

    def has_rejected(self, count):
        """The real server counts a request after its answer."""
        until(lambda: sum(self.figures("nv_inference_request_failure").values()) == count, 10)
        assert all('reason="REJECTED"' in labels for labels in self.figures("nv_inference_request_failure"))

    def pending(self):
        return sum(self.figures("nv_inference_pending_request_count").values())

    def queue(self, *names, rows=1, **parameters):
        """Sends one after the other: each waits when the next is sent."""
        answers = []
        for name in names:
            before = self.pending()
            answers.append(self.send(name, rows, **parameters))
            until(lambda: self.pending() == before + 1, 20)
        return answers


def statuses(answers):
    return [answer.result(LIMIT)[0] for answer in answers]


FULL = '{"error":"[request id: <id_unknown>] Exceeds maximum queue size"}'
EXPIRED = '{"error":"Request timeout expired"}'


@BOTH
def test_each_level_has_its_size(target, tmp_path):
    levels = (
        "priority_levels: 2 default_priority_level: 2 default_queue_policy { max_queue_size: 2 } "
        "priority_queue_policy { key: 1 value { max_queue_size: 3 } }"
    )
    with Queue(target, tmp_path, levels) as queue:
        first = queue.occupy()
        low = queue.queue("low", "low")
        high = queue.queue("high", "high", "high", priority=1)
        for priority in (0, 1, 2, 7):
            status, text, _ = queue.answer("full", 1, {"priority": priority})
            assert (status, text) == (503, FULL), priority
        queue.permit("gate")
        assert statuses([first, *low, *high]) == [200] * 6
        if target == "galatea":  # the real server counts none of them
            queue.has_rejected(4)


@BOTH
def test_higher_levels_go_first(target, tmp_path):
    """A level that is not named, or that there is not, is the default one. There may be as many as numbers."""
    levels = f"priority_levels: {2**64 - 1} default_priority_level: {2**32}"
    with Queue(target, tmp_path, levels) as queue:
        first = queue.occupy()
        answers = queue.queue("last", priority=2**64 - 1)
        answers += queue.queue("default", priority=0)
        answers += queue.queue("same", priority=2**32)
        answers += queue.queue("high", priority=1)
        queue.permit("gate")
        assert statuses([first, *answers]) == [200] * 5
        assert queue.batches()[1:] == [["high", "default", "same", "last"]]


@BOTH
def test_late_requests_of_a_level_are_executed_after_the_others_of_it(target, tmp_path):
    policies = (
        "preferred_batch_size: [ 4 ] priority_levels: 2 default_priority_level: 2 "
        "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 3600000000 allow_timeout_override: true }"
    )
    with Queue(target, tmp_path, policies) as queue:
        first = queue.occupy()
        late = queue.queue("late", priority=1, timeout=1000, rows=2)
        answers = queue.queue("a", "b", priority=1, rows=2)
        answers += queue.queue("low", rows=2)
        time.sleep(0.05)
        queue.permit("gate")
        assert statuses([first, *late, *answers]) == [200] * 5
        assert queue.batches()[1:] == [["a", "b"], ["late", "low"]]


@BOTH
def test_a_request_may_only_shorten_its_time_and_only_where_that_is_allowed(target, tmp_path):
    policies = (
        "priority_levels: 3 default_priority_level: 1 "
        "default_queue_policy { default_timeout_microseconds: 500000 allow_timeout_override: true } "
        "priority_queue_policy { key: 2 value { default_timeout_microseconds: 3600000000 } } "
        "priority_queue_policy { key: 3 value { allow_timeout_override: true } }"
    )
    with Queue(target, tmp_path, policies) as queue:
        first = queue.occupy()
        long = queue.queue("long", timeout=3600000000)
        kept = queue.queue("kept", priority=2, timeout=1000)
        # Without a time-out of the level there is none to shorten.
        unlimited = queue.queue("unlimited", priority=3, timeout=3600000000)
        short = [queue.send("short", timeout=1000)]
        time.sleep(0.6)
        queue.permit("gate")
        assert statuses([first, *kept, *unlimited]) == [200] * 3
        assert [answer.result(LIMIT)[:2] for answer in [*short, *long]] == [(503, EXPIRED)] * 2
        assert queue.batches()[1:] == [["kept", "unlimited"]]
        queue.has_rejected(2)


@BOTH
def test_the_largest_preferred_size_is_taken_although_more_wait(target, tmp_path):
    hold = ("env", "TRITONSERVER_DELAY_SCHEDULER=7")
    with Queue(target, tmp_path, "preferred_batch_size: [ 2, 4 ]", through=hold) as queue:
        answers = queue.queue(*"abcdef")
        assert not queue.batches(), "nothing is executed until seven wait"
        answers.append(queue.send("g"))
        assert statuses(answers) == [200] * 7
        assert queue.batches() == [list("abcd"), list("ef"), ["g"]]


@BOTH
def test_a_batch_waits_for_a_preferred_size_or_the_end_of_the_delay(target, tmp_path):
    with Queue(target, tmp_path, "preferred_batch_size: [ 4 ] max_queue_delay_microseconds: 1000000") as queue:
        begin = time.monotonic()
        answers = [queue.send(name, rows) for name, rows in (("a", 1), ("b", 2), ("c", 1))]
        assert statuses(answers) == [200] * 3
        assert time.monotonic() - begin < 0.9, "the size is reached"
        begin = time.monotonic()
        status, _, end = queue.answer("d", 1, {})
        assert status == 200 and 1 <= end - begin < 2
        assert [sorted(batch) for batch in queue.batches()] == [["a", "b", "c"], ["d"]]


@BOTH
def test_a_time_that_ends_while_a_batch_grows(target, tmp_path):
    """The first is rejected before the others come, although an instance was free all the time."""
    delay = "preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 10000000 "
    with Queue(target, tmp_path, delay + "default_queue_policy { default_timeout_microseconds: 100000 }") as queue:
        begin = time.monotonic()
        status, text, end = queue.answer("late", 1, {})
        assert (status, text) == (503, EXPIRED)
        assert 0.1 <= end - begin < 2
        answers = [queue.send("a", 2), queue.send("b", 2)]
        assert statuses(answers) == [200] * 2
        assert [sorted(batch) for batch in queue.batches()] == [["a", "b"]]


@BOTH
def test_a_late_request_makes_room_in_a_batch_that_grows(target, tmp_path):
    delay = "preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 2000000 "
    policy = "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 100000 }"
    with Queue(target, tmp_path, delay + policy) as queue:
        begin = time.monotonic()
        late = queue.send("late", 1)
        time.sleep(0.3)
        answers = [queue.send("a", 2), queue.send("b", 2)]
        assert [answer.result(LIMIT)[0] for answer in answers] == [200] * 2
        assert time.monotonic() - begin < 1.5
        status, _, end = late.result(LIMIT)
        assert status == 200 and end - begin >= 1.9
        assert [sorted(batch) for batch in queue.batches()] == [["a", "b"], ["late"]]


def test_a_rejection_is_told_when_the_time_is_over(tmp_path):
    """The real server answers when the instance is free."""
    for order in ("", "preserve_ordering: true"):
        folder = tmp_path / (order[:8] or "plain")
        folder.mkdir()
        policy = "default_queue_policy { default_timeout_microseconds: 3600000000 allow_timeout_override: true } "
        with Queue("galatea", folder, policy + order) as queue:
            first = queue.occupy()
            patient = queue.queue("patient")
            begin = time.monotonic()
            late = [queue.send("late", timeout=200_000) for _ in range(20)]
            for answer in late:
                status, text, end = answer.result(LIMIT)
                assert (status, text) == (503, EXPIRED)
                # Beside the time itself: the machine may be busy.
                assert 0.2 <= end - begin < 2
            assert not first.done() and queue.pending() == 1
            refused = {
                labels: value for (name, labels), value in clients.metrics(queue.server).items()
                if name == "galatea_inference_requests_refused_total" and value
            }
            assert list(refused.values()) == [20] and all("timeout" in labels for labels in refused), refused
            queue.permit("gate")
            assert statuses([first, *patient]) == [200] * 2
            assert queue.batches() == [["gate"], ["patient"]]


AUTO = 'parameters { key: "batch_delay" value { string_value: "auto" } }\n'


def test_a_delay_that_is_learned_is_none_for_a_lone_caller(tmp_path):
    """Its longest is an hour: whatever waits, waits for good. What it does with several callers is shown by simulations."""
    with Queue("galatea", tmp_path, "max_queue_delay_microseconds: 3600000000", AUTO) as queue:
        for _ in range(50):
            assert queue.answer("again", 1, {})[0] == 200
        assert queue.batches() == [["again"]] * 50
        found = clients.metrics(queue.server)
        assert found["galatea_batch_delay_duration_seconds", 'model="notes",version="1"'] == 0


def test_no_delay_is_learned_unless_it_is_asked_for(tmp_path):
    with Queue("galatea", tmp_path, "") as queue:
        assert queue.answer("one", 1, {})[0] == 200
        assert not queue.figures("galatea_batch_delay_duration_seconds")
