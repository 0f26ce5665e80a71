"""What became of the requests of one kind of client."""

import threading


class Wrong(Exception):
    """An answer that is not what was asked for."""


class Lost(Exception):
    """No answer."""


class Refused(Exception):
    """An answer that says no where the server may say so."""


class Tally:
    """Counts, and some of what went wrong."""

    KEPT = 5

    def __init__(self):
        self._lock = threading.Lock()
        self.sent = 0
        self.counts = dict.fromkeys(("right", "refused", "wrong", "lost"), 0)
        self.seconds = []
        self.faults = []

    def right(self, seconds):
        with self._lock:
            self._count("right")
            self.seconds.append(seconds)

    def refused(self, _):
        with self._lock:
            self._count("refused")

    def wrong(self, text):
        self._fault("wrong", text)

    def lost(self, text):
        self._fault("lost", text)

    def _fault(self, what, text):
        with self._lock:
            self._count(what)
            if len(self.faults) < self.KEPT:
                self.faults.append(f"{what}: {text[:300]}")

    def _count(self, what):
        self.sent += 1
        self.counts[what] += 1

    def percentile(self, part):
        """Milliseconds."""
        with self._lock:
            ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None
