"""Instance groups that change while a model is ready: which instances are made and which end, the same on our server and on
the real one."""

import concurrent.futures
import json
import os
import random
import threading
import time

import numpy as np
import pytest

import clients
import repositories
import scenarios
import servers
import tiers
import waiting

def on_both(**environment):
    plays = [("galatea", environment), pytest.param(("triton", environment), marks=tiers.peers)]
    return pytest.mark.parametrize("model", plays, ids=["galatea", "triton"], indirect=True)


BOTH = on_both()
# Notes in files beside the repository that an instance begins and ends. Waits there while a file `hold` names what it is
# about to do, and fails to begin while a file `fail` has a part of its name.
MODEL = """\
import os
import time

import triton_python_backend_utils as pb

FOLDER = {folder!r}


def knob(name):
    try:
        with open(os.path.join(FOLDER, name)) as file:
            return file.read()
    except OSError:
        return None


def note(what, name):
    with open(os.path.join(FOLDER, what), "a") as file:
        file.write(name + "\\n")


def wait_for_leave(what):
    if knob("hold") == what:
        note("held", what)
    while knob("hold") == what:
        time.sleep(0.002)


class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_instance_name"]
        note("order", "begins")
        wait_for_leave("initialize")
        fail = knob("fail")
        if fail and fail in self.name:
            raise RuntimeError("told to fail")
        note("initialized", self.name)
        note("order", "is there")

    def execute(self, requests):
        wait_for_leave("execute")
        return [
            pb.InferenceResponse([pb.Tensor("OUTPUT0", pb.get_input_tensor_by_name(r, "INPUT0").as_numpy())])
            for r in requests
        ]

    def finalize(self):
        note("finalized", self.name)
"""


def cpu(count, more=""):
    return f"{{ count: {count} kind: KIND_CPU {more} }}"


def named(name, count):
    return cpu(count, f'name: "{name}"')


class Model:
    """The model `m` of a server, and what its instances noted."""

    def __init__(self, server, folder, repository):
        self.server, self.folder, self.repository = server, folder, repository
        self.batching = ""

    def configure(self, groups):
        config = repositories.identity_config(max_batch_size=4 if self.batching else 0, more=self.batching)
        config += f"instance_group [ {groups} ]\n"
        path = self.repository / "m/config.pbtxt"
        before = path.stat().st_mtime_ns if path.exists() else 0
        repositories.write_model(self.repository, "m", "galatea", "python", config, {})
        # The real server sees no change where the time of the file has not moved.
        os.utime(path, ns=(before + 10**9, max(time.time_ns(), before + 10**9)))

    def load(self, groups, parameters=None):
        """Status and text of a load with these groups in the file."""
        if groups is not None:
            self.configure(groups)
        body = {"parameters": parameters} if parameters else {}
        status, _, text = clients.ask(self.server.http, "POST", "/v2/repository/models/m/load", body)
        return status, text.decode()

    def infer(self):
        shape = [random.randint(1, 4), 3] if self.batching else [3]
        data = np.ones(shape, np.float32)
        status, _, text = clients.ask(
            self.server.http, "POST", "/v2/models/m/infer", {"inputs": [clients.tensor_json("INPUT0", data)]}
        )
        assert status == 200, text
        return status

    def counts(self):
        return len(self.noted("initialized")), len(self.noted("finalized"))

    def noted(self, what):
        path = self.folder / what
        return path.read_text().split() if path.exists() else []

    def changes(self, groups, counts):
        """Loads these groups, and looks how many instances have begun and ended so far."""
        assert self.load(groups) == (200, "")
        assert self.counts() == counts
        self.infer()

    def loads_again(self, groups, counts):
        """The same where the model is loaded anew: what was before ends on its own."""
        assert self.load(groups) == (200, "")
        waiting.eventually("so many instances have begun and ended", lambda: self.counts() == counts)
        self.infer()

    def unload(self):
        made, _ = self.counts()
        status, _, _ = clients.ask(self.server.http, "POST", "/v2/repository/models/m/unload", {})
        assert status == 200
        waiting.eventually("so many instances have begun and ended", lambda: self.counts() == (made, made))

    def ask(self, path, body=None):
        _, _, text = clients.ask(self.server.http, "POST" if body is not None else "GET", path, body)
        return json.loads(text)

    def row(self):
        """State and reason in the index."""
        (row,) = [row for row in self.ask("/v2/repository/index", {}) if row["name"] == "m"]
        return row.get("state"), row.get("reason", "")

    def executions(self):
        return self.ask("/v2/models/m/stats")["model_stats"][0]["execution_count"]

    def hold(self, what):
        (self.folder / "hold").write_text(what)

    def until_held(self):
        waiting.eventually("an instance waits", lambda: self.noted("held"))

    def release(self):
        (self.folder / "hold").unlink()


