"""What the policies of a server are to stop: of models that are isolated, of identities, budgets, files and signals."""

import atexit
import gzip
import http.server
import io
import json
import os
import shutil
import signal
import socket
import tarfile
import tempfile
import threading
from pathlib import Path

import auth_cases
import clients
import models
import raw_http
import raw_http2
import servers
import watch
from http_connections import wait
from processes import descendants
from registry import Achieved, attack
from repositories import identity_config, tensor, write_model

BUDGET_MB = 128
BUDGET = f"--memory-budget={BUDGET_MB}M"
STRICT = "--python-isolation=strict"
OPEN = '[open]\nroutes = ["health", "model-ready", "metrics", "server-metadata"]\n'
POLICIES = Path(tempfile.mkdtemp(prefix="galatea-attack-policies-"))
atexit.register(shutil.rmtree, POLICIES, True)
# Runs the Python that it is sent; `result` is the text or the array of the answer.
RUNS = '''
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            scope = {"np": np, "pb": pb, "result": "done"}
            try:
                exec(request.inputs()[0].as_numpy()[0].decode(), scope)
                result = scope["result"]
            except (PermissionError, pb.TritonModelException) as error:
                result = "refused: %s" % error
            if isinstance(result, str):
                result = np.array([result.encode()], object)
            answers.append(pb.InferenceResponse([pb.Tensor("OUT", result)]))
        return answers
'''
RUNS_CONFIG = tensor("input", "IN", "TYPE_STRING", "1") + tensor("output", "OUT", "TYPE_STRING", "-1")


def runs(folder):
    models.python_model(folder, "runs", RUNS, RUNS_CONFIG)


def request(code):
    return json.dumps({"inputs": [{"name": "IN", "shape": [1], "datatype": "BYTES", "data": [code]}]}).encode()


def run(target, code):
    """(status, text of the answer) of code in the model `runs`."""
    status, text = target.ask("POST", "/v2/models/runs/infer", json.loads(request(code)))
    return status, str(json.loads(text)["outputs"][0]["data"][0]) if status == 200 else text


def keeps_to_the_budget(target, before):
    """Fails where the server took more than one and a half times its budget at once."""
    took = watch.kilobytes(watch.fields(target.pid)["VmHWM"]) / 1024 - before
    if took > 1.5 * BUDGET_MB:
        raise Achieved(f"the server took {took:.0f} MB of a budget of {BUDGET_MB}")
    return f"at most {took:.0f} MB of a budget of {BUDGET_MB}"


@attack("model-loads-models", models=runs, loads=("runs",), flags=(STRICT,))
def model_loads_models(target):
    """a Python model at strict loads a model with a package of its own, and unloads a neighbour"""
    marker = target.outside / "written"
    package = f"from setuptools import setup\\nopen({str(marker)!r}, 'w').close()\\nsetup(name='p')\\n"
    code = ("pb.load_model('made', config='{\"backend\": \"python\"}', files={'file:1/model.py': b'', "
            f"'file:requirements.txt': b'./p', 'file:p/setup.py': {package.encode()!r}}})")
    _, loaded = run(target, code)
    _, unloaded = run(target, "pb.unload_model('vector')")
    if marker.exists() or target.ask("GET", "/v2/models/vector/ready")[0] != 200:
        raise Achieved("the model left its barriers" if marker.exists() else "a neighbour was unloaded")
    return f"{loaded[:60]}; {unloaded[:60]}"


@attack("page-calls-grpc")
def page_calls_grpc(target):
    """calls of gRPC as a page can have a browser send them: another method, no te, another content type"""
    unload = raw_http2.message(b"\x12\x06vector")
    path = raw_http2.SERVICE + "RepositoryModelUnload"
    for method, headers in (
        ("GET", ()), ("POST", (("content-type", "application/grpc"),)), ("POST", (("te", "trailers"), ("content-type", "text/plain"))),
        ("POST", (("te", "trailers"), ("content-type", "text/plain"), ("origin", "https://elsewhere.test"))), ("POST", (("te", "trailers"),)),
    ):
        fields = ((":method", method), (":scheme", "http"), (":path", path), (":authority", "x"), *headers)
        block = b"".join(raw_http2.literal(name.encode(), value.encode()) for name, value in fields)
        connection = raw_http2.Connection(target.grpc)
        connection.send(raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1, block))
        connection.send(raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, 1, unload))
        wait(lambda: connection.seen.get(raw_http2.HEADERS), 5)  # noqa: B023
        connection.socket.shutdown(socket.SHUT_RDWR)
        if target.ask("GET", "/v2/models/vector/ready")[0] != 200:
            raise Achieved(f"{method} {headers} unloaded a model")
    return "none unloaded anything"


