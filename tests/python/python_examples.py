"""Plays of the models `example_*`: what users of the Python backend begin with, written the way they write it."""

import numpy as np
import tritonclient.http as httpclient

import clients
from python_requests import ask, load, own_lines, stream

PAIR = {"INPUT0": np.array([1, 2, 3, 4], np.float32), "INPUT1": np.array([0.5, 8, -1, 0], np.float32)}
IMAGE = np.frombuffer(b"P6\n2 1\n255\n" + bytes([255, 0, 51, 102, 204, 0]), np.uint8)


def add_sub(server):
    return {protocol: ask(server, protocol, "example_add_sub", PAIR) for protocol in ("http", "grpc")}


def calls(server):
    """The name of the model is an element of a TYPE_STRING input."""
    named = {name: {**PAIR, "MODEL_NAME": np.array([name.encode()], dtype=object)} for name in ("example_add_sub", "nobody")}
    return {name: [ask(server, protocol, "example_calls", arrays) for protocol in ("http", "grpc")] for name, arrays in named.items()}


def calls_async(server):
    arrays = [{**PAIR, "MODEL_NAMES": np.array([b"example_add_sub", name], dtype=object)} for name in (b"example_add_sub", b"nobody")]
    return [ask(server, "grpc", "example_calls_async", each, request_id="outer") for each in arrays]


def repeat(server):
    arrays = {"IN": np.array([4, 2, 0, 1], np.int32), "DELAY": np.array([1, 2, 3, 4], np.uint32), "WAIT": np.array([1], np.uint32)}
    return stream(server, "example_repeat", arrays)


def repeat_nothing(server):
    arrays = {"IN": np.zeros(0, np.int32), "DELAY": np.zeros(0, np.uint32), "WAIT": np.zeros(1, np.uint32)}
    return stream(server, "example_repeat", arrays)


def repeat_generate(server):
    """The same as events of plain HTTP."""
    load(server, "example_repeat")
    body = {"IN": [4, 2], "DELAY": [0, 0], "WAIT": 0}
    status, _, text = clients.ask(server.http, "POST", "/v2/models/example_repeat/generate_stream", body)
    return [status, text.decode()]


def calls_stream(server):
    return [ask(server, "http", "example_calls_stream", {"IN": np.array([n], np.int32)}) for n in (5, 0)]


def preprocess(server):
    two = np.stack([IMAGE, IMAGE[::1]])
    return [ask(server, "http", "example_preprocess", {"IMAGE": array}) for array in (IMAGE[None], two, IMAGE[None, :-1], np.zeros((1, 4), np.uint8))]


def metrics(server):
    said = [ask(server, "http", "example_metrics", {"IN": np.array(values, np.float32)}) for values in ([0.25, 5], [1.0])]
    return [said, own_lines(server, "own_example")]


def kind(server):
    return ask(server, "http", "example_kind", {"IN": np.zeros(1, np.int32)})


def outputs_of_add_sub(server):
    """Only one of the outputs, and the configuration that the model gave itself."""
    answer = ask(server, "http", "example_add_sub", PAIR, outputs=[httpclient.InferRequestedOutput("OUTPUT1")])
    _, _, body = clients.ask(server.http, "GET", "/v2/models/example_add_sub")
    return [answer, body.decode()]


PLAYS = {
    "examples/add_sub": add_sub, "examples/add_sub metadata": outputs_of_add_sub, "examples/calls": calls, "examples/calls_async": calls_async, "examples/repeat": repeat,
    "examples/repeat nothing": repeat_nothing, "examples/repeat over generate_stream": repeat_generate, "examples/calls_stream": calls_stream, "examples/preprocess": preprocess,
    "examples/kind": kind, "metrics/example": metrics,
}
