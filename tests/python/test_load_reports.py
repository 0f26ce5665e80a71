"""Load reports for load balancers (ORCA), from metrics that a model defines. Triton 2.51 has none: these are of 2.73."""

import http.client
import json

import pytest

from repositories import write_model

MODEL = """
import numpy as np
import triton_python_backend_utils as pb

FAMILY = "nv_trt_llm_kv_cache_block_metrics"


class TritonPythonModel:
    def initialize(self, args):
        self.family = family = pb.MetricFamily(name=FAMILY, description="cache", kind=pb.MetricFamily.GAUGE)
        labels = {"model": args["model_name"], "version": "1"}
        values = {"used": 3, "max": 8, "tokens_per": 64, "free": 5}
        if args["model_name"] == "part":
            values = {"used": 1}
        self.metrics = [family.Metric(labels={**labels, "kv_cache_block_type": kind}) for kind in values]
        for metric, value in zip(self.metrics, values.values()):
            metric.set(value)

    def execute(self, requests):
        self.metrics[0].increment(1)
        return [pb.InferenceResponse([pb.Tensor("text_output", np.array([b"x"], object))]) for _ in requests]
"""
CONFIG = """
input [ { name: "text_input" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "text_output" data_type: TYPE_STRING dims: [ 1 ] } ]
"""


def generate(server, model, format=None, action="generate"):
    connection = http.client.HTTPConnection(server.http, timeout=30)
    headers = {} if format is None else {"endpoint-load-metrics-format": format}
    connection.request("POST", f"/v2/models/{model}/{action}", json.dumps({"text_input": "hello"}), headers)
    reply = connection.getresponse()
    assert reply.status == 200, reply.read()
    return reply.getheader("endpoint-load-metrics")


@pytest.fixture
def llm(stage):
    """A server with one model, as the figures are those of the whole server."""
    return lambda name: stage.get("galatea", lambda folder, target: write_model(folder, name, target, "python", CONFIG, {"1/model.py": MODEL}))


def test_a_request_gets_the_load_report_in_the_requested_form(llm):
    server = llm("llm")
    assert generate(server, "llm") is None
    # A metric counts before the response that comes after it.
    text = "TEXT named_metrics.kv_cache_utilization=0.625000, named_metrics.max_token_capacity=512"
    assert generate(server, "llm", "text") == text
    report = generate(server, "llm", "json")
    assert json.loads(report.removeprefix("JSON ")) == {"named_metrics": {"kv_cache_utilization": 0.75, "max_token_capacity": 512}}
    assert generate(server, "llm", "text", "generate_stream").startswith("TEXT named_metrics.kv_cache_utilization=0.875000")
    for other in ("xml", "", "text, json", "t" * 8000):
        assert generate(server, "llm", other) is None


def test_names_that_triton_does_not_know_get_the_report_of_the_server_with_the_cache(llm):
    server = llm("llm")
    report = generate(server, "llm", "JSON").removeprefix("JSON ")
    report = json.loads(report)
    assert report["named_metrics"]["kv_cache_utilization"] == 0.5 and report["application_utilization"] > 0


def test_a_model_without_all_metrics_has_only_the_report_of_the_server(llm):
    report = generate(llm("part"), "part", "text")
    assert report.startswith("TEXT application_utilization:0.") and "kv_cache" not in report
