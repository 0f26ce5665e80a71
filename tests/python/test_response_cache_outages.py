"""A Redis server that is lost: one request waits for it, then none on any thread, connection or model, until it is back."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import clients
from redis_fake import RedisFake
from repositories import identity_config
from test_response_cache import CACHE, ask, counted, one, value_of
from waiting import eventually

MODELS = ["first", "second"]
LOST = "requests are executed until it can be reached again"
BACK = "can be reached again"


@pytest.fixture
def redis():
    fake = RedisFake()
    yield fake
    fake.stop()


@pytest.fixture
def server(repository, redis, serve):
    for name in MODELS:
        repository.add(name, "identity", identity_config("TYPE_INT32", "1", more=CACHE))
    running = serve(repository.path, *redis.settings(pool_size=3, socket_timeout=2000, connect_timeout=2000))
    for name in MODELS:
        assert value_of(ask(running, name, one(0))) == 0
        eventually("the response is found", lambda name=name: value_of(ask(running, name, one(0))) == 0 and counted(running, name)[0])
    return running


def ask_from_threads(server):
    """Requests that are different, so that all connections would have some."""
    def check(number):
        assert value_of(ask(server, MODELS[number % 2], one(number))) == number

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(check, range(1, 65)))


def state(server):
    found = clients.metrics(server)
    return found["galatea_response_cache_lost", ""], found["galatea_response_cache_losses_total", ""]


def check_told_once(server):
    text = server.text()
    changes = [line for line in text.splitlines() if BACK in line]
    assert [LOST in line for line in changes] == [True, False], text


def check_back(server):
    server.wait_for_line(r"Redis at 127.0.0.1:\d+ can be reached again")
    assert state(server) == (0, 1)
    for name in MODELS:
        hits = counted(server, name)[0]
        eventually("a response is found", lambda name=name: value_of(ask(server, name, one(0))) == 0 and counted(server, name)[0] > hits)
    check_told_once(server)


def test_one_request_waits_for_a_server_that_hangs(redis, server):
    assert state(server) == (0, 0)
    with redis.hanging():
        asked = redis.look_ups
        assert value_of(ask(server, "first", one(0))) == 0
        assert (redis.look_ups - asked, state(server)) == (1, (1, 1))
        ask_from_threads(server)
        assert (redis.look_ups - asked, state(server)) == (1, (1, 1)), "no other request was sent"
        greetings = redis.greetings
        eventually("a thread asks in the background", lambda: redis.greetings > greetings)
        ask_from_threads(server)
        assert redis.look_ups - asked == 1
    check_back(server)


def test_requests_at_the_same_time_are_answered_while_it_hangs(redis, server):
    with redis.hanging():
        ask_from_threads(server)
        assert state(server) == (1, 1)
    check_back(server)


def test_no_request_waits_for_a_server_that_ended(redis, server):
    with redis.refusing():
        asked = redis.look_ups
        ask_from_threads(server)
        assert state(server) == (1, 1)
        ask_from_threads(server)
        assert redis.look_ups == asked
    check_back(server)
