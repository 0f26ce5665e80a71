"""Model repositories in S3, served as local ones: every form of address, every control mode, with the stock clients."""

import os
import subprocess
import types

import numpy as np
import pytest

import clients
import object_stores
import perf_tls
import repositories
import servers
import tiers
from store_fixtures import bucket, check, echo, entries, identity, index, proxy, s3, start

__all__ = ["bucket", "check", "proxy", "s3", "start"]


def sums(server, protocol, model="simple"):
    """Whether the example model adds and subtracts."""
    a, b = np.arange(16, dtype=np.int32).reshape(1, 16), np.full((1, 16), 3, np.int32)
    answer = clients.infer(clients.client(server, protocol), protocol, model, {"INPUT0": a, "INPUT1": b})
    return (answer["OUTPUT0"] == a + b).all() and (answer["OUTPUT1"] == a - b).all()


@pytest.mark.parametrize("form", ["host", "http", "slashes", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "whole bucket"])
def test_every_address_form_is_served(s3, proxy, bucket, check, form):
    prefix = "" if form == "whole bucket" else "a/models"
    object_stores.fill(s3, bucket.name, repositories.EXAMPLES / "simple", f"{prefix}/simple".strip("/"))
    path = f"{bucket.name}/{prefix}"
    address, variables = {
        "http": (f"s3://http://{proxy.address}/{path}/", {}),
        "slashes": (f"s3://{proxy.address}//{bucket.name}//a///models//", {}),
        "AWS_ENDPOINT_URL": (f"s3://{path}", {"AWS_ENDPOINT_URL": proxy.url}),
        "AWS_ENDPOINT_URL_S3": (f"s3://{path}", {"AWS_ENDPOINT_URL_S3": proxy.url, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}),
    }.get(form, (f"s3://{proxy.address}/{path}", {}))
    seen = check(address, **variables)
    assert seen.code == 0 and seen.report["models"] == 1, seen.text
    assert proxy.downloads("model.onnx"), "it came from the bucket"


def test_an_encrypted_store_is_served(s3, bucket, check):
    bucket.add("a")
    tls = perf_tls.TlsProxy("http", types.SimpleNamespace(http=s3.address))
    address = f"s3://https://localhost:{tls.port}/{bucket.name}/models"
    assert check(address, AWS_CA_BUNDLE=str(perf_tls.certificate("authority.pem"))).code == 0
    assert tls.handshakes
    seen = check(address)
    assert seen.code != 0 and "certificate" in seen.text, seen.text


@tiers.peers
def test_a_bucket_works_beside_local_repositories(bucket, start, tmp_path):
    bucket.add("there")
    bucket.add("elsewhere", prefix="more")
    repositories.write_model(tmp_path / "local", "here", "galatea", "identity", repositories.identity_config())
    more = bucket.path.removesuffix("models") + "more"
    server = start(tmp_path / "local", f"--model-repository={bucket.path}", f"--model-repository={more}")
    assert all(echo(server, model) for model in ("here", "there", "elsewhere"))
    # One name in two of them is neither's, as with local ones.
    bucket.add("here")
    assert echo(server, "here")
    with pytest.raises(Exception, match="."):
        clients.client(server, "http").load_model("here")


SECRETS = {"AWS_ACCESS_KEY_ID": "AKIDENTIFIER", "AWS_SECRET_ACCESS_KEY": "very-secret-key", "AWS_SESSION_TOKEN": "very-secret-token"}


