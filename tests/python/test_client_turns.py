"""Clients with an identity take turns in a model's queue: the flood of one is no wait for another."""

import re
import threading
import time

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

import clients
import servers
from auth_cases import bearer, key_entry
from repositories import identity_config, write_model

FLOOD = 200
# Requests of the flood that may be answered while another client's request is: the one that executes, the one of its
# turn, and two whose answers the client that floods comes to late.
FEW = 4
SLOW = 'parameters { key: "execute_delay_ms" value { string_value: "20" } }\n'
PAIRS = "dynamic_batching { preferred_batch_size: [ 2 ] }\n"
# Requests of one execution.
MODELS = {"single": 1, "pairs": 2}
ARRAY = np.zeros([1, 4], np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("turns")
    write_model(path / "models", "single", "galatea", "identity", identity_config(dims="4", max_batch_size=2, more=SLOW))
    write_model(path / "models", "pairs", "galatea", "identity", identity_config(dims="4", max_batch_size=2, more=SLOW + PAIRS))
    roles = {"flooder": "infer", "other": "infer", "admin": "admin"}
    (path / "policy.toml").write_text("".join(key_entry(name, f"secret-of-{name}", [role]) for name, role in roles.items()))
    return path


def key(name):
    return {"authorization": f"Bearer secret-of-{name}"}


class Flood:
    """Many requests of one client at once, whose answers are counted."""

    def __init__(self, server, model, headers):
        self.stock = clients.client(server, "grpc")
        self.answered, self.failed = 0, []
        self.changed = threading.Condition()
        for _ in range(FLOOD):
            self.stock.async_infer(model, clients.inputs(grpcclient, {"INPUT0": ARRAY}), self.count, headers=headers)

    def count(self, result, error):
        with self.changed:
            self.answered += 1
            self.failed += [error] if error else []
            self.changed.notify_all()

    def wait_for(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: self.answered >= count, 60), self.answered

    def end(self):
        self.wait_for(FLOOD)
        self.stock.close()
        assert self.failed == []


def waiting(server, model):
    """Requests in the model's queue."""
    page = clients.ask(server.metrics, "GET", "/metrics", headers=bearer("secret-of-admin"))[2].decode()
    return int(re.search(f'^nv_inference_pending_request_count{{model="{model}".*}} (.+)$', page, re.MULTILINE)[1])


def until(happened):
    """Asks again until it is so."""
    deadline = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < deadline, "waited in vain"


def answered_before(server, protocol, model, headers):
    """How many requests of a flood by the first client are answered while each of three of the second are."""
    flood = Flood(server, model, headers[0])
    until(lambda: waiting(server, model) > FLOOD * 3 // 4)
    counts = []
    with clients.client(server, protocol) as stock:
        for _ in range(3):
            before = flood.answered
            clients.infer(stock, protocol, model, {"INPUT0": ARRAY}, headers=headers[1])
            counts.append(flood.answered - before)
    flood.end()
    return counts


@pytest.mark.parametrize("protocol", clients.MODULES)
@pytest.mark.parametrize("model", MODELS)
def test_a_flood_of_one_key_is_no_wait_for_another(folder, protocol, model):
    headers = [key("flooder"), key("other")]
    with servers.galatea(folder / "models", f"--auth-policy={folder / 'policy.toml'}") as server:
        counts = answered_before(server, protocol, model, headers)
    assert max(counts) <= FEW * MODELS[model], counts


def test_requests_of_one_key_keep_their_order(folder):
    """What the turns spare another client is a long wait: one that has the same key waits it."""
    headers = [key("flooder")] * 2
    with servers.galatea(folder / "models", f"--auth-policy={folder / 'policy.toml'}") as server:
        counts = answered_before(server, "http", "single", headers)
    assert counts[0] > FLOOD // 2, counts


def test_without_identities_all_requests_are_of_one_client(folder):
    with servers.galatea(folder / "models") as server:
        counts = answered_before(server, "http", "single", [None, None])
    assert counts[0] > FLOOD // 2, counts
