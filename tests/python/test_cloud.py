"""The front ends of SageMaker and Vertex AI, as their platforms start the server: by environment variables."""

import gzip
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import scenarios
import servers
import tiers
from repositories import identity_config, write_model

SAGEMAKER_MODELS = Path("/opt/ml/models")

ROW = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1]}]})


VERTEX_AI = {"AIP_MODE": "PREDICTION", "AIP_HTTP_PORT": "0", "AIP_PREDICT_ROUTE": "/p", "AIP_HEALTH_ROUTE": "/h"}


def ask(address, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    return reply.status, reply.read()


def address_of(server, name):
    line = server.wait_for_line(f"Started {name} HTTPService at ")
    return re.search(r"HTTPService at ([^\"\s]+)", line)[1]


def start(target, folder, service, *flags, env=None, services=1):
    """A server with a port for the platform: its address is `platform`."""
    name = "sagemaker" if service == "Sagemaker" else "vertex-ai"
    port = servers.free_ports(1)[0]
    server = servers.TARGETS[target](folder, f"--{name}-port={port}", *flags, env=env, services=services)
    server.target = target
    try:
        server.wait_for_line(f"Started {service} HTTPService")
    except BaseException:
        server.stop()
        raise
    server.platform = f"127.0.0.1:{port}"
    return server


@pytest.fixture(scope="module", params=tiers.BOTH)
def vertex_ai(request, tmp_path_factory):
    """The only model is the default one."""
    folder = tmp_path_factory.mktemp("vertex_ai")
    write_model(folder, "m", request.param, "python", TENSORS, {"1/model.py": MODEL})
    routes = {**VERTEX_AI, "AIP_PREDICT_ROUTE": "/v1/m[0-9]+:predict", "AIP_HEALTH_ROUTE": "/h(ealth)?"}
    with start(request.param, folder, "Vertex AI", env=routes) as server:
        yield server


@pytest.fixture(scope="module", params=tiers.BOTH)
def sagemaker(request, tmp_path_factory):
    """A default model that is named. Ours has the port of Vertex AI as well, with another one."""
    folder = tmp_path_factory.mktemp("sagemaker")
    for name in ("m", "other"):
        write_model(folder, name, request.param, "python", TENSORS, {"1/model.py": MODEL})
    flags = ["--allow-sagemaker=true"]
    env = {"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "m"}
    if request.param == "galatea":
        flags += ["--allow-vertex-ai=true", "--vertex-ai-port=0", "--vertex-ai-default-model=other"]
        env |= {key: VERTEX_AI[key] for key in ("AIP_PREDICT_ROUTE", "AIP_HEALTH_ROUTE")}
    with start(request.param, folder, "Sagemaker", *flags, env=env, services=3) as server:
        yield server


def test_sagemaker_pings_and_invokes_the_model(sagemaker):
    assert ask(sagemaker.platform, "GET", "/ping")[0] == 200
    status, body = ask(sagemaker.platform, "POST", "/invocations", ROW)
    assert status == 200 and b'"data":[1.0]' in body
    assert ask(sagemaker.http, "GET", "/v2/health/ready")[0] == 200


def test_vertex_ai_checks_health_and_predicts(vertex_ai):
    assert ask(vertex_ai.platform, "GET", "/h")[0] == 200
    status, body = ask(vertex_ai.platform, "POST", "/v1/m1:predict", ROW)
    assert status == 200 and b'"model_name":"m"' in body
    if vertex_ai.target == "galatea":
        redirected = ask(vertex_ai.platform, "POST", "/v1/m1:predict", "", **{"X-Vertex-Ai-Triton-Redirect": "v2/repository/models/m/load"})
        assert redirected[0] == 403


def test_vertex_ai_needs_a_single_model_or_its_name(sagemaker, tmp_path):
    if sagemaker.target != "galatea":
        pytest.skip("the real server has the port of one platform here")
    assert b'"model_name":"other"' in ask(address_of(sagemaker, "Vertex AI"), "POST", "/p", ROW)[1]
    for name in ("m", "other"):
        write_model(tmp_path, name, "galatea", "identity", identity_config())
    command = [servers.galatea_binary(), "serve", f"--model-repository={tmp_path}", "--vertex-ai-port=0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **VERTEX_AI})
    assert done.returncode == 1
    assert "Expect the model repository contains only a single model if default model is not specified" in done.stdout + done.stderr


REDIRECTS = [
    "v2", "v2/health/live", "v2/health/ready", "v2/models/m", "v2/models/m/ready", "v2/models/m/versions/1", "v2/models/m/config", "v2/models/m/infer",
    "v2/models/m/versions/1/infer", "v2/models/none", "v2/models/none/ready", "v2/repository/index", "v2/repository/models/m/other", "v2/logging",
    "v2/trace/setting", "v2/models/m/generate", "v2/systemsharedmemory/status", "v2/systemsharedmemory/region/r/status", "/v2", "v3", "", "p",
]


def test_vertex_ai_answers_like_triton(vertex_ai, recorded):
    """Only redirects that Triton refuses since 2.73 differ. Each answer is a line."""
    lines = [sorted(vertex_ai.addresses)]

    def play(method, path, body="", **headers):
        status, answer = ask(vertex_ai.platform, method, path, body, **headers)
        # Who answers, and what the model runs on.
        known = answer.decode() if headers.get("X-Vertex-Ai-Triton-Redirect") not in ("v2", "v2/models/m", "v2/models/m/config") else ""
        lines.append(f"{method} {path} {headers} {status} {known}")

    for path in ("/h", "/health", "/healthy", "/v1/m1:predict", "/v1/m:predict", "/v1/m1:predictx", "/v2/health/ready", "/"):
        play("GET", path)
    for body in (row(), "x", "{}", ""):
        play("POST", "/v1/m1:predict", body)
    for redirect in REDIRECTS:
        play("POST", "/v1/m22:predict", row() if "infer" in redirect else "", **{"X-Vertex-Ai-Triton-Redirect": redirect})
    play("GET", "/v1/m22:predict", **{"X-Vertex-Ai-Triton-Redirect": "v2"})
    recorded.holds(vertex_ai.target, scenarios.without_places(lines) if vertex_ai.target == "galatea" else lines)


PLATFORMS = {
    "sagemaker": ("/invocations", "sagemaker-triton"),
    "vertex_ai": ("/v1/m1:predict", "vertex-ai-triton"),
}


def test_sagemaker_bodies_are_read_and_written_like_triton(sagemaker, recorded):
    recorded.holds(sagemaker.target, plays_bodies(sagemaker, "sagemaker"))


def test_vertex_ai_bodies_are_read_and_written_like_triton(vertex_ai, recorded):
    recorded.holds(vertex_ai.target, plays_bodies(vertex_ai, "vertex_ai"))


def plays_bodies(server, platform):
    """Bodies with binary tensors, compressed ones and heads that say nonsense; each answer is a line."""
    path, name = PLATFORMS[platform]
    media_type = f"application/vnd.{name}.binary+json;json-header-size="
    lines = []

    def play(what, body, **headers):
        connection = http.client.HTTPConnection(server.platform, timeout=30)
        connection.request("POST", path, body, {key.replace("_", "-"): value for key, value in headers.items()})
        reply = connection.getresponse()
        kept = {key: reply.getheader(key) for key in ("Content-Type", "Inference-Header-Content-Length", "Content-Encoding", "Accept-Encoding")}
        content = reply.read()
        lines.append(f"{what}: {reply.status} {kept} {content if kept['Content-Encoding'] is None else ''}")

    sent = json.dumps({"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "parameters": {"binary_data_size": 4}}]}).encode()
    body, whole = sent + b"\0\0\x80\x3f", row()
    wanted = row()[:-1] + ', "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": true}}]}'
    play("JSON", whole)
    play("binary", body, Content_Type=f"{media_type}{len(sent)}")
    play("binary, named by the other header", body, Inference_Header_Content_Length=str(len(sent)))
    play("binary answer", wanted)
    play("binary answer to JSON by name", wanted, Content_Type="application/json")
    for number in ("9999", "-123", str(len(body) + 1)):
        play(f"length {number}", body, Content_Type=f"{media_type}{number}")
    play("something before", body, Content_Type=f"x/{media_type}{len(sent)}")
    play("raw", b"\0\0\x80\x3f", Content_Type=f"{media_type}0")
    play("compressed answer", whole, Accept_Encoding="gzip")
    play("compressed binary answer", wanted, Accept_Encoding="gzip")
    play("compressed", gzip.compress(whole.encode()), Content_Encoding="gzip")
    play("unknown coding", whole, Content_Encoding="br")
    return lines


MODEL = """
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(pb.get_input_tensor_by_name(r, "INPUT0").as_numpy()) for r in requests]

    def answer(self, values):
        if values[0] == 99:
            return pb.InferenceResponse(error=pb.TritonError("CUDA out of memory. No room."))
        if values[0] == 98:
            return pb.InferenceResponse(error=pb.TritonError("no"))
        return pb.InferenceResponse([pb.Tensor("OUTPUT0", values)])
"""
FAILING = """
class TritonPythonModel:
    def initialize(self, args):
        raise %s
    def execute(self, requests):
        return []
"""
TENSORS = '''
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
'''
STEP = 'ensemble_scheduling { step [ { model_name: "inner" model_version: -1 input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "OUTPUT0" } } ] }'


def write_archive(folder, script=MODEL, config='backend: "python"'):
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config + TENSORS)
    if script:
        (folder / "1/model.py").write_text(script)


class Archives:
    """Folders as SageMaker makes them, with names of their own."""

    def __init__(self, prefix):
        self.prefix = prefix

    def __truediv__(self, tail):
        return SAGEMAKER_MODELS / f"{self.prefix}{tail}"


@pytest.fixture(scope="module")
def archives():
    folder = Archives(f"test{uuid.uuid4().hex}")
    try:
        (folder / "empty/model").mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"no folder for models of SageMaker: {error}")
    write_archive(folder / "a/model")
    write_archive(folder / "b/model/inner")
    for name in ("ens1", "ens2"):
        write_archive(folder / name / "model/inner")
        write_archive(folder / name / "model/whole", None, f'platform: "ensemble" {STEP}')
    write_archive(folder / "oom/model", FAILING % 'MemoryError("CUDA out of memory")')
    write_archive(folder / "bad/model", FAILING % 'ValueError("no")')
    yield folder
    for archive in SAGEMAKER_MODELS.glob(f"{folder.prefix}*"):
        archive.unlink() if archive.is_symlink() else shutil.rmtree(archive)


def row(value=1):
    return ROW.replace("[1]}]}", f"[{value}]}}]}}")


@pytest.fixture(scope="module", params=tiers.BOTH)
def many_models(request, tmp_path_factory):
    """A server of many models without a default one."""
    flags = ["--allow-sagemaker=true", "--model-control-mode=explicit", "--model-namespacing=true"]
    with start(request.param, tmp_path_factory.mktemp("many"), "Sagemaker", *flags, services=3) as server:
        yield server


def test_sagemaker_multi_model_mode_answers_like_triton(many_models, archives, recorded):
    lines = plays_sagemaker(many_models, archives)
    recorded.holds(many_models.target, scenarios.without_places(lines) if many_models.target == "galatea" else lines)


def plays_sagemaker(server, archives):
    """What the server answers, call by call; each a line."""
    lines = []

    def play(method, path, body=None, **headers):
        status, answer = ask(server.platform, method, path, body, **headers)
        answer = answer.decode().replace(archives.prefix, "").split("\\n\\nAt:")[0]
        lines.append(f"{method} {path} {status} {answer}")

    def load(name, tail, **headers):
        play("POST", "/models", json.dumps({"model_name": name, "url": str(archives / tail)}), **headers)

    for method, path in [
        ("GET", "/ping"), ("GET", "/models"), ("GET", "/models/"), ("GET", "/models/none"), ("DELETE", "/models/none"), ("DELETE", "/models"),
        ("POST", "/models/none/invoke"), ("PUT", "/models"), ("PUT", "/models/x"), ("GET", "/models/x/invoke"), ("POST", "/models/x/y"),
        ("GET", "/models/a/"), ("GET", "/models//"),
    ]:
        play(method, path)
    load("a", "a/model")
    play("GET", "/models")
    play("GET", "/models/a")
    for body in (row(), row(98), row(99), "x", "{}", row().replace("INPUT0", "other")):
        play("POST", "/models/a/invoke", body)
    load("a", "a/model")
    load("again", "a/model")
    load("a", "b/model")
    target_header = {"X-Amzn-SageMaker-Target-Model": "b.tar.gz"}
    load("b", "b/model", **target_header)
    play("GET", "/models/b")
    play("POST", "/models/b/invoke", row(), **target_header)
    play("DELETE", "/models/b", **target_header)
    play("GET", "/models")
    load("ens1", "ens1/model")
    load("ens2", "ens2/model")
    for name in ("ens1", "ens2"):
        play("POST", f"/models/{name}/invoke", row())
    load("oom", "oom/model")
    load("bad", "bad/model")
    load("empty", "empty/model")
    load("missing", "missing/model")
    for name in ("ens1", "ens2", "a"):
        play("DELETE", f"/models/{name}")
    play("GET", "/models")
    load("a", "a/model")
    play("POST", "/models/a/invoke", row())
    return lines


def test_sagemaker_reads_only_its_models_folder(tmp_path, archives, many_models):
    """Triton reads /proc here, and a body that is not JSON ends it."""
    outside = tmp_path / "outside"
    write_archive(outside / "model")
    (archives / "link").symlink_to(outside)
    if many_models.target != "galatea":
        pytest.skip("the real server walks /proc")
    address = many_models.platform
    before = ask(address, "GET", "/models")
    assert before[0] == 200
    for url in ("/proc/self/root", "/dev/", "/etc", "../../proc/", outside / "model", archives / "link/model", f"{archives / 'a'}/../../../../etc"):
        status, body = ask(address, "POST", "/models", json.dumps({"model_name": "m", "url": str(url)}))
        assert status == 400 and b"a model must be in a folder below" in body, body
    for body in ("x", "[]", '{"model_name":5}', '{"url":[]}', "{" * 100_000):
        assert ask(address, "POST", "/models", body)[0] == 400
    assert ask(address, "GET", "/models") == before


def test_serve_reads_sagemakers_environment(tmp_path, archives):
    """Starts like a container: many models, on the port that SageMaker gives."""
    serve = tmp_path / "serve"
    serve.symlink_to(servers.galatea_binary())
    port = servers.free_ports(1)[0]
    env = {
        "SAGEMAKER_MULTI_MODEL": "true",
        "SAGEMAKER_BIND_TO_PORT": str(port),
        "SAGEMAKER_SAFE_PORT_RANGE": f"{port}-{port}",
        "SAGEMAKER_TRITON_ADDITIONAL_ARGS": f"--http-address=127.0.0.1 --backend-config=python,python-interpreter={sys.executable}",
    }
    with servers.Server([serve], env=env, services=0) as server:
        address = address_of(server, "Sagemaker")
        assert address.endswith(f":{port}")
        assert ask(address, "GET", "/ping")[0] == 200
        body = json.dumps({"model_name": "hash", "url": str(archives / "ens1/model")})
        assert ask(address, "POST", "/models", body, **{"X-Amzn-SageMaker-Target-Model": "folder/m.tar.gz"})[0] == 200
        status, answer = ask(address, "POST", "/models/hash/invoke", row())
        assert status == 200 and b'"data":[1.0]' in answer, answer
        # A model that failed is no reason to replace the container.
        body = json.dumps({"model_name": "bad", "url": str(archives / "bad/model")})
        assert ask(address, "POST", "/models", body)[0] == 400
        assert ask(address, "GET", "/ping")[0] == 200


def test_serve_reports_missing_sagemaker_settings(tmp_path):
    if Path("/opt/ml/model").exists():
        pytest.skip("a model of SageMaker is here")
    serve = tmp_path / "serve"
    serve.symlink_to(servers.galatea_binary())
    for env, text in [
        ({"SAGEMAKER_TRITON_INFERENCE_TYPE": "x"}, "ERROR: Invalid SAGEMAKER_TRITON_INFERENCE_TYPE 'x'"),
        ({"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "m"}, "ERROR: Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME m does not exist"),
    ]:
        run = subprocess.run([serve], env={**os.environ, **env}, capture_output=True, text=True, timeout=60)
        assert run.returncode == 1 and text in run.stderr


def test_serve_serves_the_only_model(tmp_path):
    """Starts like a container with one model, whose folder is the repository."""
    repository = Path("/opt/ml/model")
    try:
        repository.mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"no folder for a model of SageMaker: {error}")
    try:
        write_model(repository, "m", "galatea", "identity", identity_config())
        serve = tmp_path / "serve"
        serve.symlink_to(servers.galatea_binary())
        port = servers.free_ports(1)[0]
        with servers.Server([serve, "--http-address=127.0.0.1", f"--sagemaker-port={port}"], services=0) as server:
            address = address_of(server, "Sagemaker")
            assert "WARNING: No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided" in server.text()
            assert ask(address, "GET", "/ping")[0] == 200
            assert b'"data":[1.0]' in ask(address, "POST", "/invocations", ROW)[1]
    finally:
        shutil.rmtree(repository)


@tiers.both
def test_sagemaker_without_a_working_default_model_is_not_healthy(target, tmp_path):
    write_model(tmp_path, "broken", target, "python", TENSORS, {"1/model.py": "nonsense("})
    flags = ["--allow-sagemaker=true", "--model-control-mode=explicit", "--exit-on-error=false"]
    with start(target, tmp_path, "Sagemaker", *flags, services=3) as server:
        check_without_a_default(server.platform, 200)
        assert ask(server.http, "POST", "/v2/repository/models/broken/load", "{}")[0] == 400
        check_without_a_default(server.platform, 400)


def check_without_a_default(address, ready):
    assert ask(address, "GET", "/ping")[0] == ready
    status, body = ask(address, "POST", "/invocations", "dummy")
    unknown = "Request for unknown model: 'unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME' is not found"
    assert (status, json.loads(body)["error"]) == (404, unknown)
