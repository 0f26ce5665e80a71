"""Fixtures of the tests of repositories in object stores: emulators, buckets, and servers that read them."""

import json
import os
import subprocess
import types
import uuid

import numpy as np
import pytest

import clients
import fault_proxy
import object_stores
import repositories
import servers


def identity(name):
    """The configuration of a model that returns what it gets."""
    return f'name: "{name}"\nbackend: "identity"\n{repositories.identity_config()}'


@pytest.fixture
def s3():
    return object_stores.running("s3")


@pytest.fixture
def proxy(s3):
    """Before the S3 emulator; it counts and has faults."""
    with fault_proxy.FaultProxy(s3.address) as found:
        yield found


@pytest.fixture
def bucket(s3, proxy):
    """An empty bucket: `put`, `delete` and `add` fill it, `path` is its address through the proxy."""
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    s3.create(name)

    def put(key, content):
        s3.put(name, key, content.encode() if isinstance(content, str) else content)

    def add(model, prefix="models", more="", size=10):
        """A model that returns what it gets, with a file of some size."""
        put(f"{prefix}/{model}/config.pbtxt", identity(model) + more)
        put(f"{prefix}/{model}/1/weights.bin", b"w" * size)

    return types.SimpleNamespace(
        name=name, put=put, add=add, delete=lambda key: s3.delete(name, key), path=f"s3://{proxy.address}/{name}/models",
    )


@pytest.fixture
def start(tmp_path):
    """Starts a server with a repository; all of a test share one cache folder, and end with it."""
    running = []

    def run(repository, *flags, wait=True, keys=True, cache=tmp_path / "cache", through=(), **variables):
        known = {"AWS_ACCESS_KEY_ID": "TESTKEY", "AWS_SECRET_ACCESS_KEY": "test-secret", "AWS_DEFAULT_REGION": "us-east-1"} if keys else {}
        env = object_stores.environment(tmp_path, **{**known, **variables})
        flags = [f"--repository-cache-directory={cache}", *flags] if cache else flags
        server = servers.galatea(repository, *flags, env=env, wait=wait, through=through)
        running.append(server)
        return server

    yield run
    for server in running:
        server.stop()


@pytest.fixture
def check(tmp_path):
    """Runs `galatea check`, which fetches models as a server does, into the cache folder of the test's servers, and starts
    none. The answer has the exit `code`, all that was printed as `text`, and what was found as `report`, if it could be read."""

    def run(*words, keys=True, cache=tmp_path / "cache", **variables):
        known = {"AWS_ACCESS_KEY_ID": "TESTKEY", "AWS_SECRET_ACCESS_KEY": "test-secret", "AWS_DEFAULT_REGION": "us-east-1"} if keys else {}
        env = {**os.environ, **object_stores.environment(tmp_path, **{**known, **variables})}
        folder = [f"--repository-cache-directory={cache}"] if cache else []
        command = [servers.galatea_binary(), "check", *map(str, words), *folder, "--json"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
        report = json.loads(done.stdout) if done.stdout else None
        return types.SimpleNamespace(code=done.returncode, text=done.stdout + done.stderr, report=report)

    return run


def failed_start(server):
    """The log of a server that did not start."""
    assert server.wait_for_exit() != 0
    return server.text()


def echo(server, model, protocol="http"):
    """Whether a model of `bucket.add` returns what it gets."""
    array = np.array([1, 2, 3], np.float32)
    answer = clients.infer(clients.client(server, protocol), protocol, model, {"INPUT0": array})
    return (answer["OUTPUT0"] == array).all()


def index(server):
    """State and reason of the models by name."""
    entries = clients.client(server, "http").get_model_repository_index()
    return {entry["name"]: (entry.get("state", ""), entry.get("reason", "")) for entry in entries}


def entries(cache):
    """Names of the complete entries of a cache folder."""
    return sorted(path.parent.name for path in cache.glob("v1/models/*/manifest.json"))
