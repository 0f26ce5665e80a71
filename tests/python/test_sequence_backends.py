"""Upstream's test backends about sequences: what upstream's own tests of sequences do with them, on our server."""

import json
import queue
import random
import threading

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

import clients
import repositories
import waiting
from sequence_plays import controls, step
from test_streams import play

DELAY = "TRITONSERVER_DELAY_SCHEDULER"
BACKLOG_DELAY = "TRITONSERVER_BACKLOG_DELAY_SCHEDULER"
CONTROLS = {"sequence": ("START", "READY"), "dyna_sequence": ("START", "END", "READY", "CORRID")}
OLDEST = "oldest { max_candidate_sequences: 4 }"
DIRECT = "direct { }"


def config(backend, strategy=DIRECT, max_batch_size=4, instances=1, idle=60_000_000, more=""):
    lines = "".join(line + "\n" for line in controls().splitlines() if any(f'"{name}"' in line for name in CONTROLS[backend]))
    return (f"max_batch_size: {max_batch_size}\n"
            + repositories.tensor("input", "INPUT", "TYPE_INT32", "-1") + repositories.tensor("output", "OUTPUT", "TYPE_INT32", "-1")
            + f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]\n"
            + f"sequence_batching {{ max_sequence_idle_microseconds: {idle}\n{lines} {strategy} }}\n" + more)


def values(reply):
    """The error of a reply, or the first number of its output."""
    return reply[0] or int(np.frombuffer(reply[-1][0], np.int32)[0])


def executions(server, model):
    """How many executions had how many rows, once `count` requests are counted."""
    told = clients.statistics(server, model)
    return {batch["batch_size"]: batch["compute_infer"]["count"] for batch in told.get("batch_stats", [])}


def is_counted(server, count):
    waiting.eventually("all requests are counted", lambda: clients.counts(server, "held")["success"] == count)


def write(path, _):
    for name, backend, settings in (
        ("direct", "sequence", {}), ("single", "sequence", {"max_batch_size": 0}), ("instances", "sequence", {"max_batch_size": 1, "instances": 4}),
        ("dyna_direct", "dyna_sequence", {}), ("dyna_oldest", "dyna_sequence", {"strategy": OLDEST}),
        ("dyna_instances", "dyna_sequence", {"strategy": "oldest { max_candidate_sequences: 2 }", "instances": 2}),
        ("brief", "sequence", {"max_batch_size": 1, "idle": 200_000}),
    ):
        repositories.write_model(path, name, "galatea", backend, config(backend, **settings))


@pytest.fixture(scope="module")
def server(module_stage):
    return module_stage.get("galatea", write)


@pytest.fixture
def hold(stage):
    """Our server with the model `held` that executes nothing until so many requests wait for it."""

    def get(backend, config, requests=None, backlog=None):
        env = {DELAY: str(requests)} if requests else {}
        env |= {BACKLOG_DELAY: str(backlog)} if backlog else {}
        return stage.get("galatea", lambda path, _: repositories.write_model(path, "held", "galatea", backend, config), env=env)

    return get


MODELS = ("direct", "single", "instances", "dyna_direct", "dyna_oldest", "dyna_instances")


def ask(stock, protocol, model, sequence, value, flags=""):
    shape = [1] if model == "single" else [1, 1]
    answer = clients.infer(stock, protocol, model, {"INPUT": np.full(shape, value, np.int32)}, sequence_id=sequence,
                           sequence_start="s" in flags, sequence_end="e" in flags)
    return int(answer["OUTPUT"].ravel()[0])


def flags_of(steps):
    """The flags of each of so many steps."""
    return ["se"] if steps == 1 else ["s", *[""] * (steps - 2), "e"]


def expected(model, sequence, numbers):
    """The answer to the last of these steps."""
    return sum(numbers) + (sequence if "dyna" in model else 0)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("protocol", clients.MODULES)
@pytest.mark.parametrize("steps", [1, 9])
def test_a_sequence_is_summed(server, model, protocol, steps):
    sequence, numbers = 5, range(1, steps + 1)
    with clients.client(server, protocol) as stock:
        seen = [ask(stock, protocol, model, sequence, number, flags) for number, flags in zip(numbers, flags_of(steps))]
    sums = np.cumsum(list(numbers)).tolist()
    assert seen == [*sums[:-1], expected(model, sequence, numbers)]


