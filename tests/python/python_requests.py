"""Requests to the Python models in `models`, and their answers as plain data."""

import json
import re
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

import clients

MODELS = Path(__file__).resolve().parent / "models"
SHOWN = 24
NEEDS = {"calls": ["add", "count", "middle", "outputs", "types"], "calls_async": ["add", "count"], "middle": ["add"], "stream": ["add"], "surroundings": ["add"], "accepted": ["add"]}
NEEDS |= {"example_calls": ["example_add_sub"], "example_calls_async": ["example_add_sub"], "example_calls_stream": ["example_repeat"]}


def load(server, model):
    """Loads a model, and those that it calls, the first time it is asked for."""
    missing = [name for name in [*NEEDS.get(model, []), model] if name not in server.loaded]
    server.loaded.update(missing)
    with ThreadPoolExecutor(3) as pool:
        for status, _, body in pool.map(lambda name: control(server, "load", name), missing):
            assert status == 200, body


def control(server, verb, model, body=None):
    return clients.ask(server.http, "POST", f"/v2/repository/models/{model}/{verb}", body or {})


def own_lines(server, family):
    """The lines of a model's own metrics whose name starts like this."""
    _, _, page = clients.ask(server.metrics, "GET", "/metrics")
    return sorted(line for line in page.decode().splitlines() if re.search(rf"\b{family}", line))


# ---- answers as plain data


def shown(array):
    """Shape and values; of many values their number and checksum."""
    array = np.asarray(array)
    flat = array.ravel().tolist()
    values = [v.decode(errors="backslashreplace") if isinstance(v, bytes) else v for v in flat]
    if len(values) > SHOWN or sum(len(str(v)) for v in values) > 4000:
        values = {"count": len(values), "crc": zlib.crc32(repr(values).encode())}
    return {"shape": list(array.shape), "type": str(array.dtype), "values": json.loads(json.dumps(values))}


def answer_of(result):
    """Outputs by name; those that carry JSON (ANSWER, SAID) decoded."""
    body = result.get_response()
    listed = body.get("outputs", []) if isinstance(body, dict) else body.outputs
    names = [o["name"] if isinstance(o, dict) else o.name for o in listed]
    outputs = {name: output(name, result.as_numpy(name)) for name in names}
    return {"outputs": outputs, "order": names} if len(names) > 1 else {"outputs": outputs}


def output(name, array):
    if name in ("ANSWER", "SAID", "TRIED") and array is not None and array.size < 100_000 and array.dtype == np.uint8:
        return json.loads(bytes(array.ravel()).decode())
    return shown(array)


def refused(error):
    return {"status": error.status(), "error": error.message()}


def case_input(module, case):
    return clients.inputs(module, {"CASE": np.frombuffer(case.encode(), np.uint8)})


def ask(server, protocol, model, arrays, **more):
    """The answer to one request with the stock client."""
    load(server, model)
    options = {"network_timeout": server.limit, "connection_timeout": server.limit} if protocol == "http" else {}
    limit = {} if protocol == "http" else {"client_timeout": server.limit}
    with clients.client(server, protocol, **options) as stock:
        made = arrays if isinstance(arrays, list) else clients.inputs(clients.MODULES[protocol], arrays)
        try:
            return answer_of(stock.infer(model, made, **limit, **more))
        except InferenceServerException as error:
            return {"hangs": True} if "Deadline Exceeded" in str(error) else refused(error)
        except TimeoutError:
            return {"hangs": True}
        except ValueError as error:
            return {"client": str(error)}


def stream(server, model, arrays, cancel=False, **more):
    """All answers of one request over ModelStreamInfer, the one with nothing but the final marker included.

    The client closes its side at once; the server ends the stream when all is answered. With `cancel` the
    client ends it after the first answer.
    """
    load(server, model)
    found, first = [], threading.Event()

    def on_answer(result, error):
        found.append((result, error))
        first.set()

    with clients.client(server, "grpc") as stock:
        stock.start_stream(on_answer, stream_timeout=server.limit)
        made = arrays if isinstance(arrays, list) else clients.inputs(grpcclient, arrays)
        stock.async_stream_infer(model, made, enable_empty_final_response=True, **more)
        if cancel:
            assert first.wait(server.limit)
        stock.stop_stream(cancel_requests=cancel)
    return [streamed(result, error) for result, error in (found[:1] if cancel else found)]


def streamed(result, error):
    if error is None:
        return {**answer_of(result), "final": is_final(result)}
    return {"hangs": True} if "Deadline Exceeded" in str(error) else refused(error)


def is_final(result):
    parameters = result.get_response().parameters
    return "triton_final_response" in parameters and parameters["triton_final_response"].bool_param


def by_infer(model, protocol, case):
    def play(server):
        return ask(server, protocol, model, case_input(clients.MODULES[protocol], case))

    return play
