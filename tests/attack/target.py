"""A server under attack: its limits, its repository, its addresses."""

import base64
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import clients
import limits
import models
import raw_http
import servers

EXIT_SECONDS = 10


class Target:
    """A running server. `outside` is a folder beside the repository, for files that no client may reach."""

    def __init__(self, kind, program, attack, limit, is_before):
        self.kind, self.attack, self.is_before = kind, attack, is_before
        self.group = limits.MemoryGroup(limit)
        self.folder = Path(tempfile.mkdtemp(prefix="galatea-attack-"))
        self.repository, self.outside = self.folder / "models", self.folder / "outside"
        self.repository.mkdir()
        self.outside.mkdir()
        loaded = models.write_all(self.repository, kind)
        if attack.models and kind == "galatea":
            attack.models(self.repository)
        try:
            self.server = self._start(program, loaded)
        except BaseException:
            self.remove()
            raise

    def _start(self, program, loaded):
        through = limits.through(self.group)
        if self.attack.descriptors:
            number = self.attack.descriptors
            through = ["prlimit", f"--nofile={number}:{number}", *through]
        chosen = ["--model-control-mode=explicit", *(f"--load-model={name}" for name in loaded)]
        flags = [*(chosen if self.attack.explicit else []), *self.attack.flags]
        if self.kind == "triton":
            return servers.triton(self.repository, *flags, through=through)
        os.environ["GALATEA"] = str(program)
        flags += [f"--exit-timeout-secs={EXIT_SECONDS}", *(() if self.is_before else self.attack.new_flags)]
        home = {"GALATEA_HOME": str(self.folder / "home")}
        return servers.galatea(self.repository, *flags, through=through, env=home)

    @property
    def pid(self):
        return self.server.pid

    @property
    def http(self):
        host, port = self.server.http.rsplit(":", 1)
        return host, int(port)

    @property
    def grpc(self):
        host, port = self.server.grpc.rsplit(":", 1)
        return host, int(port)

    def is_alive(self):
        return self.server.process.poll() is None

    def ask(self, method, path, body=None, headers=None):
        """(status, text) of one plain request; status 0 and the reason where there was no answer."""
        try:
            status, _, answer = clients.ask(self.server.http, method, path, body, headers)
        except Exception as error:
            return 0, repr(error)
        return status, answer.decode(errors="replace")

    def heavy(self, count, sent, seconds=4.0):
        """So many clients that send the same request again and again; how often each status came."""

        def exchange(_):
            if not self.is_alive():
                time.sleep(0.2)
                return 0
            return raw_http.exchange(self.http, sent)[0]

        return raw_http.statuses(raw_http.together(count, exchange, seconds))

    def load(self, model, config=None, files=None, parameters=None):
        """(status, text) of a load; `config` is a dictionary, `files` maps paths to bytes."""
        sent = dict(parameters or {})
        if config is not None:
            sent["config"] = config if isinstance(config, str) else json.dumps(config)
        for path, content in (files or {}).items():
            sent[f"file:{path}"] = base64.b64encode(content).decode()
        return self.ask("POST", f"/v2/repository/models/{model}/load", {"parameters": sent} if sent else {})

    def stop(self):
        """The exit status; None if it had to be killed."""
        try:
            return self.server.stop(timeout=EXIT_SECONDS + 20)
        except Exception:
            return None

    def remove(self):
        self.group.remove()
        shutil.rmtree(self.folder, ignore_errors=True)
