"""The metrics page from outside: what its figures say when something goes wrong, that they fit each other under load, and
that every line can be parsed."""

import concurrent.futures
import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

import clients
import processes
from repositories import REPEAT_CONFIG, add_sub_config, identity_config

ALL_ON = ("--metrics-config=histogram_latencies=true", "--metrics-config=summary_latencies=true")
SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (-?[0-9.]+|Nan|[+-]Inf)')
LIMIT = 30


def page(server):
    return clients.ask(server.metrics, "GET", "/metrics")[2].decode()


def value(server, name, labels=""):
    return clients.metrics(server)[name, labels]


def until(wanted, what):
    deadline = time.monotonic() + LIMIT
    while not (found := wanted()):
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
    return found


def post(server, model, body):
    return clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)[0]


def one_row():
    return {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}


def families(text):
    """Name -> (type, samples), each family once and its samples together."""
    found, name = {}, None
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in found, f"{name} twice"
            found[name] = (kind, [])
        elif not line.startswith("# HELP "):
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1].startswith(name), line
            found[name][1].append(sample)
    return found


def reference():
    """What the page of documentation says of each family: name -> (type, labels, when it is shown)."""
    text = (Path(__file__).resolve().parents[2] / "docs/metrics.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| .* \| (.*) \|$", text, re.M)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels)), shown) for name, kind, labels, shown in rows}


def test_the_reference_and_the_page_name_the_same_families(repository, serve, tmp_path_factory):
    """With all there is switched on, but for GPUs; types and labels too."""
    repository.add("simple", "add_sub", add_sub_config())
    repository.add("repeat", "repeat", REPEAT_CONFIG)
    repository.add("cached", "add_sub", add_sub_config(more="response_cache { enable: true }\n"))
    learned = 'dynamic_batching { }\nparameters { key: "batch_delay" value: { string_value: "auto" } }\n'
    repository.add("learned", "add_sub", add_sub_config(more=learned))
    failing = repository.add("unbuildable", "python", identity_config(), files={"1/model.py": "", "requirements.txt": "no-such-package-as-this==1\n"})
    assert failing.exists()
    access_log, home = tmp_path_factory.mktemp("log") / "access.log", tmp_path_factory.mktemp("home")
    server = serve(
        repository.path, *ALL_ON, f"--access-log={access_log}", "--exit-on-error=false", "--model-control-mode=explicit",
        "--load-model=simple", "--load-model=repeat", "--load-model=cached", "--load-model=learned", "--cache-config=local,size=65536", env={**processes.offline(), "GALATEA_HOME": str(home)},
    )
    documented = reference()
    environments = {name for name, (_, _, shown) in documented.items() if "environment" in shown}
    gpus = {name for name, (_, _, shown) in documented.items() if "GPU" in shown}
    # test_auth.py has a server with a policy.
    policies = {name for name, (_, _, shown) in documented.items() if "--auth-policy" in shown}
    # test_response_cache_redis.py has one with such a cache.
    caches = {name for name, (_, _, shown) in documented.items() if "redis" in shown}
    assert len(environments) == 3 and len(gpus) == 6 and policies == {"galatea_auth_failures_total"}
    elsewhere = gpus | policies | caches
    assert caches == {"galatea_response_cache_errors_total"}
    assert set(families(page(server))) == set(documented) - environments - elsewhere
    assert clients.ask(server.http, "POST", "/v2/repository/models/unbuildable/load", {})[0] >= 400
    assert value(server, "galatea_python_environment_builds_total", 'outcome="failure"') == 1
    assert value(server, "galatea_python_environment_builds_total", 'outcome="success"') == 0
    assert value(server, "galatea_python_environments") == value(server, "galatea_python_environments_size_bytes") == 0
    assert post(server, "simple", clients.pair_json()) == 200
    served = families(page(server))
    assert set(served) == set(documented) - elsewhere
    for name, (kind, samples) in served.items():
        assert kind == documented[name][0], name
        labels = {label for sample in samples for label in re.findall(r'(\w+)="', sample[2] or "")}
        assert labels == documented[name][1], name


def test_environments_of_python_models_are_counted(repository, serve, tmp_path_factory):
    """One that is unpacked: a venv that sees the packages of the tests' own."""
    made, home = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("home")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made / "venv"], check=True, timeout=60)
    (site,) = (made / "venv").glob("lib/python*/site-packages")
    (site / "seen.pth").write_text(str(Path(np.__file__).parents[1]) + "\n")
    subprocess.run(["tar", "-czf", made / "packed.tar.gz", "-C", made / "venv", "."], check=True, timeout=60)
    code = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
