"""The response cache in memory, with stock clients: what is equal, what is stored, what is executed once."""

import concurrent.futures
import http.client
import json
import subprocess

import numpy as np
import pytest

import clients
import servers
import shared_flags
from repositories import REPEAT_CONFIG, add_sub_config, identity_config, write_model
from test_python_queue import CONFIG as GATE_CONFIG
from test_python_queue import GATE, Gates
from waiting import LIMIT, eventually

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("observed")
CACHE = "response_cache { enable: true }\n"
ANSWERS = """\
import json

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answer = lambda r: np.array([json.loads(r.parameters()).get("add", 0) + VALUE], np.int32)
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", answer(r))]) for r in requests]
"""
ANSWERS_CONFIG = identity_config("TYPE_INT32", "1", more=CACHE)


@pytest.fixture
def cached(shared):
    """A server with a cache in memory."""
    flags, env = shared_flags.observed()
    return shared(*flags, env=env)


@pytest.fixture
def small(shared):
    """A server with a cache of 3,000 bytes, asked for by the option that is deprecated."""
    return shared("--response-cache-byte-size=3000")


def counted(server, model):
    """hits, misses, successes, executions"""
    found = clients.statistics(server, model)
    counts = found["inference_stats"]
    return (*(counts[name]["count"] for name in ("cache_hit", "cache_miss", "success")), found["execution_count"])


def ask(server, model, body):
    status, _, answer = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)
    return status, json.loads(answer)


def one(value, **more):
    return {"inputs": [clients.tensor_json("INPUT0", np.array([value], np.int32))], **more}


def value_of(answer):
    status, body = answer
    assert status == 200, body
    return body["outputs"][0]["data"][0]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("scheduling", ["", "dynamic_batching { }\n", "dynamic_batching { preserve_ordering: true }\n"])
def test_an_equal_request_is_not_executed(cached, pair, protocol, scheduling):
    name = cached.add("simple", "add_sub", add_sub_config(more=scheduling + CACHE))
    a, b = pair
    with clients.client(cached, protocol) as stock:
        for _ in range(3):
            answer = clients.infer(stock, protocol, name, {"INPUT0": a, "INPUT1": b})
            assert np.array_equal(answer["OUTPUT0"], a + b) and np.array_equal(answer["OUTPUT1"], a - b)
        swapped = clients.infer(stock, protocol, name, {"INPUT0": b, "INPUT1": a})
        assert np.array_equal(swapped["OUTPUT1"], b - a)
        only = clients.infer(stock, protocol, name, {"INPUT0": a, "INPUT1": b}, outputs=["OUTPUT1"])
        assert list(only) == ["OUTPUT1"]
    assert counted(cached, name) == (2, 3, 5, 3)


def test_parameters_are_part_of_the_key(cached):
    name = cached.add("answers", "python", ANSWERS_CONFIG, files={"1/model.py": ANSWERS.replace("VALUE", "1")})
    asked = [one(0), one(0, parameters={"add": 5}), one(0, id="x"), one(0, parameters={"add": 5}), one(0, parameters={"priority": 0})]
    assert [value_of(ask(cached, name, body)) for body in asked] == [1, 6, 1, 6, 1]
    assert counted(cached, name) == (3, 2, 5, 2)


def test_a_cached_response_is_classified_per_request(cached):
    name = cached.add("identity", "identity", identity_config("TYPE_INT32", "3", more=CACHE))
    inputs = [clients.tensor_json("INPUT0", np.array([3, 9, 5], np.int32))]
    plain = {"inputs": inputs, "outputs": [{"name": "OUTPUT0"}]}
    classes = {"inputs": inputs, "outputs": [{"name": "OUTPUT0", "parameters": {"classification": 1}}]}
    answers = [ask(cached, name, body)[1]["outputs"][0]["data"] for body in (plain, classes, plain)]
    assert answers[0] == answers[2] == [3, 9, 5] and len(answers[1]) == 1 and answers[1][0].endswith(":1")
    assert counted(cached, name) == (2, 1, 3, 1)


GATE_OF_CACHE = GATE_CONFIG + CACHE + "instance_group [ { kind: KIND_CPU count: 1 } ]\n"


