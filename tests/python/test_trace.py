"""Traces of requests: which are traced, what their files hold, and that every file is whole."""

import http.client
import json
from pathlib import Path

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

import clients
import repositories
import servers
import shared_flags
import tiers
from test_disk_full import namespace, small_disk
from test_streams import message, repeat_arrays
from waiting import eventually

QUEUED = ["REQUEST_START", "QUEUE_START"]
COMPUTED = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
ENDED = ["REQUEST_END", "INFER_RESPONSE_COMPLETE"]
RUN = [*QUEUED, *COMPUTED, *ENDED]
# A request that another one caused has no responses of its own to a client.
CHILD = [*QUEUED, *COMPUTED, "REQUEST_END"]
RECEIVED, SENT = ["HTTP_RECV_START", "HTTP_RECV_END"], ["HTTP_SEND_START", "HTTP_SEND_END"]

CALLER = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([self.answer(request)]) for request in requests]

    def answer(self, request):
        given = pb.Tensor("INPUT0", pb.get_input_tensor_by_name(request, "INPUT0").as_numpy())
        more = {"trace": request.trace()} if PASSES else {}
        assert request.trace().get_context() is None
        call = pb.InferenceRequest(model_name=CALLED, requested_output_names=["OUTPUT0"], inputs=[given], **more)
        answer = call.exec()
        if answer.has_error():
            raise pb.TritonModelException(answer.error().message())
        return pb.Tensor("OUTPUT0", pb.get_output_tensor_by_name(answer, "OUTPUT0").as_numpy())
