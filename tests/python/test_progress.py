"""What a person, and a log, are told while an environment is built or a library is fetched, which may take minutes."""

import os
import pty
import re
import signal
import subprocess
import sys
import threading

import processes
import servers
from package_index import PackageIndex
from repositories import identity_config, write_model
from test_interrupts import MODEL, SilentIndex
from waiting import eventually


def slow_model(tmp_path):
    return write_model(tmp_path / "models", "slow", "galatea", "python", identity_config(), {"1/model.py": MODEL, "requirements.txt": "numpy\n"})


def variables(index, home):
    return {**index.environment(), "GALATEA_HOME": str(home), "PIP_NO_CACHE_DIR": "1", "UV_NO_CACHE": "1", "PIP_DEFAULT_TIMEOUT": "600", "UV_HTTP_TIMEOUT": "600"}


class Terminal:
    """A program at a terminal, and all that it has written there."""

    def __init__(self, words, env):
        ours, its = pty.openpty()
        self.process = subprocess.Popen([str(word) for word in words], stdout=its, stderr=its, env={**os.environ, **env})
        os.close(its)
        self.parts = []
        self.reader = threading.Thread(target=self._read, args=(ours,), daemon=True)
        self.reader.start()

    def _read(self, terminal):
        try:
            while part := os.read(terminal, 65536):
                self.parts.append(part)
        except OSError:
            pass  # the program has ended
        os.close(terminal)

    def text(self):
        return b"".join(self.parts).decode(errors="replace")

    def end(self, how):
        self.process.send_signal(how)
        status = self.process.wait(30)
        self.reader.join(30)
        return status


def test_up_shows_step_and_duration_of_a_build_on_a_terminal(tmp_path):
    """One updating line shows step, packages, the installer's last line and seconds; no log lines appear."""
    folder = slow_model(tmp_path)
    with PackageIndex(processes.WHEELS, numpy="stalled") as index:
        words = [servers.galatea_binary(), "up", folder, "--http-port=0", "--grpc-port=0", "--metrics-port=0"]
        words.append(f"--backend-config=python,python-interpreter={sys.executable}")
        terminal = Terminal(words, {**variables(index, tmp_path / "home"), **servers.onnx_runtime()})
        # uv has resolved nothing before it has the file.
        line = r"\r\x1b\[K  (uv pip|pip \(1 package\): )[^\r]*\(\d+ s so far\)"
        eventually("the seconds go on", lambda: re.search(line, terminal.text()))
        assert "building the Python environment from" in terminal.text() and "it may take minutes" in terminal.text()
        assert terminal.end(signal.SIGINT) == 0
    assert "\nI1" not in terminal.text(), "no line of the log"


def test_the_log_reports_begin_progress_and_end_of_a_build(tmp_path):
    slow_model(tmp_path)
    with PackageIndex(processes.WHEELS, numpy="stalled") as index:
        server = servers.galatea(tmp_path / "models", env=variables(index, tmp_path / "home"), wait=False)
        assert "it may take minutes" in server.wait_for_line("building the Python environment from")
        assert re.search(r"pip", server.wait_for_line(r"\(\d+ s so far\)"))
        assert server.stop() == 0
    env = {**processes.offline(), "GALATEA_HOME": str(tmp_path / "home")}
    with servers.galatea(tmp_path / "models", "--exit-on-error=false", env=env, wait=False) as server:
        server.wait_for_line(r"is built, in \d+\.\d s")


def test_a_download_reports_its_size_and_that_it_waits(tmp_path):
    write_model(tmp_path / "models", "net", "galatea", "onnxruntime", identity_config(), {"1/model.onnx": ""})
    with SilentIndex() as index:
        env = {**variables(index, tmp_path / "home"), "GALATEA_ONNXRUNTIME_LIB": ""}
        server = servers.galatea(tmp_path / "models", env=env, wait=False)
        server.wait_for_line("ONNX Runtime is not installed; fetching it, a download of 28 MB")
        server.wait_for_line(r"ONNX Runtime.*\(\d+ s so far\)")
        assert server.stop() == 0


def test_a_pytorch_download_reports_its_size_first(tmp_path):
    with SilentIndex() as index:
        env = {**os.environ, **variables(index, tmp_path / "home"), "GALATEA_LIBTORCH": ""}
        words = [str(servers.galatea_binary()), "runtime", "install", "pytorch", "--reinstall"]
        with subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True) as install:
            try:
                assert re.match(r"fetching PyTorch \S+, a download of 539 MB", install.stderr.readline())
                eventually("the index is asked", lambda: index.asked)
            finally:
                install.kill()
    write_model(tmp_path / "models", "net", "galatea", "pytorch", identity_config(), {"1/model.pt": ""})
    if not servers.has_libtorch():
        env = {"GALATEA_HOME": str(tmp_path / "home"), "GALATEA_LIBTORCH": ""}
        with servers.galatea(tmp_path / "models", env=env, wait=False) as server:
            server.wait_for_line(r"run `galatea runtime install pytorch` \(a download of 539 MB\)")
