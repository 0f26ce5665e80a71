"""Load reports (ORCA) that balancers read: in answers over HTTP and gRPC, and as a stream of their own. Metrics beside inference."""

import base64
import json
import threading

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.grpc import service_pb2

import auth_cases
import clients
import load_reports
import raw_http2
import servers
import waiting
from auth_cases import bearer, secret_of
from repositories import identity_config, write_model

HEADER = "endpoint-load-metrics"
VECTOR = {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}
FAILS = 'parameters { key: "fail" value { string_value: "execute" } }\n'
FIELDS = {"application_utilization", "cpu_utilization", "mem_utilization", "rps_fractional", "eps"}


def infer(server, format=None, path="infer", body=VECTOR, model="vector", headers=None):
    """The status and the value of the report's header."""
    asked = {} if format is None else {load_reports.ASKED: format}
    status, given, _ = clients.ask(server.http, "POST", f"/v2/models/{model}/{path}", body, {**asked, **(headers or {})})
    return status, given[HEADER]


def of_text(report):
    assert report.startswith("TEXT ")
    pairs = [pair.split(":") for pair in report.removeprefix("TEXT ").split(",")]
    assert len(dict(pairs)) == len(pairs), "a name twice is an error in Envoy"
    return {name: float(value) for name, value in pairs}


def of_json(report):
    fields = json.loads(report.removeprefix("JSON "))
    named = {f"named_metrics.{name}": value for name, value in fields.pop("named_metrics").items()}
    return {**fields, **named}


def of_binary(report):
    return load_reports.figures(load_reports.Report.FromString(base64.b64decode(report.removeprefix("BIN "), validate=True)))


FORMS = {"TEXT": of_text, "JSON": of_json, "BIN": of_binary}


@pytest.fixture
def server(shared):
    running = shared()
    running.place("vector", "identity", identity_config())
    return running


def check(figures):
    """What every report of a server that serves says."""
    names = {name for name in figures if not name.startswith("named_metrics.")}
    assert names == FIELDS
    assert figures["application_utilization"] >= 0.001
    assert all(0 <= value < 1e6 for value in figures.values()), figures
    assert {"named_metrics.galatea.queue", "named_metrics.galatea.wait_ms"} <= set(figures)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [str.upper, str.lower])
def test_an_answer_has_the_report_in_the_form_that_was_asked_for(server, form, name):
    status, report = infer(server, name(form))
    assert status == 200 and report.startswith(f"{form} ")
    check(FORMS[form](report))


def test_an_answer_that_nobody_asked_a_report_of_has_none(server):
    for format in (None, "", "xml", "JSON, TEXT", "B" * 4000):
        assert infer(server, format) == (200, None)


def test_answers_of_every_kind_have_reports(server):
    assert infer(server, "TEXT", body={"inputs": []})[1].startswith("TEXT ")
    lines = infer(server, "TEXT", headers={"Accept": "application/x-ndjson"})
    assert lines[0] == 200 and lines[1].startswith("TEXT ")
    # Only inference has them.
    assert clients.ask(server.http, "GET", "/v2/models/vector", headers={load_reports.ASKED: "TEXT"})[1][HEADER] is None


def test_requests_are_counted_and_the_model_is_named(server):
    def are_counted():
        for _ in range(20):
            infer(server)
        figures = of_json(infer(server, "JSON")[1])
        assert figures["rps_fractional"] > 1 and figures["eps"] == 0, figures
        return "named_metrics.galatea.load.vector" in figures

    waiting.eventually("the requests are in a report", are_counted)


def test_failures_are_counted(server):
    server.place("broken", "failing", identity_config(more=FAILS))

    def are_counted():
        for _ in range(20):
            assert infer(server, model="broken")[0] >= 400
        figures = of_json(infer(server, "JSON")[1])
        return figures["eps"] > 1 or figures

    waiting.eventually("the failures are in a report", lambda: are_counted() is True)


def in_trailers(server, method="ModelInfer", model="vector", metadata=((load_reports.ASKED, "BIN"),)):
    """The status of a call and the report in its trailers."""
    tensor = service_pb2.ModelInferRequest.InferInputTensor(name="INPUT0", datatype="FP32", shape=[3])
    request = service_pb2.ModelInferRequest(model_name=model, inputs=[tensor], raw_input_contents=[np.ones(3, np.float32).tobytes()])
    return load_reports.in_trailers(server.grpc, method, request, metadata)


@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer"])
def test_the_trailers_of_a_grpc_call_have_the_report_that_it_asked_for(server, method):
    status, report = in_trailers(server, method)
    assert status == 0
    check(load_reports.figures(report))
    # A stream tells the error in its message.
    status, report = in_trailers(server, method, "nosuch")
    assert status == (5 if method == "ModelInfer" else 0)
    check(load_reports.figures(report))
    for metadata in ((), ((load_reports.ASKED, "xml"),)):
        assert in_trailers(server, method, metadata=metadata) == (0, None)


def test_a_server_may_report_without_being_asked(shared):
    server = shared("--send-load-reports=always")
    server.place("vector", "identity", identity_config())
    check(of_text(infer(server)[1]))
    assert infer(server, "BIN")[1].startswith("BIN ")
    assert in_trailers(server, metadata=())[1] is not None
    # Stock clients are not disturbed.
    stock = grpcclient.InferenceServerClient(server.grpc)
    assert clients.infer(stock, "grpc", "vector", {"INPUT0": np.ones(3, np.float32)})["OUTPUT0"].tolist() == [1, 1, 1]