@pytest.fixture
def gates(cached, tmp_path):
    """Requests to a model that caches and is done with one when the test says so."""
    return Gates(cached, tmp_path, cached.add("gate", "python", GATE_OF_CACHE, files={"1/model.py": GATE}))


def wait_for_in_flight(gates, count):
    series = "galatea_inference_requests_in_flight", f'model="{gates.model}",version="1"'
    eventually(f"{count} requests are in hand", lambda: clients.metrics(gates.server)[series] == count)


def totals(server):
    found = clients.metrics(server)
    return [found[f"nv_cache_num_{name}", ""] for name in ("hits", "misses", "lookups", "entries")]


def test_simultaneous_equal_requests_are_executed_once(cached, gates):
    before = totals(cached)
    answers = gates.begin("a")
    answers += [gates.send("a") for _ in range(7)]
    wait_for_in_flight(gates, 8)
    gates.permit("a")
    assert [answer.result(LIMIT) for answer in answers] == [200] * 8
    assert counted(cached, gates.model) == (7, 1, 8, 1)
    found = clients.metrics(cached)
    names = ("nv_cache_num_hits_per_model", "nv_cache_num_misses_per_model", "nv_inference_exec_count")
    assert [found[name, f'model="{gates.model}",version="1"'] for name in names] == [7, 1, 1]
    assert [now - then for now, then in zip(totals(cached), before)] == [7, 1, 8, 1]


def test_with_held_requests_equal_ones_are_all_executed(shared):
    flags, env = shared_flags.observed()
    server = shared(*flags, env={**env, "TRITONSERVER_DELAY_SCHEDULER": "2"})
    name = server.add("simple", "add_sub", add_sub_config(more="dynamic_batching { }\n" + CACHE))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: ask(server, name, clients.pair_json())[0], range(2)))
    assert answers == [200, 200]
    assert counted(server, name) == (0, 1, 2, 1)


def test_a_disconnected_first_client_does_not_fail_the_waiting_ones(cached, gates, tmp_path):
    body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "BYTES", "data": [str(tmp_path / "a")]}]}
    first = http.client.HTTPConnection(cached.http, timeout=LIMIT)
    first.request("POST", f"/v2/models/{gates.model}/infer", json.dumps(body))
    eventually("the model begins", lambda: gates.has_begun("a"))
    others = [gates.send("a") for _ in range(3)]
    wait_for_in_flight(gates, 4)
    first.close()
    gates.permit("a")
    assert [other.result(LIMIT) for other in others] == [200] * 3


def test_a_failure_is_not_stored(cached):
    fail = 'parameters { key: "fail" value { string_value: "execute" } }\n'
    name = cached.add("failing", "failing", identity_config("TYPE_INT32", "1", more=CACHE + fail))
    assert [ask(cached, name, one(1))[0] for _ in range(3)] == [500] * 3
    assert counted(cached, name) == (0, 3, 0, 3)


def test_a_reloaded_model_is_executed_again(cached):
    name = cached.add("answers", "python", ANSWERS_CONFIG, files={"1/model.py": ANSWERS.replace("VALUE", "1")})
    assert [value_of(ask(cached, name, one(0))) for _ in range(2)] == [1, 1]
    cached.write("answers", "python", ANSWERS_CONFIG, files={"1/model.py": ANSWERS.replace("VALUE", "2")})
    cached.load(name)
    assert [value_of(ask(cached, name, one(0))) for _ in range(2)] == [2, 2]
    assert counted(cached, name) == (1, 1, 2, 1)


def test_the_least_recently_used_entry_is_evicted(small):
    name = small.add("identity", "identity", identity_config("TYPE_INT32", "1", more=CACHE))
    before = clients.metrics(small)
    for value in (1, 2, 1, 3, 4, 5, 6, 1, 7, 8):
        assert value_of(ask(small, name, one(value))) == value
    found = clients.metrics(small)
    grown = {kind: found[f"nv_cache_num_{kind}", ""] - before[f"nv_cache_num_{kind}", ""] for kind in ("entries", "evictions", "misses")}
    assert 2 <= found["nv_cache_num_entries", ""] <= 6 and grown["entries"] + grown["evictions"] == grown["misses"]
    assert 0 < found["nv_cache_util", ""] <= 1
    # The last ones are there, in any case.
    before = counted(small, name)[0]
    assert value_of(ask(small, name, one(8))) == 8
    assert counted(small, name)[0] == before + 1


