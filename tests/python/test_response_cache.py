"""The response cache in memory, with stock clients: what is equal, what is stored, what is executed once."""

import concurrent.futures
import http.client
import json
import subprocess

import numpy as np
import pytest

import clients
import servers
from repositories import REPEAT_CONFIG, add_sub_config, identity_config, write_model

CACHE = "response_cache { enable: true }\n"
LOCAL = "--cache-config=local,size=1048576"
SLOW = 'parameters { key: "execute_delay_ms" value { string_value: "400" } }\n'
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
def test_an_equal_request_is_not_executed(repository, serve, pair, protocol, scheduling):
    repository.add("simple", "add_sub", add_sub_config(more=scheduling + CACHE))
    server = serve(repository.path, LOCAL)
    a, b = pair
    with clients.client(server, protocol) as stock:
        for _ in range(3):
            answer = clients.infer(stock, protocol, "simple", {"INPUT0": a, "INPUT1": b})
            assert np.array_equal(answer["OUTPUT0"], a + b) and np.array_equal(answer["OUTPUT1"], a - b)
        swapped = clients.infer(stock, protocol, "simple", {"INPUT0": b, "INPUT1": a})
        assert np.array_equal(swapped["OUTPUT1"], b - a)
        only = clients.infer(stock, protocol, "simple", {"INPUT0": a, "INPUT1": b}, outputs=["OUTPUT1"])
        assert list(only) == ["OUTPUT1"]
    assert counted(server, "simple") == (2, 3, 5, 3)


def test_parameters_are_part_of_what_is_equal(repository, serve):
    repository.add("answers", "python", ANSWERS_CONFIG, files={"1/model.py": ANSWERS.replace("VALUE", "1")})
    server = serve(repository.path, LOCAL)
    asked = [one(0), one(0, parameters={"add": 5}), one(0, id="x"), one(0, parameters={"add": 5}), one(0, parameters={"priority": 0})]
    assert [value_of(ask(server, "answers", body)) for body in asked] == [1, 6, 1, 6, 1]
    assert counted(server, "answers") == (3, 2, 5, 2)


def test_an_answer_is_classified_after_it_was_found(repository, serve):
    repository.add("identity", "identity", identity_config("TYPE_INT32", "3", more=CACHE))
    server = serve(repository.path, LOCAL)
    inputs = [clients.tensor_json("INPUT0", np.array([3, 9, 5], np.int32))]
    plain = {"inputs": inputs, "outputs": [{"name": "OUTPUT0"}]}
    classes = {"inputs": inputs, "outputs": [{"name": "OUTPUT0", "parameters": {"classification": 1}}]}
    answers = [ask(server, "identity", body)[1]["outputs"][0]["data"] for body in (plain, classes, plain)]
    assert answers[0] == answers[2] == [3, 9, 5] and len(answers[1]) == 1 and answers[1][0].endswith(":1")
    assert counted(server, "identity") == (2, 1, 3, 1)


def test_equal_requests_at_the_same_time_are_executed_once(repository, serve):
    repository.add("slow", "identity", identity_config("TYPE_INT32", "1", more=CACHE + SLOW))
    server = serve(repository.path, LOCAL)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: value_of(ask(server, "slow", one(7))), range(8)))
    assert answers == [7] * 8
    assert counted(server, "slow") == (7, 1, 8, 1)
    found = clients.metrics(server)
    series = 'model="slow",version="1"'
    names = ("nv_cache_num_hits_per_model", "nv_cache_num_misses_per_model", "nv_inference_exec_count")
    assert [found[name, series] for name in names] == [7, 1, 1]
    assert [found[f"nv_cache_num_{name}", ""] for name in ("hits", "misses", "lookups", "entries")] == [7, 1, 8, 1]


def test_where_a_test_counts_what_is_queued_all_are_executed(repository, serve):
    repository.add("simple", "add_sub", add_sub_config(more="dynamic_batching { }\n" + CACHE))
    server = serve(repository.path, LOCAL, env={"TRITONSERVER_DELAY_SCHEDULER": "2"})
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: ask(server, "simple", clients.pair_json())[0], range(2)))
    assert answers == [200, 200]
    assert counted(server, "simple") == (0, 1, 2, 1)


def test_a_client_that_leaves_takes_no_other_with_it(repository, serve):
    repository.add("slow", "identity", identity_config("TYPE_INT32", "1", more=CACHE + SLOW))
    server = serve(repository.path, LOCAL)

    def in_flight(count):
        while clients.metrics(server)["galatea_inference_requests_in_flight", 'model="slow",version="1"'] < count:
            pass

    first = http.client.HTTPConnection(server.http, timeout=60)
    first.request("POST", "/v2/models/slow/infer", json.dumps(one(7)))
    in_flight(1)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        others = [pool.submit(ask, server, "slow", one(7)) for _ in range(3)]
        in_flight(4)
        first.close()
        assert [value_of(other.result()) for other in others] == [7] * 3