@pytest.mark.parametrize("model", MODELS)
def test_interleaved_sequences_of_a_stream_are_summed(server, model):
    """Four sequences take turns; each has a slot."""
    numbers = {sequence: [random.Random(sequence).randrange(100) for _ in range(6)] for sequence in (11, 12, 13, 14)}
    many = model != "single"
    live = numbers if many else {11: numbers[11]}
    requests = [
        step(sequence, live[sequence][turn], flags_of(6)[turn], model, batched=many) for turn in range(6) for sequence in live
    ]
    replies, code, _ = play(server, requests)
    assert code.name == "OK" and len(replies) == 6 * len(live)
    last = {reply[1]: values(reply) for reply in replies}
    for sequence, each in live.items():
        assert last[f"{sequence}:{each[-1]}"] == expected(model, sequence, each), (sequence, replies)


def test_sequences_with_several_elements_are_summed(server):
    with clients.client(server, "http") as stock:
        answer = clients.infer(stock, "http", "direct", {"INPUT": np.array([[1, 2, 3]], np.int32)}, sequence_id=9, sequence_start=True, sequence_end=True)
    assert answer["OUTPUT"].tolist() == [[6, 6, 6]]


@pytest.mark.parametrize("protocol", clients.MODULES)
def test_invalid_sequence_requests_are_refused(server, protocol):
    cases = [
        ({"sequence_id": 27, "sequence_start": True}, [2, 1], "must specify batch-size 1 due to requirements of sequence batcher"),
        ({"sequence_start": True}, [1, 1], "must specify a non-zero or non-empty correlation ID"),
        ({"sequence_id": 27}, [1, 1], "inference request for sequence 27 to model 'direct' must specify the START flag on the first request of the sequence"),
    ]
    with clients.client(server, protocol) as stock:
        for fields, shape, text in cases:
            with pytest.raises(InferenceServerException, match=text):
                clients.infer(stock, protocol, "direct", {"INPUT": np.ones(shape, np.int32)}, **fields)
        ask(stock, protocol, "direct", 28, 1, "s")
        ask(stock, protocol, "direct", 28, 1, "e")
        with pytest.raises(InferenceServerException, match="must specify the START flag"):
            ask(stock, protocol, "direct", 28, 1)


@pytest.mark.parametrize("model", MODELS)
def test_a_sequence_without_an_end_may_be_restarted(server, model):
    with clients.client(server, "grpc") as stock:
        assert [ask(stock, "grpc", model, 33, 1, "s"), ask(stock, "grpc", model, 33, 2)] == [1, 3]
        assert [ask(stock, "grpc", model, 33, 42, "s"), ask(stock, "grpc", model, 33, 9)] == [42, 51]
        assert ask(stock, "grpc", model, 33, 1, "e") == expected(model, 33, [42, 9, 1])


def test_a_long_idle_sequence_frees_its_slot(server):
    """It holds the only slot, and another sequence waits for it."""
    with clients.client(server, "grpc") as stock:
        ask(stock, "grpc", "brief", 1, 1, "s")
        assert ask(stock, "grpc", "brief", 2, 7, "se") == 7
        with pytest.raises(InferenceServerException, match="for sequence 1 to model 'brief' must specify the START flag"):
            ask(stock, "grpc", "brief", 1, 2)


