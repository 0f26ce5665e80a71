"""What the scripts of this folder share: a folder to work in, the server, commands as a document writes them, checks.

A script copies its model repository into a working folder, makes the models there, and plays the document's
commands. Ports are free ones, so that several scripts can run at once: where a document says localhost:8000,
the command runs with the port that was taken. The name `tritonserver` and the name `perf_analyzer` are links to
galatea in the working folder's `bin`.
"""

import argparse
import contextlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE_MODELS = ROOT / "examples/models"
STARTED = re.compile(r"Started (HTTPService|GRPCInferenceService|Metrics Service) at ([^\"\s]+)")
# A slow machine may build a Python environment in this time.
START_LIMIT = 600
COMMAND_LIMIT = 300
# Added to the load tool's lines unless --long is given: three short windows, whatever they show.
SHORT_WINDOWS = "-p 300 -s 1000000 -r 3"
SHOWN_LINES = 24


class Failed(Exception):
    """A step without which the rest makes no sense."""


class Walkthrough:
    def __init__(self, folder, is_long):
        self.folder, self.is_long = folder, is_long
        self.faults, self.checks, self.server = [], 0, None
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        for name in ("tritonserver", "perf_analyzer"):
            (self.bin / name).symlink_to(galatea_binary())
        # Through a script, not a link: a virtual environment is known by where its interpreter lies.
        (self.bin / "python3").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        (self.bin / "python3").chmod(0o755)
        self.env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", **onnx_runtime()}

    # ---- what the reader sees

    @staticmethod
    def title(text):
        print(f"\n== {text}", flush=True)

    @staticmethod
    def say(text):
        print(text, flush=True)

    def check(self, what, holds, seen=None):
        """Says whether `what` holds; the script goes on and fails at its end if it does not."""
        self.checks += 1
        if not holds:
            self.faults.append(what)
        self.say(
            f"   {'ok' if holds else 'NOT SO'}: {what}"
            + (f"\n   seen: {seen}" if seen is not None and not holds else "")
        )

    @staticmethod
    def not_run(command, needs):
        """A command of the document that cannot run here."""
        print(f"$ {command}\n   not run: needs {needs}", flush=True)

    # ---- commands

    def run(self, line, more="", code=0, shown=SHOWN_LINES):
        """Runs a command line of the document in the working folder, with `more` after it; what it printed."""
        words = shlex.split(self.with_our_ports(f"{line} {more}"))
        self.say(f"$ {line}" + (f"   [+ {more}]" if more else ""))
        if shutil.which(words[0], path=self.env["PATH"]) is None:
            raise Failed(
                f"{words[0]} is not installed: `cargo xtask setup` does it, or on Debian: "
                f"sudo apt-get install {PACKAGES.get(words[0], words[0])}"
            )
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
            timeout=COMMAND_LIMIT,
        )
        print_some(done.stdout, shown)
        if done.returncode != code:
            self.check(f"exit status {code}", False, done.returncode)
        return done.stdout

    def perf(self, line, more="", shown=SHOWN_LINES):
        """A line of the load tool; it is told where the server is, and to be quick about it."""
        address = self.server.grpc if re.search(r"-i grpc\b", line) else self.server.http
        where = "" if " -u " in line else f"-u {address} "
        return self.run(line, where + more + ("" if self.is_long else f" {SHORT_WINDOWS}"), shown=shown)

    @staticmethod
    def measured(report):
        """[(load, infer/s, microseconds)] of the lines that a report of the load tool ends with."""
        pattern = r"^(Concurrency: \d+), throughput: ([\d.]+) infer/sec, latency (\d+) usec"
        return [(load, float(rate), int(took)) for load, rate, took in re.findall(pattern, report, re.MULTILINE)]

    def check_measured(self, report, loads):
        """The report must end with these loads, each with a rate and a latency."""
        found = self.measured(report)
        self.check(
            f"the report ends with throughput and latency of {', '.join(loads)}",
            [load for load, *_ in found] == loads and all(rate > 0 and took > 0 for _, rate, took in found),
            found,
        )

    def with_our_ports(self, line):
        if self.server is None:
            return line
        named = {"8000": self.server.http, "8001": self.server.grpc, "8002": self.server.metrics}
        line = line.replace("<ip_address>:<port>", self.server.http)
        return re.sub(r"(?:localhost|127\.0\.0\.1):(800[012])\b", lambda found: named[found[1]], line)

    # ---- the server

    @contextlib.contextmanager
    def serving(self, line, more="", services=3):
        """The document's line that starts the server; it runs until the block ends. /models is the repository."""
        self.server = self.start(line, more)
        try:
            self.server.wait_for_services(services)
            yield self.server
        finally:
            self.server.stop()
            self.server = None

    def start(self, line, more=""):
        self.say(f"$ {line}" + (f"   [+ {more}]" if more else ""))
        words = [word.replace("=/models", f"={self.folder / 'model_repository'}") for word in shlex.split(line)]
        ours = [
            "--http-port=0",
            "--grpc-port=0",
            "--metrics-port=0",
            "--http-address=127.0.0.1",
            "--grpc-address=127.0.0.1",
            f"--backend-config=python,python-interpreter={sys.executable}",
        ]
        return Server([self.bin / words[0], *words[1:], *shlex.split(more), *ours], self.env, self.folder)

    def refused(self, line, more=""):
        """A start that must fail: exit status and log."""
        server = self.start(line, more)
        code = server.process.wait(START_LIMIT)
        server.reader.join()
        self.check("the server says why and ends with status 1", code == 1, code)
        return server.text()


