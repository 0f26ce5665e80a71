"""The response cache in a real Redis server: shared by servers, and gone without harm when the Redis server is."""

import time

import numpy as np
import pytest

import certificates
import clients
import redis_server
import servers
import tiers
from redis_server import Redis
from repositories import identity_config, write_model
from test_response_cache import ANSWERS, ANSWERS_CONFIG, CACHE, ask, counted, one, value_of
from waiting import eventually

pytestmark = pytest.mark.skipif(not redis_server.has_redis(), reason="Redis is not installed: cargo xtask setup redis")
PASSWORD = "redis123!"


@pytest.fixture(scope="module")
def redis():
    with Redis() as server:
        yield server


@pytest.fixture
def identity(repository):
    repository.add("identity", "identity", identity_config("TYPE_INT32", "1", more=CACHE))
    return repository.path


def asked(server, value, count=2):
    for _ in range(count):
        assert value_of(ask(server, "identity", one(value))) == value
    return counted(server, "identity")


def errors(server):
    """look-ups and insertions that failed"""
    found = clients.metrics(server)
    return [found["galatea_response_cache_errors_total", f'operation="{name}"'] for name in ("lookup", "insertion")]


def check_stored_and_found(redis, running, protocol, expected):
    texts = np.array([b"", b"\x00\xff a text"], np.object_)
    for server in [*running, *running]:
        with clients.client(server, protocol) as stock:
            assert clients.infer(stock, protocol, "text", {"INPUT0": texts})["OUTPUT0"].tolist() == texts.tolist()
    assert [counted(server, "text") for server in running] == expected
    assert len(redis.keys()) == 1 and redis.keys()[0].startswith("galatea:response:")
    assert redis.ask("ttl", redis.keys()[0]) == "-1"
    assert errors(running[0]) == [0, 0]
    assert not any(name.startswith("nv_cache_num_entries") for name, _ in clients.metrics(running[0]))


@pytest.fixture
def text(repository, redis):
    redis.ask("flushall")
    repository.add("text", "identity", identity_config("TYPE_STRING", "2", more=CACHE))
    return repository.path


def test_a_response_is_stored_and_found(redis, text, serve):
    check_stored_and_found(redis, [serve(text, *redis.settings(pool_size=3))], "grpc", [(1, 1, 2, 1)])


@tiers.peers
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_response_is_stored_and_found_by_any_server(redis, text, serve, protocol):
    both = [serve(text, *redis.settings(pool_size=3)) for _ in range(2)]
    check_stored_and_found(redis, both, protocol, [(1, 1, 2, 1), (2, 0, 2, 0)])


@tiers.peers
def test_another_model_content_has_other_keys(redis, tmp_path, serve):
    redis.ask("flushall")
    for name, value in (("old", "1"), ("copy", "1"), ("new", "2")):
        write_model(tmp_path / name, "answers", "galatea", "python", ANSWERS_CONFIG,
                    files={"1/model.py": ANSWERS.replace("VALUE", value)})
    running = [serve(tmp_path / name, *redis.settings(ttl=1000)) for name in ("old", "copy", "new")]
    assert [value_of(ask(server, "answers", one(0))) for server in running] == [1, 1, 2]
    assert [counted(server, "answers")[:2] for server in running] == [(0, 1), (1, 0), (0, 1)]
    assert len(redis.keys()) == 2
    assert all(0 < int(redis.ask("ttl", key)) <= 1000 for key in redis.keys())


@tiers.peers
def test_entries_of_other_programs_are_misses(redis, identity, serve):
    redis.ask("flushall")
    server = serve(identity, *redis.settings())
    asked(server, 1, 1)
    eventually("the answer is stored", redis.keys)
    (key,) = redis.keys()
    for value in ("", "galresp1", "nonsense"):
        redis.ask("set", key, value)
        assert value_of(ask(server, "identity", one(1))) == 1
    assert counted(server, "identity") == (0, 4, 4, 4)
    server.wait_for_line(f"the value of {key}: it is not a response, or one of another version")


