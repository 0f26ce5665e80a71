"""The program asks nobody outside by itself: the kernel would end it where it opened a connection."""

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import clients
import repositories
import servers

ROOT = servers.ROOT
# Ends what it starts, and the processes of models, at the first connection or look-up of a name.
WITHOUT = [sys.executable, str(Path(__file__).with_name("without_connections.py"))]
MODEL = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
"""
# Public hosts that the sources name: the package index of runtimes and environments, and the hub that `hf://` names.
PUBLIC = {"pypi.org", "huggingface.co"}


def test_the_network_barrier_ends_connecting_programs():
    """The next test relies on this barrier."""
    for code in ("s.create_connection(('127.0.0.1', 9))", "s.getaddrinfo('example.invalid', 80)", "s.socket(s.AF_INET, s.SOCK_DGRAM)"):
        done = subprocess.run([*WITHOUT, sys.executable, "-c", f"import socket as s; {code}"], capture_output=True)
        assert done.returncode == -signal.SIGSYS, (code, done)
    assert subprocess.run([*WITHOUT, sys.executable, "-c", "import socket as s; s.create_server(('127.0.0.1', 0))"]).returncode == 0


def test_a_server_opens_no_outgoing_connection(tmp_path):
    repositories.copy_example(tmp_path, "simple")
    tensors = repositories.tensor("input", "INPUT0", "TYPE_FP32", "-1") + repositories.tensor("output", "OUTPUT0", "TYPE_FP32", "-1")
    repositories.write_model(tmp_path, "echo", "galatea", "python", tensors, {"1/model.py": MODEL})
    with servers.galatea(tmp_path, "--model-control-mode=explicit", "--load-model=*", through=WITHOUT) as server:
        where = ["-u", server.http]
        rows = ["INPUT0=" + ",".join("1" * 16), "INPUT1=" + ",".join("2" * 16)]
        for words in (["infer", "simple", *rows, *where], ["infer", "echo", "INPUT0=1,2", "-u", f"grpc://{server.grpc}"], ["models", *where], ["models", "reload", "echo", *where], ["models", "unload", "simple", *where]):
            done = subprocess.run([servers.galatea_binary(), *words], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done
        for page in (f"http://{server.http}/", f"http://{server.metrics}/metrics"):
            assert urllib.request.urlopen(page, timeout=30).status == 200
        assert clients.ask(server.http, "POST", "/v2/models/absent/infer", b"{}")[0] == 404
        assert server.stop() == 0, server.text()


def test_local_commands_open_no_connection(tmp_path):
    repositories.copy_example(tmp_path / "models", "simple")
    for words in (["--help"], ["--version"], ["manual"], ["completions", "bash"], ["runtime", "list"], ["cache", "clean"], ["check", tmp_path / "models"], ["config", tmp_path / "models/simple"]):
        command = [*WITHOUT, servers.galatea_binary(), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, env={"GALATEA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, timeout=60)
        assert done.returncode == 0, (words, done)


def test_the_sources_name_no_other_host():
    """Checks the constants that hold an address with a public host."""
    named = set()
    for path in ROOT.glob("crates/*/*/src/**/*.rs"):
        for _, host in re.findall(r'\b(?:const|static) (\w+): &(?:\'static )?str =\s*"https?://([\w.-]+)', path.read_text()):
            named.add(host)
    # The name of XML's vocabulary for pictures, which nobody asks.
    assert named - {"localhost", "127.0.0.1", "www.w3.org"} == PUBLIC
    assert all(host in (ROOT / "docs/security.md").read_text() for host in PUBLIC)
