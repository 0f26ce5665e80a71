"""Model repositories in Google's and Azure's stores, from their emulators."""

import base64
import json

import pytest

import clients
import fault_proxy
import object_stores
import repositories
import tiers
from store_fixtures import echo, failed_start, start
from test_object_stores import sums

__all__ = ["start"]

needs_azurite = pytest.mark.skipif(not object_stores.has_azurite(), reason="run `cargo xtask setup`")
IDENTITY = 'backend: "identity"\n' + repositories.identity_config()


def filled(store, name, **more):
    store.create(name, **more)
    object_stores.fill(store, name, repositories.EXAMPLES / "simple", "deep/models/simple")
    store.put(name, "deep/models/a b/config.pbtxt", IDENTITY.encode())
    store.put(name, "deep/models/a b/1/weights.bin", b"w" * 500_000)
    return store


@pytest.fixture(scope="module")
def google():
    return filled(object_stores.running("gs"), "models-gs")


@pytest.fixture(scope="module")
def azure():
    return filled(object_stores.running("as"), "models-as", public=False)


@pytest.fixture
def google_proxy(google):
    with fault_proxy.FaultProxy(google.address, host=google.home) as proxy:
        yield proxy


@pytest.fixture
def azure_proxy(azure):
    with fault_proxy.FaultProxy(azure.address) as proxy:
        yield proxy


KEY = {"AZURE_STORAGE_ACCOUNT": object_stores.ACCOUNT, "AZURE_STORAGE_KEY": object_stores.ACCOUNT_KEY}


def served(server):
    assert sums(server, "http") and sums(server, "grpc") and echo(server, "a b", "grpc")


@tiers.peers
def test_gcs_repositories_are_served(google_proxy, start):
    served(start("gs://models-gs/deep/models", keys=False, STORAGE_EMULATOR_HOST=google_proxy.url))
    assert google_proxy.downloads("model.onnx")


@tiers.peers
def test_gcs_repositories_are_polled_and_cached(google, google_proxy, start):
    variables = {"STORAGE_EMULATOR_HOST": google_proxy.url}
    server = start("gs://models-gs/deep/models/", "--model-control-mode=poll", "--repository-poll-secs=1", keys=False, **variables)
    google.put("models-gs", "deep/models/late/config.pbtxt", IDENTITY.encode())
    google.put("models-gs", "deep/models/late/1/x", b"x")
    server.wait_for_line("successfully loaded 'late'")
    server.stop()
    google_proxy.asked.clear()
    server = start("gs://models-gs/deep/models/", keys=False, **variables)
    assert echo(server, "late")
    assert not [asked for asked in google_proxy.asked if "weights.bin" in asked.path]


@tiers.peers
def test_gcs_failures_are_retried(google_proxy, start):
    google_proxy.changes.append(fault_proxy.cuts("weights.bin", 200_000, times=1))
    google_proxy.faults.append(fault_proxy.answers("GET", 503, b"busy", times=2))
    server = start("gs://models-gs/deep/models", keys=False, STORAGE_EMULATOR_HOST=google_proxy.url)
    served(server)
    assert "bytes=200000-" in " ".join(asked.range or "" for asked in google_proxy.asked)


@tiers.peers
def test_gcs_service_accounts_sign_in(google_proxy, start, tmp_path):
    """The key signs the credential that the store sees. The address in the key file leads to the emulator."""
    file = tmp_path / "account.json"
    account = object_stores.service_account(gcs_base_url=google_proxy.url)
    file.write_text(json.dumps(account))
    (tmp_path / "all.json").write_text(json.dumps({"gs": {"": str(file)}}))
    for variables in ({"GOOGLE_APPLICATION_CREDENTIALS": str(file)}, {"TRITON_CLOUD_CREDENTIAL_PATH": str(tmp_path / "all.json")}):
        google_proxy.asked.clear()
        server = start("gs://models-gs/deep/models", "--log-verbose=2", keys=False, **variables)
        served(server)
        shown = {asked.headers["Authorization"] for asked in google_proxy.asked}
        assert all(header.startswith("Bearer ") and header.count(".") == 2 for header in shown), shown
        assert account["client_email"] in [claims(header)["iss"] for header in shown]
        assert "PRIVATE KEY" not in server.text() and not any(header[7:] in server.text() for header in shown)
    log = failed_start(start("gs://models-gs/deep/models", keys=False, wait=False, GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "none.json")))
    assert "none.json" in log, log


