"""Models of a hub, `hf://ORG/MODEL[@REVISION][/PATH]`, from a small one on this machine."""

import numpy as np
import pytest

import clients
import fault_proxy
import repositories
from check_cases import onnx_model
from model_hub import Hub
from store_fixtures import echo, failed_start, identity, index, start

__all__ = ["start"]


PADDING = "# " + "x" * 2000


def folder(name, more=""):
    """The files of a model with a built-in backend and one large file."""
    return {f"{name}/config.pbtxt": identity(name) + more, f"{name}/1/weights.bin": PADDING}


@pytest.fixture
def hub():
    found = Hub()
    yield found
    found.stop()


@pytest.fixture
def serve(hub, start):
    """Starts servers that know the hub."""

    def run(repository, *flags, endpoint=None, **more):
        return start(repository, *flags, keys=False, HF_ENDPOINT=endpoint or hub.web.url, **more)

    return run


def test_a_repository_with_folders_of_models(hub, serve):
    hub.commit("org/models", {"README.md": "x", ".gitattributes": "x", **folder("a"), **folder("b")})
    server = serve("hf://org/models")
    assert echo(server, "a") and echo(server, "b")
    assert sorted(index(server)) == ["a", "b"]
    # The large file was fetched from another server, which never saw a token, and which a log must not show whole.
    assert any("signature=" in path for path, _ in hub.store.asked)
    assert "signed-secret" not in server.text()


@pytest.mark.parametrize(
    ("path", "model"),
    [("/onnx/model.onnx", "bert"), ("/onnx", "bert"), ("/onnx/model_quantized.onnx", "model_quantized"), ("@v1/onnx/model.onnx", "bert")],
)
def test_one_model_file(hub, serve, path, model):
    files = {"README.md": "x", "config.json": "{}", "model.safetensors": PADDING, "onnx/model.onnx": onnx_model(), "onnx/model_quantized.onnx": onnx_model()}
    hub.commit("org/bert", files, revision="v1" if "@" in path else "main")
    server = serve(f"hf://org/bert{path}")
    array = np.ones((2, 3), np.float32)
    answer = clients.infer(clients.client(server, "grpc"), "grpc", model, {"x": array})
    assert (answer["y"] == array).all()
    assert list(index(server)) == [model]
    assert not any("safetensors" in path or "README" in path for path in hub.fetched()), "what is not served is not fetched"


def test_the_folder_of_one_model_with_another_named_configuration_beside_a_file(hub, serve):
    hub.commit("org/one", {"config.pbtxt": identity("one"), "1/x": "x"})
    hub.commit("org/two", {"net.onnx": onnx_model(), "config.pbtxt": 'name: "else"\nmax_batch_size: 4'})
    both = serve("hf://org/one", "--model-repository=hf://org/two")
    assert echo(both, "one")
    assert clients.client(both, "http").get_model_config("net")["max_batch_size"] == 4


def test_a_hub_beside_local_folders(hub, serve, tmp_path):
    repositories.write_model(tmp_path / "local", "here", "galatea", "identity", repositories.identity_config())
    hub.commit("org/models", folder("there"))
    server = serve(tmp_path / "local", "--model-repository=hf://org/models")
    assert echo(server, "here") and echo(server, "there")


def test_a_restart_fetches_only_what_changed(hub, serve):
    hub.commit("org/models", {"README.md": "1", **folder("a"), **folder("b")})
    serve("hf://org/models").stop()
    hub.web.asked.clear()
    hub.store.asked.clear()
    server = serve("hf://org/models")
    assert echo(server, "a") and hub.fetched() == []
    server.stop()
    # Another commit that leaves one model as it is.
    hub.commit("org/models", {"README.md": "2", **folder("a"), **folder("b", more="\n# changed")})
    server = serve("hf://org/models")
    assert echo(server, "b")
    assert {path.split("/resolve/")[1].split("/")[1] for path in hub.fetched() if "/resolve/" in path} == {"b"}


def test_polling_finds_new_commits_and_fetches_nothing_for_others(hub, serve):
    hub.commit("org/models", folder("a"))
    server = serve("hf://org/models", "--model-control-mode=poll", "--repository-poll-secs=1")
    fetched = len(hub.fetched())
    hub.commit("org/models", {"README.md": "new", **folder("a")})
    hub.commit("org/models", {"README.md": "new", **folder("a"), **folder("b")})
    server.wait_for_line("successfully loaded 'b'")
    assert echo(server, "b")
    assert not any("/a/" in path for path in hub.fetched()[fetched:])
    hub.commit("org/models", folder("b"))
    server.wait_for_line("successfully unloaded 'a'")


def test_explicit_control_fetches_only_what_is_loaded(hub, serve):
    hub.commit("org/models", {**folder("a"), **folder("b")})
    server = serve("hf://org/models", "--model-control-mode=explicit")
    assert hub.fetched() == [] and set(index(server)) == {"a", "b"}
    stock = clients.client(server, "grpc")
    stock.load_model("a")
    assert echo(server, "a") and not any("/b/" in path for path in hub.fetched())
    stock.unload_model("a")
    server.wait_for_line("successfully unloaded 'a'")
    with pytest.raises(Exception, match="failed to poll from model repository|not found"):
        stock.load_model("missing")