def difference(ours, theirs):
    """The largest difference of two arrays, relative where the values are above 1.

    Two processors' kernels add the same numbers in another order, so answers differ by units in the last place, and
    those grow with the value: at 10,000 one of them is 0.001 in single precision.
    """
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if ours.shape != theirs.shape:
        return np.inf
    return float((abs(ours - theirs) / np.maximum(abs(theirs), 1)).max(initial=0))


# Debian's packages of the programs that documents use.
PACKAGES = {"ab": "apache2-utils"}


class Server:
    """The started server; its log is kept in server.log of the working folder."""

    def __init__(self, command, env, folder):
        self.log, self.addresses = [], {}
        self.changed = threading.Condition()
        self.closed = False
        self.process = subprocess.Popen(
            [str(word) for word in command],
            env=env,
            cwd=folder,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.reader = threading.Thread(target=self.follow, args=(folder / "server.log",), daemon=True)
        self.reader.start()

    http = property(lambda self: self.addresses["HTTPService"])
    grpc = property(lambda self: self.addresses["GRPCInferenceService"])
    metrics = property(lambda self: self.addresses["Metrics Service"])

    def follow(self, file):
        with file.open("a") as kept:
            for line in self.process.stdout:
                kept.write(line)
                kept.flush()
                started = STARTED.search(line)
                with self.changed:
                    self.log.append(line.rstrip("\n"))
                    if started:
                        self.addresses[started[1]] = started[2]
                    self.changed.notify_all()
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def wait_for_services(self, count):
        with self.changed:
            if (
                not self.changed.wait_for(lambda: len(self.addresses) >= count or self.closed, START_LIMIT)
                or self.closed
            ):
                raise Failed("the server did not start; its log:\n" + "\n".join(self.log[-40:]))
        print_some("\n".join(line for line in self.log if "Started " in line), 3)

    def text(self):
        with self.changed:
            return "\n".join(self.log)

    def table(self):
        """Rows of the table of models that the log ends with, as [name, version, status]."""
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in self.log if line.startswith("| ")]
        return [row for row in rows[rows.index(["Model", "Version", "Status"]) + 1 :] if len(row) == 3 and row[0]]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join()


def print_some(text, lines):
    """The beginning and the end of a long output."""
    rows = [
        row if len(row) <= 200 else row[:160] + f" ... ({len(row)} characters)" for row in text.rstrip().splitlines()
    ]
    if len(rows) > lines:
        half = lines // 2
        rows[half:-half] = [f"... {len(rows) - 2 * half} lines more"]
    for row in rows:
        print(f"   {row}", flush=True)


def galatea_binary():
    """$GALATEA, else the release build of this checkout."""
    binary = Path(os.environ.get("GALATEA", ROOT / "target/release/galatea")).resolve()
    if not binary.is_file():
        sys.exit(f"there is no {binary}: build it with `cargo build --release`, or name it in $GALATEA")
    return binary


def onnx_runtime():
    """The library inside the Python package, which the answers are compared with; without the package the one that
    `galatea runtime install onnxruntime` has put in its place."""
    package = importlib.util.find_spec("onnxruntime")
    if package is None or "GALATEA_ONNXRUNTIME_LIB" in os.environ:
        return {}
    libraries = sorted(Path(package.origin).parent.glob("capi/libonnxruntime.so.*"))
    return {"GALATEA_ONNXRUNTIME_LIB": str(libraries[0])} if libraries else {}


def main(script, play):
    """Plays a document: `play(walk)` in a folder that has a copy of the script's `model_repository`."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="work in this new folder and leave it there")
    parser.add_argument("--long", action="store_true", help="measure as long as the document's lines say")
    args = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = args.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="galatea-seed-")))
        folder = folder.resolve()
        shutil.copytree(Path(script).parent / "model_repository", folder / "model_repository")
        walk = Walkthrough(folder, args.long)
        try:
            play(walk)
        except Failed as failure:
            walk.faults.append(str(failure))
    if walk.faults:
        sys.exit("\nFAILED:\n" + "\n".join(f"- {fault}" for fault in walk.faults))
    print(f"\nall {walk.checks} checks hold")
