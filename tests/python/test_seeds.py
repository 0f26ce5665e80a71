"""The seed documents' examples, each as a user runs it: its script prints at its end whether everything it checks holds."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

import processes
import servers
import tiers
from test_real_packages import HOME

SEEDS = servers.ROOT / "examples/seeds"
SCRIPTS = sorted(SEEDS.glob("[1-4]-*/run.py"))
# What documents do that only a graphics card, a container engine or an account can do; nothing else may be left out.
EXCUSES = ("GPU", "Docker", "account", "gigabytes")
# What the scripts say when they have asked their TorchScript models, where there is a libtorch for them.
TORCHSCRIPT = {
    "3-repository": "ok: version 2 of the TorchScript model answers",
    "4-course": "The TorchScript models answer as their ONNX twins",
}


pytestmark = tiers.peers


def has_pytorch():
    listed = subprocess.run([servers.galatea_binary(), "runtime", "list"], text=True, capture_output=True).stdout
    return bool(re.search(r"^pytorch .*: /", listed, re.MULTILINE))


def tensorflow():
    """The library that is installed: the script runs with another home, and may download nothing."""
    path = subprocess.run([servers.galatea_binary(), "runtime", "path", "tensorflow"], text=True, capture_output=True)
    return {"GALATEA_TENSORFLOW_LIB": path.stdout.strip()} if path.returncode == 0 else {}


def play(script):
    env = {
        **os.environ,
        **tensorflow(),
        "GALATEA": str(servers.galatea_binary()),
        "GALATEA_HOME": str(HOME),
        **processes.offline(processes.PIPELINE_WHEELS),
    }
    started = subprocess.Popen(
        [sys.executable, script],
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said = started.communicate(timeout=400)[0]
    except subprocess.TimeoutExpired:
        # With the server that it started.
        os.killpg(started.pid, signal.SIGKILL)
        said = started.communicate()[0] + "\nnot done after 180 s"
    return started.returncode, said


def test_every_document_has_its_script():
    assert [script.parent.name[0] for script in SCRIPTS] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.parent.name)
def test_the_document_is_reproduced(script):
    if script.parent.name == "2-handwriting" and shutil.which("ab") is None:
        pytest.skip("ab is not installed")
    code, said = play(script)
    assert code == 0, said[-6000:]
    assert "checks hold" in said.splitlines()[-1] and "NOT SO" not in said
    left_out = [line for line in said.splitlines() if line.strip().startswith("not run: ")]
    if has_pytorch() and script.parent.name in TORCHSCRIPT:
        assert TORCHSCRIPT[script.parent.name] in said, "its TorchScript models were left out"
    assert all(any(excuse in line for excuse in EXCUSES) for line in left_out), left_out


def test_a_wrong_answer_fails_the_script(tmp_path):
    """The script runs with a model that answers something else: it reports that and fails."""
    shutil.copytree(SEEDS, tmp_path / "examples/seeds", ignore=shutil.ignore_patterns("0*", "1*", "2*", "3*"))
    (tmp_path / "examples/models").symlink_to(servers.ROOT / "examples/models")
    models = tmp_path / "examples/seeds/small_models.py"
    right, wrong = "np.exp(factor * rows", "np.exp(2 * factor * rows"
    assert right in models.read_text()
    models.write_text(models.read_text().replace(right, wrong))
    code, said = play(next(tmp_path.glob("examples/seeds/4*/run.py")))
    assert code == 1 and "NOT SO" in said and "FAILED:" in said, said[-3000:]
