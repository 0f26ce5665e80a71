"""Response caches in libraries that were made for Triton: one of our own in C, and Triton's own without a change."""

import json
import os
import subprocess

import pytest

import c_libraries
import clients
import scenarios
import servers
import tiers
from repositories import add_sub_config, identity_config, write_model
from waiting import eventually

CACHE = "response_cache { enable: true }\n"
ONE = {"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1.5]}]}


@pytest.fixture(scope="module")
def caches(tmp_path_factory):
    folder = tmp_path_factory.mktemp("caches")
    c_libraries.compile_library(folder, "cache", "own")
    return folder


@pytest.fixture
def start(tmp_path, caches, serve):
    """`start(does)` is a server whose cache does that; `server.calls()` are the calls that it got."""

    def started(does="", **options):
        write_model(tmp_path / "models", "identity", "galatea", "identity", identity_config(more=CACHE))
        log, gate = tmp_path / "calls", tmp_path / "gate"
        if does == "hang":
            os.mkfifo(gate)
        settings = {"log": log, "gate": gate, "does": does}
        flags = [f"--cache-config=own,{name}={value}" for name, value in settings.items() if value]
        server = serve(tmp_path / "models", f"--cache-directory={caches}", *flags, **options)
        server.calls = lambda: log.read_text().splitlines() if log.exists() else []
        server.gate = gate
        return server

    return started


def infer(server, body=ONE, model="identity"):
    status, _, answer = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)
    assert status == 200, answer
    return json.loads(answer)["outputs"][0]["data"]


def counted(server, model="identity"):
    """hits, misses, executions"""
    found = clients.statistics(server, model)
    return (*(found["inference_stats"][name]["count"] for name in ("cache_hit", "cache_miss")), found["execution_count"])


def errors(server, operation):
    return clients.metrics(server)["galatea_response_cache_errors_total", f'operation="{operation}"']


def test_an_equal_request_is_answered_by_the_library(start):
    server = start()
    assert infer(server) == [1.5]
    eventually("the response is stored", lambda: "insert" in server.calls())
    assert infer(server) == [1.5] and counted(server) == (1, 1, 1)
    assert infer(server, {"inputs": [{**ONE["inputs"][0], "data": [2.5]}]}) == [2.5]
    assert counted(server) == (1, 2, 2)
    eventually("both are stored", lambda: server.calls().count("insert") == 2)
    server.stop()
    assert server.calls() == ["initialize", "look up", "insert", "look up", "look up", "insert", "finalize"]


@pytest.mark.parametrize("does", ["fail", "give garbage", "copy nothing"])
def test_a_fault_of_the_library_costs_no_request(start, does):
    server = start(does)
    for _ in range(3):
        assert infer(server) == [1.5]
    assert counted(server) == (0, 3, 3)
    # Nothing is stored yet when the first request looks it up, so nothing of it needs to be copied.
    assert errors(server, "lookup") >= (2 if does == "copy nothing" else 3)
    server.wait_for_line("response cache 'own': a look-up failed: ")
    if does == "fail":
        eventually("errors are counted", lambda: errors(server, "insertion") == 3)
        server.wait_for_line("Failed to insert key [0-9a-f]{64} into response cache: the cache was told to fail")


def test_a_library_that_hangs_delays_requests_by_about_a_second(start):
    server = start("hang")
    assert infer(server) == [1.5] and counted(server) == (0, 1, 1)
    # While the call hangs, requests with such keys are executed at once.
    assert infer(server) == [1.5] and counted(server) == (0, 2, 2)
    assert server.calls() == ["initialize", "look up"]
    with open(server.gate, "w"):
        server.wait_for_line("response cache 'own': a look-up was given up: ")
    assert errors(server, "lookup") == 2


def test_misuse_of_entries_is_an_error_of_the_call(start):
    server = start("misuse entries")
    infer(server)
    eventually("the first is stored", lambda: "insert" in server.calls())
    infer(server, {"inputs": [{**ONE["inputs"][0], "data": [2.5]}]})
    told = eventually("all is tried", lambda: [line for line in server.calls() if "no buffer" in line][1:] and server.calls())
    assert "earlier entry: TRITONCACHE_CacheEntryBufferCount: the TRITONCACHE_CacheEntry was released before" in told
    assert "no entry: TRITONCACHE_CacheEntryBufferCount: the TRITONCACHE_CacheEntry is null" in told
    assert "no place: TRITONCACHE_CacheEntryBufferCount: the place for the count is null" in told
    assert "wrong pointer: TRITONCACHE_Copy: the pointer is no TRITONCACHE_CacheEntry" in told
    assert "no buffer: the entry has 0 buffers to copy, not one" in told
    eventually("the second is stored too", lambda: server.calls().count("insert") == 2)
    assert infer(server) == [1.5] and counted(server)[0] == 1


