"""Upgrades under load: a new server takes the listening sockets of the old one (--takeover), and no request is lost."""

import http.client
import itertools
import json
import os
import shutil
import socket
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

import clients
import tiers
import unix_sockets
from repositories import add_sub_config, identity_config
from waiting import eventually

PAIR = {"INPUT0": np.arange(16, dtype=np.int32).reshape(1, 16), "INPUT1": np.full((1, 16), 3, dtype=np.int32)}
VERSION = 1


@pytest.fixture
def path():
    # The path of a Unix socket is short.
    with tempfile.TemporaryDirectory(prefix="g") as folder:
        yield Path(folder) / "takeover"


@pytest.fixture
def simple(repository):
    repository.add("simple", "add_sub", add_sub_config())
    return repository


class Load:
    """Stock clients that each keep their connection and send a request after the other until the block ends."""

    def __init__(self, server, count=2):
        self.ended, self.failed, self.count = threading.Event(), [], itertools.count()
        self.answered = 0
        self.threads = [threading.Thread(target=self.run, args=(server, protocol)) for protocol in ("http", "grpc") for _ in range(count)]

    def run(self, server, protocol):
        stock = clients.client(server, protocol)
        while not self.ended.is_set():
            try:
                answer = clients.infer(stock, protocol, "simple", PAIR)
                assert (answer["OUTPUT0"] == PAIR["INPUT0"] + 3).all()
            except Exception as error:
                self.failed.append(f"{protocol}: {error!r}")
            self.answered = next(self.count)
        stock.close()

    def more(self, count=40):
        """Waits for so many further answers."""
        goal = self.answered + count
        eventually("the clients get answers", lambda: self.answered >= goal)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()


def take_over(serve, repository, old, flag):
    """Starts the next server, and waits for the end of the old one."""
    new = serve(repository.path, flag)
    assert new.addresses == old.addresses
    assert old.wait_for_exit() == 0, old.text()
    return new


def test_no_request_is_lost_in_an_upgrade(simple, serve, path):
    """Three in a row. The socket of the last one stays with it, and only its user may connect."""
    flag = f"--takeover={path}"
    server = serve(simple.path, flag)
    with Load(server) as load:
        for _ in range(3):
            load.more()
            server = take_over(serve, simple, server, flag)
        load.more()
        assert path.stat().st_mode & 0o777 == 0o600
    assert not load.failed, load.failed[:5]
    assert clients.counts(server, "simple")["success"] > 0
    assert server.stop() == 0
    assert not list(path.parent.iterdir()), "a server removes its files"


def test_unix_sockets_are_handed_over_with_their_files(simple, serve, path):
    """An open connection is served and sent away; a changed address is opened anew."""
    folder = path.parent
    flags = [f"--takeover={path}", f"--http-address=unix:{folder}/http"]
    old = serve(simple.path, *flags, f"--metrics-address=unix:{folder}/metrics")
    connection = unix_sockets.Connection(f"{folder}/http")
    connection.request("GET", "/v2/health/ready")
    assert connection.getresponse().read() == b""
    new = serve(simple.path, *flags, f"--metrics-address=unix:{folder}/other")

    def is_sent_away():
        connection.request("GET", "/v2/health/ready")
        reply = connection.getresponse()
        assert (reply.status, reply.read()) == (200, b"")
        return reply.getheader("Connection") == "close"

    eventually("the old server asks its client to connect again", is_sent_away)
    connection.close()
    assert old.wait_for_exit() == 0
    assert unix_sockets.ask(f"{folder}/http", "GET", "/v2/health/ready")[0] == 200
    assert unix_sockets.ask(f"{folder}/other", "GET", "/metrics")[0] == 200
    # The old server removes the file of the socket that the new one did not take.
    assert set(os.listdir(folder)) == {f"{name}{end}" for name in ("http", "other", "takeover") for end in ("", ".lock")}
    new.wait_for_line(f"The socket of metrics at unix:{folder}/metrics of the other server is not used any more")
    assert new.stop() == 0
    assert not os.listdir(folder)