"""


class Request:
    """One traced request: its events by name, its model, its tensors by name."""

    def __init__(self, objects):
        self.id = objects[0]["id"]
        self.model = next((one for one in objects if "model_name" in one), None)
        stamps = [stamp for one in objects for stamp in one.get("timestamps", [])]
        self.events, self.ns = [stamp["name"] for stamp in stamps], {stamp["name"]: stamp["ns"] for stamp in stamps}
        self.tensors = {(one["activity"], one["tensor"]["name"]): one["tensor"] for one in objects if "activity" in one}

    @property
    def parent(self):
        return self.model.get("parent_id")


def requests_of(text):
    """The requests of a file, in their order; the file is a whole JSON array."""
    grouped = {}
    for one in json.loads(text):
        grouped.setdefault(one["id"], []).append(one)
    return [Request(objects) for objects in grouped.values()]


def written(file):
    """The requests of a file; none if it is not there yet."""
    return requests_of(file.read_text()) if file.exists() else []


def is_whole(path):
    try:
        return bool(json.loads(path.read_text()))
    except ValueError:
        return False


def numbered(file):
    """The numbered files of a trace file, by their number."""
    found = (path for path in file.parent.glob(f"{file.name}.*") if path.suffix[1:].isdigit())
    return {int(path.suffix[1:]): path for path in found}


def settings(server, model, **wanted):
    path = f"/v2/models/{model}/trace/setting" if model else "/v2/trace/setting"
    status, _, answer = clients.ask(server.http, "POST", path, wanted)
    assert status == 200, answer
    return json.loads(answer)


@pytest.fixture
def traced(shared):
    """`traced(model, levels)` traces each request of the model from now on; it gives what takes the next traces."""
    server = shared(*shared_flags.traced())
    on = []

    def trace(model, levels=("TIMESTAMPS",)):
        on.append(model)
        settings(server, model, trace_level=list(levels), trace_rate="1", log_frequency="1")
        before = len(numbered(shared_flags.trace_file()))

        def take(count=1):
            """The requests of the next traces, waited for."""
            nonlocal before
            wanted = range(before, before + count)
            eventually(f"{count} traces are written", lambda: set(wanted) <= set(numbered(shared_flags.trace_file())))
            before += count
            files = numbered(shared_flags.trace_file())
            # A trace is written when its last part ends: that of a later request may be first.
            return sorted((requests_of(files[number].read_text()) for number in wanted), key=lambda trace: min(one.id for one in trace))

        return take

    trace.server = server
    yield trace
    for model in on:
        settings(server, model, trace_level=None, trace_rate=None, log_frequency=None)


def infer_json(server, model, name="INPUT0", datatype="FP32", data=(1.5,), **more):
    body = {"inputs": [{"name": name, "shape": [len(data)], "datatype": datatype, "data": list(data)}], **more}
    return clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)


def test_a_request_over_http(traced):
    server = traced.server
    model = server.add("simple", "add_sub", repositories.add_sub_config())
    take = traced(model)
    assert clients.ask(server.http, "POST", f"/v2/models/{model}/infer", {"id": "a\"b", **clients.pair_json()})[0] == 200
    [[request]] = take()
    assert sorted(request.events) == sorted([*RECEIVED, *RUN, *SENT])
    assert request.model == {"id": request.id, "model_name": model, "model_version": 1, "request_id": "a\"b"}
    order = [*RECEIVED, *QUEUED, *COMPUTED, "INFER_RESPONSE_COMPLETE", *SENT]
    times = [request.ns[name] for name in order]
    assert times == sorted(times)
    # Without an id of the client there is no key for it, and each trace has a number of its own.
    assert clients.ask(server.http, "POST", f"/v2/models/{model}/infer", clients.pair_json())[0] == 200
    [[other]] = take()
    assert "request_id" not in other.model and other.id > request.id


def test_calls_and_streams_over_grpc(traced):
    server = traced.server
    simple = server.add("simple", "add_sub", repositories.add_sub_config())
    repeat = server.add("repeat", "repeat", repositories.REPEAT_CONFIG)
    pair = {name: np.ones((1, 16), np.int32) for name in ("INPUT0", "INPUT1")}
    waited, sent = ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END"], ["GRPC_SEND_START", "GRPC_SEND_END"]
    with clients.client(server, "grpc") as stock:
        take = traced(simple)
        clients.infer(stock, "grpc", simple, pair, request_id="7")
        stream = [message(simple, pair, "8"), message(simple, pair, "9")]
        assert len(list(stock._client_stub.ModelStreamInfer(iter(stream)))) == 2
        for [request], request_id in zip(take(3), ("7", "8", "9")):
            assert sorted(request.events) == sorted([*waited, *RUN, *sent])
            assert request.model["request_id"] == request_id
        take = traced(repeat)
        assert len(list(stock._client_stub.ModelStreamInfer(iter([message(repeat, repeat_arrays([1, 2, 3]), "s")])))) == 3
        [[request]] = take()
    assert [request.events.count(name) for name in (*sent, "INFER_RESPONSE_COMPLETE", "REQUEST_END")] == [3, 3, 3, 1]


def test_tensors_are_json_whatever_they_hold(traced):
    server = traced.server
    kinds = {"INT8": ([1, -1], "1,-1"), "BOOL": ([True, False], "1,0"), "FP32": ([0.5, 1e10], "0.5,1e+10"),
             "BYTES": (['a"b\\', "\n"], '"a\\"b\\\\","\\n"'), "UINT64": ([2**64 - 1], "18446744073709551615")}
    for kind, (data, text) in kinds.items():
        config = repositories.identity_config("TYPE_STRING" if kind == "BYTES" else f"TYPE_{kind}")
        model = server.add(kind.lower(), "identity", config)
        take = traced(model, ["TENSORS"])
        assert infer_json(server, model, datatype=kind, data=data)[0] == 200
        [[request]] = take()
        assert request.events == [] and request.model["model_name"] == model
        tensor = {"data": text, "shape": str(len(data)), "dtype": kind}
        assert request.tensors == {
            ("TENSOR_QUEUE_INPUT", "INPUT0"): {"name": "INPUT0", **tensor},
            ("TENSOR_BACKEND_OUTPUT", "OUTPUT0"): {"name": "OUTPUT0", **tensor},
        }
    half = server.add("half", "identity", repositories.identity_config("TYPE_FP16"))
    take = traced(half, ["TENSORS", "TIMESTAMPS"])
    with clients.client(server, "http") as stock:
        clients.infer(stock, "http", half, {"INPUT0": np.array([1.5, -2], np.float16)})
    [[request]] = take()
    assert {tensor["data"] for tensor in request.tensors.values()} == {"1.5,-2"} and "COMPUTE_START" in request.events


def two_steps(model):
    """The steps of an ensemble that runs a model of one input twice."""
    step = '{{ model_name: "{}" model_version: -1 input_map {{ key: "INPUT0" value: "{}" }} output_map {{ key: "OUTPUT0" value: "{}" }} }}'
    steps = [step.format(model, *names) for names in (("INPUT0", "middle"), ("middle", "OUTPUT0"))]
    return f"ensemble_scheduling {{ step [ {', '.join(steps)} ] }}\n"


def test_steps_of_an_ensemble_are_its_children(traced):
    server = traced.server
    inner = server.add("inner", "identity", repositories.identity_config())
    outer = server.add("outer", "ensemble", repositories.identity_config(more=two_steps(inner)))
    take = traced(outer)
    assert infer_json(server, outer, id="e")[0] == 200
    [requests] = take()
    assert [request.model["model_name"] for request in requests] == [outer, inner, inner]
    whole, *parts = requests
    assert sorted(whole.events) == sorted([*RECEIVED, *QUEUED, *ENDED, *SENT]) and whole.parent is None
    for part in parts:
        assert part.parent == whole.id and part.model["request_id"] == "e" and sorted(part.events) == sorted(CHILD)
    assert len({request.id for request in requests}) == 3


@tiers.both
def test_files_hold_what_those_of_the_real_server_hold(tmp_path, target, recorded):
    """But for the order of the objects, and the times."""
    models, file = tmp_path / "models", tmp_path / "t.json"
    repositories.write_model(models, "plain", target, "identity", repositories.identity_config())
    repositories.write_model(models, "pipeline", target, "ensemble", repositories.identity_config(more=two_steps("plain")))
    flags = ["level=TIMESTAMPS", "level=TENSORS", "rate=2", f"triton,file={file}", "triton,log-frequency=1"]
    with servers.TARGETS[target](models, *(f"--trace-config={flag}" for flag in flags)) as server:
        for number, (model, data) in enumerate([("plain", [1.5, -2]), ("plain", []), ("plain", [3]), ("pipeline", [4])]):
            assert infer_json(server, model, data=data, id=str(number))[0] == 200
        settings(server, "plain", trace_rate="1")
        assert infer_json(server, "plain", data=[1e10, 16777217])[0] == 200
        # The answer may come before the file, and the real server is killed.
        eventually("three traces are written", lambda: [is_whole(path) for path in numbered(file).values()] == [True] * 3)
    objects = {number: json.loads(path.read_text()) for number, path in numbered(file).items()}
    for one in (one for found in objects.values() for one in found):
        for stamp in one.get("timestamps", []):
            del stamp["ns"]
    recorded.holds(target, {number: sorted(found, key=json.dumps) for number, found in sorted(objects.items())})


def callers(server, called):
    """Two models that call the other: one passes its trace on, one does not."""
    config = repositories.identity_config()
    files = {passes: {"1/model.py": f"PASSES = {passes}\nCALLED = '{called}'\n" + CALLER} for passes in (True, False)}
    return [server.add(f"caller{passes}", "python", config, files=files[passes]) for passes in (True, False)]


def test_calls_of_a_model_are_children_if_it_passes_its_trace(traced):
    server = traced.server
    called = server.add("called", "identity", repositories.identity_config())
    for model, count in zip(callers(server, called), (2, 1)):
        take = traced(model)
        assert infer_json(server, model, id="b")[0] == 200
        [requests] = take()
        assert len(requests) == count and requests[0].model["request_id"] == "b"
        for child in requests[1:]:
            assert child.parent == requests[0].id and child.model["model_name"] == called
            assert "request_id" not in child.model and sorted(child.events) == sorted(CHILD)


def last_traces(server, model):
    """What the console is told about a model, and the same as text."""
    status, _, body = clients.ask(server.http, "GET", f"/console/traces?model={model}")
    assert status == 200, body
    return json.loads(body), body.decode()


def test_the_console_has_the_last_traces_of_every_model_that_they_passed(traced):
    server = traced.server
    called = server.add("called", "identity", repositories.identity_config())
    passing, _ = callers(server, called)
    outer = server.add("outer", "ensemble", repositories.identity_config(more=two_steps(passing)))
    before, _ = last_traces(server, outer)
    assert (before["is_on"], before["has_destination"], before["may_change"], before["traces"]) == (False, True, True, [])
    take = traced(outer, ("TIMESTAMPS", "TENSORS"))
    assert infer_json(server, outer, data=[73912.5], id="</b>\u202e\"7")[0] == 200
    [requests] = take()
    for model in (outer, passing, called):
        answer, text = last_traces(server, model)
        [trace] = answer["traces"]
        rows = trace["rows"]
        assert [(row["model"], row["depth"]) for row in rows] == [(outer, 0), (passing, 1), (called, 2), (passing, 1), (called, 2)]
        assert {row["id"] for row in rows} == {request.id for request in requests} and trace["omitted_count"] == 0
        assert (rows[0]["request_id"], rows[0]["protocol"], rows[0]["outcome"]) == ("</b>\u202e\"7", "HTTP", "answered")
        for row in rows:
            assert sum(piece["to_ns"] - piece["from_ns"] for piece in row["pieces"]) == row["total_ns"] > 0
        assert {"receive", "steps", "send"} <= {piece["span"] for piece in rows[0]["pieces"]}
        assert "73912.5" not in text, "contents of tensors are not shown"
    assert last_traces(server, outer)[0]["is_on"] and last_traces(server, outer)[0]["has_own_settings"]


def test_the_console_has_twenty_traces_of_a_model_and_its_refused_requests(traced):
    server = traced.server
    model = server.add("plain", "identity", repositories.identity_config())
    take = traced(model)
    for number in range(22):
        assert infer_json(server, model, id=str(number))[0] == 200
    assert infer_json(server, model, name="WRONG", id="refused")[0] == 400
    take(23)
    [newest, *others] = [trace["rows"][0] for trace in last_traces(server, model)[0]["traces"]]
    assert [row["request_id"] for row in others] == [str(number) for number in range(21, 2, -1)]
    assert newest["outcome"] == "failed" and newest["model"] == model
    assert clients.ask(server.http, "GET", "/console/traces")[0] == 400


def test_a_flag_traces_the_calls_of_all_models(shared, tmp_path):
    server = shared("--trace-config=level=TIMESTAMPS", "--trace-config=rate=1", "--trace-model-calls=true",
                    f"--trace-config=triton,file={shared_flags.folder() / 'calls.json'}")
    called = server.add("called", "identity", repositories.identity_config())
    _, silent = callers(server, called)
    assert infer_json(server, silent)[0] == 200
    file = shared_flags.folder() / "calls.json"
    parent, child = eventually("the trace is written", lambda: written(file))
    assert child.parent == parent.id and child.model["model_name"] == called


def test_an_answer_of_the_cache_computes_nothing(traced):
    server = traced.server
    model = server.add("cached", "identity", repositories.identity_config(more="response_cache { enable: true }\n"))
    take = traced(model, ["TIMESTAMPS", "TENSORS"])
    for _ in range(2):
        assert infer_json(server, model)[0] == 200
    [[miss], [hit]] = take(2)
    assert sorted(miss.events) == sorted([*RECEIVED, *RUN, *SENT])
    assert sorted(hit.events) == sorted([*RECEIVED, *QUEUED, *ENDED, *SENT])
    assert miss.tensors == hit.tensors and len(hit.tensors) == 2


def test_refused_and_failed_requests_are_traced(traced):
    server = traced.server
    model = server.add("plain", "identity", repositories.identity_config())
    failing = server.add("failing", "failing", repositories.identity_config(more='parameters { key: "fail" value { string_value: "execute" } }\n'))
    take = traced(model)
    path = f"/v2/models/{model}/infer"
    assert infer_json(server, model, name="NONE")[0] == 400
    assert clients.ask(server.http, "POST", path, b"{no JSON")[0] in (400, 500)
    assert clients.ask(server.http, "POST", "/v2/models/nope/infer", {"inputs": []})[0] == 404
    assert infer_json(server, model)[0] == 200
    [refused], [unread], [good] = take(3)
    assert sorted(refused.events) == sorted([*RECEIVED, "REQUEST_START", "REQUEST_END", *SENT])
    assert refused.model["model_name"] == model
    assert unread.model is None and sorted(unread.events) == sorted([*RECEIVED, *SENT])
    assert (unread.id, good.id) == (refused.id + 1, refused.id + 2), "an unknown model takes no number"
    take = traced(failing)
    assert infer_json(server, failing)[0] == 500
    [[failed]] = take()
    assert sorted(failed.events) == sorted([*RECEIVED, *RUN, *SENT])


def test_a_cancelled_call_ends_without_a_response(traced):
    server = traced.server
    slow = 'parameters { key: "execute_delay_ms" value { string_value: "300" } }\n'
    model = server.add("slow", "identity", repositories.identity_config(more=slow))
    take = traced(model)
    with clients.client(server, "grpc") as stock:
        with pytest.raises(InferenceServerException, match="DEADLINE|Deadline"):
            clients.infer(stock, "grpc", model, {"INPUT0": np.ones(1, np.float32)}, client_timeout=0.05)
    [[request]] = take()
    assert "REQUEST_START" in request.events
    assert not {"INFER_RESPONSE_COMPLETE", "GRPC_SEND_START"} & set(request.events)


def test_generate_streams_are_traced(traced):
    server = traced.server
    model = server.add("repeat", "repeat", repositories.REPEAT_CONFIG)
    take = traced(model)
    body = {"IN": [4, 5], "DELAY": [0, 0], "WAIT": [0]}
    status, _, answer = clients.ask(server.http, "POST", f"/v2/models/{model}/generate_stream", body)
    assert status == 200 and answer.count(b"data:") == 2
    [[request]] = take()
    assert request.events.count("INFER_RESPONSE_COMPLETE") == 2
    assert request.ns["HTTP_SEND_END"] >= request.ns["HTTP_SEND_START"] > request.ns["HTTP_RECV_END"]


def test_which_requests_go_to_which_file(serve, tmp_path):
    file, models = tmp_path / "t.json", tmp_path / "models"
    repositories.write_model(models, "plain", "galatea", "identity", repositories.identity_config())
    server = serve(models, "--trace-config=level=timestamps", "--trace-config=rate=2", f"--trace-config=triton,file={file}")

    # On one connection, a request is read when the trace of the one before has ended.
    connection = http.client.HTTPConnection(server.http, timeout=60)

    def ask(count, start):
        for number in range(start, start + count):
            body = {"id": str(number), "inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1.5]}]}
            connection.request("POST", "/v2/models/plain/infer", json.dumps(body))
            answer = connection.getresponse()
            assert (answer.status, json.loads(answer.read())["id"]) == (200, str(number))

    def ids(suffix=""):
        return [request.model["request_id"] for request in written(tmp_path / f"t.json{suffix}")]

    # Every second request, and every change starts the counter anew.
    ask(3, 1)
    eventually("the second is written", lambda: ids() == ["2"])
    settings(server, None)
    ask(2, 4)
    eventually("the file grows and stays whole", lambda: ids() == ["2", "5"])
    # A count with rate 1 fills a numbered file; then nothing is traced, and the count shows it.
    assert settings(server, None, trace_rate="1", trace_count="2")["trace_count"] == "2"
    ask(3, 6)
    eventually("the count fills a file", lambda: ids(".0") == ["6", "7"])
    assert settings(server, None, log_frequency="2")["trace_count"] == "0"
    # Files of two traces each; the rest goes to the next one with the next change.
    settings(server, None, trace_count="-1")
    ask(3, 9)
    eventually("two traces fill a file", lambda: ids(".1") == ["9", "10"])
    settings(server, "plain", trace_rate="1000")
    ask(1, 12)
    settings(server, None, trace_level=["OFF"])
    eventually("the rest is written", lambda: ids(".2") == ["11"])
    # The exit writes the rest.
    settings(server, None, trace_level=["TIMESTAMPS"], log_frequency="0", trace_count="9")
    settings(server, "plain", trace_rate=None)
    ask(1, 13)
    connection.close()
    assert server.stop() in (0, None)
    assert ids() == ["2", "5", "13"] and sorted(numbered(file)) == [0, 1, 2]
    assert len(list(tmp_path.glob("t.json*"))) == 4


def test_a_file_that_cannot_be_written_has_one_line(serve, tmp_path):
    models = tmp_path / "models"
    repositories.write_model(models, "plain", "galatea", "identity", repositories.identity_config())
    server = serve(models, "--trace-config=level=TIMESTAMPS", "--trace-config=rate=1", "--trace-config=triton,file=/nonexistent/t.json")
    for _ in range(20):
        assert infer_json(server, "plain")[0] == 200
    line = server.wait_for_line("failed to write")
    assert "'/nonexistent/t.json'" in line and "traces are lost until it can be written" in line
    server.stop()
    assert len([line for line in server.text().splitlines() if "failed to write" in line]) == 1


@pytest.mark.skipif(not namespace(), reason="nothing may be mounted here")
def test_on_a_full_disk_the_file_stays_whole(serve, tmp_path):
    models, disk = tmp_path / "models", tmp_path / "disk"
    disk.mkdir()
    repositories.write_model(models, "plain", "galatea", "identity", repositories.identity_config())
    server = serve(models, "--trace-config=level=TIMESTAMPS", "--trace-config=rate=1", f"--trace-config=triton,file={disk}/t.json",
                   through=[*small_disk("16k"), disk])
    # The disk is one of the server's own.
    seen = Path(f"/proc/{server.process.pid}/root{disk}")
    assert infer_json(server, "plain", id="first")[0] == 200
    # All traces at once would not fit.
    eventually("the first trace is written", (seen / "t.json").exists)
    for number in range(100):
        assert infer_json(server, "plain", id=str(number))[0] == 200
    line = server.wait_for_line("failed to write")
    assert f"'{disk}/t.json'" in line and "traces are lost until it can be written" in line
    kept = [request.model["request_id"] for request in requests_of((seen / "t.json").read_text())]
    # A trace that comes alone may fit where several together did not.
    assert len(kept) == len(set(kept)) and kept[0] == "first" and len(kept) < 101
    assert [path.name for path in seen.iterdir()] == ["t.json"]


def test_settings_that_trace_nothing_start_all_the_same(shared):
    for flags in (["level=TIMESTAMPS"], ["level=TIMESTAMPS", "rate=0"]):
        server = shared(*(f"--trace-config={flag}" for flag in flags))
        model = server.add("plain", "identity", repositories.identity_config())
        assert infer_json(server, model)[0] == 200
        status, _, answer = clients.ask(server.http, "POST", "/v2/trace/setting", {})
        assert status == 400 and b"Attempting to set invalid trace setting :" in answer


def test_trace_settings_may_be_restricted(shared):
    server = shared("--http-restricted-api=trace:key=secret", "--grpc-restricted-protocol=trace:key=secret")
    assert clients.ask(server.http, "GET", "/v2/trace/setting")[0] == 403
    assert clients.ask(server.http, "GET", "/v2/trace/setting", headers={"key": "secret"})[0] == 200
    assert clients.ask(server.http, "GET", "/console/traces?model=m")[0] == 403
    assert clients.ask(server.http, "GET", "/console/traces?model=m", headers={"key": "secret"})[0] == 200
    with clients.client(server, "grpc") as stock:
        with pytest.raises(InferenceServerException, match="restricted"):
            stock.get_trace_settings()
        assert "trace_rate" in stock.get_trace_settings(headers={"triton-grpc-protocol-key": "secret"}).settings


def test_stock_clients_read_and_change_settings(traced):
    server = traced.server
    model = server.add("plain", "identity", repositories.identity_config())
    with clients.client(server, "http") as stock:
        changed = stock.update_trace_settings(model_name=model, settings={"trace_rate": "4", "trace_level": ["TIMESTAMPS"]})
        assert (changed["trace_rate"], changed["trace_level"]) == ("4", ["TIMESTAMPS"])
    with clients.client(server, "grpc") as stock:
        assert stock.get_trace_settings(model, as_json=True)["settings"]["trace_rate"]["value"] == ["4"]
        cleared = stock.update_trace_settings(model_name=model, settings={"trace_rate": None, "trace_level": None})
        assert list(cleared.settings["trace_rate"].value) == ["1000"]
    assert "trace" in json.loads(clients.ask(server.http, "GET", "/v2")[2])["extensions"]
