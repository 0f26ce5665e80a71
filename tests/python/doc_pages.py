"""The blocks of the pages of the documentation, and how a page's commands are run as they stand there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import servers

ROOT = servers.ROOT
FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^ *```$", re.M | re.S)
# What a block without a language must not begin with: it would be a command that nobody runs.
COMMAND = re.compile(r"(\$ )?(sudo |[\w./]*/)?(galatea|tritonserver|cargo|curl|pip3?|python3?|docker|podman|kubectl|helm|npm|mkdir|apt-get|systemctl)\b")
# A command that stays: the rest of the page is about the server that it starts.
STAYS = re.compile(r"(\S*galatea serve|\S*tritonserver)\s")
# The names that pages give to servers and their ports; the service whose address takes the place of each.
ADDRESSES = {
    "localhost:8000": "HTTPService", "triton:8000": "HTTPService", "galatea:8000": "HTTPService",
    "localhost:8001": "GRPCInferenceService", "host:8001": "GRPCInferenceService",
    "localhost:8002": "Metrics Service",
}
FREE = {
    "--http-port": "0", "--grpc-port": "0", "--metrics-port": "0", "--http-address": "127.0.0.1", "--grpc-address": "127.0.0.1",
}
# The program under test; its load tool takes short windows, and any agreement of them.
WRAPPER = """\
#!/bin/bash
if [ "$1" = perf ]; then
  shift
  exec -a "$0" {program} perf --measurement-interval=150 --stability-percentage=999 -u "$PERF_SERVER" "$@"
fi
exec -a "$0" {program} "$@"
"""


class Block:
    def __init__(self, page, kind, text, before):
        self.page, self.kind, self.text = page, kind, text
        self.first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        # A Python block is the file that its first line or the words before it name.
        named = re.match(r"# (\w+\.py)$", self.first) or re.search(r"`(\w+\.py)`:\n\n$", before)
        self.file = named[1] if named else None

    def __repr__(self):
        return f"{self.page}: {self.first}"


def pages():
    """The pages for people who use the program, from the root of the checkout on."""
    found = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.md"), *(ROOT / "examples/pipelines").glob("*.md"), *(ROOT / "examples/seeds").glob("*.md"), ROOT / "examples/clients/README.md", ROOT / "examples/sequences/README.md"]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def blocks(page):
    text = (ROOT / page).read_text()
    found = []
    for match in FENCE.finditer(text):
        indent = match[1]
        body = "".join(line.removeprefix(indent) for line in match[3].splitlines(keepends=True))
        found.append(Block(page, match[2], body, text[: match.start()]))
    return found


class Place:
    """A folder in which the blocks of a page are run one after the other, and the server that they started last."""

    def __init__(self, folder, tools):
        self.folder, self.tools, self.server, self.is_shared = folder, tools, None, False
        tools.mkdir(parents=True, exist_ok=True)
        wrapper = tools / "galatea"
        wrapper.write_text(WRAPPER.format(program=shlex.quote(str(servers.galatea_binary().resolve()))))
        wrapper.chmod(0o755)
        python = Path(sys.executable).parent
        self.environment = {**os.environ, **servers.onnx_runtime(), "PATH": f"{tools}:{python}:{os.environ['PATH']}"}

    def serve(self, command):
        """Starts a server by the words of a page, at ports of its own, and waits until it serves."""
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        program = shutil.which(words[0], path=f"{self.environment['PATH']}:{self.folder}") or self.folder / words[0]
        given = {word.split("=")[0] for word in words}
        more = [f"{flag}={value}" for flag, value in FREE.items() if flag not in given]
        self.stop()
        here = os.getcwd()
        os.chdir(self.folder)
        try:
            python = f"--backend-config=python,python-interpreter={sys.executable}"
            self.server = servers.Server([program, *words[1:], *more, python], self.environment)
        finally:
            os.chdir(here)
        self.environment["PERF_SERVER"] = self.server.http

    def bash(self, text):
        """What a script prints, and its status."""
        for name, service in ADDRESSES.items() if self.server else ():
            text = text.replace(name, self.server.addresses[service])
        done = subprocess.run(["bash", "-ec", text], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.stdout, done.returncode

    def run(self, block):
        """Runs a block as it is meant; an assertion tells what is wrong."""
        if block.kind == "python" and block.file:
            (self.folder / block.file).write_text(block.text)
        elif block.kind == "python":
            (self.folder / "block.py").write_text(block.text)
            self.succeeds(block, "python block.py")
        elif block.kind == "sh" and STAYS.match(block.text):
            self.serve(block.text)
        elif block.kind == "sh":
            self.succeeds(block, block.text)
        else:
            for command, expected in typed(block.text):
                printed, _ = self.bash(command)
                assert is_like(printed, expected), f"{block}\n{command}\nprinted:\n{printed}\nthe page has:\n{expected}"

    def succeeds(self, block, text):
        printed, status = self.bash(text)
        assert status == 0, f"{block}: exit status {status}\n{printed}"

    def use(self, server):
        """Asks a server that others use too, until the page starts one of its own."""
        self.server, self.is_shared = server, True
        self.environment["PERF_SERVER"] = server.http

    def stop(self):
        if self.server and not self.is_shared:
            self.server.stop()
        self.server, self.is_shared = None, False


def typed(text):
    """The commands of a session at a terminal, each with the lines that it prints."""
    commands = re.split(r"^\$ ", text, flags=re.M)
    assert commands[0] == "", "a session begins with a command"
    for part in commands[1:]:
        lines = part.splitlines(keepends=True)
        end = next(i for i in range(1, len(lines) + 1) if is_whole("".join(lines[:i])))
        yield "".join(lines[:end]), "".join(lines[end:])


def is_whole(command):
    """Whether a command ends here: no quote is open, and no line goes on."""
    try:
        shlex.split(command)
    except ValueError:
        return False
    return not command.endswith("\\\n")


def is_like(printed, expected):
    """Whether words are those of the page, where `...` is anything; a page may break lines elsewhere."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in expected.strip().split("..."))
    return re.fullmatch(pattern, " ".join(printed.split())) is not None