def test_requests_in_progress_are_answered_by_the_old_server(simple, serve, path):
    simple.add("slow", "identity", identity_config(more='parameters { key: "execute_delay_ms" value { string_value: "700" } }\n'))
    flag = f"--takeover={path}"
    old = serve(simple.path, flag)
    held = http.client.HTTPConnection(old.http, timeout=60)
    body = json.dumps({"inputs": [clients.tensor_json("INPUT0", np.ones((3,), np.float32))]})
    stop, answers = threading.Event(), []

    def ask():
        while not stop.is_set():
            held.request("POST", "/v2/models/slow/infer", body)
            reply = held.getresponse()
            answers.append((reply.status, reply.read()))

    thread = threading.Thread(target=ask)
    thread.start()
    eventually("a request is under way", lambda: clients.metrics(old)["galatea_inference_requests_in_flight", 'model="slow",version="1"'] == 1)
    take_over(serve, simple, old, flag)
    stop.set()
    thread.join()
    held.close()
    assert answers and {status for status, _ in answers} == {200}


FAILS = identity_config() + 'parameters { key: "fail" value { string_value: "load" } }'


@pytest.mark.parametrize("more", [(), ("--exit-on-error=false",)])
def test_a_new_server_that_fails_changes_nothing(simple, serve, path, more):
    """A model that does not load ends the new server, even where it would serve without it."""
    flag = f"--takeover={path}"
    old = serve(simple.path, flag)
    with Load(old, count=1) as load:
        simple.add("bad", "failing", FAILS)
        failed = serve(simple.path, flag, *more, wait=False)
        assert failed.wait_for_exit() == 1
        assert "creating server" in failed.text(), failed.text()
        old.wait_for_line("A new server ended before it took over: this one serves on")
        load.more()
        assert clients.is_ready(old)
        shutil.rmtree(simple.path / "bad")
        take_over(serve, simple, old, flag)
    assert not load.failed, load.failed[:5]


def test_flags_that_do_not_fit_end_the_new_server(simple, serve, path):
    """A port of the old server that changed its role cannot be bound; the old one serves on."""
    flag = f"--takeover={path}"
    old = serve(simple.path, flag)
    wrong = serve(simple.path, flag, f"--grpc-port={old.http.split(':')[1]}", wait=False)
    assert wrong.wait_for_exit() == 1
    assert "already in use by process" in wrong.text(), wrong.text()
    old.wait_for_line("this one serves on")
    take_over(serve, simple, old, flag)


def connect(path):
    found = socket.socket(socket.AF_UNIX)
    found.settimeout(60)
    found.connect(str(path))
    return found


def send(connection, message):
    text = json.dumps(message).encode()
    connection.sendall(len(text).to_bytes(4, "big") + text)


def receive(connection):
    length = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    return json.loads(connection.recv(length, socket.MSG_WAITALL))


def test_the_second_of_two_takers_is_refused(simple, serve, path):
    flag = f"--takeover={path}"
    old = serve(simple.path, flag)
    with connect(path) as first:
        send(first, {"message": "hello", "version": VERSION})
        offered = receive(first)
        assert {one["role"] for one in offered["sockets"]} == {"HTTP", "GRPC", "metrics", "takeover"}
        second = serve(simple.path, flag, wait=False)
        assert second.wait_for_exit() == 1
        assert f"--takeover={path}: the other server refused: another server is taking over" in second.text(), second.text()
    old.wait_for_line("ended before it took over")
    take_over(serve, simple, old, flag)


