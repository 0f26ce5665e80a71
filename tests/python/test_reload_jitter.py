"""Servers that poll one repository load a change one after the other, and no request fails meanwhile."""

import re
import threading

import numpy as np

import clients
from repositories import identity_config, write_model
from waiting import eventually

VECTOR = {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}
POLL = ("--model-control-mode=poll", "--repository-poll-secs=1")
WAIT = re.compile(r"Models have changed and are loaded in (\S+) \(--reload-jitter\)")


class Load:
    """A client of each server that sends one request after the other and keeps each outcome."""

    def __init__(self, running):
        self.over, self.versions, self.failures = threading.Event(), [set() for _ in running], []
        self.threads = [threading.Thread(target=self._ask, args=row) for row in enumerate(running)]

    def _ask(self, number, server):
        while not self.over.is_set():
            status, _, body = clients.ask(server.http, "POST", "/v2/models/m/infer", VECTOR)
            found = re.search(rb'"model_version":"(\d+)"', body)
            if status != 200 or not found:
                self.failures.append((status, body))
                return
            self.versions[number].add(int(found[1]))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


def test_three_servers_load_a_change_at_different_times_and_nothing_fails(repository, serve):
    repository.add("m", "identity", identity_config())
    running = [serve(repository.path, *POLL, "--reload-jitter=5") for _ in range(3)]
    with Load(running) as load:
        eventually("each server has answered", lambda: all(seen == {1} for seen in load.versions))
        write_model(repository.path, "m", "galatea", "identity", None, versions=(2,))
        eventually("each server answers from the new version", lambda: all(seen == {1, 2} for seen in load.versions) or load.failures)
    assert load.failures == []
    waits = [WAIT.findall(server.text()) for server in running]
    assert all(len(told) == 1 for told in waits), waits
    assert len({told[0] for told in waits}) > 1, waits


def test_calls_do_not_wait_and_no_jitter_is_no_wait(repository, serve):
    repository.add("m", "identity", identity_config())
    asked = serve(repository.path, "--model-control-mode=explicit", "--reload-jitter=86400")
    asked.wait_for_line("--reload-jitter=86400 has no effect: the server does not poll")
    assert clients.ask(asked.http, "POST", "/v2/repository/models/m/load", {})[0] == 200
    assert clients.ask(asked.http, "POST", "/v2/models/m/infer", VECTOR)[0] == 200
    plain = serve(repository.path, *POLL)
    write_model(repository.path, "m", "galatea", "identity", None, versions=(2,))
    eventually("it is loaded", lambda: b'"versions":["2"]' in clients.ask(plain.http, "GET", "/v2/models/m")[2])
    assert not WAIT.search(plain.text())
