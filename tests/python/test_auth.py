"""Authentication: every route of every port, by every role, with no, a wrong, a right and an expired credential. Which
routes there are is asked of the server and of its protocol, so that none can be forgotten."""

import http.client
import json
import re
import subprocess

import grpc
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from google.protobuf import message_factory
from tritonclient.grpc import service_pb2

import auth_cases
import clients
import raw_http
import servers
from auth_cases import KEYS, KNOWN, OPEN, allowed, basic, bearer, secret_of
from repositories import add_sub_config, identity_config, write_model

EXPLICIT = ("--model-control-mode=explicit", "--load-model=*")
INFER, READ, CONTROL = "infer of simple", "read of simple", "control of simple"
READ_ANY, READ_ALL, CONTROL_ALL = "read of any", "read of all", "control of all"
INFER_OR_READ = "infer|read of simple"

# What each route needs; a route of the server that is not here fails the test.
MODEL_ACTIONS = {
    "": READ, "/config": READ, "/stats": READ, "/ready": INFER_OR_READ, "/infer": INFER, "/generate": INFER, "/generate_stream": INFER,
    "/trace/setting": CONTROL,
}
HTTP = {
    "/v2": KNOWN, "/v2/health/live": OPEN, "/v2/health/ready": OPEN, "/v2/models/stats": READ_ANY, "/v2/repository/index": READ_ANY,
    "/v2/repository/{repository_name}/index": READ_ANY, "/v2/repository/models/{model_name}/load": CONTROL,
    "/v2/repository/models/{model_name}/unload": CONTROL, "/v2/logging": CONTROL_ALL, "/v2/trace/setting": CONTROL_ALL,
    "/": READ_ALL, "/docs": READ_ALL, "/console/events": READ_ALL, "/console/traces": READ_ALL, "/console/index.html": READ_ALL, "/openapi.json": READ_ALL,
    **{f"/v2/{kind}sharedmemory/{rest}": CONTROL_ALL for kind in ("system", "cuda")
       for rest in ("status", "register", "unregister", "region/{region_name}/status", "region/{region_name}/register",
                    "region/{region_name}/unregister")},
    **{f"/v2/models/{{model_name}}{action}": need for action, need in MODEL_ACTIONS.items()},
    **{f"/v2/models/{{model_name}}/versions/{{model_version}}{action}": need for action, need in MODEL_ACTIONS.items()
       if action != "/trace/setting"},
}
GRPC = {
    "ServerLive": OPEN, "ServerReady": OPEN, "ModelReady": INFER_OR_READ, "ServerMetadata": KNOWN, "ModelMetadata": READ,
    "ModelConfig": READ, "ModelStatistics": READ, "RepositoryIndex": READ_ANY, "RepositoryModelLoad": CONTROL,
    "RepositoryModelUnload": CONTROL, "ModelInfer": INFER, "ModelStreamInfer": INFER, "TraceSetting": CONTROL_ALL,
    "LogSettings": CONTROL_ALL, "Check": OPEN, "Watch": OPEN, "ServerReflectionInfo": KNOWN, "StreamCoreMetrics": READ_ALL,
    **{f"{kind}SharedMemory{action}": CONTROL_ALL for kind in ("System", "Cuda") for action in ("Status", "Register", "Unregister")},
}
REFUSED = {grpc.StatusCode.UNAUTHENTICATED: 401, grpc.StatusCode.PERMISSION_DENIED: 403}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("auth")
    write_model(path / "models", "simple", "galatea", "add_sub", add_sub_config())
    write_model(path / "models", "other", "galatea", "identity", identity_config())
    return path


