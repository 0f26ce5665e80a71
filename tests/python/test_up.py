"""`galatea up`: a first look without anything at hand. The printed line is run as it stands, and its answer has to mean what the
program says; and whatever goes wrong on the way there is an answer, or a reason and what to do."""

import contextlib
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request

import pytest

import processes
import servers
from package_index import WHEELS, PackageIndex
from repositories import EXAMPLES, identity_config, write_model
from test_disk_full import namespace, small_disk, small_files

WHEEL = "magika-1.0.3-py3-none-manylinux_2_28_x86_64.whl"


class Up:
    """`galatea up` with its output, followed until it serves."""

    def __init__(self, *words, home, env=None, through=(), cwd=None):
        self.home = home
        variables = {**os.environ, **servers.onnx_runtime(), "GALATEA_HOME": str(home), **(env or {})}
        command = [*through, servers.galatea_binary(), "up", *words]
        # A folder without models: one that is there would be proposed.
        self.empty = tempfile.TemporaryDirectory(prefix="galatea-up-")
        cwd = cwd or self.empty.name
        self.process = subprocess.Popen(
            [str(word) for word in command], env=variables, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.out, self.err, self.changed = [], [], threading.Condition()
        self.readers = [
            threading.Thread(target=self._follow, args=pair, daemon=True)
            for pair in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for reader in self.readers:
            reader.start()

    def _follow(self, stream, lines):
        for line in stream:
            with self.changed:
                lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            lines.append(None)
            self.changed.notify_all()

    def wait_for(self, pattern, lines=None):
        """The first line that matches; what is waited for must come before the end of the output."""
        lines = self.out if lines is None else lines
        with self.changed:
            found = lambda: next((line for line in lines if line and re.search(pattern, line)), None)
            assert self.changed.wait_for(lambda: found() or lines[-1:] == [None], 120) and found(), self.text()
            return found()

    def serving(self):
        self.wait_for(r"^To stop it:")
        return self

    def text(self):
        return "\n".join(line for line in [*self.out, *self.err] if line is not None)

    @property
    def line(self):
        """The line to paste."""
        return self.wait_for(r"^curl ")

    @property
    def infer(self):
        """The line for `galatea infer`."""
        return self.wait_for(r"^galatea infer ")

    @property
    def http(self):
        return re.search(r"localhost:\d+|127\.0\.0\.1:\d+", self.wait_for(r"^Serving "))[0]

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(60)
        for reader in self.readers:
            reader.join(60)
        return status

    def stop_by_itself(self):
        """The status of one that ends without being asked to."""
        status = self.process.wait(120)
        for reader in self.readers:
            reader.join(60)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def free():
    """Options for ports that no other test has; up without them is tested in a network of its own."""
    http, grpc, metrics = servers.free_ports(3)
    return [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"]


def nothing(tmp_path):
    """No network: no index answers, and nothing lies ready."""
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    return {"PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple", "PIP_CONFIG_FILE": "/dev/null", "NO_PROXY": "*", "no_proxy": "*"}


def paste(line):
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    outputs = json.loads(done.stdout)["outputs"]
    return {output["name"]: output["data"] for output in outputs}


def paste_own(line, folder):
    """The outputs of a line with `galatea`, which is found as on a machine where it is installed."""
    link = folder / "galatea"
    link.unlink(missing_ok=True)
    link.symlink_to(servers.galatea_binary())
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", f"{line} --json"], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    return {output["name"]: output["data"] for output in json.loads(done.stdout)["outputs"]}


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_printed_first_command_gets_a_meaningful_answer(tmp_path):
    with PackageIndex() as index:
        with Up(*free(), home=tmp_path / "home", env=index.environment()) as up:
            up.serving()
            assert paste(up.line)["kind"] == ["elf"]
            assert paste(up.line)["probability"][0] > 0.9
            assert paste_own(up.infer, tmp_path)["kind"] == ["elf"]
            assert paste_own(up.infer.replace("@/bin/sh", f"@{EXAMPLES}/../make_simple.py"), tmp_path)["kind"] == ["python"]
            for ending in ("txt", "json", "png", "tar.gz", "wav"):
                (tmp_path / f"copy.{ending}").write_bytes(open("/bin/sh", "rb").read())
                assert paste_own(up.infer.replace("/bin/sh", f"{tmp_path}/copy.{ending}"), tmp_path)["kind"] == ["elf"], ending
            for content, kind in {
                "import os\n\n\ndef here():\n    return os.getcwd()\n": "python",
                "<!DOCTYPE html>\n<html><body><p>x</p></body></html>\n": "html",
                json.dumps({"name": "x", "list": [1, 2, 3], "of": {"more": None}}, indent=2): "json",
            }.items():
                (tmp_path / "file").write_text(content)
                assert paste(up.line.replace("@/bin/sh", f"@{tmp_path}/file"))["kind"] == [kind]
            assert paste(up.line.replace("@/bin/sh", f"@{EXAMPLES}/../make_simple.py"))["kind"] == ["python"]
            # An empty file, and one of blanks, have a kind too.
            for content in ("", " \n" * 5000):
                (tmp_path / "file").write_text(content)
                assert len(paste(up.line.replace("@/bin/sh", f"@{tmp_path}/file"))["kind"]) == 1
            text = up.text()
            assert "licence Apache-2.0" in text and "16 MB" in text
            with urllib.request.urlopen(f"http://{up.http}/", timeout=30) as page:
                assert f"http://{up.http}/" in text and page.status == 200
            assert up.stop(signal.SIGINT) == 0
            assert "galatea up my.onnx" in up.text() and "Signal" not in up.text()
            assert up.out[-3].startswith("  galatea --help")
        assert len(index.downloads("magika")) == 1
    kept = files(tmp_path / "home")
    assert not [name for name in kept if name.endswith((".part", ".whl"))]
    assert [name for name in kept if name.endswith("magika/1/model.onnx")]


def test_features_of_a_file_equal_magikas(tmp_path):
    """Compares the numbers that `file_bytes` makes of a file with the few lines of Python in examples/ask.py."""
    sys.path.insert(0, str(EXAMPLES.parent))
    import ask
    import numpy as np
    import onnxruntime

    model = servers.ROOT / "crates/program/server/src/up/examples/magika/file_bytes/1/model.onnx"
    session = onnxruntime.InferenceSession(model)
    random = np.random.default_rng(0)
    blanks = b" \t\n\r\x0b\x0c"
    cases = [b"", b" ", blanks, b"a", blanks + b"a" + blanks, b"\x00 \x85\xa0 x", b" " * 4096 + b"a" * 10, b"a" * 10 + b" " * 5000]
    for size in (1, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 9000):
        cases.append(random.bytes(size))
        cases.append(bytes(random.choice(list(blanks + b"ab"), size).tolist()))
    for content in cases:
        made = session.run(None, {"file": np.frombuffer(content, np.uint8)})[0]
        assert np.array_equal(made, ask.file_features(content)), content[:40]


def test_the_second_start_fetches_nothing(tmp_path):
    with PackageIndex() as index, Up(*free(), home=tmp_path, env=index.environment()) as up:
        up.serving()
    with Up(*free(), home=tmp_path, env=nothing(tmp_path)) as up:
        up.serving()
        assert paste(up.line)["kind"] == ["elf"]
        assert "Installing " not in up.text() and "download" not in up.text()


def test_the_sentence_example_answers(tmp_path):
    with Up("minilm", *free(), f"--backend-config=python,python-interpreter={sys.executable}", home=tmp_path, env=processes.offline(WHEELS)) as up:
        up.serving()
        same, meal, baby = paste(up.line)["closeness"]
        assert paste_own(up.infer, tmp_path)["closeness"] == pytest.approx([same, meal, baby], abs=1e-3)
        assert abs(same - 1) < 1e-4 and meal > 0.5 and -0.2 < baby < 0.1
        many = json.dumps({"inputs": [{"name": "text", "shape": [33], "datatype": "BYTES", "data": ["x"] * 33}]})
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://{up.http}/v2/models/sentences/infer", many.encode(), timeout=30)
        assert "expected 1 to 32 sentences" in refused.value.read().decode()


def test_the_built_in_example_needs_no_download(tmp_path):
    env = {**nothing(tmp_path), "GALATEA_ONNXRUNTIME_LIB": "/nonexistent"}
    with Up("simple", *free(), home="/proc/nowhere", env=env) as up:
        up.serving()
        assert paste(up.line) == {"OUTPUT0": [11, 22, 33, 44], "OUTPUT1": [9, 18, 27, 36]}
        assert paste_own(up.infer, tmp_path) == paste(up.line)


def failures(tmp_path):
    closed = nothing(tmp_path)
    yield "no network", closed, None, ["cannot reach", "PIP_FIND_LINKS", WHEEL]
    yield "never", closed, ["--runtime-downloads=never"], ["--runtime-downloads=never prevents"]
    for fault, words in {"missing": ["answers 404"], "wrong": ["sha256"], "cut": ["the connection ended after"]}.items():
        yield fault, PackageIndex(magika=fault), None, words


@pytest.mark.parametrize("case", ["no network", "never", "missing", "wrong", "cut"])
def test_without_the_model_the_built_in_example_answers(tmp_path, case):
    _, index, options, words = next(known for known in failures(tmp_path) if known[0] == case)
    home = tmp_path / "home"
    with contextlib.ExitStack() as stack:
        env = stack.enter_context(index).environment() if isinstance(index, PackageIndex) else index
        with Up(*free(), *(options or []), home=home, env=env) as up:
            up.serving()
            assert paste(up.line)["OUTPUT0"] == [11, 22, 33, 44]
            text = up.text()
            for word in [*words, "magika cannot be served: ", "Serving simple instead", "galatea up my.onnx"]:
                assert word in text, text
        named = Up("magika", *free(), *(options or []), home=home, env=env)
        assert named.stop_by_itself() == 1
        assert "error: " in named.text() and "`galatea up simple` needs nothing" in named.text()
    assert not list(home.rglob("model.onnx")) and not list(home.rglob(".*.new"))


def test_an_interrupted_download_is_resumed(tmp_path):
    with PackageIndex(magika="cut") as index:
        named = Up("magika", *free(), home=tmp_path, env=index.environment())
        assert named.stop_by_itself() == 1
        assert "trying again" in named.text()
    with PackageIndex() as index, Up("magika", *free(), home=tmp_path, env=index.environment()) as up:
        up.serving()
        assert "resuming where it stopped" in up.text()
        assert paste(up.line)["kind"] == ["elf"]


def test_ctrl_c_during_the_download_leaves_no_partial_files(tmp_path):
    with PackageIndex(magika="stalled") as index:
        up = Up(*free(), home=tmp_path, env=index.environment())
        up.wait_for("MB", up.err)
        assert up.stop(signal.SIGINT) == -signal.SIGINT
    # What came is kept to go on with, beside the place where it is installed, and nothing else.
    assert [name for name in files(tmp_path) if not name.endswith((".part", ".lock"))] == []
    with PackageIndex() as index, Up(*free(), home=tmp_path, env=index.environment()) as up:
        up.serving()
        assert paste(up.line)["kind"] == ["elf"]
    assert not [name for name in files(tmp_path) if name.endswith(".part")]


def test_two_concurrent_starts_download_once(tmp_path):
    with PackageIndex() as index:
        both = [Up(*free(), home=tmp_path, env=index.environment()) for _ in range(2)]
        try:
            for up in both:
                assert paste(up.serving().line)["kind"] == ["elf"]
        finally:
            for up in both:
                up.stop()
        assert len(index.downloads("magika")) == 1


def test_a_read_only_home_does_not_prevent_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    with Up(*free(), home=tmp_path / "file/home", env=processes.offline(WHEELS)) as up:
        up.serving()
        assert paste(up.line)["OUTPUT0"] == [11, 22, 33, 44]
        assert "cannot write to" in up.text()


def test_a_full_disk_does_not_prevent_the_start(tmp_path):
    """Leftovers must not keep the disk full."""
    home = tmp_path / "home"
    home.mkdir()
    full, size = (small_disk, "6m") if namespace() else (small_files, "4096")
    with PackageIndex() as index, Up(*free(), home=home, env=index.environment(), through=[*full(size), home]) as up:
        up.serving()
        assert paste(up.line)["OUTPUT0"] == [11, 22, 33, 44]
        assert "it cannot be written" in up.text() and "trying again" not in up.text()
        seen = f"/proc/{up.process.pid}/root{home}"
        left = subprocess.run(["du", "-sk", seen], capture_output=True, text=True, check=True).stdout
        assert int(left.split()[0]) < 100, left


def test_ports_in_use_are_skipped_and_reported(tmp_path):
    """Runs in its own network namespace, so the test controls the default ports."""
    script = """\
    ip link set lo up
    "$1" -c '
import socket, subprocess, sys
held = [socket.create_server(("127.0.0.1", port)) for port in (8000, 8003)]
up = subprocess.Popen([sys.argv[1], "up", "simple"], stdout=subprocess.PIPE, text=True)
text = ""
for line in up.stdout:
    text += line
    if line.startswith("curl"):
        text += subprocess.run(["bash", "-c", line], capture_output=True, text=True).stdout + "\\n"
    if line.startswith("To stop it"):
        up.terminate()
print(text, up.wait())
' "$2"
    """
    isolated = next((c for c in (["unshare", "--net"], ["unshare", "--map-root-user", "--net"]) if can(*c, "ip", "link", "set", "lo", "up")), None)
    if isolated is None:
        return check_passed_over_here(tmp_path)
    words = [*isolated, "bash", "-ec", script, "sh", sys.executable, servers.galatea_binary()]
    text = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120).stdout
    assert "Port 8000 is in use" in text and "HTTP is served at port 8004." in text, text
    assert "Serving simple at localhost:8004, gRPC at 127.0.0.1:8001" in text or "gRPC at localhost:8001, metrics at localhost:8002." in text
    assert '"data":[11,22,33,44]' in text and text.rstrip().endswith("0")


def check_passed_over_here(tmp_path):
    """Without a network of its own: a named port that is in use is an error, and what is free is found."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        named = Up("simple", f"--http-port={taken.getsockname()[1]}", home=tmp_path)
        assert named.stop_by_itself() == 1 and "already in use" in named.text()
    with Up("simple", home=tmp_path) as up:
        up.serving()
        assert paste(up.line)["OUTPUT0"] == [11, 22, 33, 44]


def can(*words):
    return shutil.which(words[0]) and subprocess.run(words, capture_output=True).returncode == 0


def test_a_given_port_is_not_changed(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        up = Up("simple", *free()[1:], f"--http-port={port}", home=tmp_path)
        assert up.stop_by_itself() == 1
        assert f"'127.0.0.1:{port}' already in use" in up.text()


def test_only_localhost_is_served_by_default(tmp_path):
    with Up("simple", *free(), home=tmp_path) as up:
        up.serving()
        ports = {int(place.split(":")[1]) for place in re.findall(r"localhost:\d+", up.wait_for("^Serving"))}
        assert len(ports) == 3 and listening(up.process.pid) == {("0100007F", port) for port in ports}
        assert "--http-address=0.0.0.0 serves other machines too" in up.text()
    with Up("simple", *free(), "--http-address=0.0.0.0", home=tmp_path) as up:
        up.serving()
        assert "every machine that reaches this one" in up.text()
        assert "00000000" in {address for address, _ in listening(up.process.pid)}


def listening(pid):
    """Addresses, as the kernel writes them, and ports at which a process listens."""
    inodes = set()
    for descriptor in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            inodes.add(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in open(f"/proc/{pid}/net/{table}").readlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                address, port = words[1].split(":")
                found.add((address, int(port, 16)))
    return found


def test_a_users_own_model_is_served(tmp_path):
    (tmp_path / "iris.onnx").write_bytes((EXAMPLES / "simple/1/model.onnx").read_bytes())
    with Up("iris.onnx", *free(), home=tmp_path / "home", env=nothing(tmp_path), cwd=tmp_path) as up:
        up.serving()
        assert "/v2/models/iris/infer" in up.line and paste(up.line)["OUTPUT0"] == [2] * 16
        assert up.stop(signal.SIGINT) == 0
        assert "  galatea check iris.onnx " in up.text() and "  galatea serve iris.onnx " in up.text()
    write_model(tmp_path / "models", "one", "galatea", "identity", identity_config(dims="2"))
    with Up(f"--model-repository={tmp_path}/models", *free(), home=tmp_path / "home") as up:
        assert paste(up.serving().line) == {"OUTPUT0": [1.0, 1.0]}


def test_wrong_arguments_are_refused_with_advice(tmp_path):
    for words, expected in {
        ("magica",): "did you mean 'magika'?",
        ("nosuch.onnx",): "there is no 'nosuch.onnx'",
        ("--http-prot=1",): "--http-port",
        ("--port=1",): "see --http-port",
    }.items():
        up = Up(*words, home=tmp_path)
        assert up.stop_by_itself() == 1 and expected in up.text(), up.text()
    for word in ("start", "run", "demo"):
        done = subprocess.run([servers.galatea_binary(), word], capture_output=True, text=True)
        assert done.returncode == 1 and "did you mean `galatea up`?" in done.stderr


def test_the_list_shows_licences_and_sizes(tmp_path):
    up = Up("--list", home=tmp_path)
    assert up.stop_by_itself() == 0
    for word in ("magika", "minilm", "simple", "Apache-2.0", "16 MB", "22 MB"):
        assert word in up.text()
    up = Up("--help", home=tmp_path)
    assert up.stop_by_itself() == 0 and "Usage: galatea up [EXAMPLE | PATH...] [options]" in up.text()


def terminal(words, env):
    """All that a person sees who starts it, pastes the line, and ends it by Ctrl-C; and what the line answered."""
    ours, its = pty.openpty()
    process = subprocess.Popen([str(word) for word in words], stdout=its, stderr=its, env={**os.environ, **env})
    os.close(its)
    text, answer, is_ended = "", None, False
    with os.fdopen(ours, errors="replace", newline="\n") as lines:
        with contextlib.suppress(OSError):  # the terminal is closed when the server has ended
            for line in lines:
                text += line.replace("\r\n", "\n")
                found = re.search(r"^(?:Ask it:  )?(curl -s .*)$", text, re.M)
                if not is_ended and found and re.search(r"^(To stop it|Look at it):.*\n", text, re.M) and line.strip() == "":
                    answer = paste(found[1])
                    process.send_signal(signal.SIGINT)
                    is_ended = True
    assert process.wait(60) == 0, text
    return text, answer


def test_up_on_a_terminal_ends_with_next_steps(tmp_path):
    env = {**servers.onnx_runtime(), "GALATEA_HOME": str(tmp_path), **processes.offline(WHEELS)}
    text, answer = terminal([servers.galatea_binary(), "up", *free()], env)
    assert answer["kind"] == ["elf"]
    assert "Signal" not in text and text.rstrip().splitlines()[-1].startswith("  galatea --help")
    # The log of a server that starts as it should is no part of a first look.
    assert "model_loader" not in text and len(text.splitlines()) < 40


def test_serve_on_a_terminal_ends_with_a_closing_line(tmp_path):
    write_model(tmp_path, "one", "galatea", "identity", identity_config(dims="2"))
    words = [servers.galatea_binary(), "serve", tmp_path, *free(), "--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
    text, answer = terminal(words, {})
    assert answer == {"OUTPUT0": [1.0, 1.0]}
    assert "Signal (2) received." in text.splitlines(), "scripts match it"
    assert text.splitlines()[-1] == "Stopped: every request was answered."
    with servers.galatea(tmp_path) as server:
        server.stop()
        assert "Stopped:" not in server.text(), "not where a script reads"
