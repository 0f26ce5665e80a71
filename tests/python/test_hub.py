"""Models of a hub, `hf://ORG/MODEL[@REVISION][/PATH]`, from a small one on this machine."""

import re

import numpy as np
import pytest

import clients
import fault_proxy
import repositories
from check_cases import onnx_model
from model_hub import Hub
from store_fixtures import check, echo, identity, index, start

__all__ = ["check", "start"]

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


@pytest.fixture
def look(hub, check):
    """Fetches from the hub and checks what came."""

    def run(*words, endpoint=None, **more):
        return check(*words, keys=False, HF_ENDPOINT=endpoint or hub.web.url, **more)

    return run


def test_every_address_form_is_served(hub, serve, tmp_path):
    """Folders of models, one file in several ways, the folder of one model, a configuration beside a file with another name
    in it, a local folder, and a repository that wants a token."""
    hub.commit("org/models", {"README.md": "x", ".gitattributes": "x", **folder("a"), **folder("b")})
    files = {"README.md": "x", "config.json": "{}", "model.safetensors": PADDING, "onnx/model.onnx": onnx_model(), "onnx/model_quantized.onnx": onnx_model()}
    of_file = {"bert/onnx/model.onnx": "bert", "bart/onnx": "bart", "best/onnx/model_quantized.onnx": "model_quantized", "old@v1/onnx/model.onnx": "old"}
    for name in ("bert", "bart", "best", "old"):
        hub.commit(f"org/{name}", files, revision="v1" if name == "old" else "main")
    hub.commit("org/one", {"config.pbtxt": identity("one"), "1/x": "x"})
    hub.commit("org/two", {"net.onnx": onnx_model(), "config.pbtxt": 'name: "else"\nmax_batch_size: 4'})
    hub.commit("org/private", folder("hidden"), token="hub-secret")
    repositories.write_model(tmp_path / "local", "here", "galatea", "identity", repositories.identity_config())
    addresses = ["models", *of_file, "one", "two", "private"]
    server = serve(tmp_path / "local", *[f"--model-repository=hf://org/{path}" for path in addresses], "--log-verbose=2", HF_TOKEN="hub-secret")
    assert all(echo(server, model) for model in ("a", "b", "one", "here", "hidden"))
    array = np.ones((2, 3), np.float32)
    for model in of_file.values():
        assert (clients.infer(clients.client(server, "grpc"), "grpc", model, {"x": array})["y"] == array).all()
    assert clients.client(server, "http").get_model_config("net")["max_batch_size"] == 4
    assert sorted(index(server)) == sorted(["a", "b", "one", "here", "hidden", "net", *of_file.values()])
    assert not any("safetensors" in path or "README" in path for path in hub.fetched()), "what is not served is not fetched"
    # The large file was fetched from another server, which never saw a token, and which a log must not show whole.
    assert any("signature=" in path for path, _ in hub.store.asked)
    assert not any("Authorization" in headers for _, headers in hub.store.asked)
    assert "signed-secret" not in server.text() and "hub-secret" not in server.text()


def test_only_changed_files_are_fetched_again(hub, look):
    hub.commit("org/models", {"README.md": "1", **folder("a"), **folder("b")})
    assert look("hf://org/models").code == 0
    hub.web.asked.clear()
    hub.store.asked.clear()
    assert look("hf://org/models").code == 0 and hub.fetched() == []
    # Another commit that leaves one model as it is.
    hub.commit("org/models", {"README.md": "2", **folder("a"), **folder("b", more="\n# changed")})
    assert look("hf://org/models").code == 0
    assert {path.split("/resolve/")[1].split("/")[1] for path in hub.fetched() if "/resolve/" in path} == {"b"}


def test_polling_finds_new_commits_and_survives_an_unreachable_hub(hub, serve):
    hub.commit("org/models", folder("a"))
    with fault_proxy.FaultProxy(hub.web.address) as proxy:
        server = serve("hf://org/models", "--model-control-mode=poll", "--repository-poll-secs=1", endpoint=proxy.url)
        fetched = len(hub.fetched())
        hub.commit("org/models", {"README.md": "new", **folder("a")})
        hub.commit("org/models", {"README.md": "new", **folder("a"), **folder("b")})
        server.wait_for_line("successfully loaded 'b'")
        assert echo(server, "b")
        assert not any("/a/" in path for path in hub.fetched()[fetched:])
        hub.commit("org/models", folder("b"))
        server.wait_for_line("successfully unloaded 'a'")
        proxy.stop()
        server.wait_for_line("model repository 'hf://org/models' cannot be read")
        assert echo(server, "b") and clients.is_ready(server)
        proxy.start()
        server.wait_for_line("model repository 'hf://org/models' can be read again")
        assert echo(server, "b")


