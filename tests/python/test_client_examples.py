"""The client examples of examples/clients, each run against Galatea and, for those of the protocol alone, the real Triton."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import perf_models
import servers
import tiers
from repositories import EXAMPLES

CLIENTS = servers.ROOT / "examples/clients"
PROTOS = servers.ROOT / "crates/shared/proto/proto"
GO = servers.PEERS / "client-go"
INPUTS = "INPUT0 INT32 [-1, 16]; INPUT1 INT32 [-1, 16]"
SUM, DIFFERENCE = " ".join(map(str, range(1, 17))), " ".join(map(str, range(-1, 15)))
WORDS = "| one | word | after | another"
UNKNOWN = "Request for unknown model: 'nothing' is not found"


def python(name, port):
    return lambda server, _: ([sys.executable, CLIENTS / "python" / name, getattr(server, port)], None)


def curl(server, _):
    return [CLIENTS / "curl/ask.sh", server.http], None


def needs(found, what):
    if not found:
        pytest.skip(f"{what} is not on this machine")


def fetch(server, _):
    needs(shutil.which("node"), "node")
    return ["node", CLIENTS / "javascript/http.mjs", server.http], None


def grpc_js(server, folder):
    packages = servers.PEERS / "client-javascript/node_modules"
    needs(shutil.which("node") and packages.is_dir(), "node with the example's packages")
    shutil.copy(CLIENTS / "javascript/grpc.mjs", folder)
    (folder / "node_modules").symlink_to(packages)
    return ["node", folder / "grpc.mjs", server.grpc, PROTOS], None


def go(server, _):
    needs((GO / "root").exists(), "Go")
    offline = {"GOTOOLCHAIN": "local", "GOPROXY": "off", "GOCACHE": str(GO / "cache"), "GOPATH": str(GO / "path")}
    return [GO / "root/bin/go", "run", ".", server.http], {**os.environ, **offline}


def java(server, _):
    needs(shutil.which("java") and shutil.which("javac"), "a Java with its compiler")
    return ["java", CLIENTS / "java/Client.java", server.http], None


EXAMPLES_IN = {
    "python_http": python("http_client.py", "http"),
    "python_grpc": python("grpc_client.py", "grpc"),
    "python_aio": python("aio_client.py", "grpc"),
    "python_plain": python("plain_client.py", "http"),
    "curl": curl,
    "javascript_fetch": fetch,
    "javascript_grpc": grpc_js,
    "go": go,
    "java": java,
}


# What other languages need is prepared for the tier peers.
OTHER_LANGUAGES = {"javascript_fetch", "javascript_grpc", "go", "java"}


def in_tiers(names):
    return [pytest.param(name, id=name, marks=[tiers.peers] if name in OTHER_LANGUAGES else []) for name in names]


@pytest.fixture(scope="module", params=tiers.BOTH)
def server(request, tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    shutil.copytree(CLIENTS / "models/words", repository / "words")
    if request.param == "galatea":
        (repository / "simple").symlink_to(EXAMPLES / "simple")
        with servers.galatea(repository) as running:
            yield running
        return
    perf_models.add_pair(repository, "simple", "triton", "")
    with servers.triton(repository) as running:
        yield running


def said(text):
    """What an example prints, by the word before the colon."""
    return dict(re.findall(r"^(\w+): (.*)", text, re.MULTILINE))


@pytest.mark.parametrize("name", in_tiers(EXAMPLES_IN))
def test_the_example_works(server, name, tmp_path):
    command, environment = EXAMPLES_IN[name](server, tmp_path)
    folder = CLIENTS / "go" if name == "go" else tmp_path
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = said(done.stdout)
    assert lines["ready"] == "yes" and UNKNOWN in lines["refused"]
    if name == "python_aio":
        assert lines["doubled"] == " ".join(str(2 * number) for number in range(20))
        return
    if name in ("curl", "java"):
        metadata, total = json.loads(lines["inputs"]), json.loads(lines["sum"])["outputs"]
        lines["inputs"] = "; ".join(f"{one['name']} {one['datatype']} {[int(n) for n in one['shape']]}" for one in metadata["inputs"])
        lines["sum"] = " ".join(map(str, total[0]["data"]))
    if name == "curl":
        lines["difference"] = " ".join(map(str, json.loads(lines["difference"])["outputs"][0]["data"]))
        events = re.findall("^data: (.*)", done.stdout, re.MULTILINE)
        lines["words"] = " ".join("| " + json.loads(event)["WORD"] for event in events)
    assert lines["inputs"] == INPUTS
    assert (lines["sum"], lines["difference"]) == (SUM, DIFFERENCE)
    if name != "python_http":
        assert " ".join(lines["words"].split()) == WORDS


@pytest.mark.parametrize("name", in_tiers(["python_plain", "curl", "javascript_fetch", "javascript_grpc", "go", "java"]))
def test_an_example_without_a_server_ends_with_an_error(name, tmp_path):
    class Nobody:
        http = grpc = "127.0.0.1:1"

    command, environment = EXAMPLES_IN[name](Nobody, tmp_path)
    folder = CLIENTS / "go" if name == "go" else tmp_path
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and done.stderr