@pytest.fixture
def model(tmp_path, request, stage):
    target, environment = request.param
    server = stage.get(target, lambda folder, _: write(folder, tmp_path), env=environment or None)
    model = Model(server, tmp_path, server.repository)
    # The real server takes the bytecode that Python writes into the model's folder for a change of it: it is there then.
    model.infer()
    model.unload()
    waiting.eventually("the model is unloaded", lambda: model.row() == ("UNAVAILABLE", "unloaded"))
    for file in tmp_path.iterdir():
        if file.is_file():
            file.unlink()
    return model


def write(folder, notes):
    config = repositories.identity_config() + f"instance_group [ {cpu(1)} ]\n"
    repositories.write_model(folder, "m", "galatea", "python", config, {"1/model.py": MODEL.format(folder=str(notes))})


class Asking:
    """Requests all the time, none of which may fail."""

    def __init__(self, model, count=4):
        self.model, self.over = model, threading.Event()
        self.pool = concurrent.futures.ThreadPoolExecutor(count)
        self.askers = [self.pool.submit(self.ask) for _ in range(count)]

    def ask(self):
        while not self.over.is_set():
            self.model.infer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        for asker in self.askers:
            asker.result()
        self.pool.shutdown()


@BOTH
@pytest.mark.parametrize("batching", ["", "dynamic_batching { }\n"], ids=["single", "batches"])
def test_instances_are_added_and_removed_under_traffic(model, batching):
    model.batching = batching
    model.changes(cpu(3), (3, 0))
    with Asking(model):
        model.changes(cpu(4), (4, 0))
        model.changes(cpu(3), (4, 1))
        model.changes(cpu(4), (5, 1))
        model.changes(cpu(3), (5, 2))
        model.changes(cpu(1), (5, 4))
    assert model.executions() > 6, "counts go on"
    model.unload()


@BOTH
def test_several_instances_are_added_and_removed_at_once(model):
    model.changes(cpu(6), (6, 0))
    model.changes(cpu(2), (6, 4))
    model.changes(cpu(2), (6, 4))
    model.changes(cpu(5), (9, 4))
    model.changes(cpu(1), (9, 8))
    # Stands for the default, one.
    model.changes(cpu(0), (9, 8))
    model.changes("", (9, 8))
    model.unload()


@BOTH
def test_group_names_and_division_do_not_matter(model):
    model.changes(f'{named("old_1", 1)}, {named("old_2", 2)}', (3, 0))
    model.changes(f'{named("new_1", 1)}, {named("new_2", 2)}', (3, 0))
    model.changes(cpu(3), (3, 0))
    model.changes(", ".join([cpu(1)] * 3), (3, 0))
    assert sorted(model.noted("initialized")) == ["old_1_0", "old_2_0", "old_2_1"]
    groups = model.ask("/v2/models/m/config")["instance_group"]
    assert [(group["name"], group["count"]) for group in groups] == [("m_0", 1), ("m_1", 1), ("m_2", 1)]
    model.unload()


