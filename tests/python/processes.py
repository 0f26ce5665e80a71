"""What a server's processes are and hold, from /proc; and Pythons of several versions."""

import concurrent.futures
import contextlib
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import servers

WHEELS = servers.PEERS / "wheels/numpy"
PIPELINE_WHEELS = servers.PEERS / "wheels/pipelines"
VENVS = servers.PEERS / "pythons"
NUMPY = servers.ROOT / "tests/peers/numpy.txt"
OLDEST, NEWEST = (3, 9), (3, 14)


def status(pid):
    """Fields of /proc/PID/status; nothing if there is no such process."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def children(pid):
    """Processes whose parent is `pid`, ended ones that were not waited for included."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        if status(folder.name).get("PPid") == str(pid):
            found.append(int(folder.name))
    return sorted(found)


def descendants(pid):
    found = children(pid)
    return found + [deeper for child in found for deeper in descendants(child)]


def signal_if_there(pid, number):
    """False where the process has ended by itself meanwhile."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def is_zombie(pid):
    return status(pid).get("State", "").startswith("Z")


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def private_mb(pid):
    """Memory that is the process's own: what would be free if it ended."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def rss_mb(pid):
    return int(status(pid)["VmRSS"].split()[0]) / 1024


def wait_for_end(pids, timeout):
    """Those of the processes that still run after `timeout` seconds."""
    left = []
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([handle], [], [], timeout)[0]:
                left.append(pid)
        finally:
            os.close(handle)
    return left


def named_memory(pid):
    """Memory that has a name in /dev/shm and would stay there if the process were killed."""
    return [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "/dev/shm/" in line]


def running(pid):
    """Children that have not ended."""
    return [child for child in children(pid) if not is_zombie(child)]


def read_all(terminal):
    """What was written to it; the end of the last writer is an error on a terminal."""
    text = b""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            text += part
    os.close(terminal)
    return text.decode().replace("\r\n", "\n").splitlines()


def shared_memory():
    """Names in /dev/shm but for those of a real Triton and of the load tools, which may run beside."""
    others = ("galatea_test_", "tpb_", "triton_python", "INPUT", "OUTPUT")
    return {name for name in os.listdir("/dev/shm") if not name.startswith(others)}


# ---- Pythons


def interpreters():
    """One interpreter for each minor version found under pyenv and on PATH, as {(3, 11): path}."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = sorted(root.glob("versions/3.*/bin/python")) + [Path(sys.executable)]
    candidates += [Path(path) for minor in range(9, 15) if (path := shutil.which(f"python3.{minor}"))]
    found = {}
    for path in candidates:
        version = version_of(path)
        if version and OLDEST <= version <= NEWEST:
            found.setdefault(version, path)
    return dict(sorted(found.items()))


def version_of(python):
    probe = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    run = subprocess.run([python, "-c", probe], capture_output=True, text=True)
    return tuple(map(int, run.stdout.split())) if run.returncode == 0 else None


def prepare():
    """Virtual environments with numpy for all Pythons here, and the wheels to build them; part of the setup.

    Those of different Pythons at once: most of it is waiting for packages. One that cannot be made is reported and left out."""
    WHEELS.mkdir(parents=True, exist_ok=True)
    found = interpreters()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        faults = dict(zip(found, pool.map(prepare_one, found.items())))
    missing = [minor for minor in range(OLDEST[1], NEWEST[1] + 1) if (3, minor) not in found]
    print("Python", ", ".join("{}.{}".format(*v) for v in faults if not faults[v]), "ready for models", flush=True)
    if missing:
        print("not on this machine, so not tested: Python", ", ".join(f"3.{minor}" for minor in missing))
    for version, fault in faults.items():
        if fault:
            print("without Python {}.{}:".format(*version), fault)
    if not faults or all(faults.values()):
        sys.exit("no Python could be prepared for models")


def prepare_one(item):
    """Nothing if it went well, else the last lines of the output."""
    version, python = item
    folder = VENVS / "{}.{}".format(*version)
    shutil.rmtree(folder, ignore_errors=True)
    pip = [folder / "bin/python", "-m", "pip", "--disable-pip-version-check"]
    for command in (
        [python, "-m", "venv", folder],
        [*pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", WHEELS, "-r", NUMPY],
        [*pip, "install", "--quiet", "--no-deps", "--no-index", "--find-links", WHEELS, "-r", NUMPY],
    ):
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if run.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            return run.stdout.strip()[-600:] or f"exit status {run.returncode}"
    return None


def venvs():
    """The prepared environments, as {(3, 11): folder}."""
    return {tuple(map(int, f.name.split("."))): f for f in sorted(VENVS.glob("3.*"), key=lambda f: int(f.name[2:]))}


def offline(wheels=WHEELS):
    """Environment variables with which pip takes packages only from what the setup fetched."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": "/dev/null"}


if __name__ == "__main__":
    prepare()
