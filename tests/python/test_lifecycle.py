"""Load, unload and reload while requests run: not one of them fails."""

import base64
import concurrent.futures
import itertools
import json
import threading
from pathlib import Path

import numpy as np
import pytest

import clients
import tiers
import waiting
from repositories import add_sub_config, identity_config, write_model
from servers import descendants

ROW = {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}


def control(server, verb, model, body=None):
    status, _, answer = clients.ask(server.http, "POST", f"/v2/repository/models/{model}/{verb}", body or {})
    return status, answer.decode()


def infer(server, model, body=None):
    status, _, answer = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body or ROW)
    return status, answer.decode()


def index(server, model):
    _, _, body = clients.ask(server.http, "POST", "/v2/repository/index", {})
    return [{k: v for k, v in row.items() if k != "name"} for row in json.loads(body) if row["name"] == model]


def test_explicit_mode_loads_models_on_request(repository, serve):
    """One model loads at the start, the other on request. The scenarios of access test `*`."""
    repository.add("one", "identity", identity_config())
    repository.add("two", "identity", identity_config())
    server = serve(repository.path, "--model-control-mode=explicit", "--load-model=one")
    assert index(server, "one") == [{"version": "1", "state": "READY"}] and index(server, "two") == [{}]
    assert infer(server, "two")[0] == 404
    assert control(server, "load", "two") == (200, "")
    assert infer(server, "two")[0] == 200
    assert control(server, "unload", "one") == (200, "")
    gone = [{"version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}]
    waiting.eventually("the model is unloaded", lambda: index(server, "one") == gone)
    assert infer(server, "one") == (404, '{"error":"Request for unknown model: \'one\' has no available versions"}')
    assert infer(server, "two")[0] == 200
    server.wait_for_line("successfully unloaded 'one' version 1")


def test_a_reload_under_traffic_fails_no_request(shared):
    """Thirty reloads with changing configurations while both protocols ask without pause."""
    configs = [
        add_sub_config(max_batch_size=8),
        add_sub_config(max_batch_size=4, more="instance_group [ { count: 3 kind: KIND_CPU } ]\n"),
        add_sub_config(max_batch_size=2, more="dynamic_batching { max_queue_delay_microseconds: 500 }\n"),
    ]
    server = shared()
    name = server.add("simple", "add_sub", configs[0])
    stop = threading.Event()

    def ask(protocol):
        pair = {name: np.full((1, 16), 21, np.int32) for name in ("INPUT0", "INPUT1")}
        with clients.client(server, protocol) as stock:
            for count in itertools.count():
                if stop.is_set():
                    return count
                answer = clients.infer(stock, protocol, name, pair)
                assert answer["OUTPUT0"][0, 0] == 42

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        askers = [pool.submit(ask, protocol) for protocol in ("http", "grpc", "http", "grpc")]
        try:
            for turn in range(30):
                server.write("simple", "add_sub", configs[turn % 3])
                assert control(server, "load", name) == (200, "")
                assert not any(asker.done() for asker in askers)
        finally:
            stop.set()
        counts = [asker.result() for asker in askers]
    assert all(count > 0 for count in counts)
    _, _, config = clients.ask(server.http, "GET", f"/v2/models/{name}/config")
    assert json.loads(config)["max_batch_size"] == 2


WAITS = """\
import os
import time

import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        while not os.path.exists({gate!r}):
            time.sleep(0.002)
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
"""


def test_an_unload_lets_requests_finish(shared, tmp_path):
    """Six requests wait for one held instance; all are answered after the unload."""
    gate, server = tmp_path / "gate", shared()
    name = server.add("waits", "python", identity_config(), files={"1/model.py": WAITS.format(gate=str(gate))})
    waits = ("nv_inference_pending_request_count", f'model="{name}",version="1"')
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(infer, server, name) for _ in range(6)]
        waiting.eventually("five requests wait", lambda: clients.metrics(server)[waits] >= 5)
        try:
            assert control(server, "unload", name)[0] == 200
            assert infer(server, name)[0] == 404
            assert not any(one.done() for one in asked)
        finally:
            gate.touch()
        assert [one.result()[0] for one in asked] == [200] * 6
    waiting.eventually("the model is unloaded", lambda: index(server, name)[0]["state"] == "UNAVAILABLE")


def test_a_failed_reload_keeps_the_old_version(shared):
    server = shared()
    name = server.add("simple", "identity", identity_config())
    (server.repository / name / "config.pbtxt").write_text("max_batch_size: many")
    assert control(server, "load", name)[0] == 500
    assert infer(server, name)[0] == 200
    assert index(server, name) == [{"version": "1", "state": "READY"}]


@pytest.mark.parametrize("fail", ["load", "creation"])
def test_a_failed_load_reports_the_reason(shared, fail):
    """The reason a backend gives reaches the caller and the index."""
    parameter = f'parameters {{ key: "fail" value {{ string_value: "{fail}" }} }}\n'
    server = shared()
    name = server.write("bad", "failing", identity_config(more=parameter))
    status, answer = control(server, "load", name)
    text = json.loads(answer)["error"]
    assert status == 400
    assert text.startswith(f"load failed for model '{name}': version 1 is at UNAVAILABLE state: Internal: ")
    assert text.endswith(";\n")
    assert index(server, name)[0]["state"] == "UNAVAILABLE"
    assert infer(server, name)[0] == 404
    server.wait_for_line(f"failed to load '{name}' version 1: Internal: ")


def test_a_load_request_may_override_the_configuration(shared):
    """A configuration sent along with the load replaces the file's."""
    server = shared()
    name = server.add("simple", "add_sub", add_sub_config(max_batch_size=8))
    _, _, body = clients.ask(server.http, "GET", f"/v2/models/{name}/config")
    config = {**json.loads(body), "max_batch_size": 3, "dynamic_batching": {}}
    assert control(server, "load", name, {"parameters": {"config": json.dumps(config)}}) == (200, "")
    _, _, body = clients.ask(server.http, "GET", f"/v2/models/{name}/config")
    assert json.loads(body)["max_batch_size"] == 3
    for change, size in (False, 3), (True, 8):
        if change:
            (server.repository / name / "1/changed").write_text("")
        assert control(server, "load", name)[0] == 200
        _, _, body = clients.ask(server.http, "GET", f"/v2/models/{name}/config")
        assert json.loads(body)["max_batch_size"] == size, "the configuration stays until a file changes"


def test_versions_follow_the_policy_and_the_highest_is_the_default(repository, stage):
    """Latest version by default, all by policy; a request without a version goes to the highest."""
    repository.add("latest", "identity", identity_config(), versions=(1, 2, 10))
    repository.add("some", "identity", identity_config() + "version_policy { specific { versions: [ 1, 2 ] } }\n", versions=(1, 2, 3))
    repository.add("two", "identity", identity_config() + "version_policy { latest { num_versions: 2 } }\n", versions=(1, 2, 10))
    server = stage.serves(repository.path)

    def versions(model):
        return json.loads(clients.ask(server.http, "GET", f"/v2/models/{model}")[2])["versions"]

    assert (versions("latest"), versions("some"), versions("two")) == (["10"], ["1", "2"], ["2", "10"])
    assert json.loads(infer(server, "some")[1])["model_version"] == "2"


BROKEN = "class TritonPythonModel:\n    def initialize(self, args):\n        raise RuntimeError('no weights')\n"


@pytest.mark.parametrize("count", [4, pytest.param(100, marks=tiers.measure)])
def test_failed_loads_leave_no_files_processes_or_memory(shared, count):
    """Loads of a Python model that fails, plain and with files in the request: memory, open files, threads, processes
    and temporary files are what they were."""
    server = shared()
    name = server.write("broken", "python", identity_config(), files={"1/model.py": BROKEN})
    sent = {"config": json.dumps({"backend": "python", "max_batch_size": 0}), "file:1/model.py": base64.b64encode(BROKEN.encode()).decode()}
    own = set(descendants(server.pid))

    def fail():
        assert control(server, "load", name)[0] == 400
        assert control(server, "load", name, {"parameters": sent})[0] == 400

    def left():
        proc = Path(f"/proc/{server.pid}")
        counted = [len(list((proc / what).iterdir())) for what in ("fd", "task")]
        return [*counted, len(set(descendants(server.pid)) - own), sorted(path.name for path in server.temporary.rglob("*"))]

    for _ in range(2):
        fail()
    # The worker of the last load may still be on its way out.
    waiting.eventually("the workers have ended", lambda: not set(descendants(server.pid)) - own)
    memory, before = server.rss_mb(), left()
    for _ in range(count):
        fail()

    def nothing_more():
        """Threads and folders of the load before may have been there still when they were counted."""
        now = left()
        return all(new <= old for new, old in zip(now[:3], before[:3])) and set(now[3]) <= set(before[3])

    waiting.eventually("nothing more is there than before", nothing_more)
    assert server.rss_mb() <= memory + 5
    one = server.add("one", "identity", identity_config())
    assert infer(server, one)[0] == 200


SLOW_START = """\
import time


class TritonPythonModel:
    def initialize(self, args):
        time.sleep(0.2)

    def execute(self, requests):
        return []
"""


@tiers.both
def test_related_operations_wait_for_each_other(target, stage):
    """Triton has an error for operations related to a running load; here they wait."""
    chain = (
        'input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ] output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]'
        'ensemble_scheduling { step [ { model_name: "slow" model_version: -1 input_map { key: "INPUT0" value: "INPUT0" }'
        ' output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }'
    )

    def write(folder, target):
        write_model(folder, "slow", target, "python", identity_config(), {"1/model.py": SLOW_START})
        write_model(folder, "chain", target, "ensemble", chain)

    calls = [
        [("load", "slow"), ("load", "slow"), ("load", "chain")],
        [("unload", "slow"), ("load", "chain"), ("load", "slow")],
        [("unload", "chain"), ("unload", "slow"), ("load", "slow"), ("unload", "slow")],
    ]
    server = stage.get(target, write)
    assert [control(server, "unload", name)[0] for name in ("chain", "slow")] == [200] * 2
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for together in calls:
            answers = [pool.submit(control, server, verb, model) for verb, model in together]
            assert [answer.result() for answer in answers] == [(200, "")] * len(together)