"""
    packed = f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{made / "packed.tar.gz"}" }} }}\n'
    repository.add("packed", "python", identity_config(more=packed), files={"1/model.py": code})
    server = serve(repository.path, env={"GALATEA_HOME": str(home)})
    assert post(server, "packed", one_row()) == 200
    assert value(server, "galatea_python_environments") == 1
    assert value(server, "galatea_python_environments_size_bytes") > 1000
    assert value(server, "galatea_python_environment_builds_total", 'outcome="success"') == 1
    assert value(server, "galatea_python_environment_builds_total", 'outcome="failure"') == 0
    again = serve(repository.path, env={"GALATEA_HOME": str(home)})
    assert value(again, "galatea_python_environments") == 1, "it is there already"
    assert value(again, "galatea_python_environment_builds_total", 'outcome="success"') == 0


def test_what_clients_send_makes_no_series(repository, serve):
    """Names, versions, paths, methods, ids, headers and messages that nobody has seen: the page has the lines it had."""
    repository.add("simple", "add_sub", add_sub_config())
    server = serve(repository.path, *ALL_ON, "--model-control-mode=explicit", "--load-model=simple")
    assert post(server, "simple", clients.pair_json()) == 200

    def series():
        return {line.rsplit(" ", 1)[0] for line in page(server).splitlines()}

    before = series()
    hostile = [f"model{n}" for n in range(50)] + ['a"} 1\n', "%22%7D%201%0Aforged%201", "..%2F..%2Fetc", "\u00e9" * 100, "x" * 5000, "simple%00"]
    for name in hostile:
        path = name.replace("\n", "%0A").replace('"', "%22").replace(" ", "%20").encode().decode("latin-1").replace("\u00c3\u00a9", "%C3%A9")
        for method, where in [
            ("POST", f"/v2/models/{path}/infer"), ("POST", f"/v2/models/simple/versions/{path}/infer"), ("GET", f"/v2/models/{path}/stats"),
            ("POST", f"/v2/repository/models/{path}/load"), ("POST", f"/v2/repository/models/{path}/unload"), ("GET", f"/{path}"), ("BREW", f"/v2/{path}"),
        ]:
            clients.ask(server.http, method, where, {} if method == "POST" else None, {"X-Custom": path[:100], "traceparent": path[:100]})
        body = {"id": name, "inputs": [{"name": name, "shape": [1], "datatype": name, "data": [1]}], "parameters": {name[:100]: name}}
        assert post(server, "simple", body) >= 400
    with grpcclient.InferenceServerClient(server.grpc) as stock:
        for name in hostile:
            given = grpcclient.InferInput(name, [1, 16], "INT32")
            given.set_data_from_numpy(np.ones((1, 16), np.int32))
            for model, version in [(name, ""), ("simple", "7"), ("simple", name)]:
                with pytest.raises(InferenceServerException):
                    stock.infer(model, [given], version, request_id=name)
    assert series() == before


def test_bytes_in_hand_are_told_beside_the_budget(repository, serve):
    delay = 'parameters { key: "execute_delay_ms" value { string_value: "1500" } }\n'
    repository.add("slow", "identity", identity_config(more=delay))
    server = serve(repository.path, "--memory-budget=32M")
    assert value(server, "galatea_memory_budget_limit_bytes") == 32 << 20
    size = 4 << 20
    with concurrent.futures.ThreadPoolExecutor(1) as pool, clients.client(server, "http") as stock:
        held = pool.submit(clients.infer, stock, "http", "slow", {"INPUT0": np.ones(size // 4, np.float32)})
        until(lambda: value(server, "galatea_memory_budget_used_bytes") >= size, "the request in hand is counted")
        held.result()
    until(lambda: value(server, "galatea_memory_budget_used_bytes") < size, "and released")
    assert value(server, "galatea_memory_budget_refused_total") == 0
    with clients.client(server, "http") as stock, pytest.raises(InferenceServerException):
        clients.infer(stock, "http", "slow", {"INPUT0": np.ones(64 << 18, np.float32)})
    assert value(server, "galatea_memory_budget_refused_total") >= 1


def test_requests_that_come_before_or_after_the_server_serves_are_told(repository, serve):
    delay = 'parameters { key: "execute_delay_ms" value { string_value: "3000" } }\n'
    repository.add("slow", "identity", identity_config(more=delay))
    server = serve(repository.path)
    exiting = 'reason="exiting"'
    assert value(server, "galatea_requests_refused_total", exiting) == 0
    assert value(server, "galatea_build_info", re.search(r"galatea_build_info\{(.*)\}", page(server))[1]) == 1
    with grpcclient.InferenceServerClient(server.grpc) as stock, concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert stock.is_server_live()
        held = pool.submit(post, server, "slow", one_row())
        until(lambda: value(server, "galatea_inference_requests_in_flight", 'model="slow",version="1"') == 1, "it is executed")
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_line("Waiting for in-flight requests")
        given = grpcclient.InferInput("INPUT0", [3], "FP32")
        given.set_data_from_numpy(np.ones(3, np.float32))
        with pytest.raises(InferenceServerException):
            stock.infer("slow", [given])
        assert value(server, "galatea_requests_refused_total", exiting) == 1
        assert held.result() == 200


def test_every_line_can_be_parsed_and_values_of_labels_are_escaped(repository, serve, tmp_path):
    tags = r'metric_tags { key: "team" value: "a \"b\" \\ \n c" }'
    repository.add("simple", "add_sub", add_sub_config(more=tags))
    repository.add("empty", "identity", identity_config())
    server = serve(repository.path, *ALL_ON, f"--access-log={tmp_path / 'access.log'}")
    assert post(server, "simple", clients.pair_json()) == 200
    found = families(page(server))
    assert [(s[2], s[3]) for s in found["galatea_log_lines_lost_total"][1]] == [('log="server"', "0"), ('log="access"', "0")]
    tag = {sample[2] for _, samples in found.values() for sample in samples if "_team" in (sample[2] or "")}
    assert tag and all(r'_team="a \"b\" \\ \n c",model="simple"' in labels for labels in tag)
    for name, (kind, samples) in found.items():
        ends = {"histogram": ("_count", "_sum", "_bucket"), "summary": ("_count", "_sum", "")}.get(kind, ("",))
        assert all(sample[1].removeprefix(name) in ends for sample in samples), name


def test_requests_that_are_not_executed_are_told_by_reason(repository, serve):
    policy = "dynamic_batching { default_queue_policy { max_queue_size: 1 timeout_action: REJECT default_timeout_microseconds: 100000 } }"
    delay = 'parameters { key: "execute_delay_ms" value { string_value: "700" } }\n'
    repository.add("slow", "identity", identity_config(max_batch_size=1, dims="3", more=policy + delay))
    server = serve(repository.path)
    body = {"inputs": [clients.tensor_json("INPUT0", np.ones((1, 3), np.float32))]}
    series = 'model="slow",version="1"'
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        first = pool.submit(post, server, "slow", body)
        until(lambda: value(server, "galatea_inference_requests_in_flight", series) == 1, "the first one is executed")
        second = pool.submit(post, server, "slow", body)
        until(lambda: value(server, "nv_inference_pending_request_count", series) == 1, "the second one waits")
        assert post(server, "slow", body) == 503, "the queue is full"
        assert (first.result(), second.result()) == (200, 503)

    def refused(reason):
        return value(server, "galatea_inference_requests_refused_total", f'model="slow",reason="{reason}",version="1"')

    assert [refused(r) for r in ("queue_full", "queue_timeout", "unloading", "no_instance")] == [1, 1, 0, 0]
    assert value(server, "nv_inference_request_failure", 'model="slow",reason="REJECTED",version="1"') == 2


def test_connections_and_restarts_are_counted(repository, serve):
    repository.add("failing", "failing", identity_config())
    server = serve(repository.path, "--max-connections=20")
    assert value(server, "galatea_connections_limit") == 20
    host, port = server.http.split(":")
    before = value(server, "galatea_connections_open")
    held = [socket.create_connection((host, int(port))) for _ in range(4)]
    until(lambda: value(server, "galatea_connections_open") >= before + 4, "they are open")
    more = [socket.create_connection((host, int(port))) for _ in range(30)]

    def told():
        found = clients.metrics(server)
        closed = found["galatea_connections_closed_total", 'reason="room"']
        return closed + found["galatea_connections_refused_total", ""] >= 10

    until(told, "beyond the cap some are closed or refused")
    [connection.close() for connection in held + more]
    series = 'model="failing",version="1"'
    assert value(server, "galatea_model_instance_restarts_total", series) == 0
    assert post(server, "failing", {**one_row(), "parameters": {"fail": "panic"}}) == 500
    until(lambda: value(server, "galatea_model_instance_restarts_total", series) == 1, "it is started again")
    found = clients.metrics(server)
    counts = [found[f"galatea_model_instances{kind}", series] for kind in ("", "_working")]
    assert counts == [1, 1]
    assert found["galatea_control_operations_running", 'operation="load"'] == 0


def test_a_configuration_gives_the_buckets(repository, serve):
    def control(family, buckets):
        return f'model_metrics {{ metric_control [ {{ metric_identifier {{ family: "{family}" }} histogram_options {{ buckets: [ {buckets} ] }} }} ] }}\n'

    own = control("galatea_inference_request_duration_seconds", "0, 60")
    repository.add("own", "identity", identity_config(more=own))
    repository.add("theirs", "identity", identity_config(more=control("mine", "3")))
    repository.add("wrong", "identity", identity_config(more=control("galatea_inference_batch_size", "2, 1")))
    server = serve(repository.path, *ALL_ON, "--exit-on-error=false")
    assert post(server, "own", one_row()) == 200
    lines = [l for l in page(server).splitlines() if 'request_duration_seconds_bucket{model="own"' in l]
    assert [re.search('le="(.*)"} (.*)', line).groups() for line in lines] == [("0", "0"), ("60", "1"), ("+Inf", "1")]
    assert "model_metrics of model 'theirs' has no effect on 'mine'" in server.text()
    index = json.loads(clients.ask(server.http, "POST", "/v2/repository/index", {})[2])
    (reason,) = [entry["reason"] for entry in index if entry["name"] == "wrong"]
    assert "the buckets of 'galatea_inference_batch_size' cannot be those of a histogram" in reason


def test_figures_fit_each_other_in_every_answer_under_load(repository, serve):
    repository.add("simple", "add_sub", add_sub_config())
    server = serve(repository.path, *ALL_ON)
    series = 'model="simple",version="1"'
    deadline = time.monotonic() + 3

    def load(_):
        done = 0
        while time.monotonic() < deadline:
            assert post(server, "simple", clients.pair_json(rows=2)) == 200
            done += 1
        return done

    def check(found, last):
        success = found["nv_inference_request_success", series]
        counts = {found[name, labels] for name, labels in found if name.endswith("duration_seconds_count") or name.endswith("summary_us_count")}
        assert counts == {success}
        whole = found["nv_inference_request_duration_us", series]
        assert abs(found["galatea_inference_request_duration_seconds_sum", series] * 1e6 - whole) <= 1
        assert whole - success <= found["nv_inference_request_summary_us_sum", series] <= whole
        assert found["galatea_inference_batch_size_count", series] == found["nv_inference_exec_count", series]
        assert found["galatea_inference_batch_size_sum", series] == found["nv_inference_count", series]
        grows = [key for key in found if key[0].endswith(("_total", "_count", "_sum", "_bucket", "_duration_us")) and "pending" not in key[0]]
        fallen = [key for key in grows if found[key] < last.get(key, 0)]
        assert not fallen
        return found

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        loads = [pool.submit(load, n) for n in range(4)]
        last, scrapes = {}, 0
        while time.monotonic() < deadline:
            last, scrapes = check(clients.metrics(server), last), scrapes + 1
        done = sum(each.result() for each in loads)
    last = check(clients.metrics(server), last)
    assert scrapes >= 3 and last["nv_inference_request_success", series] == done
    p99 = last["nv_inference_request_summary_us", f'{series},quantile="0.99"']
    assert 0 < p99 < 3e6


@pytest.mark.parametrize("flags", [(), ALL_ON], ids=["off", "on"])
def test_a_page_of_many_models_is_made_quickly(repository, serve, flags):
    """A bound that a busy machine keeps too; it prints what it took."""
    for number in range(200):
        repository.add(f"model_{number}", "identity", identity_config())
    server = serve(repository.path, *flags)
    begin = time.monotonic()
    text = page(server)
    seconds = time.monotonic() - begin
    print(f"{len(text)} bytes in {seconds * 1000:.1f} ms")
    assert text.count("nv_inference_count{") == 200
    assert seconds < 3
