"""The code that libraries for Triton call, under valgrind: it reads and writes only memory that it has, and loses none.

An address sanitizer needs a compiler of the night; valgrind checks the same of the stock one, and of the libraries too."""

import json
import os
import shutil
import subprocess

import pytest

import servers
import tiers

CRATES = ["galatea-backend-c", "galatea-triton-c", "galatea-triton-cache", "galatea-triton-agent"]


def test_programs(crate):
    """The compiled tests of a crate, with the folder that they run in."""
    command = ["cargo", "test", "--package", crate, "--no-run", "--message-format=json"]
    built = subprocess.run(command, cwd=servers.ROOT, capture_output=True, text=True, timeout=1200)
    assert built.returncode == 0, built.stderr
    artifacts = [json.loads(line) for line in built.stdout.splitlines()]
    made = [one for one in artifacts if one.get("executable") and one["profile"]["test"]]
    return [(one["executable"], os.path.dirname(one["manifest_path"])) for one in made]


test_programs.__test__ = False


@tiers.measure
@pytest.mark.parametrize("crate", CRATES)
def test_the_host_of_libraries_uses_only_its_own_memory(crate):
    valgrind = shutil.which("valgrind")
    assert valgrind, "valgrind is missing: install the Debian package of that name"
    options = ["--error-exitcode=9", "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite", "--quiet"]
    programs = test_programs(crate)
    assert programs
    for program, folder in programs:
        environment = {**os.environ, "CARGO_MANIFEST_DIR": folder}
        done = subprocess.run([valgrind, *options, program, "--test-threads=1"], cwd=folder, env=environment, capture_output=True, text=True, timeout=1200)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
        assert "test result: ok" in done.stdout