def test_a_failure_is_not_stored(repository, serve):
    fail = 'parameters { key: "fail" value { string_value: "execute" } }\n'
    repository.add("failing", "failing", identity_config("TYPE_INT32", "1", more=CACHE + fail))
    server = serve(repository.path, LOCAL)
    assert [ask(server, "failing", one(1))[0] for _ in range(3)] == [500] * 3
    assert counted(server, "failing") == (0, 3, 0, 3)


def test_what_was_loaded_again_answers_anew(repository, serve):
    def write(value):
        repository.add("answers", "python", ANSWERS_CONFIG, files={"1/model.py": ANSWERS.replace("VALUE", value)})

    write("1")
    server = serve(repository.path, LOCAL, "--model-control-mode=explicit", "--load-model=answers")
    assert [value_of(ask(server, "answers", one(0))) for _ in range(2)] == [1, 1]
    write("2")
    assert clients.ask(server.http, "POST", "/v2/repository/models/answers/load", {})[0] == 200
    assert [value_of(ask(server, "answers", one(0))) for _ in range(2)] == [2, 2]
    assert counted(server, "answers") == (1, 1, 2, 1)


def test_what_was_not_asked_for_the_longest_makes_room(repository, serve):
    repository.add("identity", "identity", identity_config("TYPE_INT32", "1", more=CACHE))
    server = serve(repository.path, "--cache-config=local,size=3000")
    for value in (1, 2, 1, 3, 4, 5, 6, 1, 7, 8):
        assert value_of(ask(server, "identity", one(value))) == value
    found = clients.metrics(server)
    entries, evicted = found["nv_cache_num_entries", ""], found["nv_cache_num_evictions", ""]
    assert 2 <= entries <= 6 and entries + evicted == found["nv_cache_num_misses", ""]
    assert 0 < found["nv_cache_util", ""] <= 1
    # The last ones are there, in any case.
    before = counted(server, "identity")[0]
    assert value_of(ask(server, "identity", one(8))) == 8
    assert counted(server, "identity")[0] == before + 1


def test_what_does_not_fit_is_told(repository, serve):
    repository.add("identity", "identity", identity_config("TYPE_INT32", "-1", more=CACHE))
    server = serve(repository.path, "--cache-config", "local,size=1000")
    long = {"inputs": [clients.tensor_json("INPUT0", np.zeros(1000, np.int32))]}
    assert [ask(server, "identity", long)[0] for _ in range(2)] == [200, 200]
    assert counted(server, "identity") == (0, 2, 2, 2)
    server.wait_for_line(
        r"Failed to insert key \[[0-9a-f]{64}\] into response cache: Requested byte_size: \d+ is greater than total cache size: 1000"
    )


def test_a_model_that_would_be_cached_says_so_without_a_cache(repository, serve):
    repository.add("identity", "identity", identity_config("TYPE_INT32", "1", more=CACHE))
    server = serve(repository.path)
    assert "response_cache of model 'identity' has no effect: the server has no cache" in server.text()
    assert re_table(server, "0")
    assert [value_of(ask(server, "identity", one(1))) for _ in range(2)] == [1, 1]
    assert counted(server, "identity") == (0, 0, 2, 2)
    assert not any(name.startswith("nv_cache") for name, _ in clients.metrics(server))


def re_table(server, value):
    return any("cache_enabled" in line and f" {value} " in line for line in server.log)


def test_the_deprecated_option_makes_the_same_cache(repository, serve):
    repository.add("identity", "identity", identity_config("TYPE_INT32", "1", more=CACHE))
    server = serve(repository.path, "--response-cache-byte-size=8192")
    assert "The equivalent --cache-config CLI args would be: '--cache-config=local,size=8192'" in server.text()
    assert re_table(server, "1")
    assert [value_of(ask(server, "identity", one(1))) for _ in range(2)] == [1, 1]
    assert counted(server, "identity") == (1, 1, 2, 1)


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
def test_what_is_no_cache_is_refused_as_by_triton(repository, flags, text):
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
def test_a_long_request_is_found_as_well(repository, serve, protocol):
    repository.add("identity", "identity", identity_config("TYPE_INT32", "-1", more=CACHE))
    server = serve(repository.path, "--cache-config=local,size=64M")
    long = np.arange(1_000_000, dtype=np.int32)
    with clients.client(server, protocol) as stock:
        for changed in (0, 0, 1, 1):
            long[-1] = changed
            assert np.array_equal(clients.infer(stock, protocol, "identity", {"INPUT0": long})["OUTPUT0"], long)
    assert counted(server, "identity") == (2, 2, 4, 2)