def test_explicit_control_fetches_only_loaded_models(hub, serve):
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
def test_unavailable_repositories_are_reported_with_advice(hub, look, variables, path, text):
    hub.commit("org/private", folder("a"), token="right")
    hub.commit("org/gated", folder("a"), gated=True)
    hub.commit("org/weights", {"model.safetensors": "x"})
    hub.commit("org/files", {"deep/net.onnx": "x", "other/x.py": "x"})
    variables = dict(variables)
    endpoint = variables.pop("HF_ENDPOINT", None)
    seen = look(f"hf://{path}", endpoint=endpoint, **variables)
    assert seen.code != 0 and text in seen.text, seen.text
    assert "wrong-secret" not in seen.text


@pytest.mark.parametrize("source", ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HOME", "HOME"])
def test_tokens_are_read_from_each_place(hub, look, tmp_path, source):
    hub.commit("org/private", folder("a"), token="hub-secret")
    files = {"HF_TOKEN_PATH": "named", "HF_HOME": "home/token", "HOME": ".cache/huggingface/token"}
    variables = {source: "hub-secret"}
    if source in files:
        file = tmp_path / files[source]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("hub-secret\n")
        variables = {} if source == "HOME" else {source: str(file if source == "HF_TOKEN_PATH" else file.parent)}
    seen = look("hf://org/private", **variables)
    assert seen.code == 0 and "hub-secret" not in seen.text, seen.text
    assert not any("Authorization" in headers for _, headers in hub.store.asked)


def test_a_busy_hub_is_retried(hub, look):
    hub.commit("org/models", folder("a"))
    with fault_proxy.FaultProxy(hub.web.address) as proxy:
        proxy.faults.append(fault_proxy.answers("/revision/", 429, times=1, Retry_After="1"))
        proxy.faults.append(fault_proxy.answers("/tree/", 503, times=2))
        proxy.faults.append(fault_proxy.answers("/resolve/", 500, times=1))
        assert look("hf://org/models", endpoint=proxy.url).code == 0
        assert len([asked for asked in proxy.asked if "/revision/" in asked.path]) >= 2


def test_an_interrupted_download_is_resumed(hub, look):
    content = PADDING * 100
    hub.commit("org/models", {**folder("a"), "a/1/large": content})
    with fault_proxy.FaultProxy(hub.store.address) as proxy:
        hub.store_url = proxy.url
        proxy.changes.append(fault_proxy.cuts("GET", 100_000, times=2))
        assert look("hf://org/models").code == 0
        ranges = [asked.range for asked in proxy.asked if asked.range]
        assert "bytes=100000-" in ranges, ranges


@pytest.mark.parametrize(("path", "text"), [("a/1/weights.bin", "its checksum"), ("a/config.pbtxt", "")])
def test_content_that_differs_from_the_listing_is_discarded(hub, look, path, text):
    hub.commit("org/models", folder("a"))
    content = hub.repositories["org/models"]["commits"].popitem()[1]
    hub.commit("org/models", content)
    hub.damaged[path] = content[path][:-1] + b"!" if "weights" in path else content[path] + b"more"
    seen = look("hf://org/models")
    assert seen.code != 0 and text in seen.text, seen.text
    del hub.damaged[path]
    assert look("hf://org/models").code == 0, "what was refused is not in the cache"


def test_hostile_listings_are_refused(hub, look):
    files = folder("a")
    hub.commit("org/models", {**files, "a/../../escape": "x"})
    seen = look("hf://org/models")
    assert seen.code != 0 and "escape" in seen.text, seen.text
    with fault_proxy.FaultProxy(hub.web.address) as proxy:
        for fault, told in [
            (fault_proxy.answers("/tree/", 200, b"[]", Link='<http://127.0.0.1:1/x>; rel="next"'), "more than|another server"),
            (fault_proxy.answers("/resolve/|/revision/", 302, Location="http://models.invalid/x"), "is not encrypted"),
            (fault_proxy.answers("/revision/", 302, Location="/api/models/org/models/revision/main"), "redirects"),
        ]:
            proxy.faults[:] = [fault]
            seen = look("hf://org/models", endpoint=proxy.url)
            assert seen.code != 0 and re.search(told, seen.text), seen.text
