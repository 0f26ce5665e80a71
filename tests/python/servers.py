"""Starts the server under test, or the real Triton, and follows its log."""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "target/peers"
START_LIMIT = 300
STARTED = re.compile(r"Started (HTTPService|GRPCInferenceService|Metrics Service) at ([^\"\s]+)")


def galatea_binary():
    """The program under test: $GALATEA, else the newest build in target."""
    if "GALATEA" in os.environ:
        return Path(os.environ["GALATEA"])
    builds = [ROOT / "target" / kind / "galatea" for kind in ("release", "debug")]
    return max((b for b in builds if b.exists()), key=lambda b: b.stat().st_mtime, default=builds[0])


def has_triton():
    return (PEERS / "triton/server/bin/tritonserver").exists() and (PEERS / "triton.installed").exists()


def has_libtorch():
    """Named, Debian's, or installed by `galatea runtime install pytorch`."""
    home = Path(os.environ.get("GALATEA_HOME", Path.home() / ".local/share/galatea"))
    return (
        "GALATEA_LIBTORCH" in os.environ
        or Path("/usr/include/torch/script.h").exists()
        or any(home.glob("runtimes/pytorch/*/lib/libtorch_cpu.so"))
    )


def has_perf_analyzer():
    return (PEERS / "perf_analyzer.installed").exists()


def perf_analyzer(*args, timeout=300):
    """Runs the real perf_analyzer; its report as text."""
    home = PEERS / "perf_analyzer"
    run = subprocess.run(
        [home / "bin/perf_analyzer", *map(str, args)],
        env={**os.environ, "LD_LIBRARY_PATH": str(home / "lib")},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout,
    )
    assert run.returncode == 0, run.stdout
    return run.stdout


