"""What the server holds, over the whole run."""

import threading
import time

import servers
import watch

INTERVAL = 1.0
# Of the run: from here on it counts as warm. What it held in the first such part is compared with the last.
WARM = 0.2
GROWTH = 1.05
# Less than this is no growth: pages that a thread has touched for the first time.
GROWTH_MB = 8


class Recorder(threading.Thread):
    """Looks once a second."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid = pid
        self.begin = time.monotonic()
        self.looks = []
        self.processes_before = len(servers.descendants(pid))
        self.before = watch.use_of(pid)
        self._done = threading.Event()

    def run(self):
        while not self._done.wait(INTERVAL):
            now = watch.use_of(self.pid)
            if now is not None:
                self.looks.append((time.monotonic() - self.begin, now))

    def stop(self):
        self._done.set()
        self.join()

    def line(self):
        if not self.looks:
            return "nothing seen yet"
        seconds, now = self.looks[-1]
        return f"{seconds:.0f} s: {now.rss_mb:.0f} MB, {now.descriptors} descriptors, {now.threads} threads"

    def mean_mb(self, begin, end):
        """Mean memory of a part of the run, both ends as parts of it."""
        whole = self.looks[-1][0] if self.looks else 0
        seen = [use.rss_mb for seconds, use in self.looks if begin * whole <= seconds <= end * whole]
        return sum(seen) / len(seen) if seen else 0.0

    def peak(self):
        peak = watch.Use()
        for _, use in self.looks:
            peak = peak.most(use)
        return peak

    def faults(self, after, processes):
        warm, last = self.mean_mb(WARM, 2 * WARM), self.mean_mb(1 - WARM, 1)
        if last > max(GROWTH * warm, warm + GROWTH_MB):
            yield f"memory grew from {warm:.1f} to {last:.1f} MB"
        # Connections that clients keep are gone by now; a few descriptors are made at the first use of something.
        if after.descriptors > self.before.descriptors + 16:
            yield f"descriptors grew from {self.before.descriptors} to {after.descriptors}"
        if after.threads > self.before.threads + 24:
            yield f"threads grew from {self.before.threads} to {after.threads}"
        if processes != self.processes_before:
            yield f"{self.processes_before} processes of models before, {processes} after"