@pytest.mark.parametrize(("does", "text"), [
    ("refuse to begin", "creating server: Invalid argument - the cache was told not to begin"),
    ("begin without a cache", "libtritoncache_own.so' has made no cache, and told no error"),
])
def test_the_servers_start_fails_with_the_librarys_error(start, does, text):
    server = start(does, wait=False)
    assert server.wait_for_exit() == 1
    assert text in server.text()


def test_an_unfit_library_is_refused_with_its_file(repository, serve, tmp_path):
    file = c_libraries.library_file(tmp_path, "cache", "text")
    file.write_text("no library")
    for name, text in [("text", f"'{file}' cannot be opened as a Triton cache"), ("none", f"unable to find 'libtritoncache_none.so' for cache. Searched: {tmp_path}")]:
        server = serve(repository.path, f"--cache-directory={tmp_path}", f"--cache-config={name},size=1", wait=False)
        assert server.wait_for_exit() == 1 and text in server.text(), server.text()


def test_check_reads_the_library_of_the_cache(repository, caches, tmp_path):
    def checked(name, folder):
        command = [servers.galatea_binary(), "check", repository.path, f"--cache-directory={folder}", f"--cache-config={name},size=1", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode == 2:
            return [done.stderr]
        return [(found["severity"], found["text"]) for found in json.loads(done.stdout)["findings"] if "cache" in found["text"]]

    library = caches / "own/libtritoncache_own.so"
    assert checked("own", caches) == [
        ("note", f"response cache 'own' is '{library}': it calls functions up to TRITONCACHE 0.1, 0.1 is offered")
    ]
    c_libraries.library_file(tmp_path, "cache", "text").write_text("no library")
    [(severity, text)] = checked("text", tmp_path)
    assert severity == "error" and "libtritoncache_text.so' cannot be opened as a Triton cache" in text
    [told] = checked("none", tmp_path)
    assert "unable to find 'libtritoncache_none.so' for cache" in told


OF_TRITON = [f"--cache-directory={servers.PEERS}/triton/server/caches", "--cache-config=local,library=triton"]


@tiers.peers
@pytest.mark.parametrize("name", ["response_cache", "response_cache_small"])
def test_tritons_own_library_answers_as_in_triton(name):
    """The scenarios of the cache with `libtritoncache_local.so` as it is in Triton."""
    path = scenarios.TESTS / f"scenarios/{name}.yaml"
    scenario, recorded = scenarios.load(path), json.loads(scenarios.golden_path(path).read_text(encoding="utf-8"))
    answers = scenarios.play({**scenario, "flags": scenario["flags"] + OF_TRITON}, "galatea")
    found = {step["id"]: scenarios.faults(step, "galatea", answers[step["id"]], recorded[step["id"]]) for step in scenario["steps"]}
    assert not {step: faults for step, faults in found.items() if faults}


@tiers.peers
@pytest.mark.parametrize(("settings", "text"), [
    ([], "creating server: Invalid argument - Failed to initialize LocalCache: config didn't contain a valid 'size' field."),
    (["size=abc"], "creating server: Internal - Failed to initialize LocalCache: stoull"),
    (["size=100"], "Could not initialize buffer"),
])
def test_errors_of_tritons_own_library_are_those_of_the_start(repository, serve, settings, text):
    server = serve(repository.path, *OF_TRITON, *(f"--cache-config=local,{setting}" for setting in settings), wait=False)
    assert server.wait_for_exit() == 1 and text in server.text(), server.text()


@tiers.peers
def test_tritons_own_library_keeps_and_evicts_responses(tmp_path, serve):
    write_model(tmp_path, "add_sub", "galatea", "add_sub", add_sub_config(more=CACHE))
    server = serve(tmp_path, *OF_TRITON, "--cache-config=local,size=65536", "--metrics-interval-ms=50")
    bodies = [clients.pair_json(1, 16)]
    for value in range(600):
        body = clients.pair_json(1, 16)
        body["inputs"][0]["data"][0] = value
        bodies.append(body)
    for body in bodies:
        infer(server, body, "add_sub")
    metrics = lambda: {name: value for (name, _), value in clients.metrics(server).items() if name.startswith("nv_cache_")}  # noqa: E731
    eventually("responses are evicted", lambda: metrics().get("nv_cache_num_evictions", 0) > 0)
    assert metrics()["nv_cache_num_entries"] < 600
    eventually("all were looked up", lambda: metrics()["nv_cache_num_lookups"] >= 600)
