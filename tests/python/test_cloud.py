"""The front ends of SageMaker and Vertex AI, as their platforms start the server: by environment variables."""

import http.client
import json
import re

import pytest

import servers
from repositories import identity_config, write_model

ROW = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1]}]})


def ask(address, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    return reply.status, reply.read()


def address_of(server, name):
    line = server.wait_for_line(f"Started {name} HTTPService at ")
    return re.search(r"HTTPService at ([^\"\s]+)", line)[1]


@pytest.fixture
def folder(tmp_path):
    write_model(tmp_path, "m", "galatea", "identity", identity_config())
    return tmp_path


def test_sagemaker(folder):
    with servers.galatea(folder, "--allow-sagemaker=true", "--sagemaker-port=0", env={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "m"}) as server:
        address = address_of(server, "Sagemaker")
        assert ask(address, "GET", "/ping")[0] == 200
        status, body = ask(address, "POST", "/invocations", ROW)
        assert status == 200 and b'"data":[1.0]' in body
        assert ask(server.http, "GET", "/v2/health/ready")[0] == 200
    assert server.process.returncode == 0


def test_vertex_ai(folder):
    env = {"AIP_MODE": "PREDICTION", "AIP_HTTP_PORT": "0", "AIP_PREDICT_ROUTE": "/p", "AIP_HEALTH_ROUTE": "/h"}
    with servers.galatea(folder, env=env) as server:
        address = address_of(server, "Vertex AI")
        assert ask(address, "GET", "/h")[0] == 200
        status, body = ask(address, "POST", "/p", ROW)
        assert status == 200 and b'"model_name":"m"' in body
        assert ask(address, "POST", "/p", "", **{"X-Vertex-Ai-Triton-Redirect": "v2/repository/models/m/load"})[0] == 403


def test_vertex_ai_needs_one_model(folder):
    write_model(folder, "other", "galatea", "identity", identity_config())
    env = {"AIP_MODE": "PREDICTION", "AIP_HTTP_PORT": "0", "AIP_PREDICT_ROUTE": "/p", "AIP_HEALTH_ROUTE": "/h"}
    with servers.galatea(folder, env=env, wait=False) as server:
        assert server.wait_for_exit() == 1
        assert "Expect the model repository contains only a single model if default model is not specified" in server.text()
    with servers.galatea(folder, "--vertex-ai-default-model=other", env=env) as server:
        assert b'"model_name":"other"' in ask(address_of(server, "Vertex AI"), "POST", "/p", ROW)[1]
