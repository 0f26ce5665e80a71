"""The description of the HTTP routes: a validator takes it, and real requests and answers fit it."""

import json
import subprocess
from urllib.parse import quote

import pytest

import clients
import repositories
import servers
import tiers
from repositories import add_sub_config, identity_config

CHECKS = servers.PEERS / "openapi-checks/bin/python"

# Runs where the validators are. Reads {"document", "fit": [[pointer, instance, whether it fits]]}.
PROGRAM = """
import json, sys
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
given = json.load(sys.stdin)
document = given["document"]
said = [str(error) for error in OpenAPIV31SpecValidator(document).iter_errors()]
registry = Registry().with_resource("urn:d", Resource.from_contents(document, default_specification=DRAFT202012))
for pointer, instance, fits in given["fit"]:
    validator = Draft202012Validator({"$ref": "urn:d#" + pointer}, registry=registry)
    errors = [error.message for error in validator.iter_errors(instance)]
    if bool(errors) == fits:
        said.append(f"{pointer}: {json.dumps(instance)[:300]}: {errors or 'fits'}")
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The name of one model cannot be said in a request over HTTP, so all are loaded at the start."""
    path = tmp_path_factory.mktemp("models")
    repositories.write_model(path, "simple", "galatea", "add_sub", add_sub_config())
    repositories.write_model(path, "numbers", "galatea", "identity", identity_config())
    repositories.write_model(path, "halves", "galatea", "identity", identity_config("TYPE_FP16"))
    repositories.write_model(path, "a b{c}", "galatea", "identity", identity_config())
    with servers.galatea(path, "--model-control-mode=explicit", "--load-model=*") as running:
        running.repository = path
        yield running


def document(server, query=""):
    status, headers, body = clients.ask(server.http, "GET", "/openapi.json" + query)
    assert status == 200 and headers["Content-Type"] == "application/json", body
    return json.loads(body)


def check(of, fit=()):
    """What the validators say."""
    given = json.dumps({"document": of, "fit": list(fit)})
    run = subprocess.run([CHECKS, "-c", PROGRAM], input=given, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def pointer(path, *keys):
    escaped = [key.replace("~", "~0").replace("/", "~1") for key in ("paths", path, "post", *keys)]
    return quote("/" + "/".join(escaped), safe="/~")


def request_of(path):
    return pointer(path, "requestBody", "content", "application/json", "schema")


def answer_of(path, status="200"):
    return pointer(path, "responses", status, "content", "application/json", "schema")


def pair(rows=1):
    row = list(range(16))
    values = [{"name": f"INPUT{n}", "shape": [rows, 16], "datatype": "INT32", "data": [row] * rows} for n in (0, 1)]
    return {"inputs": values}


@tiers.peers
def test_the_document_is_valid_and_describes_real_responses(server):
    infer, generate, numbers = "/v2/models/simple/infer", "/v2/models/simple/generate", "/v2/models/numbers/infer"
    asked = {
        infer: [pair(), {**pair(2), "id": "x", "outputs": [{"name": "OUTPUT1"}]},
                {**pair(), "outputs": [{"name": "OUTPUT0", "parameters": {"classification": 3}}]}],
        numbers: [{"inputs": [{"name": "INPUT0", "shape": [3], "datatype": "FP32", "data": [1, 2.5, -3]}]}],
        generate: [{"INPUT0": list(range(16)), "INPUT1": [1] * 16}],
    }
    fit = []
    for path, bodies in asked.items():
        for body in bodies:
            status, _, answer = clients.ask(server.http, "POST", path, body)
            assert status == 200, answer
            fit += [[request_of(path), body, True], [answer_of(path), json.loads(answer), True]]
    first, second = pair()["inputs"]
    wrong = [
        {}, {"inputs": []}, {"inputs": [first]}, {"inputs": [first, {**second, "name": "OTHER"}]},
        {"inputs": [first, {**second, "datatype": "FP32"}]}, {"inputs": [first, {**second, "shape": [1, 15]}]},
        {"inputs": [first, {**second, "shape": [9, 16]}]}, {"inputs": [first, {**second, "data": [0.5] * 16}]},
        {**pair(), "outputs": [{"name": "NOTHING"}]},
    ]
    for body in wrong:
        assert clients.ask(server.http, "POST", infer, body)[0] >= 400, body
        fit.append([request_of(infer), body, False])
    general = {
        "/v2": "ServerMetadata", "/v2/models/simple": "ModelMetadata", "/v2/models/stats": "Statistics", "/v2/logging": "LogSettings",
        "/v2/models/nothing": "Error", "/v2/models/simple/stats": "Statistics",
    }
    for path, schema in general.items():
        fit.append([f"/components/schemas/{schema}", json.loads(clients.ask(server.http, "GET", path)[2]), True])
    index = json.loads(clients.ask(server.http, "POST", "/v2/repository/index", {})[2])
    fit += [["/components/schemas/IndexEntry", row, True] for row in index]
    assert check(document(server), fit) == []


def test_models_have_entries_unless_their_name_is_special(server):
    whole = document(server)
    assert whole["openapi"] == "3.1.0" and whole["x-galatea-models"] == {"ready": 4, "shown": 3}
    names = {path.split("/")[3] for path in whole["paths"] if path.startswith("/v2/models/")}
    assert names == {"{model_name}", "stats", "simple", "numbers", "halves"}
    one = document(server, "?model=sim%70le")
    assert one["x-galatea-models"] == {"ready": 1, "shown": 1} and "/v2/models/numbers/infer" not in one["paths"]
    assert "/v2/models/simple/infer" in one["paths"]
    status, _, said = clients.ask(server.http, "GET", "/openapi.json?model=nothing")
    assert status in (400, 404) and b"nothing" in said
    # FP16 has no form in JSON.
    schema = whole["paths"]["/v2/models/halves/infer"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert "data" not in schema["properties"]["inputs"]["items"]["anyOf"][0]["properties"]


def test_an_unloaded_model_loses_its_entries(server):
    assert clients.ask(server.http, "POST", "/v2/repository/models/numbers/unload", {})[0] == 200
    assert "/v2/models/numbers/infer" not in document(server)["paths"]
    assert clients.ask(server.http, "POST", "/v2/repository/models/numbers/load", {})[0] == 200
    assert "/v2/models/numbers/infer" in document(server)["paths"]


def test_only_the_first_of_very_many_models_have_entries(server):
    """This test is the last of the file, because its models stay."""
    for number in range(120):
        name = f"m{number:03}"
        repositories.write_model(server.repository, name, "galatea", "identity", identity_config())
        assert clients.ask(server.http, "POST", f"/v2/repository/models/{name}/load", {})[0] == 200
    whole = document(server)
    assert whole["x-galatea-models"] == {"ready": 124, "shown": 100}
    # In the order of their names, of which "a b{c}" gets none, and "halves" comes before the others.
    assert "/v2/models/m097/infer" in whole["paths"] and "/v2/models/m099/infer" not in whole["paths"]
    assert "/v2/models/m119/infer" in document(server, "?model=m119")["paths"]