def cpu_ticks(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def descendants(pid):
    """Process numbers of the children, their children and so on."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found += [child, *descendants(child)]
    return found


def note_start(command):
    """Adds a line to the file that counts the servers that have started, for `cargo xtask suite-report`."""
    if "GALATEA_TEST_STARTS" in os.environ:
        test = os.environ.get("PYTEST_CURRENT_TEST", "(collection)").removesuffix(" (setup)").removesuffix(" (call)")
        with open(os.environ["GALATEA_TEST_STARTS"], "a", encoding="utf-8") as file:
            flags = [str(part) for part in command[1:] if not re.match("--(http|grpc|metrics)-port|--model-(repository|store)", str(part))]
            file.write(f"{Path(str(command[0])).name}\t{test}\t{' '.join(flags)}\n")


class Server:
    """A running server: `http`, `grpc` and `metrics` are its addresses, `log` its lines so far."""

    def __init__(self, command, env=None, services=3, wait=True, shared_memory=None):
        # Prefix of the names a real Triton uses in /dev/shm. It needs seconds for each Python model to end in
        # order, and leaves processes and these names behind when it does not: we end all of it at once.
        self._shared_memory = shared_memory
        self.log = []
        # The first line that belongs to the test that has this server now, where tests share it.
        self.log_begins = 0
        self._changed = threading.Condition()
        self._closed = False
        self.addresses = {}
        self._command = command
        self.process = subprocess.Popen(
            [str(part) for part in command], env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            start_new_session=shared_memory is not None,
        )
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()
        if wait:
            try:
                self.wait(lambda: len(self.addresses) >= services, "the services to start")
            except BaseException:
                self.stop()
                raise

    @property
    def pid(self):
        return self.process.pid

    @property
    def http(self):
        return self.addresses["HTTPService"]

    @property
    def grpc(self):
        return self.addresses["GRPCInferenceService"]

    @property
    def metrics(self):
        return self.addresses["Metrics Service"]

    def _follow(self):
        for line in self.process.stdout:
            started = STARTED.search(line)
            with self._changed:
                self.log.append(line.rstrip("\n"))
                if started:
                    if not self.addresses:
                        note_start(self._command)
                    self.addresses[started[1]] = started[2]
                self._changed.notify_all()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self, happened, what, timeout=START_LIMIT):
        """Waits until `happened()` holds; it is asked again at every log line."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while not happened():
                left = deadline - time.monotonic()
                if self._closed or left <= 0:
                    raise AssertionError(f"waited in vain for {what}; log:\n" + "\n".join(self.log[-60:]))
                self._changed.wait(left)

    def wait_for_line(self, pattern, timeout=START_LIMIT):
        """The first log line that matches, waited for."""
        found = []

        def seen():
            found[:] = [line for line in self.log[self.log_begins :] if re.search(pattern, line)]
            return bool(found)

        self.wait(seen, f"a line like {pattern!r}", timeout)
        return found[0]

    def wait_for_exit(self, timeout=60):
        """The exit status; the log is complete afterwards."""
        status = self.process.wait(timeout)
        if self._shared_memory is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            for name in Path("/dev/shm").glob(f"{self._shared_memory}*"):
                name.unlink(missing_ok=True)
        self._reader.join(timeout)
        return status

    def text(self):
        with self._changed:
            return "\n".join(self.log[self.log_begins :])

    def cpu_seconds(self):
        """User and system time so far of the process and of the workers it started."""
        return sum(map(cpu_ticks, [self.pid, *descendants(self.pid)])) / os.sysconf("SC_CLK_TCK")

    def rss_mb(self):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")

    def stop(self, how=signal.SIGTERM, timeout=60):
        if self.process.poll() is None:
            self.process.send_signal(how if self._shared_memory is None else signal.SIGKILL)
        try:
            return self.wait_for_exit(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.wait_for_exit()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def galatea(repository, *flags, env=None, through=(), **options):
    """Our server on free ports; `through` is a command that starts it under special circumstances."""
    command = [
        *through, galatea_binary(), "serve", f"--model-repository={repository}",
        "--http-port=0", "--grpc-port=0", "--metrics-port=0",
        "--http-address=127.0.0.1", "--grpc-address=127.0.0.1", f"--backend-config=python,python-interpreter={sys.executable}", *flags,
    ]
    return Server(command, {**onnx_runtime(), **(env or {})}, **options)


def onnx_runtime():
    """The library the tests compare with in-process: the one inside the Python package."""
    import importlib.util

    package = importlib.util.find_spec("onnxruntime")
    if package is None or "GALATEA_ONNXRUNTIME_LIB" in os.environ:
        return {}
    libraries = sorted(Path(package.origin).parent.glob("capi/libonnxruntime.so.*"))
    return {"GALATEA_ONNXRUNTIME_LIB": str(libraries[0])} if libraries else {}


def triton(repository, *flags, env=None, through=(), **options):
    """The real Triton; it cannot say which free port it took, so we look for one first."""
    assert os.environ.get("GALATEA_TEST_TIER") != "commit", "the tier commit does not ask the real Triton: mark the test `peers`"
    if not has_triton():
        import pytest

        pytest.skip("the real Triton is not installed here")
    home = PEERS / "triton"
    server = home / "server"
    ports = free_ports(3)
    prefix = f"galatea_test_{ports[0]}_"
    command = [
        *through, server / "bin/tritonserver", f"--model-repository={repository}",
        f"--backend-directory={server}/backends", f"--cache-directory={server}/caches",
        "--http-address=127.0.0.1", "--grpc-address=127.0.0.1",
        f"--http-port={ports[0]}", f"--grpc-port={ports[1]}", f"--metrics-port={ports[2]}",
        f"--backend-config=python,shm-region-prefix-name={prefix}", *flags,
    ]
    environment = triton_environment()
    return Server(command, {**environment, **(env or {})}, shared_memory=prefix, **options)


def triton_environment():
    """What the stubs of Triton's Python backend need."""
    home = PEERS / "triton"
    packages = sorted((home / "venv/lib").glob("python*/site-packages"))
    return {
        "PATH": f"{home}/venv/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(packages[0]),
        "LD_LIBRARY_PATH": f"{home}/lib",
        "TRITON_SERVER_CPU_ONLY": "1",
    }


def library(repository, *flags, env=None, **options):
    """Our server with Triton's own Python backend: the untouched libtriton_python.so runs the models."""
    if not has_triton():
        import pytest

        pytest.skip("the real Triton is not installed here")
    flags = (f"--backend-directory={PEERS}/triton/server/backends", "--backend-config=python,library=triton", *flags)
    return galatea(repository, *flags, env={**triton_environment(), **(env or {})}, **options)


def free_ports(count):
    """Below the range the system takes ports of connections from; each process of the tests has its own thousands."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = 12000 + 4000 * (process % 5)
    found = []
    while len(found) < count:
        port = first + random.randrange(4000)
        with socket.socket() as holder, contextlib.suppress(OSError):
            holder.bind(("127.0.0.1", port))
            found += [port] if port not in found else []
    return found


TARGETS = {"galatea": galatea, "triton": triton, "library": library}

if __name__ == "__main__":
    with TARGETS[sys.argv[1]](*sys.argv[2:]) as running:
        print(running.addresses, flush=True)
        signal.pause()
