"""Load, unload and reload while requests run: not one of them fails."""

import base64
import concurrent.futures
import itertools
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import clients
import servers
from repositories import add_sub_config, identity_config, write_model
from servers import descendants

ROW = {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}
SLOW = identity_config(more='parameters { key: "execute_delay_ms" value { string_value: "100" } }\n')
EXPLICIT = "--model-control-mode=explicit"


def control(server, verb, model, body=None):
    status, _, answer = clients.ask(server.http, "POST", f"/v2/repository/models/{model}/{verb}", body or {})
    return status, answer.decode()


def infer(server, model, body=None):
    status, _, answer = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body or ROW)
    return status, answer.decode()


def index(server, model):
    _, _, body = clients.ask(server.http, "POST", "/v2/repository/index", {})
    return [{k: v for k, v in row.items() if k != "name"} for row in json.loads(body) if row["name"] == model]


def until(happened):
    """Asks the server again until it is so."""
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"


def test_explicit_mode(repository, serve):
    repository.add("one", "identity", identity_config())
    repository.add("two", "identity", identity_config())
    server = serve(repository.path, EXPLICIT, "--load-model=one")
    assert index(server, "one") == [{"version": "1", "state": "READY"}] and index(server, "two") == [{}]
    assert infer(server, "two")[0] == 404
    assert control(server, "load", "two") == (200, "")
    assert infer(server, "two")[0] == 200
    assert control(server, "unload", "one") == (200, "")
    until(lambda: index(server, "one") == [{"version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}])
    assert infer(server, "one") == (404, '{"error":"Request for unknown model: \'one\' has no available versions"}')
    assert infer(server, "two")[0] == 200
    server.wait_for_line("successfully unloaded 'one' version 1")


def test_all_models_at_start(repository, serve):
    for name in ("one", "two"):
        repository.add(name, "identity", identity_config())
    server = serve(repository.path, EXPLICIT, "--load-model=*")
    assert all(index(server, name)[0]["state"] == "READY" for name in ("one", "two"))


def test_reload_under_traffic(repository, serve):
    """Thirty reloads with changing configurations while both protocols ask without pause."""
    configs = [
        add_sub_config(max_batch_size=8),
        add_sub_config(max_batch_size=4, more="instance_group [ { count: 3 kind: KIND_CPU } ]\n"),
        add_sub_config(max_batch_size=2, more="dynamic_batching { max_queue_delay_microseconds: 500 }\n"),
    ]
    folder = repository.add("simple", "add_sub", configs[0])
    server = serve(repository.path, EXPLICIT, "--load-model=simple")
    stop = threading.Event()

    def ask(protocol):
        pair = {name: np.full((1, 16), 21, np.int32) for name in ("INPUT0", "INPUT1")}
        with clients.client(server, protocol) as stock:
            for count in itertools.count():
                if stop.is_set():
                    return count
                answer = clients.infer(stock, protocol, "simple", pair)
                assert answer["OUTPUT0"][0, 0] == 42

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        askers = [pool.submit(ask, protocol) for protocol in ("http", "grpc", "http", "grpc")]
        try:
            for turn in range(30):
                (folder / "config.pbtxt").write_text('name: "simple"\nbackend: "add_sub"\n' + configs[turn % 3])
                assert control(server, "load", "simple") == (200, "")
                assert not any(asker.done() for asker in askers)
        finally:
            stop.set()
        counts = [asker.result() for asker in askers]
    assert all(count > 0 for count in counts)
    _, _, config = clients.ask(server.http, "GET", "/v2/models/simple/config")
    assert json.loads(config)["max_batch_size"] == 2


def test_unload_lets_requests_finish(repository, serve):
    """Six requests on one slow instance; unloaded after the first answer, the other five are answered too."""
    repository.add("slow", "identity", SLOW)
    server = serve(repository.path, EXPLICIT, "--load-model=slow")
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(infer, server, "slow") for _ in range(6)]
        next(concurrent.futures.as_completed(asked))
        assert control(server, "unload", "slow")[0] == 200
        assert infer(server, "slow")[0] == 404
        assert [one.result()[0] for one in asked] == [200] * 6
    until(lambda: index(server, "slow")[0]["state"] == "UNAVAILABLE")


def test_failed_reload_keeps_the_old(repository, serve):
    folder = repository.add("simple", "identity", identity_config())
    server = serve(repository.path, EXPLICIT, "--load-model=simple")
    (folder / "config.pbtxt").write_text("max_batch_size: many")
    assert control(server, "load", "simple")[0] == 500
    assert infer(server, "simple")[0] == 200
    assert index(server, "simple") == [{"version": "1", "state": "READY"}]


@pytest.mark.parametrize("fail", ["load", "creation"])
def test_load_failure_text(repository, serve, fail):
    """The reason a backend gives reaches the caller and the index."""
    parameter = f'parameters {{ key: "fail" value {{ string_value: "{fail}" }} }}\n'
    repository.add("bad", "failing", identity_config(more=parameter))
    server = serve(repository.path, EXPLICIT)
    status, answer = control(server, "load", "bad")
    text = json.loads(answer)["error"]
    assert status == 400
    assert text.startswith("load failed for model 'bad': version 1 is at UNAVAILABLE state: Internal: ")
    assert text.endswith(";\n")
    assert index(server, "bad")[0]["state"] == "UNAVAILABLE"
    assert infer(server, "bad")[0] == 404
    server.wait_for_line(r"failed to load 'bad' version 1: Internal: ")


def test_config_override(repository, serve):
    """A configuration sent along with the load replaces the file's."""
    repository.add("simple", "add_sub", add_sub_config(max_batch_size=8))
    server = serve(repository.path, EXPLICIT, "--load-model=simple")
    _, _, body = clients.ask(server.http, "GET", "/v2/models/simple/config")
    config = {**json.loads(body), "max_batch_size": 3, "dynamic_batching": {}}
    assert control(server, "load", "simple", {"parameters": {"config": json.dumps(config)}}) == (200, "")
    _, _, body = clients.ask(server.http, "GET", "/v2/models/simple/config")
    assert json.loads(body)["max_batch_size"] == 3
    for change, size in (False, 3), (True, 8):
        if change:
            (repository.path / "simple/1/changed").write_text("")
        assert control(server, "load", "simple")[0] == 200
        _, _, body = clients.ask(server.http, "GET", "/v2/models/simple/config")
        assert json.loads(body)["max_batch_size"] == size, "the configuration stays until a file changes"


def test_versions(repository, serve):
    """Latest version by default, all by policy; a request without a version goes to the highest."""
    repository.add("latest", "identity", identity_config(), versions=(1, 2, 10))
    repository.add("some", "identity", identity_config() + "version_policy { specific { versions: [ 1, 2 ] } }\n", versions=(1, 2, 3))
    repository.add("two", "identity", identity_config() + "version_policy { latest { num_versions: 2 } }\n", versions=(1, 2, 10))
    server = serve(repository.path)

    def versions(model):
        return json.loads(clients.ask(server.http, "GET", f"/v2/models/{model}")[2])["versions"]

    assert (versions("latest"), versions("some"), versions("two")) == (["10"], ["1", "2"], ["2", "10"])
    assert json.loads(infer(server, "some")[1])["model_version"] == "2"


BROKEN = "class TritonPythonModel:\n    def initialize(self, args):\n        raise RuntimeError('no weights')\n"


def test_two_hundred_failed_loads_leave_nothing_behind(repository, serve, tmp_path):
    """Loads of a Python model that fails, plain and with files in the request: memory, open files, threads, processes
    and temporary files are what they were."""
    folder = repository.add("broken", "python", identity_config())
    (folder / "1/model.py").write_text(BROKEN)
    repository.add("one", "identity", identity_config())
    server = serve(repository.path, EXPLICIT, "--load-model=one", env={"TMPDIR": str(tmp_path)})
    sent = {"config": json.dumps({"backend": "python", "max_batch_size": 0}), "file:1/model.py": base64.b64encode(BROKEN.encode()).decode()}

    def fail():
        assert control(server, "load", "broken")[0] == 400
        assert control(server, "load", "broken", {"parameters": sent})[0] == 400

    def left():
        proc = Path(f"/proc/{server.pid}")
        counted = [len(list((proc / what).iterdir())) for what in ("fd", "task")]
        return [*counted, len(descendants(server.pid)), sorted(path.name for path in tmp_path.rglob("*"))]

    for _ in range(10):
        fail()
    # The worker of the last load may still be on its way out.
    until(lambda: not descendants(server.pid))
    memory, before = server.rss_mb(), left()
    for _ in range(100):
        fail()
    # Threads and folders of the load before may have been there still when they were counted.
    until(lambda: all(now <= then for now, then in zip(left()[:3], before[:3])) and set(left()[3]) <= set(before[3]))
    assert server.rss_mb() <= memory + 5
    assert infer(server, "one")[0] == 200


needs_triton = pytest.mark.skipif(not servers.has_triton(), reason="the real Triton could not be installed here")

SLOW_START = """\
import time


class TritonPythonModel:
    def initialize(self, args):
        time.sleep(1)

    def execute(self, requests):
        return []
"""


@pytest.mark.parametrize("target", ["galatea", pytest.param("triton", marks=needs_triton)])
def test_related_operations_at_the_same_time_wait_for_each_other(target, tmp_path):
    """Upstream has an error for what is related to a load under way, which no client sees."""
    chain = (
        'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ] output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]'
        'ensemble_scheduling { step [ { model_name: "slow" model_version: -1 input_map { key: "INPUT0" value: "INPUT0" }'
        ' output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }'
    )
    write_model(tmp_path, "slow", target, "python", identity_config(), {"1/model.py": SLOW_START})
    write_model(tmp_path, "chain", target, "ensemble", chain)
    calls = [
        [("load", "slow"), ("load", "slow"), ("load", "chain")],
        [("unload", "slow"), ("load", "chain"), ("load", "slow")],
        [("unload", "chain"), ("unload", "slow"), ("load", "slow"), ("unload", "slow")],
    ]
    with servers.TARGETS[target](tmp_path, EXPLICIT) as server, concurrent.futures.ThreadPoolExecutor(4) as pool:
        for together in calls:
            answers = [pool.submit(control, server, verb, model) for verb, model in together]
            assert [answer.result() for answer in answers] == [(200, "")] * len(together)