def states(folder):
    controls = "".join(
        f'control_input {{ name: "{name}" control {{ kind: CONTROL_SEQUENCE_{name} fp32_false_true: [0, 1] }} }}\n' for name in ("START", "READY", "END"))
    state = ('state { input_name: "INPUT_STATE" output_name: "OUTPUT_STATE" data_type: TYPE_INT8 dims: [ 1024, 1024 ] '
             "use_same_buffer_for_input_output: true use_growable_memory: true }")
    write_model(folder, "states", "galatea", "implicit_state", "".join(tensor("input", n, "TYPE_INT32", "1") for n in ("INPUT", "TEST_CASE"))
                + tensor("output", "OUTPUT", "TYPE_INT32", "1") + tensor("output", "OUTPUT_STATE", "TYPE_INT8", "-1")
                + f"sequence_batching {{\n{controls} oldest {{ max_candidate_sequences: 512 }} {state} }}\n")


@attack("sequence-states", models=states, loads=("states",), flags=(BUDGET,))
def sequence_states(target):
    """400 sequences that keep a state of 1 MB and more each, and one whose state grows"""
    before = watch.use_of(target.pid).rss_mb
    answers = []
    for sequence in [*range(1, 401), *[1] * 200]:
        body = {"inputs": [{"name": name, "shape": [1], "datatype": "INT32", "data": [value]} for name, value in (("INPUT", 1), ("TEST_CASE", 3))],
                "outputs": [{"name": "OUTPUT"}], "parameters": {"sequence_id": sequence, "sequence_start": len(answers) < 400}}
        answers.append(target.ask("POST", "/v2/models/states/infer", body)[0])
    return f"{raw_http.statuses(answers)}; {keeps_to_the_budget(target, before)}"


@attack("model-moves-the-server", models=runs, loads=("runs",), flags=(STRICT,))
def model_moves_the_server(target):
    """a Python model at strict changes processors, scheduling and priority of the server, and opens a datagram socket"""
    calls = (
        f"os.sched_setaffinity({target.pid}, [0])", f"os.sched_setscheduler({target.pid}, os.SCHED_IDLE, os.sched_param(0))",
        f"os.setpriority(os.PRIO_PROCESS, {target.pid}, 19)", "os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_USER, 0))",
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
    )
    done = [call for call in calls if not run(target, f"import os, socket\n{call}")[1].startswith("refused")]
    if done:
        raise Achieved("; ".join(done))
    return f"{len(calls)} refused"


(POLICIES / "policy.toml").write_text(auth_cases.key_entry("one", "first", ["admin"]) + auth_cases.key_entry("two", "second", ["admin"])
                                      + OPEN)


@attack("policy-becomes-a-pipe", flags=(f"--auth-policy={POLICIES / 'policy.toml'}",), explicit=False, goals=False)
def policy_becomes_a_pipe(target):
    """the policy's file becomes a pipe, a folder and an endless file, and then one without a key"""
    policy, text = POLICIES / "policy.toml", (POLICIES / "policy.toml").read_text()
    rest = text[text.index("[[keys]]", 5):]
    known = lambda: target.ask("GET", "/v2/models/simple", headers=auth_cases.bearer("first"))[0] != 401  # noqa: E731
    try:
        for become in (lambda: os.mkfifo(policy), policy.mkdir, lambda: policy.symlink_to("/dev/zero")):
            policy.rmdir() if policy.is_dir() else policy.unlink()
            become()
            if not wait(lambda: "the new policy cannot be used" in target.server.text(), 10):
                raise Achieved("a policy that cannot be read is not told")
        policy.unlink()
        policy.write_text(rest)
        if not wait(lambda: not known(), 10):
            raise Achieved("a key that was taken back works on")
    finally:
        policy.unlink(missing_ok=True)
        policy.write_text(text)
    return "the key that was taken back is refused"


@attack("large-answers", models=runs, loads=("runs",), flags=(BUDGET, "--python-memory=600M"))
def large_answers(target):
    """a Python model answers 100 MB, more than half of the budget, and an array without end, again and again"""
    before = watch.use_of(target.pid).rss_mb
    codes = ("result = np.array([b'x' * (100 << 20)], object)", "result = np.broadcast_to(np.array([b'x' * 99], object), (1 << 34,))")
    answers = [run(target, code)[0] for code in codes * 3]
    if 200 in answers:
        raise Achieved(f"answered {answers}")
    return f"{raw_http.statuses(answers)}; {keeps_to_the_budget(target, before)}"


@attack("hung-and-unloaded", models=runs, loads=("runs",), new_flags=("--backend-config=python,unload-timeout-secs=2",))
def hung_and_unloaded(target):
    """a model hangs, its client leaves, and it is unloaded: ten times"""
    before = len(descendants(target.pid))
    for _ in range(10):
        held = raw_http.many(target.http, 1, raw_http.post("/v2/models/runs/infer", request("import threading; threading.Event().wait()")))
        wait(lambda: target.ask("GET", "/v2/models/runs/stats")[1].find('"inference_count"') > 0, 1)
        raw_http.close(held)
        target.ask("POST", "/v2/repository/models/runs/unload", {})
        target.load("runs")
    if not wait(lambda: len(descendants(target.pid)) <= before, 20):
        raise Achieved(f"{len(descendants(target.pid)) - before} processes stay")
    return "all workers ended"