def claims(header):
    """What a signed token says."""
    part = header.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


@tiers.peers
@needs_azurite
@pytest.mark.parametrize("form", ["host", "scheme"])
def test_azure_repositories_are_served(azure_proxy, start, form):
    scheme = "http://" if form == "scheme" else ""
    path = f"as://{scheme}{azure_proxy.address}/{object_stores.ACCOUNT}/models-as/deep/models"
    server = start(path, "--log-verbose=2", keys=False, **KEY)
    served(server)
    assert object_stores.ACCOUNT_KEY not in server.text()


@tiers.peers
@needs_azurite
def test_azure_reads_the_credential_file(azure_proxy, start, tmp_path):
    base = f"as://{azure_proxy.address}/{object_stores.ACCOUNT}"
    file = tmp_path / "all.json"
    right = {"account_str": object_stores.ACCOUNT, "account_key": object_stores.ACCOUNT_KEY}
    file.write_text(json.dumps({"as": {"": {"account_str": "other", "account_key": "AAAA"}, f"{base}/models-as": right}}))
    served(start(f"{base}/models-as/deep/models", keys=False, TRITON_CLOUD_CREDENTIAL_PATH=str(file)))


@tiers.peers
@needs_azurite
def test_azure_refuses_a_wrong_key(azure_proxy, start):
    path = f"as://{azure_proxy.address}/{object_stores.ACCOUNT}/models-as/deep/models"
    wrong = {**KEY, "AZURE_STORAGE_KEY": "d3Jvbmcgc2VjcmV0IGtleQ=="}
    log = failed_start(start(path, keys=False, wait=False, **wrong))
    assert "403" in log or "AuthorizationFailure" in log or "AuthenticationFailed" in log, log
    assert wrong["AZURE_STORAGE_KEY"] not in log


@tiers.peers
@needs_azurite
def test_public_azure_containers_need_no_credentials(azure, start):
    name = "public-as"
    filled(azure, name, public=True)
    served(start(f"as://{azure.address}/{object_stores.ACCOUNT}/{name}/deep/models", keys=False))


@tiers.peers
@needs_azurite
def test_azure_failures_and_changes_are_handled(azure, azure_proxy, start):
    azure_proxy.changes.append(fault_proxy.cuts("weights.bin", 200_000, times=1))
    path = f"as://{azure_proxy.address}/{object_stores.ACCOUNT}/models-as/deep/models"
    server = start(path, "--model-control-mode=explicit", "--load-model=a b", keys=False, **KEY)
    assert echo(server, "a b", "grpc")
    assert "bytes=200000-" in " ".join(asked.range or asked.headers.get("x-ms-range") or "" for asked in azure_proxy.asked)
    azure.put("models-as", "deep/models/a b/2/x", b"x")
    clients.client(server, "grpc").load_model("a b")
    assert clients.client(server, "grpc").is_model_ready("a b", "2")


@needs_azurite
def test_all_kinds_of_repositories_work_together(google_proxy, azure_proxy, start, tmp_path):
    repositories.write_model(tmp_path / "local", "here", "galatea", "identity", repositories.identity_config())
    s3 = object_stores.running("s3")
    s3.create("models-s3")
    s3.put("models-s3", "there/config.pbtxt", IDENTITY.encode())
    s3.put("models-s3", "there/1/x", b"x")
    more = [f"s3://{s3.address}/models-s3", f"as://{azure_proxy.address}/{object_stores.ACCOUNT}/models-as/deep/models"]
    server = start(
        tmp_path / "local", *(f"--model-repository={path}" for path in more),
        STORAGE_EMULATOR_HOST=google_proxy.url, **KEY,
    )
    assert echo(server, "here") and echo(server, "there")
    served(server)