@pytest.mark.parametrize(
    ("variables", "path", "text"),
    [
        ({}, "org/private", "in HF_TOKEN"),
        ({"HF_TOKEN": "wrong-secret"}, "org/private", "that the token's account may read it"),
        ({"HF_TOKEN": "expired"}, "org/private", "does not accept the token"),
        ({"HF_TOKEN": "right"}, "org/gated", "accept its conditions"),
        ({}, "org/missing", "check the name"),
        ({"HF_TOKEN": "right"}, "org/private@v9", "has no such revision"),
        ({"HF_TOKEN": "right"}, "org/private/nothing", "there is no 'nothing' in it at revision 'main'"),
        ({}, "org/weights", "need a model.py"),
        ({}, "org/files", "name one of its model files: hf://org/files/deep/net.onnx"),
        ({}, "org", "it is hf://ORG/MODEL[@REVISION][/PATH]"),
        ({"HF_ENDPOINT": "http://hub.invalid"}, "org/private", "use https://"),
    ],
)
def test_what_cannot_be_had_is_told_with_what_to_do(hub, serve, variables, path, text):
    hub.commit("org/private", folder("a"), token="right")
    hub.commit("org/gated", folder("a"), gated=True)
    hub.commit("org/weights", {"model.safetensors": "x"})
    hub.commit("org/files", {"deep/net.onnx": "x", "other/x.py": "x"})
    variables = dict(variables)
    endpoint = variables.pop("HF_ENDPOINT", None)
    log = failed_start(serve(f"hf://{path}", wait=False, endpoint=endpoint, **variables))
    assert text in log, log
    assert "wrong-secret" not in log


@pytest.mark.parametrize("source", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HOME", "HOME"])
def test_tokens(hub, serve, tmp_path, source):
    hub.commit("org/private", folder("a"), token="hub-secret")
    files = {"HF_TOKEN_PATH": "named", "HF_HOME": "home/token", "HOME": ".cache/huggingface/token"}
    variables = {source: "hub-secret"}
    if source in files:
        file = tmp_path / files[source]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("hub-secret\n")
        variables = {} if source == "HOME" else {source: str(file if source == "HF_TOKEN_PATH" else file.parent)}
    server = serve("hf://org/private", "--log-verbose=2", **variables)
    assert echo(server, "a") and "hub-secret" not in server.text()
    assert not any("Authorization" in headers for _, headers in hub.store.asked)


def test_a_busy_hub_is_asked_again(hub, serve):
    hub.commit("org/models", folder("a"))
    with fault_proxy.FaultProxy(hub.web.address) as proxy:
        proxy.faults.append(fault_proxy.answers("/revision/", 429, times=1, Retry_After="1"))
        proxy.faults.append(fault_proxy.answers("/tree/", 503, times=2))
        proxy.faults.append(fault_proxy.answers("/resolve/", 500, times=1))
        assert echo(serve("hf://org/models", endpoint=proxy.url), "a")
        assert len([asked for asked in proxy.asked if "/revision/" in asked.path]) >= 2


def test_a_broken_download_is_taken_up_again(hub, serve):
    content = PADDING * 100
    hub.commit("org/models", {**folder("a"), "a/1/large": content})
    with fault_proxy.FaultProxy(hub.store.address) as proxy:
        hub.store_url = proxy.url
        proxy.changes.append(fault_proxy.cuts("GET", 100_000, times=2))
        server = serve("hf://org/models")
        assert echo(server, "a")
        ranges = [asked.range for asked in proxy.asked if asked.range]
        assert "bytes=100000-" in ranges, ranges


@pytest.mark.parametrize(("path", "text"), [("a/1/weights.bin", "its checksum"), ("a/config.pbtxt", "")])
def test_what_is_not_what_was_listed_is_not_served(hub, serve, path, text):
    hub.commit("org/models", folder("a"))
    content = hub.repositories["org/models"]["commits"].popitem()[1]
    hub.commit("org/models", content)
    hub.damaged[path] = content[path][:-1] + b"!" if "weights" in path else content[path] + b"more"
    server = serve("hf://org/models", "--exit-on-error=false", "--strict-readiness=false")
    state, reason = index(server)["a"]
    assert state != "READY", reason
    assert text in server.text()
    del hub.damaged[path]
    clients_server = serve("hf://org/models")
    assert echo(clients_server, "a"), "what was refused is not in the cache"


def test_hostile_listings(hub, serve):
    files = folder("a")
    hub.commit("org/models", {**files, "a/../../escape": "x"})
    server = serve("hf://org/models", "--exit-on-error=false")
    assert "escape" in server.text() and index(server)["a"][0] != "READY"
    with fault_proxy.FaultProxy(hub.web.address) as proxy:
        proxy.faults.append(fault_proxy.answers("/tree/", 200, b"[]", Link='<http://127.0.0.1:1/x>; rel="next"'))
        log = failed_start(serve("hf://org/models", wait=False, endpoint=proxy.url))
        assert "more than" in log or "another server" in log, log
        proxy.faults[:] = [fault_proxy.answers("/resolve/|/revision/", 302, Location="http://models.invalid/x")]
        log = failed_start(serve("hf://org/models", wait=False, endpoint=proxy.url))
        assert "is not encrypted" in log, log
        proxy.faults[:] = [fault_proxy.answers("/revision/", 302, Location="/api/models/org/models/revision/main")]
        log = failed_start(serve("hf://org/models", wait=False, endpoint=proxy.url))
        assert "redirects" in log, log


def test_a_hub_that_goes_away_leaves_what_is_loaded(hub, serve):
    hub.commit("org/models", folder("a"))
    with fault_proxy.FaultProxy(hub.web.address) as proxy:
        server = serve("hf://org/models", "--model-control-mode=poll", "--repository-poll-secs=1", endpoint=proxy.url)
        proxy.stop()
        server.wait_for_line("model repository 'hf://org/models' cannot be read")
        assert echo(server, "a") and clients.is_ready(server)
        proxy.start()
        server.wait_for_line("model repository 'hf://org/models' can be read again")
        assert echo(server, "a")
