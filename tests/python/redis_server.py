"""A real Redis server on a free port of this machine, which keeps nothing when it ends."""

import contextlib
import os
import signal
import subprocess
import threading

import servers

HOME = servers.PEERS / "redis"


def has_redis():
    return (servers.PEERS / "redis.installed").exists()


def environment():
    """Its libraries are beside it."""
    libraries = sorted(HOME.glob("usr/lib/*-linux-gnu"))
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))}


class Redis:
    """`port` is that of the clear, or with `tls` (its options) the encrypted one."""

    def __init__(self, *options, port=None, tls=()):
        self.port = port or servers.free_ports(1)[0]
        self.tls = tls
        ports = ["--port", "0", "--tls-port", self.port, *tls] if tls else ["--port", self.port]
        command = [HOME / "usr/bin/redis-server", *ports, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", *options]
        self.log = []
        self.ready = threading.Event()
        self.process = subprocess.Popen(
            list(map(str, command)), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/"
        )
        threading.Thread(target=self._follow, daemon=True).start()
        if not self.ready.wait(60) or self.process.poll() is not None:
            self.stop()
            raise AssertionError("\n".join(self.log))

    def _follow(self):
        for line in self.process.stdout:
            self.log.append(line)
            if "Ready to accept connections" in line:
                self.ready.set()
        self.ready.set()

    def settings(self, **more):
        """Options of `serve` that put its cache here."""
        given = {"host": "127.0.0.1", "port": self.port, **more}
        return [f"--cache-config=redis,{key}={value}" for key, value in given.items()]

    def ask(self, *words, password=None):
        """What redis-cli prints for a command."""
        login = ["-a", password, "--no-auth-warning"] if password else []
        run = subprocess.run(
            [HOME / "usr/bin/redis-cli", "-p", str(self.port), *login, *words],
            env=environment(), capture_output=True, text=True, timeout=60, check=True,
        )
        return run.stdout.strip()

    def keys(self):
        return self.ask("--scan").split()

    @contextlib.contextmanager
    def standing_still(self):
        """It takes connections and commands, and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.kill()
        self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
