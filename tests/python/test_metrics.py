"""The metrics page from outside: what its figures say when something goes wrong, that they fit each other under load, and
that every line can be parsed."""

import concurrent.futures
import json
import re
import socket
import time

import numpy as np
import pytest

import clients
from repositories import add_sub_config, identity_config

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
