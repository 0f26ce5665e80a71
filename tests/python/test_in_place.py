"""Executions that take microseconds are done by the thread of the connection that brought the request: clients see no
difference, and the metric tells."""

import concurrent.futures
import json
import socket

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient

import clients
import waiting
from repositories import add_sub_config, identity_config

CALLERS = 16
EACH = 40


def executions(server, model):
    """Of the model, and those of them on the threads of connections."""
    found, series = clients.metrics(server), f'model="{model}",version="1"'
    return [found[name, series] for name in ("nv_inference_exec_count", "galatea_executions_on_connection_threads_total")]


def client_of(server, protocol):
    library = {"http": httpclient, "grpc": grpcclient}[protocol]
    return library, library.InferenceServerClient(getattr(server, protocol))


def ask(server, protocol, numbers, model="simple"):
    """Sends pairs of rows over one connection and checks each sum."""
    library, client = client_of(server, protocol)
    for number in numbers:
        rows = [np.full((1, 16), value, np.int32) for value in (number, 7)]
        inputs = [library.InferInput(f"INPUT{index}", row.shape, "INT32") for index, row in enumerate(rows)]
        [tensor.set_data_from_numpy(row) for tensor, row in zip(inputs, rows)]
        answer = client.infer(model, inputs, request_id=str(number))
        assert (answer.as_numpy("OUTPUT0") == number + 7).all() and (answer.as_numpy("OUTPUT1") == number - 7).all()
    client.close()


def until_in_place(server, protocol, model="simple"):
    """The counter only grows. How long an execution takes the server measures, so that it may need some of them."""
    before = executions(server, model)[1]

    def asked():
        ask(server, protocol, range(50), model)
        return executions(server, model)[1] > before

    waiting.eventually("short executions are done by the connection's thread", asked)


def write_twice(folder):
    """An ensemble that has `simple` add and subtract what it added and subtracted."""

    def maps(kind, first, second):
        pairs = zip((f"{kind.upper()}0", f"{kind.upper()}1"), (first, second))
        return " ".join(f'{kind}_map {{ key: "{key}" value: "{value}" }}' for key, value in pairs)

    between = ("sum", "difference")
    wiring = (
        maps("input", "INPUT0", "INPUT1") + maps("output", *between),
        maps("input", *between) + maps("output", "OUTPUT0", "OUTPUT1"),
    )
    steps = ", ".join(f'{{ model_name: "simple" model_version: -1 {step} }}' for step in wiring)
    config = add_sub_config(more=f"ensemble_scheduling {{ step [ {steps} ] }}\n")
    (folder / "twice/1").mkdir(parents=True)
    (folder / "twice/config.pbtxt").write_text(f'name: "twice"\nplatform: "ensemble"\n{config}')


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("instances", [1, 2])
def test_many_callers_get_their_own_outputs(repository, stage, protocol, instances):
    more = f"instance_group {{ count: {instances} kind: KIND_CPU }} dynamic_batching {{ }}"
    repository.add("simple", "add_sub", add_sub_config(more=more))
    server = stage.serves(repository.path)
    until_in_place(server, protocol)
    _, client = client_of(server, "http")
    before = client.get_inference_statistics("simple")["model_stats"][0]["inference_stats"]["success"]["count"]
    with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
        spans = [range(caller * EACH, (caller + 1) * EACH) for caller in range(CALLERS)]
        list(pool.map(lambda numbers: ask(server, protocol, numbers), spans))
    after = client.get_inference_statistics("simple")["model_stats"][0]["inference_stats"]["success"]["count"]
    assert after - before == CALLERS * EACH, "each is counted when its client has the answer"
    executed, in_place = executions(server, "simple")
    assert 0 < in_place <= executed


def test_an_ensemble_of_short_steps_is_executed_in_place(repository, stage):
    repository.add("simple", "add_sub", add_sub_config())
    write_twice(repository.path)
    server = stage.serves(repository.path)
    until_in_place(server, "http")
    before, sent = executions(server, "simple"), 0

    def asked():
        nonlocal sent
        for _ in range(20):
            status, _, body = clients.ask(server.http, "POST", "/v2/models/twice/infer", clients.pair_json(rows=1))
            sent += status == 200
        executed, in_place = (now - then for now, then in zip(executions(server, "simple"), before))
        return in_place and executed == 2 * sent and sent % 20 == 0

    waiting.eventually("short steps are done by the connection's thread", asked)


def test_disconnecting_clients_leave_no_requests_behind(repository, stage):
    repository.add("simple", "add_sub", add_sub_config())
    server = stage.serves(repository.path)
    until_in_place(server, "http")
    body = json.dumps(clients.pair_json(rows=1)).encode()
    host, port = server.http.split(":")
    head = f"POST /v2/models/simple/infer HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(100):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head + body)
    series = 'model="simple",version="1"'
    names = ("galatea_inference_requests_in_flight", "nv_inference_pending_request_count")

    def is_idle():
        page = clients.metrics(server)
        return [page[name, series] for name in names] == [0, 0]

    waiting.eventually("no request is under way", is_idle)
    ask(server, "http", range(10))


def test_slow_or_batching_models_use_their_instance_threads(repository, stage):
    delay = 'parameters { key: "execute_delay_ms" value { string_value: "1" } }\n'
    repository.add("slow", "identity", identity_config(more=delay))
    repository.add("waiting", "add_sub", add_sub_config(more="dynamic_batching { max_queue_delay_microseconds: 1 }"))
    server = stage.serves(repository.path)
    body = {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}
    for _ in range(60):
        assert clients.ask(server.http, "POST", "/v2/models/slow/infer", body)[0] == 200
    ask(server, "grpc", range(60), "waiting")
    assert [executions(server, model)[1] for model in ("slow", "waiting")] == [0, 0]
