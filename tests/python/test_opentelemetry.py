"""Traces as spans of OpenTelemetry: what a collector gets, what models are given, and that no request waits or is lost."""

import concurrent.futures
import json
import re
import socket
import subprocess
import uuid

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import certificates
import clients
import repositories
import servers
import tiers
from otel_collector import Collector, collecting, tree
from test_streams import message
from test_trace import settings, two_steps
from waiting import eventually

RECEIVED, SENT = ["HTTP_RECV_START", "HTTP_RECV_END"], ["HTTP_SEND_START", "HTTP_SEND_END"]
QUEUED, COMPUTED = ["REQUEST_START", "QUEUE_START", "REQUEST_END"], ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"]
# A second between two exports would make each test wait for one.
QUICK = "opentelemetry,bsp_schedule_delay=5"
TRACESTATE = 'a=1,b="2"'

# Answers with the context that it is given, and with the one that the called model is given.
CONTEXT = """\
import json

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([self.answer(request)]) for request in requests]

    def answer(self, request):
        contexts = [request.trace().get_context() or ""]
        if CALLED:
            given = pb.Tensor("INPUT0", pb.get_input_tensor_by_name(request, "INPUT0").as_numpy())
            call = pb.InferenceRequest(model_name=CALLED, requested_output_names=["OUTPUT0"], inputs=[given], trace=request.trace())
            answer = call.exec()
            if answer.has_error():
                raise pb.TritonModelException(answer.error().message())
        return pb.Tensor("OUTPUT0", np.array(contexts, object))
"""
CONTEXT_CONFIG = repositories.tensor("input", "INPUT0", "TYPE_FP32", "-1") + repositories.tensor("output", "OUTPUT0", "TYPE_STRING", "-1")


def traceparent(flags="01"):
    """A new context of a client: the header, the id of the trace, the id of the client's span."""
    trace, span = uuid.uuid4().hex, uuid.uuid4().hex[:16]
    return f"00-{trace}-{span}-{flags}", trace, span


def flags(collector, *more):
    return [f"--trace-config={one}" for one in ("mode=opentelemetry", "level=TIMESTAMPS", f"opentelemetry,url={collector.url}", QUICK, *more)]


def identity_onnx(path):
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None]) for name in ("INPUT0", "OUTPUT0")]
    graph = helper.make_graph([helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])], "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_chain(models):
    """An ensemble whose only step is a Python model that calls an ONNX model."""
    folder = repositories.write_model(models, "onnx", "galatea", "onnxruntime", repositories.identity_config())
    identity_onnx(folder / "1/model.onnx")
    files = {"1/model.py": "CALLED = 'onnx'\n" + CONTEXT}
    repositories.write_model(models, "caller", "galatea", "python", CONTEXT_CONFIG, files=files)
    step = 'step [ { model_name: "caller" model_version: -1 input_map { key: "INPUT0" value: "INPUT0" } ' \
           'output_map { key: "OUTPUT0" value: "OUTPUT0" } } ]'
    repositories.write_model(models, "chain", "galatea", "ensemble", CONTEXT_CONFIG + f"ensemble_scheduling {{ {step} }}\n")


def whole(collector, trace, count):
    """The spans of a trace by their names, once there are so many; no two but the computations have the same name."""
    return eventually(f"{count} spans of the trace are there", lambda: (found := collector.of(trace)) and len(found) == count and found)


@pytest.mark.parametrize("protocol", ["http/json", "http/protobuf", "grpc"])
def test_from_a_client_through_an_ensemble_and_python_to_onnx(serve, tmp_path, protocol):
    write_chain(tmp_path / "models")
    with collecting(protocol) as collector:
        server = serve(tmp_path / "models", *flags(collector, f"opentelemetry,protocol={protocol}", "opentelemetry,resource=zone=a=b"))
        for kind in ("http", "grpc", "stream"):
            check_chain(server, collector, kind)
        assert server.stop() in (0, None)
    resource = {"service.name": "triton-inference-server", "telemetry.sdk.language": "rust", "telemetry.sdk.name": "galatea", "zone": "a=b"}
    for given in collector.resources:
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", given.pop("telemetry.sdk.version")) and given == resource
    assert {scope["name"] for scope in collector.scopes} == {"triton-server"}
    assert set(collector.paths) == {"Export" if protocol == "grpc" else "/v1/traces"}


