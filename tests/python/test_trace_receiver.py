"""Spans in a receiver of OpenTelemetry by others, which decodes what it is sent with its own libraries."""

import pytest

import repositories
import tiers
from test_opentelemetry import ask, ask_chain, check_spans_of_chain, flags, traceparent, whole, write_chain
from trace_receiver import PROJECT, Project, Receiver, has_receiver

pytestmark = [tiers.peers, pytest.mark.skipif(not has_receiver(), reason="Phoenix is not installed: `cargo xtask setup trace-receiver`")]


@pytest.fixture(scope="module")
def receiver(tmp_path_factory):
    receiver = Receiver(tmp_path_factory.mktemp("phoenix"))
    yield receiver
    receiver.stop()


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_one_tree_from_a_client_through_an_ensemble_and_python_to_onnx(serve, tmp_path, receiver, protocol):
    write_chain(tmp_path / "models")
    project = Project(receiver, protocol.replace("/", " "), protocol)
    given = flags(project, f"opentelemetry,protocol={protocol}", f"opentelemetry,resource={PROJECT}={project.name}")
    server = serve(tmp_path / "models", *given)
    for kind in ("http", "grpc", "stream"):
        header, trace, client = traceparent()
        context = ask_chain(server, kind, header)
        spans = whole(project, trace, 6)
        check_spans_of_chain(spans, kind, client)
        [caller] = [span for span in spans if span.name == "caller"]
        assert context["traceparent"] == f"00-{trace}-{caller.id}-01"


def test_the_log_names_a_receiver_that_takes_no_json(serve, tmp_path, receiver):
    repositories.write_model(tmp_path / "models", "plain", "galatea", "identity", repositories.identity_config())
    project = Project(receiver, "json", "http/protobuf")
    server = serve(tmp_path / "models", *flags(project, "rate=1", "opentelemetry,protocol=http/json"))
    assert ask(server, "plain", {})[0] == 200
    line = server.wait_for_line("traces are lost until the collector")
    assert project.url in line and "415" in line