@BOTH
def test_instances_of_another_kind_are_recreated(model):
    model.changes(f"{cpu(2)}, {{ kind: KIND_MODEL count: 1 }}", (3, 0))
    model.changes(f"{cpu(1)}, {{ kind: KIND_MODEL count: 3 }}", (5, 1))
    model.changes(f"{{ kind: KIND_MODEL count: 3 }}, {cpu(1)}", (5, 1))
    model.changes(f"{{ kind: KIND_MODEL count: 2 }}, {cpu(2)}", (6, 2))
    model.unload()


@BOTH
def test_invalid_groups_change_nothing(model):
    model.changes(cpu(3), (3, 0))
    reason = "Invalid argument: instance group m_0 of model m has kind KIND_GPU but no GPUs are available"
    text = f"load failed for model 'm': version 1 is at READY state: {reason};\n"
    status, told = model.load("{ count: 2 kind: KIND_GPU }")
    assert (status, scenarios.PLACE.sub("", told)) == (400, json.dumps({"error": text}, separators=(",", ":")))
    state, told = model.row()
    assert (state, scenarios.PLACE.sub("", told)) == ("READY", reason)
    model.infer()
    assert model.load("--- invalid ---")[0] == 500
    model.infer()
    assert model.counts() == (3, 0)
    model.changes(cpu(1), (3, 2))
    assert (model.row(), model.executions()) == (("READY", ""), 4)


@BOTH
def test_an_instance_that_fails_to_start_changes_nothing(model):
    model.changes(cpu(2), (2, 0))
    (model.folder / "fail").write_text("m_0_3")
    for _ in range(2):
        status, text = model.load(cpu(4))
        assert status == 400 and "version 1 is at READY state: Internal: RuntimeError: told to fail" in text
        state, reason = model.row()
        assert state == "READY" and reason.startswith("Internal: RuntimeError: told to fail")
        assert model.ask("/v2/models/m/config")["instance_group"][0]["count"] == 2
        assert clients.ask(model.server.http, "GET", "/v2/health/ready")[0] == 200
        model.infer()
    (model.folder / "fail").unlink()
    made, ended = model.counts()
    # Without another change.
    model.changes(None, (made + 2, ended))
    assert (model.row(), model.executions()) == (("READY", ""), 4)


@BOTH
def test_other_changes_reload_the_model(model):
    model.changes(cpu(4), (4, 0))
    model.batching = "dynamic_batching { }\n"
    model.loads_again(cpu(2), (6, 4))
    model.changes(cpu(3), (7, 4))
    with (model.repository / "m/1/model.py").open("a") as file:
        file.write("# changed\n")
    model.loads_again(cpu(2), (9, 7))
    assert model.executions() == 1, "counts begin again"


@BOTH
def test_the_configuration_of_a_load_request_changes_instances(model):
    model.changes(cpu(1), (1, 0))
    config = model.ask("/v2/models/m/config")
    config["instance_group"][0]["count"] += 1
    assert model.load(None, {"config": json.dumps(config)}) == (200, "")
    assert model.counts() == (2, 0)
    model.infer()
    model.changes(cpu(3), (3, 0))


@BOTH
def test_an_instance_is_added_during_an_execution(model):
    model.changes(cpu(1), (1, 0))
    model.hold("execute")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        asked = pool.submit(model.infer)
        model.until_held()
        assert model.load(cpu(2)) == (200, "")
        assert model.counts() == (2, 0) and not asked.done()
        model.release()
        assert asked.result() == 200


@BOTH
def test_requests_are_answered_while_an_instance_is_added(model):
    model.changes(cpu(1), (1, 0))
    model.hold("initialize")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        loaded = pool.submit(model.load, cpu(2))
        model.until_held()
        for _ in range(3):
            model.infer()
        assert (model.row(), model.counts()) == (("READY", ""), (1, 0)) and not loaded.done()
        model.release()
        assert loaded.result() == (200, "")
    assert model.counts() == (2, 0)


