"""Events inside a server under test, read from a pipe: a test waits for what happens and asks nothing again and again."""

import contextlib
import json
import os
import select

import servers

# How long a test waits for an event. Only one that fails waits so long.
LIMIT = 60


class DebugEvents:
    """The events that one server reports: lines of JSON in a pipe, which it writes where `environment` says."""

    def __init__(self, folder):
        self.path = folder / "debug-events"
        os.mkfifo(self.path)
        # For writing as well, so that the pipe does not end when the server does.
        self._pipe = os.open(self.path, os.O_RDWR | os.O_NONBLOCK)
        self._rest = b""
        self.seen = []

    @property
    def environment(self):
        return {"GALATEA_DEBUG_EVENTS": str(self.path)}

    def close(self):
        os.close(self._pipe)

    def wait_for(self, event, **fields):
        """The next event of this kind with these fields, as a dictionary. Those before it are passed over."""
        wanted = {"event": event, **fields}
        passed = []
        while True:
            happened = self._next(wanted, passed)
            if wanted.items() <= happened.items():
                return happened
            passed.append(happened)

    def _next(self, wanted, passed):
        while b"\n" not in self._rest:
            readable, _, _ = select.select([self._pipe], [], [], LIMIT)
            assert readable, f"waited {LIMIT} s in vain for {wanted}; there were {passed}"
            self._rest += os.read(self._pipe, 1 << 16)
        line, self._rest = self._rest.split(b"\n", 1)
        self.seen.append(json.loads(line))
        return self.seen[-1]


@contextlib.contextmanager
def server(folder, repository, *args, **options):
    """A server of ours and its events."""
    events = DebugEvents(folder)
    try:
        env = {**options.pop("env", {}), **events.environment}
        with servers.galatea(repository, *args, env=env, **options) as running:
            yield running, events
    finally:
        events.close()