def test_a_stock_client_gets_a_stream_of_reports(server):
    with grpc.insecure_channel(server.grpc) as channel:
        reports = load_reports.stream(channel, nanos=1, seconds=0)
        for _ in range(3):
            check(load_reports.figures(next(reports)))
        waiting.eventually("the model is in a report", lambda: "galatea.load.vector" in next(reports).named_metrics)
        reports.cancel()
        # Without an interval it is that of the server.
        reports = load_reports.stream(channel)
        check(load_reports.figures(next(reports)))
        reports.cancel()


def test_a_wrong_interval_is_named(server):
    with grpc.insecure_channel(server.grpc) as channel:
        for seconds, nanos in ((-1, 0), (0, -1)):
            with pytest.raises(grpc.RpcError) as refused:
                next(load_reports.stream(channel, seconds, nanos))
            assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert "report_interval" in refused.value.details()


def test_a_stream_of_reports_ends_with_the_server(tmp_path):
    write_model(tmp_path, "vector", "galatea", "identity", identity_config())
    with servers.galatea(tmp_path) as server, grpc.insecure_channel(server.grpc) as channel:
        # The next report would come in an hour.
        reports = load_reports.stream(channel, seconds=3600, timeout=60)
        check(load_reports.figures(next(reports)))
        ended = []

        def read():
            try:
                next(reports)
            except grpc.RpcError as error:
                ended.append(error.code())

        reader = threading.Thread(target=read)
        reader.start()
        server.stop()
        reader.join(30)
        assert ended == [grpc.StatusCode.UNAVAILABLE]
        assert "requests were cut off" not in server.text()


def test_a_report_names_only_the_models_that_its_reader_may_know(tmp_path):
    (tmp_path / "policy.toml").write_text(auth_cases.table_policy())
    for name in ("simple", "other"):
        write_model(tmp_path / "models", name, "galatea", "identity", identity_config())
    with servers.galatea(tmp_path / "models", f"--auth-policy={tmp_path / 'policy.toml'}") as server:
        def named(key):
            report = infer(server, "JSON", model="other", headers=bearer(secret_of(key)))[1]
            return {name for name in of_json(report) if name.startswith("named_metrics.galatea.load.")}

        both = {"named_metrics.galatea.load.other", "named_metrics.galatea.load.simple"}
        waiting.eventually("both models are in a report", lambda: named("admin") == both)
        assert named("admin@other") == {"named_metrics.galatea.load.other"}
        assert named("infer") == set()
        metadata = ((load_reports.ASKED, "bin"), ("x-api-key", secret_of("admin@other")))
        for method in ("ModelInfer", "ModelStreamInfer"):
            report = in_trailers(server, method, "other", metadata)[1]
            assert set(report.named_metrics) == {"galatea.queue", "galatea.wait_ms", "galatea.load.other"}


def test_the_short_page_is_the_default_where_a_picker_can_ask_for_none(shared):
    server = shared("--http-metrics=server")
    server.place("vector", "identity", identity_config())
    short = clients.ask(server.http, "GET", "/metrics")[2]
    assert b"\ngalatea_load " in short and b"model=" not in short
    for address, query in ((server.http, "?scope=all"), (server.metrics, "")):
        assert b'galatea_model_ready{model="vector"' in clients.ask(address, "GET", f"/metrics{query}")[2]


def test_metrics_are_read_where_requests_are_sent(shared):
    server = shared("--http-metrics=true")
    server.place("vector", "identity", identity_config())
    status, headers, page = clients.ask(server.http, "GET", "/metrics")
    assert status == 200 and headers["Content-Type"].startswith("text/plain")
    assert b'galatea_model_ready{model="vector",version="1"} 1' in page
    for address in (server.http, server.metrics):
        status, _, short = clients.ask(address, "GET", "/metrics?scope=server")
        samples = {line.split(" ")[0] for line in short.decode().splitlines() if not line.startswith("#")}
        assert status == 200 and b"model=" not in short
        assert {"galatea_load", "galatea_requests_waiting", "galatea_requests_running", "process_open_fds"} <= samples
        status, _, body = clients.ask(address, "GET", "/metrics?scope=models")
        assert status == 400 and b"scope=server" in body
        assert b'galatea_model_ready{model="vector"' in clients.ask(address, "GET", "/metrics?scope=all")[2]
    assert clients.ask(server.http, "POST", "/metrics", {})[0] == 405
    assert b"# EOF" in clients.ask(server.http, "GET", "/metrics?scope=server", headers={"Accept": "application/openmetrics-text"})[2]


def test_metrics_are_not_beside_inference_unless_asked_for(shared):
    assert clients.ask(shared().http, "GET", "/metrics")[0] == 404


def test_metrics_beside_inference_need_the_same_role(tmp_path):
    (tmp_path / "policy.toml").write_text(auth_cases.table_policy())
    write_model(tmp_path / "models", "simple", "galatea", "identity", identity_config())
    flags = (f"--auth-policy={tmp_path / 'policy.toml'}", "--http-metrics=true")
    with servers.galatea(tmp_path / "models", *flags) as server:
        for key, status in (("read", 200), ("admin", 200), ("infer", 403), ("read@other", 403)):
            assert clients.ask(server.http, "GET", "/metrics", headers=bearer(secret_of(key)))[0] == status, key
        assert clients.ask(server.http, "GET", "/metrics")[0] == 401


def test_a_client_that_does_not_read_its_reports_is_cut_off(shared):
    server = shared("--connection-progress-timeout-secs=1")
    host, port = server.grpc.rsplit(":", 1)
    connection = raw_http2.Connection((host, int(port)), initial_window=0)
    connection.open(1, load_reports.STREAM)
    connection.send(raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, 1, raw_http2.message(b"")))
    # The head comes; the first report has no room.
    assert connection.wait(lambda: connection.seen.get(raw_http2.HEADERS))
    assert connection.wait(lambda: connection.seen.get(raw_http2.RESET), waiting.LIMIT)
    assert raw_http2.DATA not in connection.seen
