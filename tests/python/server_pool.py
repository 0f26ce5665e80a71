"""Running servers that tests share, one for each set of flags, with explicit model control.

A test loads its models under names of its own and finds none of others. When it ends its models are unloaded and removed.
A server that a test ended or left with models is thrown away; the test that did so fails with that.
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
# In the environment of every server of the pool. No answer may tell it.
SECRET = ("GALATEA_TEST_TOKEN", "hunter2-of-the-environment")


class ServerPool:
    """The servers that run, by their flags and environment."""

    def __init__(self):
        self._running = {}

    def get(self, flags, env=None):
        key = (flags, tuple(sorted((env or {}).items())))
        if key not in self._running:
            folder = tempfile.TemporaryDirectory()
            repository, temporary = Path(folder.name, "main"), Path(folder.name, "temporary")
            repository.mkdir()
            temporary.mkdir()
            env = {"TMPDIR": str(temporary), **dict([SECRET]), **(env or {})}
            given = [re.sub(r"\{(\w+)\}", lambda found: self.further(folder.name, found[1]), flag) for flag in flags]
            server = servers.galatea(repository, *EXPLICIT, *given, env=env)
            server.repository, server.folder, server.temporary = repository, folder, temporary
            self._running[key] = server
        return self._running[key]

    @staticmethod
    def further(folder, name):
        """A further folder of the server that a flag names in braces."""
        path = Path(folder, name)
        path.mkdir(exist_ok=True)
        return str(path)

    def throw_away(self, server):
        self._running = {key: other for key, other in self._running.items() if other is not server}
        server.stop()
        server.folder.cleanup()

    def stop(self):
        for server in list(self._running.values()):
            self.throw_away(server)


class SharedServer:
    """A server of the pool as one test sees it: `http`, `grpc`, `metrics`, `pid`, the log since the test began, and models.

    With `test` None the models have the names that the caller gives them, which no two tests use at the same time.
    """

    target = "galatea"

    def __init__(self, pool, server, test):
        self._pool, self._server = pool, server
        self._prefix = re.sub(r"\W+", "_", test)[:80] + "_" if test else ""
        self._models = []
        self._others = self.ready()
        server.log_begins = len(server.log)

    def __getattr__(self, name):
        return getattr(self._server, name)

    def ready(self):
        """The names of the models that are ready."""
        rows = json.loads(clients.ask(self.http, "POST", "/v2/repository/index", {"ready": True})[2])
        return {row["name"] for row in rows}

    def name(self, suffix="model"):
        """A name for a model that no other test uses."""
        return f"{self._prefix}{suffix}"

    def write(self, suffix, backend, config, **more):
        """Writes a model with a name of this test's own, not loaded; its name."""
        name = self.name(suffix)
        self.owns(name)
        repositories.write_model(self.repository, name, "galatea", backend, config, **more)
        return name

    def add(self, suffix, backend, config, **more):
        """Writes a model and loads it; its name."""
        name = self.write(suffix, backend, config, **more)
        self.load(name)
        return name

    def add_all(self, write):
        """Loads the models that `write(repository)` writes; their names."""
        before = {path.name for path in self.repository.iterdir()}
        write(self.repository)
        names = sorted({path.name for path in self.repository.iterdir()} - before)
        for name in names:
            self.owns(name)
        for name in names:
            self.load(name)
        return names

    def place(self, name, backend, config, load=True, **more):
        """Writes a model under exactly this name and loads it; its folder. For tests whose other parts know the name."""
        folder = repositories.write_model(self.repository, name, "galatea", backend, config, **more)
        self.owns(name)
        if load:
            self.load(name)
        return folder

    def owns(self, name, folder=None):
        """Says that the model belongs to this test: it is unloaded and its folder removed when the test ends."""
        folder = folder or self.repository / name
        if (name, folder) not in self._models:
            self._models.append((name, folder))

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
            for name in {name: None for name, _ in reversed(self._models)}:
                self.unload(name)
            for _, folder in self._models:
                shutil.rmtree(folder, ignore_errors=True)
            assert clients.ask(self.http, "GET", "/v2/health/live")[0] == 200, "the shared server is not live"
            left = self.ready() - self._others
            assert not left, f"models were left loaded on the shared server: {left}"
        except (AssertionError, OSError) as error:
            log = "\n".join(self.log[-40:])
            self._pool.throw_away(self._server)
            raise AssertionError(f"this test damaged the server it shares: {error}; log:\n{log}") from error


class Stage:
    """Servers of both kinds with the same models, for tests that run on ours and on the real one."""

    def __init__(self, pool):
        self._pool, self._ends = pool, []

    def get(self, target, write, *flags, env=None):
        """A running server with the models that `write(folder, target)` writes. Ours is shared with other tests, so that the
        models have to have names that no other test uses at the same time; the real one is started."""
        if target == "galatea":
            server = SharedServer(self._pool, self._pool.get(flags, env), None)
            self._ends.append(server.leave)
            server.add_all(lambda folder: write(folder, target))
            return server
        folder = tempfile.TemporaryDirectory()
        write(Path(folder.name), target)
        server = servers.triton(folder.name, *EXPLICIT, "--load-model=*", *flags, env=env)
        server.target, server.repository = target, Path(folder.name)
        self._ends += [folder.cleanup, server.stop]
        return server

    def serves(self, path, *flags, env=None):
        """Our shared server with copies of the models in the folder `path`."""

        def copy(folder, _):
            for model in Path(path).iterdir():
                shutil.copytree(model, folder / model.name)

        return self.get("galatea", copy, *flags, env=env)

    def end(self):
        while self._ends:
            self._ends.pop()()


@contextlib.contextmanager
def lent(pool, flags=(), env=None, test="module"):
    """A running server of the pool for a fixture of a whole file; what it loaded is removed when the block ends."""
    server = SharedServer(pool, pool.get(tuple(flags), env), test)
    yield server
    server.leave()
