"""Control groups that give a process a part of a processor, where the machine allows them."""

import contextlib
from pathlib import Path

PERIOD_US = 20_000
# Groups of version 2, and of version 1 with the controller `cpu`.
ROOTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/cpu"))
# A group gets its part also on a busy machine.
WEIGHTS = {"cpu.weight": "10000", "cpu.shares": "100000"}


class Group:
    """A control group that may use so much of one processor."""

    def __init__(self, name, part):
        self.folder = root() / name
        self.folder.mkdir(exist_ok=True)
        quota = int(part * PERIOD_US)
        if (self.folder / "cpu.max").exists():
            (self.folder / "cpu.max").write_text(f"{quota} {PERIOD_US}")
        else:
            (self.folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.folder / "cpu.cfs_quota_us").write_text(str(quota))
        for name, weight in WEIGHTS.items():
            if (self.folder / name).exists():
                (self.folder / name).write_text(weight)

    def add(self, pids):
        for pid in pids:
            (self.folder / "cgroup.procs").write_text(str(pid))

    def remove(self):
        """Its processes have ended."""
        self.folder.rmdir()


def root():
    """The folder in which groups with a part of a processor can be made; nothing where there is none."""
    for folder in reversed(ROOTS):
        probe = folder / "galatea-probe"
        with contextlib.suppress(OSError):
            probe.mkdir()
            fits = (probe / "cpu.max").exists() or (probe / "cpu.cfs_quota_us").exists()
            probe.rmdir()
            if fits:
                return folder
    return None
