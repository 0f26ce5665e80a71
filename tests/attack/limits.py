"""What the server under attack may take of the machine: cores of its own, and a bound on its memory.

The bound is a memory cgroup where we may make one (version 1 or 2). Elsewhere the watcher ends the server when its
memory passes the bound, which is later than a cgroup would but keeps the machine alive.
"""

import contextlib
import os
import shutil
import time
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
SERVER_CORES = 2


def cores():
    """(those of the server, those of everybody else), or None where there are too few to divide."""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) <= SERVER_CORES or shutil.which("taskset") is None:
        return None
    return mine[:SERVER_CORES], mine[SERVER_CORES:]


class MemoryGroup:
    """A cgroup of one server; `folder` is None where none could be made."""

    def __init__(self, limit):
        self.limit = limit
        self.folder = self._version_1() or self._version_2()

    def _version_1(self):
        return self._made(CGROUPS / "memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")

    def _version_2(self):
        controllers = CGROUPS / "cgroup.subtree_control"
        if not controllers.exists() or "memory" not in controllers.read_text().split():
            return None
        return self._made(CGROUPS, "memory.max", "memory.swap.max")

    def _made(self, parent, bound, with_swap):
        folder = parent / f"galatea-attack-{os.getpid()}-{time.monotonic_ns()}"
        try:
            folder.mkdir()
        except OSError:
            return None
        try:
            (folder / bound).write_text(str(self.limit))
        except OSError:
            folder.rmdir()
            return None
        with contextlib.suppress(OSError):
            (folder / with_swap).write_text(str(self.limit) if "memsw" in with_swap else "0")
        return folder

    def kind(self):
        return "memory cgroup" if self.folder else "no cgroup: ended by the watcher"

    def forget_peak(self):
        with contextlib.suppress(OSError, TypeError):
            (self.folder / "memory.max_usage_in_bytes").write_text("0")

    def peak_mb(self):
        """The most memory of the server and its workers together, shared memory included; None if nobody counts it."""
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            with contextlib.suppress(OSError, TypeError):
                return int((self.folder / name).read_text()) / 1e6
        return None

    def command(self):
        """The front of a command line that runs in the group."""
        if self.folder is None:
            return []
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs; exec "$@"', "sh"]

    def remove(self):
        """Once the processes are gone; the kernel takes a moment to see that."""
        deadline = time.monotonic() + 5
        while self.folder and self.folder.exists():
            try:
                self.folder.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.05)


def through(group):
    """The command that starts a server under these limits."""
    divided = cores()
    pinned = ["taskset", "-c", ",".join(map(str, divided[0]))] if divided else []
    return [*group.command(), *pinned]
