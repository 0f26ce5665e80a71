"""Memory, descriptors and threads of the server over time, read from /proc."""

import dataclasses
import os
import threading
import time
from pathlib import Path

INTERVAL = 0.05
MB = 1024 * 1024


@dataclasses.dataclass
class Use:
    """What one process holds."""

    rss_mb: float = 0
    descriptors: int = 0
    threads: int = 0

    def most(self, other):
        return Use(*(max(a, b) for a, b in zip(dataclasses.astuple(self), dataclasses.astuple(other))))


def fields(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def use_of(pid):
    """None once the process has ended."""
    try:
        status = fields(pid)
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
        return Use(kilobytes(status["VmRSS"]) / 1024, descriptors, int(status["Threads"]))
    except (OSError, KeyError):
        return None


def kilobytes(text):
    return int(text.split()[0])


def cpu_seconds(pid):
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


class Watcher(threading.Thread):
    """Keeps the peak. `bound`: bytes of memory at which the process is ended, where no cgroup does that."""

    def __init__(self, pid, bound=None):
        super().__init__(daemon=True)
        self.pid, self.bound = pid, bound
        self.peak = Use()
        self._done = threading.Event()
        # The kernel's own record of the most memory held misses nothing between two looks; it starts again here.
        try:
            Path(f"/proc/{pid}/clear_refs").write_text("5")
        except OSError:
            pass

    def run(self):
        while not self._done.wait(INTERVAL):
            self.look()

    def look(self):
        now = use_of(self.pid)
        if now is None:
            return
        try:
            now.rss_mb = max(now.rss_mb, kilobytes(fields(self.pid)["VmHWM"]) / 1024)
        except (OSError, KeyError):
            pass
        self.peak = self.peak.most(now)
        if self.bound and now.rss_mb * MB > self.bound:
            os.kill(self.pid, 9)

    def stop(self):
        self.look()
        self._done.set()
        self.join()
        return self.peak


def settled(pid, is_settled, limit):
    """(what the process holds, seconds) as soon as it is as wanted, or what it holds when the time is up."""
    begin = time.monotonic()
    while True:
        now = use_of(pid)
        waited = time.monotonic() - begin
        if now is None or is_settled(now) or waited > limit:
            return now, waited
        time.sleep(0.2)