def test_explicit_control_fetches_only_loaded_models(proxy, bucket, start, tmp_path):
    for model in ("a", "b"):
        bucket.add(model)
    flags = ["--model-control-mode=explicit", "--load-model=a", "--log-verbose=3"]
    server = start(bucket.path, *flags, keys=False, AWS_DEFAULT_REGION="us-east-1", **SECRETS)
    assert echo(server, "a", "http") and echo(server, "a", "grpc")
    for protocol, model in (("http", "b"), ("grpc", "c")):
        bucket.add(model)
        stock = clients.client(server, protocol)
        assert not proxy.downloads(f"/{model}/1/") and model in index(server)
        stock.load_model(model)
        assert echo(server, model, protocol) and len(proxy.downloads(f"/{model}/1/")) == 1
        stock.unload_model(model)
        server.wait_for_line(f"successfully unloaded '{model}'")
        assert not stock.is_model_ready(model)
        # Loaded again it is not fetched again; a new version is, and is what answers.
        count = len(proxy.downloads(f"/{model}/1/"))
        stock.load_model(model)
        assert echo(server, model) and len(proxy.downloads(f"/{model}/1/")) == count
        bucket.put(f"models/{model}/2/weights.bin", "more")
        stock.load_model(model)
        assert clients.client(server, "http").is_model_ready(model, "2")
        with pytest.raises(Exception, match="failed to poll from model repository|not found"):
            stock.load_model("nothing")
    # A configuration that comes with the request, and files, count as with a local repository.
    clients.client(server, "http").load_model("b", config='{"backend": "identity", "max_batch_size": 4, "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}], "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}]}')
    assert clients.client(server, "http").get_model_config("b")["max_batch_size"] == 4
    server.stop()
    assert "very-secret" not in server.text() and "Signature=" not in server.text()


def test_polling_fetches_only_changed_versions(proxy, bucket, start):
    bucket.add("a", size=100_000)
    bucket.add("b")
    server = start(bucket.path, "--model-control-mode=poll", "--repository-poll-secs=1")
    assert echo(server, "a") and echo(server, "b")
    count = len(proxy.downloads())
    listings = len([asked for asked in proxy.asked if asked.is_listing])
    # Some rounds in which nothing changes: only listings.
    proxy.wait_for(lambda _: len([asked for asked in proxy.asked if asked.is_listing]) > listings + 4, "polls")
    assert len(proxy.downloads()) == count
    bucket.add("c")
    server.wait_for_line("successfully loaded 'c'")
    bucket.add("b", more="\nparameters { key: 'new' value: { string_value: 'x' } }")
    server.wait(lambda: len([line for line in server.log if "successfully loaded 'b'" in line]) == 2, "another load of b")
    assert "new" in clients.client(server, "http").get_model_config("b")["parameters"]
    assert len(proxy.downloads("/a/1/weights.bin")) == 1, "what did not change is not fetched"
    for key in ("config.pbtxt", "1/weights.bin"):
        bucket.delete(f"models/a/{key}")
    server.wait_for_line("successfully unloaded 'a'")


@tiers.peers
def test_without_model_control_later_models_are_ignored(bucket, start):
    bucket.add("a")
    server = start(bucket.path)
    bucket.add("b")
    assert echo(server, "a")
    with pytest.raises(Exception, match="explicit model load / unload is not allowed"):
        clients.client(server, "http").load_model("b")


def test_unchanged_files_are_not_fetched_again(proxy, bucket, check, tmp_path):
    bucket.add("a", size=300_000)
    bucket.add("b")
    assert check(bucket.path).code == 0
    first = entries(tmp_path / "cache")
    assert len(first) == 2 and len(proxy.downloads("/1/weights.bin")) == 2
    proxy.asked.clear()
    assert check(bucket.path).code == 0 and proxy.downloads() == []
    bucket.add("a", size=300_001)
    assert check(bucket.path).code == 0
    assert [asked.path.split("/")[-3] for asked in proxy.downloads("/1/")] == ["a"]
    # What is in the cache and not as it was fetched is fetched again.
    damaged = next(path for path in (tmp_path / "cache/v1/models").glob("b-*/b/1/weights.bin"))
    damaged.write_bytes(b"short")
    proxy.asked.clear()
    assert check(bucket.path).code == 0 and proxy.downloads("/b/1/") and not proxy.downloads("/a/")
    assert damaged.read_bytes() == b"w" * 10


