"""Loads: what a failed one leaves behind, how many may wait, and bodies that are none."""

import json
import time

import grpc
import raw_http
from tritonclient.grpc import service_pb2, service_pb2_grpc

import models
from grpc_messages import OPTIONS
from registry import Achieved, attack


def stub(channel):
    return service_pb2_grpc.GRPCInferenceServiceStub(channel)


@attack("failed-names")
def failed_names(target):
    """2,000 loads of models that do not exist, with names of 60 KB"""
    with grpc.insecure_channel(target.server.grpc, options=OPTIONS) as channel:
        service = stub(channel)

        def load(number):
            name = f"{number:05d}" + "n" * 60_000
            try:
                service.RepositoryModelLoad(service_pb2.RepositoryModelLoadRequest(model_name=name), timeout=60)
            except grpc.RpcError as error:
                return error.code().name
            return "OK"

        codes = [code for first in range(0, 2000, 4) for code in raw_http.together(4, lambda n: load(first + n))]
        index = service.RepositoryIndex(service_pb2.RepositoryIndexRequest(), timeout=60)
    listed = sum(len(model.name) > 1000 for model in index.models)
    if listed:
        raise Achieved(f"{listed} of the names are in the index")
    return raw_http.statuses(codes)


def ensemble(number, megabytes):
    """A configuration of so many MB whose steps name a model that does not exist."""
    many = {f"INPUT{n}" + "x" * 200: f"T{n}" for n in range(megabytes * 4600)}
    return json.dumps({
        "name": f"refused_{number}", "platform": "ensemble",
        "input": [{"name": "A", "data_type": "TYPE_FP32", "dims": [1]}],
        "output": [{"name": "B", "data_type": "TYPE_FP32", "dims": [1]}],
        "ensemble_scheduling": {"step": [
            {"model_name": "nowhere", "model_version": -1, "input_map": many, "output_map": {"OUTPUT": "B"}},
        ]},
    })


@attack("refused-ensembles")
def refused_ensembles(target):
    """25 refused ensembles whose configurations have 40 MB"""
    answers = []
    for number in range(25):
        (target.repository / f"refused_{number}/1").mkdir(parents=True)
        body = json.dumps({"parameters": {"config": ensemble(number, 40)}}).encode()
        answers.append(raw_http.exchange(target.http, raw_http.post(f"/v2/repository/models/refused_{number}/load", body))[0])
    return f"{len(body) / 1e6:.0f} MB each, loads: " + raw_http.statuses(answers)


@attack("override-files")
def override_files(target):
    """20 failed loads that bring 30 MB of files each"""
    config = {"name": "brought", "backend": "identity", "input": "wrong"}
    answers = [target.load("brought", config, {"1/weights.bin": bytes(30_000_000)})[0] for _ in range(20)]
    return "loads: " + raw_http.statuses(answers)


@attack("waiting-loads", models=models.slow_load)
def waiting_loads(target):
    """1,200 loads of one model that takes 8 s: index, readiness, inflating of bodies go on"""
    sent = raw_http.post("/v2/repository/models/slow_load/load", b"{}")
    held = raw_http.many(target.http, 1200, sent, keep_trying=True)
    time.sleep(1)
    asks = {
        "index": raw_http.post("/v2/repository/index", b"{}"),
        "ready": raw_http.head("GET", "/v2/health/ready"),
        "statistics": raw_http.head("GET", "/v2/models/stats"),
        "gzip": packed_request(),
        "another load": raw_http.post("/v2/repository/models/vector/load", b"{}"),
    }
    # While a model loads, "not ready" is an answer as well.
    failed = [what for what, ask in asks.items() if raw_http.exchange(target.http, ask, 5)[0] not in (200, 400)]
    begin = time.monotonic()
    while time.monotonic() - begin < 12 and target.ask("GET", "/v2/models/slow_load/ready")[0] != 200:
        time.sleep(0.3)
    answered = [raw_http.answer(c)[0] for c in held if ready_to_read(c)]
    raw_http.close(held)
    if failed:
        raise Achieved(f"no answer in 5 s: {', '.join(failed)}")
    return "loads: " + raw_http.statuses(answered)


