"""Plays that are more than one request to a `case_` function: every type, what requests carry, workers that start and end."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient

import clients
from python_requests import MODELS, ask, by_infer, case_input, control, load, own_lines, stream
from waiting import eventually

VALUES = {
    "BOOL": np.array([True, False]), "INT8": np.array([-128, 127], np.int8), "INT16": np.array([-32768, 5], np.int16),
    "INT32": np.array([-(2**31), 7], np.int32), "INT64": np.array([-(2**63), 2**53 + 1], np.int64), "UINT8": np.array([0, 255], np.uint8),
    "UINT16": np.array([65535], np.uint16), "UINT32": np.array([2**32 - 1], np.uint32), "UINT64": np.array([2**64 - 1], np.uint64),
    "FP16": np.array([1.5, -0.25], np.float16), "FP32": np.array([0.1, np.inf, -0.0], np.float32), "FP64": np.array([1e300, -1.5]),
    "STRING": np.array([b"a\x00\xff", "\u00fc".encode(), b""], dtype=object),
    "GRID": np.arange(24, dtype=np.int32).reshape(2, 3, 4),
}
# Answers are longer than what is shown of other tensors, but small enough to be shown whole.
TEXT = {"IN_STRING": np.array([b"x" * 70_000], dtype=object)}


def types(server):
    """Each type alone, over both protocols."""
    load(server, "types")
    return {f"{kind} over {protocol}": ask(server, protocol, "types", {f"IN_{kind}": array}) for kind, array in VALUES.items() for protocol in ("http", "grpc")}


def types_empty(server):
    return {kind: ask(server, "http", "types", {f"IN_{kind}": array[:0]}) for kind, array in VALUES.items()}


def types_together(server):
    arrays = {f"IN_{kind}": array for kind, array in VALUES.items()}
    return [ask(server, protocol, "types", arrays) for protocol in ("http", "grpc")]


def types_bf16(server):
    made = httpclient.InferInput("IN_BF16", [2], "BF16")
    made.set_data_from_numpy(np.array([1.5, -2.0], ml_dtypes.bfloat16))
    return ask(server, "http", "types", [made])


def types_json(server):
    """The same over JSON both ways, with the server's own text."""
    load(server, "types")
    answers = {}
    for kind, array in VALUES.items():
        if kind in ("FP16", "STRING", "FP32"):
            continue
        body = {"inputs": [clients.tensor_json(f"IN_{kind}", array)], "outputs": [{"name": f"OUT_{kind}"}]}
        status, _, text = clients.ask(server.http, "POST", "/v2/models/types/infer", body)
        answers[kind] = [status, text.decode().replace("e+", "e")]
    return answers


def text_json(server):
    load(server, "types")
    body = {"inputs": [{"name": "IN_STRING", "shape": [3], "datatype": "BYTES", "data": ["a", "\u00fc\u4f60", ""]}], "outputs": [{"name": "OUT_STRING"}]}
    status, _, text = clients.ask(server.http, "POST", "/v2/models/types/infer", body)
    return [status, text.decode()]


def long_text(server):
    return [ask(server, protocol, "types", TEXT)["outputs"]["OUT_STRING"] for protocol in ("http", "grpc")]


def big(server):
    """32 MB there and back."""
    load(server, "plain_identity")
    array = np.arange(8 << 20, dtype=np.float32)
    same = {}
    for protocol in ("http", "grpc"):
        with clients.client(server, protocol) as stock:
            same[protocol] = bool((clients.infer(stock, protocol, "plain_identity", {"IN": array})["OUT"] == array).all())
    return same


def growing(server):
    """Sizes around every limit at which a tensor might travel another way."""
    load(server, "plain_identity")
    same = {}
    with clients.client(server, "http") as stock:
        for size in (0, 1, 1023, 4096, 8191, 8192, 8193, 16384, 32767, 32768, 32769, 65536, 262144, 262145, 1 << 20):
            array = np.arange(size, dtype=np.float32)
            same[str(size)] = bool(np.array_equal(clients.infer(stock, "http", "plain_identity", {"IN": array})["OUT"], array))
    return same