def test_a_response_too_large_for_the_cache_is_reported(small):
    name = small.add("identity", "identity", identity_config("TYPE_INT32", "-1", more=CACHE))
    long = {"inputs": [clients.tensor_json("INPUT0", np.zeros(1000, np.int32))]}
    assert [ask(small, name, long)[0] for _ in range(2)] == [200, 200]
    assert counted(small, name) == (0, 2, 2, 2)
    small.wait_for_line(
        r"Failed to insert key \[[0-9a-f]{64}\] into response cache: Requested byte_size: \d+ is greater than total cache size: 3000"
    )


def test_a_cacheable_model_without_a_cache_is_reported(shared):
    server = shared()
    name = server.add("identity", "identity", identity_config("TYPE_INT32", "1", more=CACHE))
    server.wait_for_line(f"response_cache of model '{name}' has no effect: the server has no cache")
    assert re_table(server, "0")
    assert [value_of(ask(server, name, one(1))) for _ in range(2)] == [1, 1]
    assert counted(server, name) == (0, 0, 2, 2)
    assert not any(name.startswith("nv_cache") for name, _ in clients.metrics(server))


def re_table(server, value):
    return any("cache_enabled" in line and f" {value} " in line for line in server.log)


def test_the_deprecated_option_makes_the_same_cache(small):
    name = small.add("identity", "identity", identity_config("TYPE_INT32", "1", more=CACHE))
    said = "The equivalent --cache-config CLI args would be: '--cache-config=local,size=3000'"
    assert any(said in line for line in small.log)
    assert re_table(small, "1")
    assert [value_of(ask(small, name, one(1))) for _ in range(2)] == [1, 1]
    assert counted(small, name) == (1, 1, 2, 1)


@pytest.mark.parametrize(
    "flags, text",
    [
        (["local,size=8192", "redis,key=value"], "Invalid argument - found multiple cache configurations, but only a single"),
        (["foo,size=1"], "Invalid argument - unable to find 'libtritoncache_foo.so' for cache. Searched: /opt/tritonserver/caches"),
        (["local,siz=1"], "Invalid argument - Failed to initialize LocalCache: config didn't contain a valid 'size' field."),
        (["local,size=1"], "Internal - Failed to initialize LocalCache: Could not initialize buffer"),
        (["redis,port=6379"], "Invalid argument - Failed to initialize RedisCache, didn't specify address. Must at a minimum specify"),
    ],
)
def test_invalid_cache_options_are_refused_like_in_triton(repository, flags, text):
    server = servers.galatea(repository.path, *(f"--cache-config={flag}" for flag in flags), wait=False)
    assert server.wait_for_exit() == 1
    assert f"error: creating server: {text}" in server.text()


def test_check_finds_an_ensemble_that_cannot_be_cached(repository):
    repository.add("repeat", "repeat", REPEAT_CONFIG)
    maps = "".join(f'input_map {{ key: "{name}" value: "{name}" }}\n' for name in ("IN", "DELAY", "WAIT"))
    outputs = "".join(f'output_map {{ key: "{name}" value: "{name}" }}\n' for name in ("OUT", "IDX"))
    step = f'step [ {{ model_name: "repeat" model_version: -1 {maps} {outputs} }} ]'
    tensors = REPEAT_CONFIG.replace("model_transaction_policy { decoupled: true }\n", "")
    write_model(repository.path, "all", "galatea", "ensemble", f"{tensors}ensemble_scheduling {{ {step} }}\n{CACHE}")
    run = subprocess.run([servers.galatea_binary(), "check", repository.path], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0
    assert "Response Cache does not currently support model all with 'decoupled' transaction policy" in run.stdout


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_long_request_is_cached(cached, protocol):
    name = cached.add("identity", "identity", identity_config("TYPE_INT32", "-1", more=CACHE))
    long = np.arange(1_000_000, dtype=np.int32)
    with clients.client(cached, protocol) as stock:
        for changed in (0, 0, 1, 1):
            long[-1] = changed
            assert np.array_equal(clients.infer(stock, protocol, name, {"INPUT0": long})["OUTPUT0"], long)
    assert counted(cached, name) == (2, 2, 4, 2)