def test_many_concurrent_sequences_are_summed(server):
    """Threads run random sequences over each protocol, restarted, ended or left open, like Triton's stress test."""
    failures = []

    def run(number):
        choose = random.Random(number)
        protocol = choose.choice(list(clients.MODULES))
        try:
            with clients.client(server, protocol) as stock:
                for turn in range(8):
                    model, sequence = choose.choice(MODELS), number * 1000 + turn
                    numbers = [choose.randrange(1000) for _ in range(choose.randrange(1, 7))]
                    if choose.random() < 0.2 and len(numbers) > 1:
                        ask(stock, protocol, model, sequence, 5, "s")
                    for value, flags in zip(numbers, flags_of(len(numbers))):
                        seen = ask(stock, protocol, model, sequence, value, flags)
                    if seen != expected(model, sequence, numbers):
                        failures.append((model, sequence, numbers, seen))
        except Exception as error:  # noqa: BLE001
            failures.append((number, error))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(1, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# What waits until all of it is there: requests in the order in which they are sent, the sums at the ends, and how many
# executions have how many rows. `s` begins a sequence, `e` ends it.
HELD = {
    "two_of_four_places": {
        "hold": (8, 0), "sequences": {1: [1, 2, 3, 4], 2: [0, 9, 5, 13]}, "executions": {2: 4},
    },
    "sequences_of_two_lengths": {
        "hold": (8, 0), "sequences": {1: [1, 3], 2: [11, 12, 13], 3: [111, 113, 115]}, "executions": {3: 3},
    },
    "all_places": {
        "hold": (8, 0), "sequences": {1: [1, 2], 2: [11, 12], 3: [111, 112], 4: [1111, 1112]}, "executions": {4: 2},
    },
    "one_more_than_places": {
        "hold": (8, 2), "executions": {4: 2, 1: 2},
        "sequences": {1: [1, 2], 2: [11, 12], 3: [111, 112], 4: [1111, 1112], 5: [11111, 11112]},
    },
    "more_come_from_the_backlog": {
        # Two short ones leave their places to those that wait. A row that is not ready is one of its batch.
        "hold": (8, 2), "executions": {4: 3},
        "sequences": {1: [1, 2, 3], 2: [11], 3: [111], 4: [1111, 1112, 1113], 5: [11111], 6: [22222]},
    },
}


def in_turns(sequences):
    """The requests of sequences that take turns."""
    longest = max(map(len, sequences.values()))
    return [
        (sequence, numbers[turn], flags_of(len(numbers))[turn])
        for turn in range(longest) for sequence, numbers in sequences.items() if turn < len(numbers)
    ]


@pytest.mark.parametrize("case", HELD)
@pytest.mark.parametrize("backend", CONTROLS)
def test_waiting_requests_are_executed_together(case, backend, hold):
    case = HELD[case]
    sequences = case["sequences"]
    server = hold(backend, config(backend), *case["hold"])
    replies, code, _ = play(server, [step(*request, "held") for request in in_turns(sequences)])
    assert code.name == "OK"
    is_counted(server, sum(map(len, sequences.values())))
    seen = executions(server, "held")
    last = {reply[1]: values(reply) for reply in replies}
    for sequence, numbers in sequences.items():
        total = sum(numbers) + (sequence if backend == "dyna_sequence" else 0)
        assert last[f"{sequence}:{numbers[-1]}"] == total, (sequence, replies)
    assert seen == case["executions"]


def test_a_sequence_waits_for_the_previous_one_of_its_id(hold):
    """An id ends and starts again while all slots are taken; another starts again without an end."""
    requests = [(n, n, "s") for n in (1, 2, 3, 4)] + [(5, 1, "s"), (5, 2, "e"), (5, 10, "s"), (5, 20, "e")]
    requests += [(n, 100, "e") for n in (1, 2, 3, 4)]
    server = hold("sequence", config("sequence"), 8, 2)
    replies, code, _ = play(server, [step(*request, "held") for request in requests])
    last = {reply[1]: values(reply) for reply in replies}
    assert code.name == "OK"
    assert [last["5:2"], last["5:20"]] == [3, 30]
    assert [last[f"{n}:100"] for n in (1, 2, 3, 4)] == [101, 102, 103, 104]


def test_a_slow_sequence_catches_up(hold):
    """With the oldest strategy a batch holds one request of each sequence, however many wait."""
    sequences = {1: [1], 2: [2] * 4, 3: [3] * 6, 4: [4] * 6}
    server = hold("dyna_sequence", config("dyna_sequence", OLDEST), 4)
    requests = [(n, numbers[i], flags) for n, numbers in sequences.items() for i, flags in enumerate(flags_of(len(numbers)))]
    replies, code, _ = play(server, [step(*request, "held", request_id=f"{request[0]}:{i}") for i, request in enumerate(requests)])
    is_counted(server, 17)
    rows = executions(server, "held")
    assert code.name == "OK"
    sums = [max(values(reply) for reply in replies if reply[1].startswith(f"{n}:")) for n in sequences]
    assert sums == [2, 10, 21, 28]
    assert sum(size * count for size, count in rows.items()) == 17 and max(rows) <= 4 and sum(rows.values()) >= 6, rows


@pytest.mark.parametrize("share, together", [("0.5", {2: 1}), ("1", {4: 1})])
def test_a_batch_waits_for_the_minimum_slot_utilization(hold, share, together):
    strategy = f"direct {{ max_queue_delay_microseconds: 60000000 minimum_slot_utilization: {share} }}"
    count = max(together)
    server = hold("sequence", config("sequence", strategy))
    replies, _, _ = play(server, [step(n, n, "se", "held") for n in range(1, count + 1)])
    is_counted(server, count)
    assert executions(server, "held") == together
    assert sorted(map(values, replies)) == list(range(1, count + 1))


def test_preferred_sizes_limit_batches_of_the_oldest_strategy(hold):
    strategy = "oldest { max_candidate_sequences: 4 preferred_batch_size: [ 2 ] }"
    server = hold("dyna_sequence", config("dyna_sequence", strategy), 4)
    replies, _, _ = play(server, [step(n, n, "se", "held") for n in (1, 2, 3, 4)])
    is_counted(server, 4)
    assert executions(server, "held") == {2: 2}
    assert sorted(map(values, replies)) == [2, 4, 6, 8]


def test_correlation_ids_may_be_texts_or_numbers(stage):
    text = config("dyna_sequence", OLDEST).replace("TYPE_UINT64", "TYPE_STRING")
    server = stage.get("galatea", lambda path, _: repositories.write_model(path, "texts", "galatea", "dyna_sequence", text))
    for protocol in clients.MODULES:
        with clients.client(server, protocol) as stock:
            assert ask(stock, protocol, "texts", "101", 1, "s") == 1
            assert ask(stock, protocol, "texts", "101", 2, "e") == 104
            with pytest.raises(InferenceServerException, match="correlation id 'one' is not a number"):
                ask(stock, protocol, "texts", "one", 1, "s")


# ---- iterative_sequence ----

def write_iterative(path, name, scheduling, delay=5, rows=4):
    tensors = repositories.tensor("input", "INPUT", "TYPE_INT32", "1") + repositories.tensor("output", "OUTPUT", "TYPE_INT32", "1")
    parameter = f'parameters {{ key: "execute_delay_ms" value {{ string_value: "{delay}" }} }}'
    text = (f"max_batch_size: {rows}\n{tensors}model_transaction_policy {{ decoupled: true }}\n"
            f"instance_group [ {{ kind: KIND_CPU }} ]\n{scheduling}\n{parameter}")
    repositories.write_model(path, name, "galatea", "iterative_sequence", text)


@pytest.fixture(scope="module")
def iterative(module_stage):
    return module_stage.get("galatea", write_all_iterative)


def write_all_iterative(path, _):
    write_iterative(path, "counts", "sequence_batching { iterative_sequence: true }")
    full = "sequence_batching { iterative_sequence: true max_sequence_idle_microseconds: 60000000 direct { max_queue_delay_microseconds: 10000 } }"
    write_iterative(path, "one", full, rows=1)
    write_iterative(path, "once_brief", "sequence_batching { iterative_sequence: true max_sequence_idle_microseconds: 20000 }", delay=200)
    write_iterative(path, "once_direct", "sequence_batching { iterative_sequence: false direct { } }")
    write_iterative(path, "once_oldest", "sequence_batching { iterative_sequence: false oldest { } }")
    write_iterative(path, "once_dynamic", "dynamic_batching { }")


def countdowns(server, model, number, requests=1, **sequence):
    """The numbers that a stream of the stock client gets, and the error."""
    answers = queue.Queue()
    tensor = grpcclient.InferInput("INPUT", [1, 1], "INT32")
    tensor.set_data_from_numpy(np.array([[number]], np.int32))
    seen = []
    with clients.client(server, "grpc") as stock:
        stock.start_stream(lambda result, error: answers.put(error or result))
        for _ in range(requests):
            stock.async_stream_infer(model, [tensor], **sequence)
        for _ in range(number * requests):
            answer = answers.get(timeout=60)
            if isinstance(answer, InferenceServerException):
                return seen, answer.message()
            seen.append(int(answer.as_numpy("OUTPUT").ravel()[0]))
    return seen, None


def test_an_iterative_request_is_executed_until_its_last_response(iterative):
    assert countdowns(iterative, "counts", 5) == ([4, 3, 2, 1, 0], None)
    seen, error = countdowns(iterative, "counts", 3, requests=4)
    assert error is None and sorted(seen) == [0] * 4 + [1] * 4 + [2] * 4
    seen, error = countdowns(iterative, "one", 3, requests=4)
    assert error is None and sorted(seen) == [0] * 4 + [1] * 4 + [2] * 4, "more than places: they wait"


def test_generate_streams_each_response(iterative):
    status, _, body = clients.ask(iterative.http, "POST", "/v2/models/counts/generate_stream", {"INPUT": 3})
    events = [json.loads(line[6:])["OUTPUT"] for line in body.decode().splitlines() if line.startswith("data: ")]
    assert (status, events) == (200, [2, 1, 0])


def test_a_sequence_is_not_idle_while_it_is_executed(iterative):
    """An execution takes ten times as long as a sequence may be idle."""
    assert countdowns(iterative, "once_brief", 3) == ([2, 1, 0], None)


@pytest.mark.parametrize("model, sequence", [
    ("once_direct", {"sequence_id": 1, "sequence_start": True}), ("once_oldest", {"sequence_id": 2, "sequence_start": True}), ("once_dynamic", {}),
])
def test_a_rescheduled_request_of_another_model_is_refused(iterative, model, sequence):
    seen, error = countdowns(iterative, model, 2, **sequence)
    assert error.startswith("Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not"), (seen, error)


# ---- implicit_state ----

STATE = 'state { input_name: "INPUT_STATE" output_name: "OUTPUT_STATE" data_type: TYPE_INT32 dims: [ 1 ] %s }'


def write_implicit(path, name, state, outputs=""):
    lines = "".join(line + "\n" for line in controls("fp32", None).splitlines())
    text = ("".join(repositories.tensor("input", n, "TYPE_INT32", "1") for n in ("INPUT", "TEST_CASE"))
            + repositories.tensor("output", "OUTPUT", "TYPE_INT32", "1") + outputs + f"sequence_batching {{\n{lines} {state} }}\n")
    repositories.write_model(path, name, "galatea", "implicit_state", text)


@pytest.fixture(scope="module")
def implicit(module_stage):
    return module_stage.get("galatea", write_all_implicit)


def write_all_implicit(path, _):
    write_implicit(path, "no_implicit_state", "")
    write_implicit(path, "wrong_internal_state", STATE % "")
    write_implicit(path, "no_state_update", STATE % "")
    write_implicit(path, "copies", STATE % "")
    write_implicit(path, "single_state_buffer", STATE % "use_same_buffer_for_input_output: true")
    growing = STATE.replace("INT32", "INT8").replace("[ 1 ]", "[ 1024, 1024 ]")
    growing %= "use_same_buffer_for_input_output: true use_growable_memory: true"
    write_implicit(path, "growable_memory", growing, repositories.tensor("output", "OUTPUT_STATE", "TYPE_INT8", "-1"))


def case(server, model, number, flags, value=1, outputs=None):
    arrays = {"INPUT": np.array([value], np.int32), "TEST_CASE": np.array([number], np.int32)}
    with clients.client(server, "http") as stock:
        return clients.infer(stock, "http", model, arrays, outputs, sequence_id=3, sequence_start="s" in flags, sequence_end="e" in flags)


def test_an_unknown_state_is_an_error(implicit):
    text = "unable to add state 'undefined_state'. State configuration is missing for model 'no_implicit_state'."
    with pytest.raises(InferenceServerException, match=text):
        case(implicit, "no_implicit_state", 0, "se")
    with pytest.raises(InferenceServerException, match="state 'undefined_state' is not a valid state name."):
        case(implicit, "wrong_internal_state", 0, "se")


def test_a_state_that_is_not_updated_is_kept(implicit):
    for flags in ["s", *[""] * 10, "e"]:
        assert case(implicit, "no_state_update", 1, flags)["OUTPUT"].tolist() == [1]


def test_a_state_in_a_single_buffer_is_not_copied(implicit):
    for flags in ("s", "", "e"):
        case(implicit, "single_state_buffer", 2, flags)
    case(implicit, "copies", 2, "s")
    with pytest.raises(InferenceServerException, match="Input and output state are using different buffers."):
        case(implicit, "copies", 2, "e")


def test_a_state_keeps_its_content_when_it_grows(implicit):
    for steps, flags in enumerate(("s", "", "", "e")):
        state = case(implicit, "growable_memory", 3, flags, outputs=["OUTPUT_STATE"])["OUTPUT_STATE"]
        assert state.size == (steps + 1) << 20
        assert [set(block) for block in state.reshape(steps + 1, -1).tolist()] == [{n} for n in range(steps + 1)]
