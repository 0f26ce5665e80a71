"""Follows the events of the console as its page does."""

import http.client
import json


class Events:
    """The stream of a server: `state` is what a page knows now, `next()` brings the next event into it."""

    def __init__(self, server, headers=None, timeout=20):
        self._connection = http.client.HTTPConnection(server.http, timeout=timeout)
        self._connection.request("GET", "/console/events", headers=headers or {})
        self.reply = self._connection.getresponse()
        self.status = self.reply.status
        self.models, self.failures, self.server = {}, [], {}
        self.bytes = 0

    def next(self):
        """(name, data) of the next event; `None` at the end of the stream."""
        lines = []
        while True:
            line = self.reply.readline()
            if not line:
                return None
            self.bytes = len(line) if line.startswith(b"data: ") else self.bytes
            if line == b"\n" and lines:
                break
            lines.append(line.decode().rstrip("\n"))
        assert [line.partition(": ")[0] for line in lines] == ["event", "data"], lines
        name, data = lines[0][7:], json.loads(lines[1][6:])
        self._take(name, data)
        return name, data

    def _take(self, name, data):
        if name == "end":
            return
        if name == "state":
            self.models, self.failures = {}, []
        self.server, self.sequence = data["server"], data["sequence"]
        for row in data.get("models", []):
            self.models.setdefault(row["key"], {}).update(row)
        for key in data.get("removed", []):
            self.models.pop(key)
        self.failures += data.get("failures", [])

    def until(self, happened, what, most=15):
        """Reads events until it has happened."""
        for _ in range(most):
            if happened():
                return
            assert self.next() is not None, f"the events ended before {what}"
        raise AssertionError(f"{what} did not happen in {most} events; known: {self.models} {self.failures}")

    def close(self):
        self.reply.close()
        self._connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