@pytest.mark.parametrize("message, reason", [
    ({"message": "hello", "version": 7}, "it needs version 1 of the messages and got 7"),
    ({"message": "take"}, "was not expected"),
    ({"message": "dance"}, "cannot be read"),
    (["hello"], "cannot be read"),
])
def test_a_stranger_is_told_why(simple, serve, path, message, reason):
    old = serve(simple.path, f"--takeover={path}")
    with connect(path) as stranger:
        send(stranger, message)
        answer = receive(stranger)
    assert answer["message"] == "refused" and reason in answer["reason"], answer
    assert clients.is_ready(old)


def test_a_taker_that_goes_with_the_sockets_changes_nothing(simple, serve, path):
    """It has got the descriptors and ends before it has said that it serves."""
    flag = f"--takeover={path}"
    old = serve(simple.path, flag)
    with connect(path) as taker:
        send(taker, {"message": "hello", "version": VERSION})
        receive(taker)
        send(taker, {"message": "take"})
        assert len(receive(taker)["sockets"]) == 4
        _, descriptors, _, _ = socket.recv_fds(taker, 1, 32)
        assert len(descriptors) == 5, "four sockets and a lock"
        for descriptor in descriptors:
            os.close(descriptor)
    old.wait_for_line("this one serves on")
    assert clients.is_ready(old)
    take_over(serve, simple, old, flag)


def test_a_stop_does_not_wait_for_a_taker_that_says_nothing(simple, serve, path):
    """Nobody knows if it serves, so the files stay for it."""
    old = serve(simple.path, f"--takeover={path}", f"--http-address=unix:{path.parent}/http")
    with connect(path) as taker:
        send(taker, {"message": "hello", "version": VERSION})
        receive(taker)
        send(taker, {"message": "take"})
        receive(taker)
        _, descriptors, _, _ = socket.recv_fds(taker, 1, 32)
        try:
            assert old.stop() == 0
            assert "did not answer within" not in old.text()
            assert {"http", "takeover"} <= set(os.listdir(path.parent))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
    # The next server there finds that nobody listens.
    assert serve(simple.path, f"--takeover={path}", f"--http-address=unix:{path.parent}/http").stop() == 0


def test_a_socket_that_does_not_listen_is_refused(simple, serve, path):
    with socket.socket(socket.AF_UNIX) as other, socket.socket() as bound:
        other.bind(str(path))
        other.listen()
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        new = serve(simple.path, f"--takeover={path}", f"--metrics-port={port}", wait=False)
        connection, _ = other.accept()
        with connection:
            assert receive(connection) == {"message": "hello", "version": VERSION}
            name = {"role": "metrics", "place": f"127.0.0.1:{port}"}
            send(connection, {"message": "offer", "sockets": [name]})
            assert receive(connection) == {"message": "take"}
            send(connection, {"message": "sockets", "sockets": [{"name": name, "has_lock": False}]})
            socket.send_fds(connection, [b"x"], [bound.fileno()])
            assert new.wait_for_exit() == 1
    assert "the socket of the other server does not listen" in new.text(), new.text()


def test_left_over_sockets_are_replaced_and_other_files_are_not(simple, serve, path):
    flag = f"--takeover={path}"
    killed = serve(simple.path, flag)
    killed.process.kill()
    killed.wait_for_exit()
    assert path.is_socket()
    server = serve(simple.path, flag)
    assert server.stop() == 0
    path.write_text("of somebody else")
    refused = serve(simple.path, flag, wait=False)
    assert refused.wait_for_exit() == 1
    assert "the file is no socket: remove it, or take another path with --takeover=PATH" in refused.text(), refused.text()
    assert path.read_text() == "of somebody else"


@tiers.measure
def test_a_hundred_upgrades_at_load(simple, serve, path):
    """No request of a hundred upgrades fails."""
    flag = f"--takeover={path}"
    server = serve(simple.path, flag)
    with Load(server) as load:
        for _ in range(100):
            load.more(400)
            server = take_over(serve, simple, server, flag)
            load.more(4)
    print(f"{load.answered} requests, {len(load.failed)} failed")
    assert not load.failed, load.failed[:5]
