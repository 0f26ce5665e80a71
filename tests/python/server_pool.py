"""Running servers that tests share, one for each set of flags, with explicit model control.

A test loads its models under names of its own and finds none of others. When it ends its models are unloaded and removed.
A server that a test ended or left unready is thrown away; the test that did so fails with that.
"""

import contextlib
import json
import re
import shutil
import tempfile
from pathlib import Path

import clients
import repositories
import servers

EXPLICIT = ("--model-control-mode=explicit", "--strict-readiness=false")


class ServerPool:
    """The servers that run, by their flags and environment."""

    def __init__(self):
        self._running = {}

    def get(self, flags, env=None):
        key = (flags, tuple(sorted((env or {}).items())))
        if key not in self._running:
            folder = tempfile.TemporaryDirectory()
            server = servers.galatea(folder.name, *EXPLICIT, *flags, env=env)
            server.repository, server.folder = Path(folder.name), folder
            self._running[key] = server
        return self._running[key]

    def throw_away(self, server):
        self._running = {key: other for key, other in self._running.items() if other is not server}
        server.stop()
        server.folder.cleanup()

    def stop(self):
        for server in list(self._running.values()):
            self.throw_away(server)


class SharedServer:
    """A server of the pool as one test sees it: `http`, `grpc`, `metrics`, `pid`, the log since the test began, and models."""

    def __init__(self, pool, server, test):
        self._pool, self._server = pool, server
        self._prefix = re.sub(r"\W+", "_", test)[:80]
        self._models = []
        server.log_begins = len(server.log)

    def __getattr__(self, name):
        return getattr(self._server, name)

    def name(self, suffix="model"):
        """A name for a model that no other test uses."""
        return f"{self._prefix}_{suffix}"

    def write(self, suffix, backend, config, **more):
        """Writes a model with a name of this test's own, not loaded; its name."""
        name = self.name(suffix)
        repositories.write_model(self.repository, name, "galatea", backend, config, **more)
        self.owns(name)
        return name

    def add(self, suffix, backend, config, **more):
        """Writes a model and loads it; its name."""
        name = self.write(suffix, backend, config, **more)
        self.load(name)
        return name

    def place(self, name, backend, config, load=True, **more):
        """Writes a model under exactly this name and loads it; its folder. For tests whose other parts know the name."""
        folder = repositories.write_model(self.repository, name, "galatea", backend, config, **more)
        self.owns(name)
        if load:
            self.load(name)
        return folder

    def owns(self, name):
        """Says that the model belongs to this test: it is unloaded and its folder removed when the test ends."""
        if name not in self._models:
            self._models.append(name)

    def load(self, name, body=None):
        self.owns(name)
        status, _, answer = clients.ask(self.http, "POST", f"/v2/repository/models/{name}/load", body or {})
        assert status == 200, answer.decode()

    def unload(self, name):
        status, _, answer = clients.ask(self.http, "POST", f"/v2/repository/models/{name}/unload", {})
        assert status == 200, answer.decode()

    def leave(self):
        """Removes what this test has loaded. Fails if the server does not answer, or has models that nobody removed."""
        try:
            for name in reversed(self._models):
                self.unload(name)
                shutil.rmtree(self.repository / name, ignore_errors=True)
            assert clients.is_ready(self._server), "the shared server is not ready"
            left = json.loads(clients.ask(self.http, "POST", "/v2/repository/index", {"ready": True})[2])
            assert not left, f"models were left loaded on the shared server: {left}"
        except (AssertionError, OSError) as error:
            log = "\n".join(self.log[-40:])
            self._pool.throw_away(self._server)
            raise AssertionError(f"this test damaged the server it shares: {error}; log:\n{log}") from error


@contextlib.contextmanager
def lent(pool, flags=(), env=None, test="module"):
    """A running server of the pool for a fixture of a whole file; what it loaded is removed when the block ends."""
    server = SharedServer(pool, pool.get(tuple(flags), env), test)
    yield server
    server.leave()