@pytest.fixture(scope="module")
def server(folder):
    (folder / "policy.toml").write_text(auth_cases.table_policy())
    flags = (*EXPLICIT, f"--auth-policy={folder / 'policy.toml'}", f"--access-log={folder / 'access.log'}", "--log-verbose=2")
    flags += ("--allow-sagemaker=true", "--sagemaker-port=0")
    with servers.galatea(folder / "models", *flags, env={"SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "simple"}) as running:
        yield running


def status_of(address, method, path, headers, body=b"{}"):
    """The status, without what follows: events have no end."""
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request(method, path, body if method == "POST" else None, headers)
        reply = connection.getresponse()
        return reply.status, reply.headers
    finally:
        connection.close()


def reload_model(server):
    assert clients.ask(server.http, "POST", "/v2/repository/models/simple/load", {}, bearer(secret_of("admin")))[0] == 200


def routes_of(server):
    status, _, body = clients.ask(server.http, "GET", "/openapi.json", headers=bearer(secret_of("admin")))
    assert status == 200
    described = {(path, method.upper()) for path, of_path in json.loads(body)["paths"].items() for method in of_path
                 if method in ("get", "post", "put", "delete", "head") and not re.match("/v2/models/(simple|other)/", path)}
    # What is answered without being described: routes of extensions that are not built.
    described |= {(path, method) for path in HTTP for method in ("GET", "POST") if re.search("trace|sharedmemory|repository_name", path)}
    return sorted(described)


def filled(path):
    values = {"model_name": "simple", "model_version": "1", "region_name": "r", "repository_name": "r"}
    return re.sub(r"\{(\w+)\}", lambda name: values[name[1]], path)


def check_http(address, path, method, need):
    """Every credential at one route."""
    for headers in ({}, bearer("wrong"), {"X-API-Key": "wrong"}, basic("wrong"), bearer(secret_of("late"))):
        status, given = status_of(address, method, filled(path), headers)
        if need == OPEN:
            assert status not in (401, 403), (method, path, headers)
        else:
            assert status == 401, (method, path, headers, status)
            assert given.get_all("WWW-Authenticate")[0].startswith("Bearer "), path
    for key in KEYS:
        secret = secret_of(key)
        for headers in (bearer(secret), {"X-API-Key": secret}, basic(secret)):
            status, _ = status_of(address, method, filled(path), headers)
            is_refused = status in (401, 403)
            assert is_refused != allowed(need, key), (method, path, key, need, status)
            assert status != 401, (method, path, key)


def test_every_http_route_needs_its_role(server):
    routes = routes_of(server)
    assert len(routes) > 40
    for path, method in routes:
        assert path in HTTP, f"{path} is new: say what it needs"
        check_http(server.http, path, method, HTTP[path])
        if "load" in path:
            reload_model(server)


def test_the_metrics_port_needs_a_role(server):
    check_http(server.metrics, "/metrics", "GET", READ_ALL)
    check_http(server.metrics, "/anything", "GET", READ_ALL)


def grpc_calls():
    """(path, name, message, whether there are many messages) of every call of every service."""
    service = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    for method in service.methods:
        message = message_factory.GetMessageClass(method.input_type)()
        for field in ("name", "model_name"):
            if field in method.input_type.fields_by_name:
                setattr(message, field, "" if "SharedMemory" in method.name else "simple")
        yield f"/inference.GRPCInferenceService/{method.name}", method.name, message.SerializeToString(), method.client_streaming
    for name in ("Check", "Watch"):
        yield f"/grpc.health.v1.Health/{name}", name, b"", False
    yield "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics", "StreamCoreMetrics", b"", False
    for version in ("v1", "v1alpha"):
        yield f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo", "ServerReflectionInfo", b"", True


def ask_grpc(channel, path, message, is_stream, metadata):
    """401, 403 or 200: what the call was refused with, if for who sent it. The first answer is enough."""
    has_stream = is_stream or path.endswith(("Watch", "StreamCoreMetrics"))
    if has_stream:
        answers = channel.stream_stream(path)(iter([message]), timeout=30, metadata=metadata)
    else:
        answers = iter([None])
    try:
        if has_stream:
            first = next(answers, b"")
            answers.cancel()
            return 403 if b"lacks the role" in first else 200
        channel.unary_unary(path)(message, timeout=30, metadata=metadata)
    except grpc.RpcError as error:
        return REFUSED.get(error.code(), 200)
    return 200


def test_every_grpc_call_needs_its_role(server):
    calls = list(grpc_calls())
    assert len(calls) == 25
    with grpc.insecure_channel(server.grpc) as channel:
        for path, name, message, is_stream in calls:
            need = GRPC[name]
            for metadata in ((), (("authorization", "Bearer wrong"),), (("x-api-key", "wrong"),), (("x-api-key", secret_of("late")),)):
                status = ask_grpc(channel, path, message, is_stream, metadata)
                assert status == (200 if need == OPEN else 401), (path, metadata, status)
            for key in KEYS:
                for metadata in ((("authorization", f"Bearer {secret_of(key)}"),), (("x-api-key", secret_of(key)),)):
                    status = ask_grpc(channel, path, message, is_stream, metadata)
                    assert status == (200 if allowed(need, key) else 403), (path, key, need, status)
            if "Model" in name and "oad" in name:
                reload_model(server)


def test_sagemaker_routes_need_their_roles(server):
    address = re.search(r"HTTPService at ([^\"\s]+)", server.wait_for_line("Started Sagemaker HTTPService at "))[1]
    for method, path, need in (
        ("GET", "/ping", OPEN), ("POST", "/invocations", INFER), ("GET", "/models", READ_ALL), ("GET", "/models/simple", READ),
        ("POST", "/models/simple/invoke", INFER), ("POST", "/models", CONTROL_ALL), ("DELETE", "/models/simple", CONTROL),
    ):
        check_http(address, path, method, need)
    reload_model(server)


def test_vertex_ai_routes_need_their_roles(folder):
    environment = {"AIP_MODE": "PREDICTION", "AIP_HTTP_PORT": "0", "AIP_PREDICT_ROUTE": "/p", "AIP_HEALTH_ROUTE": "/h"}
    (folder / "policy.toml").write_text(auth_cases.table_policy())
    flags = (f"--auth-policy={folder / 'policy.toml'}", "--vertex-ai-default-model=simple", *EXPLICIT)
    with servers.galatea(folder / "models", *flags, env=environment, services=1) as server:
        address = re.search(r"HTTPService at ([^\"\s]+)", server.wait_for_line("Started Vertex AI HTTPService at "))[1]
        check_http(address, "/h", "GET", OPEN)
        check_http(address, "/p", "POST", INFER)
        for redirect, key, status in (("metrics", "read", 200), ("metrics", "infer", 403), ("metrics", None, 401), ("v2/models/simple", "read", 200)):
            headers = {"X-Vertex-Ai-Triton-Redirect": redirect, **(bearer(secret_of(key)) if key else {})}
            assert status_of(address, "POST", "/p", headers)[0] == status, (redirect, key)


def test_stock_clients_authenticate_with_a_key(server, pair):
    for module, address in ((httpclient, server.http), (grpcclient, server.grpc)):
        headers = {"authorization": f"Bearer {secret_of('infer')}"}
        stock = module.InferenceServerClient(address)
        inputs = clients.inputs(module, dict(zip(("INPUT0", "INPUT1"), pair)))
        assert (stock.infer("simple", inputs, headers=headers).as_numpy("OUTPUT0") == sum(pair)).all()
        assert stock.is_server_ready()
        with pytest.raises(Exception, match="authentication is required"):
            stock.infer("simple", inputs)
        with pytest.raises(Exception, match="identity 'read' lacks the role 'infer' for (model 'simple'|any model)"):
            stock.infer("simple", inputs, headers={"x-api-key": secret_of("read")})
        with pytest.raises(Exception, match="the API key is not known"):
            stock.infer("simple", inputs, headers={"x-api-key": "guess"})


def test_curl_authenticates_with_a_key(server):
    run = subprocess.run(
        ["curl", "-sS", "-i", "-H", f"Authorization: Bearer {secret_of('read')}", f"http://{server.http}/v2/models/simple"],
        capture_output=True, text=True, timeout=30,
    )
    assert "200 OK" in run.stdout and '"name":"simple"' in run.stdout
    run = subprocess.run(["curl", "-sS", "-i", f"http://{server.http}/v2/models/simple"], capture_output=True, text=True, timeout=30)
    assert "401 Unauthorized" in run.stdout and "authentication is required" in run.stdout
    page = subprocess.run(["curl", "-sS", "-i", "-u", f"me:{secret_of('read')}", f"http://{server.http}/"], capture_output=True, timeout=30)
    assert b"200 OK" in page.stdout and b"<html" in page.stdout.lower()


def test_lists_show_only_permitted_models(server):
    admin, some = bearer(secret_of("admin")), bearer(secret_of("read@other"))
    for path, method, names in (
        ("/v2/repository/index", "POST", lambda found: {row["name"] for row in found}),
        ("/v2/models/stats", "GET", lambda found: {row["name"] for row in found["model_stats"]}),
    ):
        seen = [names(json.loads(clients.ask(server.http, method, path, {} if method == "POST" else None, headers)[2])) for headers in (admin, some)]
        assert seen == [{"simple", "other"}, {"other"}], path
    stock = grpcclient.InferenceServerClient(server.grpc)
    metadata = {"x-api-key": secret_of("read@other")}
    assert [model.name for model in stock.get_model_repository_index(headers=metadata).models] == ["other"]
    assert [model.name for model in stock.get_inference_statistics(headers=metadata).model_stats] == ["other"]


def test_refusals_do_not_reveal_which_models_exist(server):
    key = bearer(secret_of("admin@other"))
    for ask in (("GET", ""), ("GET", "/config"), ("GET", "/ready"), ("GET", "/stats"), ("POST", "/infer"), ("POST", "/generate")):
        found = [clients.ask(server.http, ask[0], f"/v2/models/{name}{ask[1]}", {} if ask[0] == "POST" else None, key) for name in ("simple", "nosuch")]
        texts = [body.decode().replace(name, "M") for (_, _, body), name in zip(found, ("simple", "nosuch"))]
        assert found[0][0] == found[1][0] == 403 and texts[0] == texts[1], ask
    # One that may be seen is told to be missing.
    assert clients.ask(server.http, "GET", "/v2/models/other2", headers=key)[0] == 404


def test_dependents_are_unloaded_only_with_the_role_for_all_models(server):
    body = {"parameters": {"unload_dependents": True}}
    path = "/v2/repository/models/other/unload"
    status, _, text = clients.ask(server.http, "POST", path, body, bearer(secret_of("control@other")))
    assert status == 403 and b"lacks the role 'control' for all models" in text
    stock = grpcclient.InferenceServerClient(server.grpc)
    with pytest.raises(Exception, match="for all models"):
        stock.unload_model("other", headers={"x-api-key": secret_of("control@other")}, unload_dependents=True)
    stock.unload_model("other", headers={"x-api-key": secret_of("control@other")})
    stock.load_model("other", headers={"x-api-key": secret_of("control@other")})


def test_a_refused_request_is_answered_before_its_body(server):
    """The server answers before the body arrives."""
    host, port = server.http.split(":")
    with raw_http.connect((host, int(port))) as connection:
        connection.sendall(raw_http.head("POST", "/v2/models/simple/infer", 1 << 40))
        assert raw_http.answer(connection)[0] == 401


def test_hostile_credentials_are_refused(server):
    host, port = server.http.split(":")
    for size in (0, 1, 100, 8192, 8193, 30_000):
        for value in (f"Bearer {'x' * size}", f"Bearer {'.' * size}", f"Basic {'A' * size}", "x" * size, f"Bearer {'a.b.c' * (size // 5)}"):
            status = raw_http.exchange((host, int(port)), raw_http.head("GET", "/v2", Authorization=value))[0]
            assert status in (401, 431), (size, value[:20], status)
    long = raw_http.head("GET", "/v2", Authorization="Bearer " + "x" * (1 << 20))
    assert raw_http.exchange((host, int(port)), long)[0] in (0, 431)
    twice = b"GET /v2 HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nX-API-Key: %s\r\n\r\n" % ((secret_of("admin").encode(),) * 2)
    both = raw_http.head("GET", "/v2", Authorization=f"Bearer {secret_of('admin')}", X_API_Key=secret_of("admin"))
    for sent in (twice, both, b"GET /v2 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n"):
        status, body = raw_http.exchange((host, int(port)), sent)
        assert status == 401, body
    with grpc.insecure_channel(server.grpc) as channel:
        for size in (1, 8193, 12_000):
            assert ask_grpc(channel, "/inference.GRPCInferenceService/ServerMetadata", b"", False, (("x-api-key", "x" * size),)) == 401
    assert clients.is_ready(server)


def test_requests_of_other_sites_cannot_use_stored_credentials(server):
    headers = {**basic(secret_of("admin")), "Sec-Fetch-Site": "cross-site"}
    assert status_of(server.http, "POST", "/v2/models/simple/infer", headers)[0] == 403
    assert status_of(server.http, "GET", "/v2/models/simple", {**headers, "Sec-Fetch-Site": "same-origin"})[0] == 200


def test_authentication_and_restricted_apis_apply_together(folder):
    (folder / "policy.toml").write_text(auth_cases.table_policy())
    flags = (*EXPLICIT, f"--auth-policy={folder / 'policy.toml'}", "--http-restricted-api=metadata:x-admin=open")
    with servers.galatea(folder / "models", *flags) as server:
        for headers, status in (
            ({}, 401), ({"X-Admin": "open"}, 401), (bearer(secret_of("read")), 403), ({**bearer(secret_of("read")), "X-Admin": "open"}, 200),
            ({**bearer(secret_of("infer")), "X-Admin": "open"}, 403),
        ):
            assert status_of(server.http, "GET", "/v2/models/simple", headers)[0] == status, headers


def test_refusals_are_counted_and_logged_without_credentials(server, folder):
    admin = bearer(secret_of("admin"))
    clients.ask(server.http, "GET", "/v2", headers=bearer("galatea_leaked-credential"))
    clients.ask(server.http, "GET", "/v2/models/simple", headers=bearer(secret_of("infer")))
    clients.ask(server.http, "GET", "/v2/models/simple", headers=bearer(secret_of("read")))
    page = clients.ask(server.metrics, "GET", "/metrics", headers=admin)[2].decode()
    counts = {name: int(float(count)) for name, count in re.findall(r'galatea_auth_failures_total\{reason="(\w+)"\} (\S+)', page)}
    assert set(counts) == {"missing", "malformed", "unknown_key", "unknown_certificate", "expired", "invalid_token", "unknown_signing_key", "denied"}
    assert counts["unknown_key"] > 0 and counts["denied"] > 0
    server.stop()
    access = (folder / "access.log").read_text()
    assert re.search(r"path=/v2/models/simple .* status=403 .* identity=infer\n", access)
    assert re.search(r"path=/v2/models/simple .* status=200 .* identity=read\n", access)
    assert re.search(r"path=/v2 .* status=401 .* identity=-\n", access)
    assert re.search(r"the API key is not known to this server \(client 127\.0\.0\.1:\d+\)", server.text())
    for text in (access, server.text(), page):
        for secret in (*map(secret_of, KEYS), secret_of("late"), "galatea_leaked-credential"):
            assert secret not in text and auth_cases.sha256(secret) not in text