@BOTH
def test_instances_start_in_parallel(model):
    model.hold("initialize")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        loaded = pool.submit(model.load, cpu(3))
        waiting.eventually("all instances wait", lambda: len(model.noted("held")) == 3)
        model.release()
        assert loaded.result() == (200, "")
        model.hold("initialize")
        loaded = pool.submit(model.load, cpu(5))
        waiting.eventually("all instances wait", lambda: len(model.noted("held")) == 5)
        model.release()
        assert loaded.result() == (200, "")
    assert model.counts() == (5, 0)


@on_both(TRITON_PARALLEL_INSTANCE_LOADING="0")
def test_instances_start_one_by_one_if_configured(model):
    model.hold("initialize")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        loaded = pool.submit(model.load, cpu(3))
        model.until_held()
        (model.folder / "hold").write_text("nothing")
        assert loaded.result() == (200, "")
    assert model.counts() == (3, 0)
    order = (model.folder / "order").read_text().splitlines()
    assert order == ["begins", "is there"] * 3


@BOTH
def test_a_removed_instance_finishes_its_execution(model):
    model.changes(cpu(3), (3, 0))
    model.hold("execute")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        asked = [pool.submit(model.infer) for _ in range(3)]
        waiting.eventually("all instances wait", lambda: len(model.noted("held")) == 3)
        loaded = pool.submit(model.load, cpu(1))
        waiting.eventually("so many instances have begun and ended", lambda: model.counts() == (3, 0))
        assert not loaded.done()
        model.release()
        assert [one.result() for one in asked] == [200] * 3
        assert loaded.result() == (200, "")
    assert model.counts() == (3, 2)


@pytest.mark.parametrize("model", [("galatea", {})], ids=["galatea"], indirect=True)
def test_no_two_instances_share_a_name(model):
    """Triton keeps the last instances and then creates a second one with the same name."""
    model.changes(cpu(3), (3, 0))
    model.changes(cpu(2), (3, 1))
    model.changes(cpu(3), (4, 1))
    assert model.noted("finalized") == ["m_0_2"] and model.noted("initialized")[-1] == "m_0_2"


@pytest.mark.parametrize("isolation", ["", 'parameters { key: "isolation" value { string_value: "process" } }\n'], ids=["here", "isolated"])
def test_instances_of_an_onnx_model_are_added_and_removed(tmp_path, isolation, stage):
    """Changes from one to three instances and back under load; session threads follow the number."""
    config = repositories.add_sub_config(more=isolation)
    def configure(folder, count):
        text = f'name: "simple"\nbackend: "onnxruntime"\n{config}instance_group [ {cpu(count)} ]\n'
        (folder / "simple/config.pbtxt").write_text(text)

    repositories.copy_example(tmp_path, "simple")
    configure(tmp_path, 1)
    server = stage.serves(tmp_path)
    others = len(servers.descendants(server.pid)) - bool(isolation)
    asked, over = [], threading.Event()

    def ask():
        while not over.is_set():
            status, _, text = clients.ask(server.http, "POST", "/v2/models/simple/infer", clients.pair_json())
            assert status == 200, text
            asked.append(status)

    def wait_for_more():
        seen = len(asked)
        waiting.eventually("more requests are answered", lambda: len(asked) > seen + 20)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        askers = [pool.submit(ask) for _ in range(3)]
        for count in (3, 1, 2):
            wait_for_more()
            configure(server.repository, count)
            status, _, text = clients.ask(server.http, "POST", "/v2/repository/models/simple/load", {})
            assert (status, text) == (200, b"")
            if isolation:
                assert len(servers.descendants(server.pid)) == others + count
        wait_for_more()
        over.set()
        [asker.result() for asker in askers]
    _, _, text = clients.ask(server.http, "GET", "/v2/models/simple/stats")
    assert json.loads(text)["model_stats"][0]["inference_count"] == len(asked), "loaded once"
