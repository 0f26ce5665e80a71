"""The other client: asks for `simple` and for health all the time, and notes how long each answer took.

A process of its own, so that the attackers' work does not show in its figures. One line to stdout per request:
what, when it began (monotonic seconds), seconds it took, "ok" or what went wrong.

    simple   an inference on a connection that is kept
    health   /v2/health/live on a connection that is kept
    connect  the same on a new connection each time
    metrics  the metrics page on a new connection each time
"""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import threading
import time

PAUSES = {"simple": 0.004, "health": 0.006, "connect": 0.05, "metrics": 0.25}
TIMEOUT = 10
ROW = [1] * 16
BODY = json.dumps({
    "inputs": [{"name": name, "shape": [1, 16], "datatype": "INT32", "data": ROW} for name in ("INPUT0", "INPUT1")]
}).encode()
REQUESTS = {
    "simple": ("POST", "/v2/models/simple/infer", BODY),
    "health": ("GET", "/v2/health/live", None),
    "connect": ("GET", "/v2/health/live", None),
    "metrics": ("GET", "/metrics", None),
}


def one(connection, what):
    connection.request(*REQUESTS[what])
    answer = connection.getresponse()
    answer.read()
    return "ok" if answer.status == 200 else f"status {answer.status}"


def ask(what, address, write):
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT)
    while True:
        begin = time.monotonic()
        try:
            outcome = one(connection, what)
        except (OSError, http.client.HTTPException) as error:
            outcome = type(error).__name__
        write(f"{what} {begin:.6f} {time.monotonic() - begin:.6f} {outcome}\n")
        if what in ("connect", "metrics") or outcome != "ok":
            connection.close()
        time.sleep(PAUSES[what])


def serve(http_address, metrics_address):
    with contextlib.suppress(OSError):
        os.nice(-10)
    lock = threading.Lock()

    def write(line):
        with lock:
            sys.stdout.write(line)
            sys.stdout.flush()

    for what in PAUSES:
        address = metrics_address if what == "metrics" else http_address
        threading.Thread(target=ask, args=(what, address, write), daemon=True).start()
    sys.stdin.read()


class Bystander:
    """Runs the process and keeps its notes as (what, begin, seconds, outcome)."""

    def __init__(self, http_address, metrics_address):
        command = [sys.executable, __file__, http_address, metrics_address]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.notes = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            what, begin, seconds, outcome = line.split(" ", 3)
            self.notes.append((what, float(begin), float(seconds), outcome.strip()))

    def between(self, what, start, end):
        """The requests that were under way between two instants."""
        return [note for note in list(self.notes) if note[0] == what and note[1] < end and note[1] + note[2] > start]

    def latency(self, what, start, end):
        """{"p50", "p99", "max"} in milliseconds, "count" and "failed"."""
        asked = self.between(what, start, end)
        times = sorted(note[2] * 1000 for note in asked if note[3] == "ok")
        found = {"count": len(asked), "failed": len(asked) - len(times)}
        if times:
            found |= {"p50": times[len(times) // 2], "p99": times[int(len(times) * 0.99)], "max": times[-1]}
        return found

    def stop(self):
        self.process.kill()
        self.process.wait()


if __name__ == "__main__":
    serve(*sys.argv[1:3])