def check_chain(server, collector, kind):
    header, trace, client = traceparent("00")
    context = ask_chain(server, kind, header)
    spans = whole(collector, trace, 6)
    check_spans_of_chain(spans, kind, client)
    assert {span.kind for span in spans} == {"SERVER"} and {span.state for span in spans} == {TRACESTATE}
    # The model has the id of its own span, of a trace that is recorded whatever the client's flags say.
    [caller] = [span for span in spans if span.name == "caller"]
    assert context == {"traceparent": f"00-{trace}-{caller.id}-01", "tracestate": TRACESTATE}


def ask_chain(server, kind, header):
    """Asks the ensemble over a protocol with a client's context, and returns the context that the Python model was given."""
    if kind == "http":
        body = {"id": "7", "inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1.5]}]}
        # The name of a header may be written in any case.
        status, _, answer = clients.ask(server.http, "POST", "/v2/models/chain/infer", body, {"TraceParent": header, "TRACESTATE": TRACESTATE})
        assert status == 200, answer
        [context] = json.loads(answer)["outputs"][0]["data"]
    else:
        arrays = {"INPUT0": np.ones(1, np.float32)}
        with clients.client(server, "grpc") as stock:
            if kind == "grpc":
                answer = clients.infer(stock, "grpc", "chain", arrays, request_id="7", headers={"traceparent": header, "tracestate": TRACESTATE})
                [context] = answer["OUTPUT0"]
            else:
                metadata = [("traceparent", header), ("tracestate", TRACESTATE)]
                [answer] = stock._client_stub.ModelStreamInfer(iter([message("chain", arrays, "7")]), metadata=metadata)
                context = answer.infer_response.raw_output_contents[0][4:]
    return json.loads(context)


def check_spans_of_chain(spans, kind, client):
    """Names, parents, attributes, events and order of the spans of one request to the ensemble, below the client's span."""
    assert tree(spans) == [["InferRequest", [["chain", [["caller", [["compute", []], ["onnx", [["compute", []]]]]]]]]]]
    by_name = {span.name: span for span in spans}
    assert by_name["InferRequest"].parent == client
    assert {span.status for span in spans} == {0}
    ids = {name: by_name[name].attributes["triton.trace_id"] for name in ("chain", "caller", "onnx")}
    parents = {"chain": 0, "caller": ids["chain"], "onnx": ids["caller"]}
    for name, parent in parents.items():
        expected = {"triton.model_name": name, "triton.model_version": 1, "triton.trace_id": ids[name], "triton.trace_parent_id": parent}
        # Calls have no id of a request.
        given = {} if name == "onnx" else {"triton.request_id": "7"}
        assert by_name[name].attributes == {**expected, **given}
    received, sent = (RECEIVED, SENT) if kind == "http" else (["GRPC_WAITREAD_START", "GRPC_WAITREAD_END"], ["GRPC_SEND_START", "GRPC_SEND_END"])
    assert by_name["InferRequest"].event_names == [*received, "INFER_RESPONSE_COMPLETE", *sent]
    assert by_name["onnx"].event_names == QUEUED
    for child in spans:
        for parent in (one for one in spans if one.id == child.parent):
            assert parent.start <= child.start <= child.end <= parent.end, (parent.name, child.name)


@pytest.fixture(scope="module")
def exporting(pool):
    """A running server that sends JSON, and its collector; tests load models of their own."""
    with collecting() as collector:
        server = pool.get((*flags(collector, "level=TENSORS"), "--cache-config=local,size=1048576"))
        yield server, collector
        pool.throw_away(server)


@pytest.fixture
def traced(exporting, shared):
    server, collector = exporting
    own = shared(*(*flags(collector, "level=TENSORS"), "--cache-config=local,size=1048576"))
    own.collector = collector
    return own


def ask(server, model, headers, **more):
    body = {"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1.5]}], **more}
    return clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body, headers)


def test_each_kind_of_end_has_its_spans(traced):
    collector = traced.collector
    cached = traced.add("cached", "identity", repositories.identity_config(more="response_cache { enable: true }\n"))
    failing = traced.add("failing", "failing", repositories.identity_config(more='parameters { key: "fail" value { string_value: "execute" } }\n'))

    def spans(model, count, status, body=None):
        header, trace, _ = traceparent()
        body = body if body is not None else {"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1.5]}]}
        answer = clients.ask(traced.http, "POST", f"/v2/models/{model}/infer", body, {"traceparent": header})
        assert answer[0] == status, answer
        found = whole(collector, trace, count)
        return {span.name: span for span in found}, answer[2].decode()

    miss, _ = spans(cached, 3, 200)
    hit, _ = spans(cached, 2, 200)
    assert sorted(miss) == sorted(["InferRequest", cached, "compute"]) and sorted(hit) == sorted(["InferRequest", cached])
    assert {span.status for span in [*miss.values(), *hit.values()]} == {0}
    assert hit[cached].event_names == QUEUED
    failed, text = spans(failing, 3, 500)
    assert {span.status for span in failed.values()} == {2} and {span.reason for span in failed.values()} == {json.loads(text)["error"]}
    refused, text = spans(cached, 2, 400, {"inputs": []})
    assert {span.status for span in refused.values()} == {2} and {span.reason for span in refused.values()} == {json.loads(text)["error"]}
    unread, _ = spans(cached, 1, 500, b"{no JSON")
    assert unread["InferRequest"].event_names == [*RECEIVED, *SENT] and unread["InferRequest"].status == 2
    # Nothing is traced of a model that does not exist: had it been, it would have come before the next.
    header, trace, _ = traceparent()
    assert ask(traced, "nope", {"traceparent": header})[0] == 404
    spans(cached, 2, 200)
    assert collector.of(trace) == []


def test_tensors_are_not_exported_and_the_log_says_so_once(traced):
    model = traced.add("plain", "identity", repositories.identity_config())
    settings(traced, model, trace_level=["TENSORS"])
    header, trace, client = traceparent()
    assert ask(traced, model, {"traceparent": header})[0] == 200
    [span] = whole(traced.collector, trace, 1)
    assert (span.name, span.parent, span.events, span.attributes) == ("InferRequest", client, [], {}) and span.end > span.start
    settings(traced, model, trace_level=None)
    lines = [line for line in traced.log if "trace level TENSORS has no effect" in line]
    assert len(lines) == 1, lines


def test_settings_show_the_options_and_change_while_the_server_runs(traced):
    collector = traced.collector
    model = traced.add("plain", "identity", repositories.identity_config())
    status, _, answer = clients.ask(traced.http, "GET", f"/v2/models/{model}/trace/setting")
    assert status == 200 and json.loads(answer, object_pairs_hook=list) == [
        ("trace_level", ["TIMESTAMPS", "TENSORS"]), ("trace_rate", "1000"), ("trace_count", "-1"), ("trace_mode", "opentelemetry"),
        ("url", collector.url), ("bsp_schedule_delay", "5"), ("bsp_max_export_batch_size", "512"), ("bsp_max_queue_size", "2048"),
    ]

    def traces(headers, count):
        """The new traces after this many requests."""
        before = len(collector.spans)
        for _ in range(count):
            assert ask(traced, model, headers)[0] == 200
        # The last request is one whose span is awaited.
        header, trace, _ = traceparent()
        settings(traced, model, trace_rate="1")
        assert ask(traced, model, {"traceparent": header})[0] == 200
        whole(collector, trace, 3)
        return len({span.trace for span in collector.spans[before:]} - {trace})

    settings(traced, model, trace_rate="2", trace_level=["TIMESTAMPS"])
    assert traces({}, 5) == 2
    settings(traced, model, trace_rate="1", trace_count="2")
    assert traces({}, 5) == 2
    # A client's context wins over a rate of 0 and a count of 0; a malformed one begins a trace as any other request.
    header, trace, _ = traceparent()
    settings(traced, model, trace_count="-1", trace_rate="1000")
    assert ask(traced, model, {"traceparent": header})[0] == 200
    whole(collector, trace, 3)
    assert traces({"traceparent": header.upper()}, 3) == 0
    settings(traced, model, trace_rate="1", trace_count="1")
    assert ask(traced, model, {"traceparent": header[:-2] + "00"})[0] == 200
    whole(collector, trace, 6)
    assert settings(traced, model)["trace_count"] == "0", "a request with a context takes from the count if the rate hits"
    assert ask(traced, model, {"traceparent": header})[0] == 200
    whole(collector, trace, 9)
    # Off is off.
    settings(traced, model, trace_level=["OFF"], trace_count="-1")
    header, silent, _ = traceparent()
    assert ask(traced, model, {"traceparent": header})[0] == 200
    settings(traced, model, trace_level=["TIMESTAMPS"])
    assert traces({}, 0) == 0 and collector.of(silent) == []
    settings(traced, model, trace_level=None, trace_rate=None, trace_count=None)


def test_models_are_given_a_context_only_if_they_are_traced(traced):
    model = traced.add("context", "python", CONTEXT_CONFIG, files={"1/model.py": "CALLED = ''\n" + CONTEXT})

    def context(headers):
        status, _, answer = ask(traced, model, headers)
        assert status == 200, answer
        [given] = json.loads(answer)["outputs"][0]["data"]
        return given

    assert context({}) == ""
    settings(traced, model, trace_rate="1")
    given = json.loads(context({}))
    version, trace, span, sampled = given.pop("traceparent").split("-")
    assert (version, sampled, given) == ("00", "01", {})
    spans = {one.name: one for one in whole(traced.collector, trace, 3)}
    assert spans[model].id == span and spans["InferRequest"].parent == ""
    settings(traced, model, trace_rate=None)


def test_calls_are_traced_if_the_model_passes_its_trace_or_by_a_flag(shared, traced):
    with collecting() as collector:
        for server, counts in ((traced, (5, 3)), (shared(*flags(collector), "--trace-model-calls=true"), (5, 5))):
            called = server.add("called", "identity", repositories.identity_config())
            models = [server.add(f"caller{passes}", "python", repositories.identity_config(), files=caller(called, passes)) for passes in (True, False)]
            for model, count in zip(models, counts):
                header, trace, _ = traceparent()
                assert ask(server, model, {"traceparent": header})[0] == 200
                spans = whole(server.collector if server is traced else collector, trace, count)
                below = [["compute", []], *([[called, [["compute", []]]]] if count == 5 else [])]
                assert tree(spans) == [["InferRequest", [[model, sorted(below)]]]]


def test_no_context_is_lost_under_load(serve, tmp_path):
    """Thousands of requests at once, each with a context of its own, over HTTP, gRPC and streams."""
    repositories.write_model(tmp_path / "models", "plain", "galatea", "identity", repositories.identity_config())
    arrays, count, sent = {"INPUT0": np.ones(1, np.float32)}, 500, {}
    with collecting() as collector:
        server = serve(tmp_path / "models", *flags(collector, "rate=0", "opentelemetry,bsp_max_queue_size=100000"))

        def http():
            for header, *_ in sent["http"]:
                assert ask(server, "plain", {"traceparent": header})[0] == 200

        def unary(key):
            with clients.client(server, "grpc") as stock:
                for header, *_ in sent[key]:
                    clients.infer(stock, "grpc", "plain", arrays, headers={"traceparent": header})

        def streams(key):
            with clients.client(server, "grpc") as stock:
                for header, *_ in sent[key]:
                    # All requests of a stream belong to its context.
                    stream = stock._client_stub.ModelStreamInfer(iter([message("plain", arrays, str(n)) for n in range(2)]), metadata=[("traceparent", header)])
                    assert len(list(stream)) == 2

        work = {"http": http, **{f"unary{n}": lambda n=n: unary(f"unary{n}") for n in range(3)},
                **{f"stream{n}": lambda n=n: streams(f"stream{n}") for n in range(3)}}
        sent.update({key: [traceparent() for _ in range(count)] for key in work})
        with concurrent.futures.ThreadPoolExecutor(len(work)) as threads:
            for done in [threads.submit(one) for one in work.values()]:
                done.result()
        assert server.stop() in (0, None)
    roots = {}
    for span in collector.spans:
        if span.name == "InferRequest":
            roots.setdefault((span.trace, span.parent), []).append(span)
    for key, contexts in sent.items():
        wanted = 2 if key.startswith("stream") else 1
        lost = [context for context in contexts if len(roots.get(tuple(context[1:]), [])) != wanted]
        assert not lost, f"{len(lost)} of {len(contexts)} contexts of {key} are lost"
    assert len(roots) == sum(map(len, sent.values()))


def test_a_collector_that_is_away_costs_no_request(serve, tmp_path):
    repositories.write_model(tmp_path / "models", "plain", "galatea", "identity", repositories.identity_config())
    away = Collector()
    away.stop()
    server = serve(tmp_path / "models", *flags(away, "rate=1"))
    for count in range(1, 4):
        assert ask(server, "plain", {})[0] == 200
        eventually(f"{count} traces are lost", lambda: lost_traces(server) == count)
    line = server.wait_for_line("traces are lost until the collector")
    assert away.url in line and "cannot connect" in line
    port = int(away.url.split(":")[2].split("/")[0])
    back = Collector(port)
    header, trace, _ = traceparent()
    assert ask(server, "plain", {"traceparent": header})[0] == 200
    whole(back, trace, 3)
    server.wait_for_line("takes them again")
    # It is there, but cannot take them.
    back.status = 503
    assert ask(server, "plain", {})[0] == 200
    eventually("one more is lost", lambda: lost_traces(server) == 4)
    back.stop()
    server.stop()
    # A collector that comes and goes leaves a line in half a minute at most.
    assert sum("traces are lost until" in line for line in server.log) == 1


def lost_traces(server):
    status, _, text = clients.ask(server.metrics, "GET", "/metrics")
    assert status == 200
    [value] = re.findall(r"^galatea_traces_lost_total (\d+)$", text.decode(), re.M)
    return int(value)


def test_spans_that_find_no_room_are_lost_and_the_exit_sends_the_rest(serve, tmp_path):
    repositories.write_model(tmp_path / "models", "plain", "galatea", "identity", repositories.identity_config())
    with collecting() as collector:
        server = serve(tmp_path / "models", *flags(collector, "rate=1", "opentelemetry,bsp_schedule_delay=60000", "opentelemetry,bsp_max_queue_size=12",
                                                   "opentelemetry,bsp_max_export_batch_size=512", "opentelemetry,resource=service.name=mine"))
        for _ in range(4):
            assert ask(server, "plain", {})[0] == 200
        # A batch is as large as the queue at most: the fourth trace completes it.
        eventually("a full batch is sent", lambda: len(collector.spans) == 12)
        collector.status = 500
        for number in range(2):
            assert ask(server, "plain", {}, id=str(number))[0] == 200
        assert lost_traces(server) == 0 and len(collector.headers) == 1
        collector.status = 200
        assert server.stop() in (0, None)
        assert len(collector.spans) == 18 and len(collector.headers) == 2
    assert {resource["service.name"] for resource in collector.resources} == {"mine"}
    assert {headers["user-agent"].split("/")[0] for headers in collector.headers} == {"galatea"}


def test_a_collector_that_never_answers_holds_neither_requests_nor_the_exit(serve, tmp_path):
    repositories.write_model(tmp_path / "models", "plain", "galatea", "identity", repositories.identity_config())
    with socket.create_server(("127.0.0.1", 0)) as silent:
        given = ("mode=opentelemetry", "level=TIMESTAMPS", "rate=1", QUICK, f"opentelemetry,url=http://127.0.0.1:{silent.getsockname()[1]}/")
        server = serve(tmp_path / "models", *(f"--trace-config={one}" for one in given))
        assert ask(server, "plain", {})[0] == 200
        with silent.accept()[0]:
            # An export has begun that never ends.
            for _ in range(3):
                assert ask(server, "plain", {})[0] == 200
            assert server.stop() in (0, None)
    assert "did not take the last ones within 5 s" in server.text()


@pytest.mark.parametrize("protocol", ["http/json", "grpc"])
def test_an_encrypted_collector_and_the_variables_of_opentelemetry(serve, tmp_path, protocol):
    repositories.write_model(tmp_path / "models", "plain", "galatea", "identity", repositories.identity_config())
    authority = certificates.Authority(tmp_path)
    with collecting(protocol, tls=authority.issue()) as collector:
        variables = {
            "SSL_CERT_FILE": str(authority.certificate), "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url.removesuffix("/v1/traces"), "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret",
            "OTEL_SERVICE_NAME": "from the environment",
        }
        given = [f"--trace-config={one}" for one in ("mode=opentelemetry", "level=TIMESTAMPS", "rate=1", QUICK)]
        server = serve(tmp_path / "models", *given, env=variables)
        assert ask(server, "plain", {})[0] == 200
        eventually("the spans are there", lambda: len(collector.spans) == 3)
        status, _, answer = clients.ask(server.http, "GET", "/v2/trace/setting")
        assert "url" not in json.loads(answer)
        server.stop()
        assert "secret" not in server.text()
    assert collector.headers[0]["authorization"] == "Bearer secret"
    assert collector.resources[0]["service.name"] == "from the environment"


def test_settings_with_which_nothing_can_be_sent_end_the_start(tmp_path):
    (tmp_path / "models").mkdir()
    for url, reason in (("ftp://h/x", "is neither https:// nor http://"), ("http://me:secret@h", "has a user or password in it")):
        command = [servers.galatea_binary(), "serve", tmp_path / "models", "--trace-config=mode=opentelemetry", f"--trace-config=opentelemetry,url={url}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and reason in done.stderr and "--trace-config opentelemetry,url" in done.stderr


@tiers.both
def test_spans_are_those_of_the_real_server(tmp_path, target, recorded):
    """But for ids and times: names, kinds, parents, attributes and events of each kind of request."""
    models = tmp_path / "models"
    repositories.write_model(models, "plain", target, "identity", repositories.identity_config())
    cached = "response_cache { enable: true }\n"
    repositories.write_model(models, "cached", target, "identity", repositories.identity_config(more=cached))
    repositories.write_model(models, "pipeline", target, "ensemble", repositories.identity_config(more=two_steps("plain")))
    for name, passes in (("passing", True), ("silent", False)):
        repositories.write_model(models, name, target, "python", repositories.identity_config(), files=caller("plain", passes))
    with collecting() as collector:
        given = (*flags(collector, "rate=0", "opentelemetry,resource=a=b"), "--cache-config=local,size=1048576")
        with servers.TARGETS[target](models, *given) as server:
            seen = {}
            for model, count in (("plain", 3), ("cached", 3), ("cached", 2), ("pipeline", 6), ("passing", 5), ("silent", 3)):
                header, trace, client = traceparent("00")
                body = {"id": "7", "inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1.5]}]}
                status, _, answer = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body, {"traceparent": header, "tracestate": "a=1"})
                assert status == 200, answer
                key = f"{model} again" if model in seen else model
                seen[key] = shape(whole(collector, trace, count), client)
            shown = json.loads(clients.ask(server.http, "GET", "/v2/trace/setting")[2], object_pairs_hook=list)
    recorded.holds(target, seen, "spans")
    recorded.holds(target, [row for row in shown if row[0] != "url"], "settings")
    assert {scope["name"] for scope in collector.scopes} == {"triton-server"}
    assert {(resource["service.name"], resource["a"]) for resource in collector.resources} == {("triton-inference-server", "b")}


CALLER = """\
import json

import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([self.answer(request)]) for request in requests]

    def answer(self, request):
        assert json.loads(request.trace().get_context())["traceparent"].endswith("-01")
        given = pb.Tensor("INPUT0", pb.get_input_tensor_by_name(request, "INPUT0").as_numpy())
        more = {"trace": request.trace()} if PASSES else {}
        answer = pb.InferenceRequest(model_name=CALLED, requested_output_names=["OUTPUT0"], inputs=[given], **more).exec()
        return pb.Tensor("OUTPUT0", pb.get_output_tensor_by_name(answer, "OUTPUT0").as_numpy())
"""


def caller(called, passes):
    """The files of a model that calls another, and passes its trace on or not."""
    return {"1/model.py": f"PASSES = {passes}\nCALLED = '{called}'\n" + CALLER}


def shape(spans, client):
    """The spans as nested objects without ids and times."""

    def below(parent):
        children = sorted((span for span in spans if span.parent == parent), key=lambda span: (span.name, span.start))
        return [{
            "name": span.name, "kind": span.kind, "status": span.status, "state": span.state, "events": sorted(span.event_names),
            "attributes": {key: value for key, value in span.attributes.items() if not key.endswith("_id") or key == "triton.request_id"},
            "children": below(span.id),
        } for span in children]

    return below(client)