@tiers.peers
def test_an_outage_fails_no_request(identity, serve):
    with Redis() as first:
        server = serve(identity, *first.settings(socket_timeout=1000))
        assert asked(server, 1) == (1, 1, 2, 1)
    assert asked(server, 1) == (1, 3, 4, 3)
    server.wait_for_line(r"Redis at 127.0.0.1:\d+: requests are executed until it can be reached again")
    assert sum(errors(server)) > 0
    with Redis(port=first.port):
        server.wait_for_line("can be reached again", timeout=30)
        eventually("an answer is found", lambda: asked(server, 2)[0] > 1)


@tiers.measure
def test_a_stalled_redis_blocks_no_request(identity, serve):
    with Redis() as slow:
        server = serve(identity, *slow.settings(socket_timeout=300, connect_timeout=300))
        asked(server, 1)
        with slow.standing_still():
            started = time.monotonic()
            asked(server, 1, 1)
            first = time.monotonic() - started
            asked(server, 1, 20)
            assert first < 10 and time.monotonic() - started - first < 10, "only the first one waited, for one time-out"
        server.wait_for_line("can be reached again", timeout=60)
        hits = counted(server, "identity")[0]
        eventually("an answer is found", lambda: asked(server, 3)[0] > hits)


@tiers.peers
def test_credentials_are_sent_to_redis(identity, serve):
    variables = ("TRITONCACHE_REDIS_USERNAME", "TRITONCACHE_REDIS_PASSWORD")
    with Redis("--requirepass", PASSWORD) as locked:
        locked.ask("acl", "setuser", "cache", "on", ">other", "~galatea:*", "+@all", password=PASSWORD)
        for more, env in (
            ({"password": PASSWORD}, {}),
            ({}, {variables[1]: PASSWORD}),
            ({}, dict(zip(variables, ("default", PASSWORD)))),
            ({"user": "cache", "password": "other"}, {}),
        ):
            server = serve(identity, *locked.settings(**more), env=env)
            assert asked(server, 1)[0] > 0
        for more, env, text in (
            ({}, {}, "NOAUTH Authentication required."),
            ({"password": "wrong"}, {}, "WRONGPASS invalid username-password pair"),
            ({}, dict(zip(variables, ("default", "wrong"))), "WRONGPASS invalid username-password pair"),
        ):
            refused = servers.galatea(identity, *locked.settings(**more), env=env, wait=False)
            assert refused.wait_for_exit() == 1
            assert f"error: creating server: Internal - Failed to initialize RedisCache: {text}" in refused.text()
            assert PASSWORD not in refused.text() and "wrong" not in refused.text().replace("WRONG", "")


@tiers.peers
def test_an_unreachable_redis_ends_the_start(identity):
    port = servers.free_ports(1)[0]
    for given, told in ((port, port), ("nonexistent", 0)):
        flags = ["--cache-config=redis,host=localhost", f"--cache-config=redis,port={given}"]
        server = servers.galatea(identity, *flags, wait=False)
        assert server.wait_for_exit() == 1
        text = f"Failed to initialize RedisCache: Failed to connect to Redis (localhost:{told}): Connection refused"
        assert text in server.text()


@tiers.peers
def test_redis_connections_can_be_encrypted(identity, serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    authority = certificates.Authority(folder)
    own, client = authority.issue(), authority.issue("/CN=client")
    tls = ["--tls-cert-file", own.certificate, "--tls-key-file", own.key, "--tls-ca-cert-file", authority.certificate]
    with Redis(tls=[*tls, "--tls-auth-clients", "yes"]) as encrypted:
        shown = {"cert": client.certificate, "key": client.key, "cacert": authority.certificate, "host": "localhost"}
        server = serve(identity, *encrypted.settings(**shown))
        assert asked(server, 1) == (1, 1, 2, 1)
        other = certificates.Authority(folder, "other")
        for wrong in (
            {**shown, "cacert": other.certificate},
            {**shown, "sni": "elsewhere"},
            {"cacert": authority.certificate, "host": "localhost"},
            {"tls_enabled": "false"},
            {**shown, "cert": "/nowhere"},
        ):
            refused = servers.galatea(identity, *encrypted.settings(**wrong), wait=False)
            assert refused.wait_for_exit() == 1, wrong
            assert "Failed to initialize RedisCache: " in refused.text()