@tiers.peers
def test_a_load_lists_its_model_once(proxy, bucket, start):
    """Each operation lists a model once, and asks for nothing that is in the cache."""
    models = ("a", "b", "c", "d")
    for model in models:
        bucket.add(model)
    flags = ["--model-control-mode=explicit", *[f"--load-model={model}" for model in models]]
    start(bucket.path, *flags).stop()

    def asked():
        """Models that were listed since the last call and keys that were read; not the lists of all models."""
        seen, proxy.asked[:] = list(proxy.asked), []
        prefix = "prefix=models/"
        keys = [each.query.split(prefix)[1].split("&")[0] if each.is_listing else each.path for each in seen]
        return sorted(filter(None, keys))

    asked()
    server = start(bucket.path, *flags)
    server.wait_for_line(r"\| d +\| 1 ")
    lists = len(proxy.asked)
    assert asked() == [f"{model}/" for model in models] and lists == 9, lists
    stock = clients.client(server, "http")
    stock.load_model("a")
    assert asked() == ["a/"]
    assert len(stock.get_model_repository_index()) == 4
    assert asked() == []
    # What was uploaded before a call is what it loads.
    bucket.put("models/a/2/weights.bin", "more")
    stock.load_model("a")
    assert clients.client(server, "http").is_model_ready("a", "2") and asked().count("a/") == 1


def test_check_and_config_accept_addresses(s3, proxy, bucket, tmp_path):
    object_stores.fill(s3, bucket.name, repositories.EXAMPLES / "simple", "models/simple")
    bucket.put("models/wrong/config.pbtxt", 'backend: "identity"\nno_such_field: 1\n')
    bucket.put("models/wrong/1/weights.bin", "w")
    keys = {"AWS_ACCESS_KEY_ID": "TESTKEY", "AWS_SECRET_ACCESS_KEY": "test-secret", "AWS_DEFAULT_REGION": "us-east-1"}
    env = {**os.environ, **object_stores.environment(tmp_path, **keys)}

    def run(*words):
        return subprocess.run([servers.galatea_binary(), *words], env=env, capture_output=True, text=True, timeout=120)

    cache = [f"--repository-cache-directory={tmp_path / 'cache'}", "--repository-cache-size=1G"]
    found = run("check", bucket.path, *cache)
    assert found.returncode == 1 and "no field `no_such_field`" in found.stdout and "2 models checked" in found.stdout, found
    assert len(entries(tmp_path / "cache")) == 2
    # What comes after it has the files already.
    proxy.asked.clear()
    assert run("check", bucket.path, *cache).stdout == found.stdout and proxy.downloads() == []
    for address in (f"{bucket.path}/simple", f"{bucket.path}/simple/"):
        shown = run("config", address, *cache)
        assert shown.returncode == 0 and 'name: "INPUT0"' in shown.stdout and "onnxruntime" in shown.stdout, shown
    missing = run("config", f"{bucket.path}/nothing", *cache)
    assert missing.returncode == 1 and missing.stdout == "" and "nothing" in missing.stderr, missing
    refused = run("config", "s3://only-a-bucket")
    assert refused.returncode == 1 and "s3://BUCKET/PATH/MODEL" in refused.stderr, refused


@tiers.peers
def test_the_cache_respects_its_limit_and_keeps_loaded_models(proxy, bucket, start, tmp_path):
    for model in ("a", "b", "c"):
        bucket.add(model, size=400_000)
    flags = ["--model-control-mode=explicit", "--repository-cache-size=1000000"]
    server = start(bucket.path, *flags)
    stock = clients.client(server, "http")
    stock.load_model("a")
    stock.load_model("b")
    assert len(entries(tmp_path / "cache")) == 2
    stock.unload_model("a")
    server.wait_for_line("successfully unloaded 'a'")
    stock.load_model("c")
    assert [name.split("-")[0] for name in entries(tmp_path / "cache")] == ["b", "c"], "the one that nobody uses went"
    stock.load_model("a")
    assert len(entries(tmp_path / "cache")) == 3, "all in use: beyond the limit rather than broken"
    assert all(echo(server, model) for model in ("a", "b", "c"))


@tiers.peers
def test_two_servers_share_a_cache(proxy, bucket, start, tmp_path):
    bucket.add("a", size=300_000)
    both = [start(bucket.path, wait=False), start(bucket.path, wait=False)]
    for server in both:
        server.wait(lambda server=server: len(server.addresses) == 3, "the services to start")
    assert all(echo(server, "a") for server in both)
    assert len(proxy.downloads("/1/weights.bin")) == 1 and len(entries(tmp_path / "cache")) == 1
    # The end of one takes nothing from the other.
    both[0].stop()
    assert echo(both[1], "a")
    mode = (tmp_path / "cache/v1").stat().st_mode & 0o777
    assert mode == 0o700, oct(mode)