@attack("namesake-of-a-key", models=lambda folder: sums(folder), explicit=False, goals=False, flags=(f"--auth-policy={POLICIES / 'tokens.toml'}",))
def namesake_of_a_key(target):
    """a token whose subject is the name of an API key goes on with that key's sequence"""
    def ask(secret, start):
        body = {"inputs": [{"name": "INPUT", "shape": [1, 1], "datatype": "INT32", "data": [1]}],
                "parameters": {"sequence_id": 7, "sequence_start": start}}
        return target.ask("POST", "/v2/models/sums/infer", body, auth_cases.bearer(secret))

    status, text = ask("secret", True)
    assert status == 200, text
    status, text = ask(ISSUER.token(), False)
    if status == 200:
        raise Achieved("the token went on with the sequence")
    return text[:90]


def sums(folder):
    global ISSUER
    ISSUER = auth_cases.Issuer()
    atexit.register(ISSUER.stop)
    (POLICIES / "keys.json").write_text(ISSUER.key_set("ed"))
    (POLICIES / "tokens.toml").write_text(
        auth_cases.key_entry("ann", "secret", ["admin"]) + auth_cases.jwt_table('jwks_file = "keys.json"')
        + OPEN)
    controls = "".join(f'control_input {{ name: "{name}" control {{ kind: CONTROL_SEQUENCE_{name} fp32_false_true: [0, 1] }} }}\n' for name in ("START", "READY"))
    write_model(folder, "sums", "galatea", "sequence", "max_batch_size: 4\n" + tensor("input", "INPUT", "TYPE_INT32", "-1")
                + tensor("output", "OUTPUT", "TYPE_INT32", "-1") + f"sequence_batching {{ {controls} }}\n")


ISSUER = None


class Archive(http.server.BaseHTTPRequestHandler):
    """An archive of some MB that unpacks to 2 GB."""

    content = b""

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.send_header("ETag", '"1"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(self.content)

    def log_message(self, *_):
        pass


@attack("archive-that-inflates", goals=False)
def archive_that_inflates(target):
    """an archive of a few MB that unpacks to 2 GB, where the cache may have 100 MB"""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=9) as archive:
        config = b'backend: "identity"\n'
        for name, size, content in (("m/config.pbtxt", len(config), io.BytesIO(config)), ("m/1/weights", 2 << 30, open("/dev/zero", "rb"))):
            entry = tarfile.TarInfo(name)
            entry.size = size
            archive.addfile(entry, content)
    Archive.content = packed.getvalue()
    store = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    threading.Thread(target=store.serve_forever, daemon=True).start()
    home = target.folder / "cache"
    try:
        server = servers.galatea(f"http://127.0.0.1:{store.server_port}/models.tar.gz", "--repository-cache-size=100M", wait=False,
                                 env={"GALATEA_HOME": str(home)})
        told = wait(lambda: "repository-cache-size" in server.text() or server.process.poll() is not None, 60)
        kept = sum(f.stat().st_blocks * 512 for f in home.rglob("*") if f.is_file()) >> 20
        server.stop()
    finally:
        store.shutdown()
    if not told or kept > 150:
        raise Achieved(f"{kept} MB were unpacked")
    return f"{len(Archive.content) >> 20} MB sent, {kept} MB kept"


@attack("full-disk", flags=("--access-log=/dev/full",))
def full_disk(target):
    """an access log on a full disk: are lost lines counted?"""
    for _ in range(300):
        target.ask("GET", "/v2/models/simple")
    lost = lambda: clients.metrics(target.server).get(("galatea_log_lines_lost_total", 'log="access"'), 0)  # noqa: E731
    if not wait(lambda: lost() >= 300, 10):
        raise Achieved(f"{lost():.0f} of 300 lost lines are counted")
    return f"{lost():.0f} lost lines are counted"


@attack("long-error", models=runs, loads=("runs",))
def long_error(target):
    """a Python model fails with a text of 10 MB"""
    status, text = target.ask("POST", "/v2/models/runs/infer", json.loads(request("raise ValueError('x' * (10 << 20))")))
    if status == 200 or len(text) > 100_000:
        raise Achieved(f"{status} with {len(text)} characters")
    return f"{status} with {len(text)} characters"


@attack("gzip-bomb")
def gzip_bomb(target):
    """3 MB of gzip that unpack to 3 GB"""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9) as file:
        piece = b" " * (64 << 20)
        for _ in range(48):
            file.write(piece)
    sent = raw_http.post("/v2/models/vector/infer", packed.getvalue(), Content_Encoding="gzip")
    status, text = raw_http.exchange(target.http, sent)
    if status not in (400, 413):
        raise Achieved(f"answered {status}")
    return f"{packed.tell() / 1e6:.1f} MB: {status} {text[:60]}"


@attack("sighup")
def sighup(target):
    """SIGHUP, a hundred times, to a server without an access log"""
    for _ in range(100):
        os.kill(target.pid, signal.SIGHUP)
    if not wait(lambda: "SIGHUP" in target.server.text(), 10) or not target.is_alive():
        raise Achieved("the server ended")
    return "it serves on"
