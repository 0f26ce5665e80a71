"""Requests with the stock clients, and small ways to ask over plain HTTP."""

import http.client
import json

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import np_to_triton_dtype

MODULES = {"http": httpclient, "grpc": grpcclient}


def client(server, protocol, **more):
    address = server.http if protocol == "http" else server.grpc
    return MODULES[protocol].InferenceServerClient(address, **more)


def inputs(module, arrays, **more):
    """InferInput objects for a dictionary of arrays; `more` goes to set_data_from_numpy."""
    made = []
    for name, array in arrays.items():
        tensor = module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
        tensor.set_data_from_numpy(array, **more)
        made.append(tensor)
    return made


def infer(stock, protocol, model, arrays, outputs=None, **more):
    """Output arrays by name."""
    module = MODULES[protocol]
    wanted = [module.InferRequestedOutput(name) for name in outputs] if outputs else None
    result = stock.infer(model, inputs(module, arrays), outputs=wanted, **more)
    answer = result.get_response()
    named = answer["outputs"] if isinstance(answer, dict) else answer.outputs
    names = [o["name"] if isinstance(o, dict) else o.name for o in named]
    return {name: result.as_numpy(name) for name in names}


def ask(address, method, path, body=None, headers=None):
    """(status, headers, body) of one plain HTTP request; a dictionary is sent as JSON."""
    if isinstance(body, (dict, list)):
        body = json.dumps(body).encode()
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


def is_ready(server):
    try:
        return ask(server.http, "GET", "/v2/health/ready")[0] == 200
    except OSError:
        return False


def counts(server, model):
    """The model's statistics, its versions summed: {"success": n, "fail": n, "inferences": n, "executions": n}."""
    found = json.loads(ask(server.http, "GET", f"/v2/models/{model}/stats")[2])["model_stats"]
    counts = {name: sum(v["inference_stats"][name]["count"] for v in found) for name in ("success", "fail")}
    return {**counts, "inferences": sum(v["inference_count"] for v in found),
            "executions": sum(v["execution_count"] for v in found)}


def tensor_json(name, array):
    datatype = np_to_triton_dtype(array.dtype)
    return {"name": name, "shape": list(array.shape), "datatype": datatype, "data": array.ravel().tolist()}


def pair_json(rows=1, width=16):
    a = np.arange(rows * width, dtype=np.int32).reshape(rows, width)
    return {"inputs": [tensor_json("INPUT0", a), tensor_json("INPUT1", np.ones_like(a))]}


def metrics(server):
    """Samples of the metrics page: (family, labels as text) -> value."""
    _, _, page = ask(server.metrics, "GET", "/metrics")
    samples = {}
    for line in page.decode().splitlines():
        if line and not line.startswith("#"):
            series, value = line.rsplit(" ", 1)
            name, _, labels = series.partition("{")
            samples[name, labels.rstrip("}")] = float(value)
    return samples


def statistics(server, model):
    _, _, body = ask(server.http, "GET", f"/v2/models/{model}/stats")
    return json.loads(body)["model_stats"][0]