ROW = {"IN": np.array([[1, 2]], np.int32)}


def by_request(**more):
    def play(server):
        return {protocol: ask(server, protocol, "request", ROW, **more) for protocol in ("http", "grpc")}

    return play


def request_outputs(server):
    answers = {}
    for protocol in ("http", "grpc"):
        wanted = [clients.MODULES[protocol].InferRequestedOutput("SAID")]
        answers[protocol] = ask(server, protocol, "request", ROW, outputs=wanted)
    return answers


def request_rows(server):
    """A request of three rows is one request."""
    answer = ask(server, "grpc", "request", {"IN": np.zeros((3, 2), np.int32)}, outputs=[grpcclient.InferRequestedOutput("COUNT")])
    return answer


def complete(server):
    """The configuration after auto_complete_config, and what each of its calls did."""
    load(server, "complete")
    _, _, body = clients.ask(server.http, "GET", "/v2/models/complete/config")
    config = json.loads(body)
    kept = ("max_batch_size", "input", "output", "dynamic_batching", "model_transaction_policy", "platform", "backend", "instance_group")
    answer = ask(server, "http", "complete", {"CASE": np.frombuffer(b"[]", np.uint8)[None]})
    return {"config": {k: config[k] for k in kept if k in config}, "tried": answer}


def complete_partly(server):
    load(server, "complete_partly")
    _, _, body = clients.ask(server.http, "GET", "/v2/models/complete_partly/config")
    config = json.loads(body)
    pair = {"A": np.ones((2, 4), np.float32), "B": np.ones((2, 4), np.float32)}
    return [{k: config.get(k) for k in ("max_batch_size", "input", "output", "dynamic_batching")}, ask(server, "http", "complete_partly", pair)]


def complete_without_file(server):
    load(server, "complete_without_file")
    _, _, body = clients.ask(server.http, "GET", "/v2/models/complete_without_file/config")
    config = json.loads(body)
    answers = stream(server, "complete_without_file", {"IN": np.array([4], np.int32)})
    return [{k: config.get(k) for k in ("max_batch_size", "input", "output", "backend", "model_transaction_policy")}, answers]


def loads(model):
    def play(server):
        status, _, body = control(server, "load", model)
        return [status, json.loads(body)["error"] if body else ""]

    return play


def bad_async_plain(server):
    load(server, "bad_async_plain")
    return ask(server, "http", "bad_async_plain", {"IN": np.array([4], np.int32)})


def initialize_and_finalize(server):
    """What the model wrote to a file in initialize and finalize."""
    load(server, "life")
    answer = ask(server, "http", "life", case_input(httpclient, "pid"))
    status = control(server, "unload", "life")[0]
    server.loaded.discard("life")
    server.wait_for_line(r"successfully unloaded 'life' version 1")
    written = server.repository / "life/told.txt"
    text = written.read_text()
    written.unlink()
    return [sorted(answer["outputs"]), status, text]


def worker_ends(case):
    """The request that kills it, and the one after."""

    def play(server):
        load(server, "life")
        first = ask(server, "grpc", "life", case_input(grpcclient, case))
        second = ask(server, "grpc", "life", case_input(grpcclient, "pid"))
        return [first, second if "error" in second else sorted(second["outputs"])]

    return play


def log(server):
    """Lines of the log that the model wrote, without time, file and line."""
    load(server, "surroundings")
    if "surroundings/log" in server.asked:
        # The lines of that case may still be on their way.
        server.wait_for_line(r"logged \u00fc and")
    start = len(server.log)
    ask(server, "http", "surroundings", case_input(httpclient, "log"))
    # Among the lines of this case alone: those of the one before say the same.
    last = ["logged error", "logged \u00fc and"]
    server.wait(lambda: all(any(w in line for line in server.log[start:]) for w in last), "what was logged")
    return [re.sub(r"^([IWEV])\S* \S+ .*?\] ", r"\1 ", line) for line in server.log[start:] if "logged" in line]