def ready_to_read(connection):
    from http_bodies import readable

    return readable(connection)


def packed_request():
    import json_documents

    body = b'{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"FP32","data":[1]}]}' + b" " * 200_000
    return raw_http.post("/v2/models/vector/infer", json_documents.packed(body), Content_Encoding="gzip")


@attack("abandoned-loads", models=models.slow_load)
def abandoned_loads(target):
    """400 loads of one slow model whose clients go away: those that have not begun do not begin"""
    sent = raw_http.post("/v2/repository/models/slow_load/load", b"{}")
    for _ in range(4):
        raw_http.close(raw_http.many(target.http, 100, sent))
    time.sleep(1)
    status = raw_http.exchange(target.http, raw_http.post("/v2/repository/models/strings/load", b"{}"), 15)[0]
    begin = time.monotonic()
    while time.monotonic() - begin < 20 and b"LOADING" in index(target):
        time.sleep(0.5)
    if status != 200 or b"LOADING" in index(target):
        raise Achieved(f"another load: {status}; still loading after {time.monotonic() - begin:.0f} s")
    return ""


def index(target):
    return raw_http.exchange(target.http, raw_http.post("/v2/repository/index", b"{}"), 10)[1]


@attack("load-and-unload-flood")
def reloads(target):
    """four clients load and unload models as fast as they can"""

    def turn(number):
        model = ("vector", "strings", "slow", "vector")[number]
        load, _ = target.load(model)
        unload, _ = target.ask("POST", f"/v2/repository/models/{model}/unload", {})
        return load, unload

    turns = raw_http.together(4, turn, 4)
    return f"{len(turns)} turns; loads " + raw_http.statuses([load for load, _ in turns])


GROUPS = (1, 1024, 3, 1)


@attack("flapping-instances", flags=("--exit-on-error=false",))
def flapping_instances(target):
    """four clients change a model from 1 instance to 1,024 and back as fast as they can, while 16 ask it and streams of it are open"""
    configs = [
        {
            "name": "vector", "backend": "identity", "max_batch_size": 0, "instance_group": [{"count": count, "kind": "KIND_CPU"}],
            "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}], "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
        }
        for count in GROUPS
    ]
    row = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1]}]}).encode()
    sent = raw_http.post("/v2/models/vector/infer", row)

    def play(client):
        if client < 4:
            return "load", [target.load("vector", config)[0] for config in configs]
        return "infer", [raw_http.exchange(target.http, sent)[0] for _ in range(20)]

    with grpc.insecure_channel(target.server.grpc, options=OPTIONS) as channel:
        streams = [stub(channel).ModelStreamInfer(held_open()) for _ in range(8)]
        answers = raw_http.together(20, play, 5)
        for stream in streams:
            stream.cancel()
    failed = [status for what, statuses in answers for status in statuses if what == "infer" and status != 200]
    if failed:
        raise Achieved(f"inferences failed: {raw_http.statuses(failed)}")
    target.load("vector", configs[0])
    return "loads: " + raw_http.statuses([status for what, statuses in answers for status in statuses if what == "load"])


def held_open():
    """A stream of one request that stays open."""
    request = service_pb2.ModelInferRequest(model_name="vector")
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[1]).contents.fp32_contents.append(1)
    yield request
    time.sleep(6)


@attack("load-bodies")
def load_bodies(target):
    """bodies of a load that are no object: [], 5, null, text"""
    taken = [
        body for body in (b"[]", b"5", b'"text"', b"true", b'{"parameters":[]}', b'{"parameters":5}')
        if raw_http.exchange(target.http, raw_http.post("/v2/repository/models/vector/load", body))[0] == 200
    ]
    if taken:
        raise Achieved("loaded with " + ", ".join(body.decode() for body in taken))
    return ""
