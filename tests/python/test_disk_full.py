"""A full disk while a model's environment is built: its load fails with that reason, other models go on."""

import functools
import shutil
import subprocess

import pytest

import clients
import processes
import tiers
from repositories import add_sub_config, write_model
from test_chaos import FACTOR, GRACE, Asker, number
from test_python_workers import IN_OUT, RUNNER, write
from waiting import eventually

pytestmark = tiers.measure

# Made in a mount namespace of the server's own: it is gone with the server, however that ends.
MOUNT = 'mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"'
NAMESPACES = (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"])
EXPLICIT = ["--model-control-mode=explicit", "--load-model=steady", "--load-model=simple"]


@functools.cache
def namespace():
    """The command that may mount here: as root, or as anybody where the kernel lets them; None if neither."""
    probe = ["sh", "-c", MOUNT, "sh", "1m", "/mnt", "true"]
    return next((c for c in NAMESPACES if shutil.which("unshare") and subprocess.run([*c, *probe], capture_output=True).returncode == 0), None)


def small_disk(size):
    """A command that starts another with a data folder of that size."""
    return [*namespace(), "sh", "-c", MOUNT, "sh", size]


def small_files(size):
    """As on a disk with a quota: no file may get larger, in kilobytes. Needs no rights."""
    return ["sh", "-c", 'ulimit -f "$(($1 * 2))" && shift 2 && exec "$@"', "sh", size]


FULL = "no space left: '{home}/python-environments/"
SMALL_DISKS = [(small_disk, "2m", FULL), (small_disk, "32m", FULL)]
CASES = SMALL_DISKS if namespace() else [(small_files, "8192", "File too large")]


@pytest.mark.parametrize(("circumstances", "size", "reason"), CASES, ids=[size for _, size, _ in CASES])
def test_a_full_disk_fails_only_the_environment_build(tmp_path, serve, circumstances, size, reason):
    home, repository = tmp_path / "home", tmp_path / "models"
    home.mkdir()
    for name in ("steady", "unbuildable"):
        write(repository, name, RUNNER, IN_OUT)
    (repository / "unbuildable/requirements.txt").write_text("numpy\n")
    write_model(repository, "simple", "galatea", "add_sub", add_sub_config())
    server = serve(
        repository, *EXPLICIT, through=[*circumstances(size), home],
        env={**processes.offline(), "GALATEA_HOME": str(home)},
    )
    others = {"steady": number(0), "simple": clients.pair_json()}
    askers = [Asker(server, name, body) for name, body in others.items()]
    for asker in askers:
        asker.start()
    eventually("each model has answered 300 times", lambda: min(len(asker.times) for asker in askers) > 300)
    marks = [len(asker.times) for asker in askers]
    status, _, answer = clients.ask(server.http, "POST", "/v2/repository/models/unbuildable/load", {})
    eventually("each has answered 100 times more", lambda: all(len(asker.times) > mark + 100 for asker, mark in zip(askers, marks)))
    for asker in askers:
        asker.done.set()
        asker.join(30)
    # Clients read why, the log says where too.
    assert status != 200 and reason.partition("'")[0] in answer.decode() and str(home) not in answer.decode(), answer
    assert reason.format(home=home) in server.text()
    for asker, mark in zip(askers, marks):
        assert asker.failed == []
        assert asker.p99(mark) < FACTOR * asker.p99(0, mark) + GRACE
    assert clients.ask(server.http, "GET", "/v2/models/unbuildable/ready")[0] != 200
