"""`galatea models` and `galatea infer`: what people ask a running server, ours and the real Triton."""

import http.server
import json
import shlex
import subprocess
import threading

import pytest

import perf_models
import repositories
import servers

ROW = ",".join(map(str, range(16)))
SIMPLE = ["--input", f"INPUT0={ROW}", "--input", "INPUT1=" + json.dumps([[1] * 16])]


def galatea(*words):
    return subprocess.run([servers.galatea_binary(), *map(str, words)], capture_output=True, text=True, timeout=60)


def at(server, protocol):
    return ["-i", protocol, "-u", getattr(server, protocol)]


@pytest.fixture(scope="module")
def repository_of_simple(tmp_path_factory):
    path = tmp_path_factory.mktemp("commands")
    (path / "simple").symlink_to(repositories.EXAMPLES / "simple")
    return path


@pytest.fixture(scope="module")
def simple_server(repository_of_simple):
    with servers.galatea(repository_of_simple) as server:
        yield server


@pytest.fixture(scope="module", params=["galatea", "triton"])
def target(request, simple_server, tmp_path_factory):
    if request.param == "galatea":
        yield simple_server
        return
    if not servers.has_triton():
        pytest.skip("the real Triton is not installed")
    repository = tmp_path_factory.mktemp("triton")
    perf_models.add_pair(repository, "simple", "triton", "")
    with servers.triton(repository) as server:
        yield server


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_models_and_an_inference(target, protocol):
    where = at(target, protocol)
    listed = galatea("models", *where)
    assert listed.returncode == 0, listed.stderr
    line = next(line for line in listed.stdout.splitlines() if line.startswith("simple "))
    assert "READY" in line and "INPUT0 INT32 [-1,16], INPUT1 INT32 [-1,16] → OUTPUT0 INT32 [-1,16]" in line
    models = json.loads(galatea("models", "--json", *where).stdout)
    assert next(model for model in models if model["name"] == "simple")["state"] == "READY"

    ready = galatea("models", "simple", *where).stdout.splitlines()[-1]
    done = galatea(*shlex.split(ready)[1:])
    assert done.returncode == 0 and "OUTPUT1  INT32 [1,16]\n  0, 0," in done.stdout, done

    done = galatea("infer", "simple", *SIMPLE, "--json", *where)
    assert done.returncode == 0, done.stderr
    outputs = {output["name"]: output for output in json.loads(done.stdout)["outputs"]}
    assert outputs["OUTPUT0"]["data"] == [i + 1 for i in range(16)] and outputs["OUTPUT1"]["shape"] == [1, 16]

    done = galatea("infer", "simple", *SIMPLE, "--output", "OUTPUT0", "--classes", 2, *where)
    assert done.returncode == 0 and "OUTPUT0  BYTES [1,2]\n" in done.stdout and "OUTPUT1" not in done.stdout, done


@pytest.mark.parametrize("words, code, expected", [
    (["simple", "--input", "INPUT0=zeros"], 2, "missing input: INPUT1 INT32 [-1,16]"),
    (["simple", "--input", "INPTU0=zeros"], 2, "did you mean 'INPUT0'?"),
    (["simple", "--input", "INPUT0=1,2"], 2, "'INPUT0' wants INT32 [-1,16]: 2 elements given; give a multiple of 16"),
    (["simple", "--input", "INPUT0=1,x"], 2, "'x' is no INT32"),
    (["simple", *SIMPLE, "--output", "OUTPUT"], 2, "did you mean 'OUTPUT0'?"),
    (["simpel"], 1, "did you mean 'simple'?"),
    (["simple", *SIMPLE, "--model-version", "7"], 1, "7"),
    (["simple", "--inptu", "x"], 2, "--input"),
    ([], 2, "which model?"),
])
def test_what_is_wrong_is_said(simple_server, words, code, expected):
    done = galatea("infer", *words, "-u", simple_server.http)
    assert done.returncode == code and expected in done.stderr and not done.stdout, done


def test_values_from_files(simple_server, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"".join(i.to_bytes(4, "little") for i in range(32)))
    (tmp_path / "b.txt").write_text("1 " * 32)
    files = ["--input", f"INPUT0=@{tmp_path}/a.bin", "--input", f"INPUT1=@{tmp_path}/b.txt"]
    done = galatea("infer", "simple", *files, "--json", "-u", simple_server.http)
    outputs = json.loads(done.stdout)["outputs"]
    assert outputs[0]["shape"] == [2, 16] and outputs[0]["data"] == [i + 1 for i in range(32)]


def test_a_server_that_is_not_there():
    done = galatea("models", "-u", "127.0.0.1:1")
    assert done.returncode == 1 and "127.0.0.1:1" in done.stderr


class Odd(http.server.BaseHTTPRequestHandler):
    """Has no index; its model's platform would clear the screen."""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        documents = {
            "/v2": {"name": "odd", "version": "1", "extensions": []},
            "/v2/models/evil": {"name": "evil", "versions": ["1"], "platform": "\x1b[2J\x9b2J", "inputs": [], "outputs": []},
        }
        body = json.dumps(documents.get(self.path, {"error": "no \x1b[2J such path"}), ensure_ascii=False).encode()
        self.send_response(200 if self.path in documents else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


def test_an_odd_server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = ["-u", f"127.0.0.1:{server.server_port}"]
        listed, shown, missing = galatea("models", *where), galatea("models", "evil", *where), galatea("models", "x", *where)
        server.shutdown()
    assert listed.returncode == 1 and "has no repository index" in listed.stderr
    assert shown.returncode == 0 and "\\u{1b}[2J\\u{9b}2J" in shown.stdout
    assert missing.returncode == 1 and "\x1b" not in missing.stderr