@tiers.peers
def test_ensembles_and_python_models_are_served(bucket, start):
    source = (
        "import pathlib\nimport numpy as np\nimport triton_python_backend_utils as pb\n\n\n"
        "class TritonPythonModel:\n"
        "    def initialize(self, args):\n"
        "        self.add = float((pathlib.Path(args['model_repository']) / 'constant.txt').read_text())\n\n"
        "    def execute(self, requests):\n"
        "        return [pb.InferenceResponse([pb.Tensor('OUTPUT0', pb.get_input_tensor_by_name(r, 'INPUT0').as_numpy() + np.float32(self.add))]) for r in requests]\n"
    )
    tensors = repositories.identity_config()
    bucket.put("models/adds/config.pbtxt", f'backend: "python"\n{tensors}')
    bucket.put("models/adds/1/model.py", source)
    bucket.put("models/adds/constant.txt", "2.5")
    bucket.add("copy")
    step = 'step {{ model_name: "{}" model_version: -1 input_map {{ key: "INPUT0" value: "{}" }} output_map {{ key: "OUTPUT0" value: "{}" }} }}\n'
    steps = step.format("copy", "INPUT0", "between") + step.format("adds", "between", "OUTPUT0")
    bucket.put("models/both/config.pbtxt", f'platform: "ensemble"\n{tensors}ensemble_scheduling {{ {steps} }}')
    # Folders of ensembles have a version without a file: what stands for it in a store.
    bucket.put("models/both/1/", "")
    server = start(bucket.path)
    array = np.array([1, 2], np.float32)
    answer = clients.infer(clients.client(server, "grpc"), "grpc", "both", {"INPUT0": array})
    assert (answer["OUTPUT0"] == array + 2.5).all()


@pytest.mark.parametrize(
    "key", ["models/a/../../../escape", "models/a//escape", "models/a/./escape", "models/a/b\\escape", "models/a/1/\x01escape", "models/a/" + "x/" * 40 + "escape"],
)
def test_hostile_object_names_are_refused(bucket, check, tmp_path, key):
    bucket.add("a")
    bucket.add("b")
    bucket.put(key, "x")
    seen = check(bucket.path)
    assert seen.code == 1 and {found["model"] for found in seen.report["findings"]} == {"a"}, seen.text
    assert "escape" in seen.text, "the one that is odd is named"
    assert not list(tmp_path.rglob("*escape*"))


def test_objects_beside_the_models_are_ignored(bucket, check):
    bucket.add("a")
    bucket.put("models/README.md", "x")
    bucket.put("models/.hidden/config.pbtxt", identity("hidden"))
    bucket.put("models-of-others/b/config.pbtxt", identity("b"))
    assert check(bucket.path).report["models"] == 1


def test_namespaces_separate_equal_names(bucket, check):
    bucket.add("a")
    bucket.add("a", prefix="other")
    other = bucket.path.removesuffix("models") + "other"
    more = f"--model-repository={other}"
    assert check(bucket.path, more, "--model-namespacing").report["models"] == 2
    assert "not unique" in check(bucket.path, more).text


def test_invalid_paths_are_refused(s3, proxy, bucket, check):
    bucket.add("a")
    for path, text in [
        (f"s3://{proxy.address}", "No bucket name found in path"),
        ("s3://", "Invalid bucket name: ''"),
        (f"s3://{proxy.address}/no-such-bucket/models", "no-such-bucket"),
        (f"ftp://{proxy.address}/x", "ftp://"),
    ]:
        seen = check(path)
        assert seen.code != 0 and text in seen.text, seen.text
    # A folder without anything in it is none in a store: as in Triton, models may come later.
    seen = check(f"{bucket.path}-missing")
    assert seen.code == 0 and seen.report["models"] == 0, seen.text


def test_the_default_cache_is_in_the_users_home(bucket, check, tmp_path):
    bucket.add("a")
    assert check(bucket.path, cache=None).code == 0
    assert list(tmp_path.rglob("manifest.json"))