def printed(server):
    load(server, "surroundings")
    start = len(server.log)
    ask(server, "http", "surroundings", case_input(httpclient, "print"))
    wanted = ["printed to stdout", "printed to stderr", "written to descriptor 1", "written to descriptor 2", "no newline at its end"]
    server.wait(lambda: all(any(w in line for line in server.log[start:]) for w in wanted), "what was printed")
    return sorted(w for w in wanted if any(w in line for line in server.log[start:]))


def metrics_page(case, family):
    """A family and its samples, as the page shows them."""

    def play(server):
        if f"surroundings/{case}" not in server.asked:
            by_infer("surroundings", "http", case)(server)
        return own_lines(server, family)

    return play


def tally(server):
    """A kept family counts on from request to request, and is gone with the model."""
    load(server, "tally")
    counted = [ask(server, "http", "tally", {"IN": np.array(values, np.int32)})["outputs"]["OUT"]["values"] for values in ([5, -1], [3], [70, 80])]
    page = own_lines(server, "own_tally")
    control(server, "unload", "tally")
    server.loaded.discard("tally")
    server.wait_for_line(r"successfully unloaded 'tally' version 1")
    return [counted, page, own_lines(server, "own_tally")]


def decoupled_over_http(server):
    return ask(server, "http", "stream", case_input(httpclient, "three"))


def decoupled_over_grpc(server):
    return ask(server, "grpc", "stream", case_input(grpcclient, "three"))


def after_cancel(server):
    """What the cancelled stream left behind; asked again until the model has noticed."""
    answers = stream(server, "stream", case_input(grpcclient, "until_cancelled"), cancel=True)

    def left():
        return stream(server, "stream", case_input(grpcclient, "left"))[0]["outputs"]["SAID"].get("until_cancelled")

    return [answers, eventually("the model notices that the stream was cancelled", left)]


def plain_over_stream(server):
    return stream(server, "outputs", case_input(grpcclient, "str"))


def many_at_once(server):
    """A hundred requests of eight callers to one instance: every one gets its own answer."""
    load(server, "add")

    def one(i):
        return ask(server, "http", "add", {"IN": np.array([i, i * i], np.int32)})["outputs"]["OUT"]["values"] == [i + 1, i * i + 1]

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(one, range(100)))


PLAYS = {
    "types/each": types, "types/empty": types_empty, "types/together": types_together, "types/bf16": types_bf16, "types/json": types_json,
    "types/text as json": text_json, "types/long text": long_text, "plain/32 MB": big, "plain/sizes": growing,
    "request/plain": by_request(), "request/id": by_request(request_id="mine"), "request/timeout": by_request(timeout=5_000_000),
    "request/priority": by_request(priority=0), "request/sequence": by_request(sequence_id=17, sequence_start=True, sequence_end=True),
    "request/sequence start": by_request(sequence_id=17, sequence_start=True), "request/sequence text": by_request(sequence_id="abc", sequence_start=True),
    "request/parameters": by_request(parameters={"a": 1, "b": "x", "c": True}), "request/outputs": request_outputs, "request/rows": request_rows,
    "complete/every setter": complete, "complete/partly": complete_partly, "complete/without a file": complete_without_file,
    **{f"load/{folder.name}": loads(folder.name) for folder in sorted(MODELS.glob("bad_*")) if folder.name != "bad_async_plain"},
    "outputs/coroutine of a plain model": bad_async_plain, "life/told": initialize_and_finalize, "log/lines": log, "log/printed": printed,
    "metrics/counter": metrics_page("counter", "own_counter"), "metrics/histogram": metrics_page("histogram", "own_histogram"),
    "metrics/same twice": metrics_page("same_metric_twice", "own_same"), "metrics/many": metrics_page("many_observations", "own_many"),
    "metrics/outlives its family": metrics_page("metric_outlives_family", "own_outlives"), "metrics/tally": tally,
    "stream/decoupled over plain http": decoupled_over_http, "stream/decoupled over plain grpc": decoupled_over_grpc,
    "stream/cancelled": after_cancel, "outputs/plain over stream": plain_over_stream, "add/many at once": many_at_once,
    **{f"life/{case}": worker_ends(case) for case in ("keyboard_interrupt", "sys_exit", "os_exit", "killed", "segfault")},
}
