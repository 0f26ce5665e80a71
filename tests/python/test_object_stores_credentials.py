"""Who asks an object store: variables, profiles, the credential file, the services of a machine in a cloud, nobody."""

import json

import clients
import fault_proxy
import object_stores
import pytest
from store_fixtures import bucket, echo, failed_start, proxy, s3, start

__all__ = ["bucket", "proxy", "s3", "start"]

REGION = {"AWS_DEFAULT_REGION": "us-east-1"}
NO_METADATA = {"AWS_EC2_METADATA_DISABLED": "true"}


def only(key, token=None):
    """A fault for whoever does not ask with this key, and this session token."""

    def fault(asked):
        said = asked.headers.get("Authorization", "")
        if f"Credential={key}/" in said and asked.headers.get("x-amz-security-token") == token:
            return None
        return fault_proxy.answers("", 403, fault_proxy.s3_error("InvalidAccessKeyId", "The key does not exist in our records."))(asked)

    return fault


def test_variables(proxy, bucket, start):
    bucket.add("a")
    proxy.faults.append(only("KEYID", "session"))
    keys = {"AWS_ACCESS_KEY_ID": "KEYID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session"}
    server = start(bucket.path, keys=False, **keys, **REGION)
    assert echo(server, "a")
    server.stop()
    region = {asked.headers["Authorization"].split("/")[2] for asked in proxy.asked}
    assert region == {"us-east-1"}
    proxy.asked.clear()
    assert echo(start(bucket.path, keys=False, **keys, AWS_REGION="eu-west-3"), "a")
    assert {asked.headers["Authorization"].split("/")[2] for asked in proxy.asked} == {"eu-west-3"}


def test_wrong_keys_are_told_without_them(proxy, bucket, start):
    bucket.add("a")
    proxy.faults.append(only("OTHER"))
    log = failed_start(start(bucket.path, wait=False, AWS_SECRET_ACCESS_KEY="wrong-secret"))
    assert "InvalidAccessKeyId" in log or "does not exist in our records" in log, log
    assert "wrong-secret" not in log


@pytest.mark.parametrize("where", ["default", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE"])
def test_profiles(proxy, bucket, start, tmp_path, where):
    bucket.add("a")
    proxy.faults.append(only("PROFILEKEY"))
    own = "work" if where == "AWS_PROFILE" else "default"
    file = tmp_path / ("elsewhere" if where == "AWS_SHARED_CREDENTIALS_FILE" else ".aws/credentials")
    file.parent.mkdir(exist_ok=True)
    other = "[other]\naws_access_key_id = WRONG\naws_secret_access_key = x\n"
    file.write_text(f"{other}# mine\n[{own}]\naws_access_key_id=PROFILEKEY\naws_secret_access_key = s\n")
    (tmp_path / ".aws").mkdir(exist_ok=True)
    (tmp_path / ".aws/config").write_text(f"[{'profile work' if own == 'work' else 'default'}]\nregion = eu-north-1\n")
    variables = {"AWS_PROFILE": {"AWS_PROFILE": "work"}, "AWS_SHARED_CREDENTIALS_FILE": {where: str(file)}}.get(where, {})
    assert echo(start(bucket.path, keys=False, **variables), "a")
    assert {asked.headers["Authorization"].split("/")[2] for asked in proxy.asked} == {"eu-north-1"}


def test_a_profile_that_is_missing_or_not_supported_is_told(bucket, start, tmp_path):
    bucket.add("a")
    log = failed_start(start(bucket.path, wait=False, keys=False, AWS_PROFILE="nowhere", **REGION))
    assert "nowhere" in log, log
    (tmp_path / ".aws").mkdir(exist_ok=True)
    (tmp_path / ".aws/config").write_text("[profile sso]\nsso_start_url = https://example.invalid\nsso_account_id = 1\n")
    log = failed_start(start(bucket.path, wait=False, keys=False, AWS_PROFILE="sso", **REGION))
    assert "sso_start_url, which is not supported" in log and "export-credentials" in log, log


def credential_file(tmp_path, content):
    file = tmp_path / "credentials.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return {"TRITON_CLOUD_CREDENTIAL_PATH": str(file)}


def test_the_credential_file_is_searched_for_the_longest_prefix(s3, proxy, bucket, start, tmp_path):
    for prefix, model in (("models", "a"), ("models/inner", "b")):
        bucket.add(model, prefix=prefix)
    key = lambda key_id: {"key_id": key_id, "secret_key": "file-secret", "region": "us-east-1", "session_token": "", "profile": ""}  # noqa: E731
    variables = credential_file(tmp_path, {"s3": {"": key("EMPTY"), bucket.path: key("OUTER"), f"{bucket.path}/inner": key("INNER"), "s3://other": key("OTHER")}})

    def used(path):
        proxy.asked.clear()
        server = start(path, "--model-control-mode=none", "--exit-on-error=false", "--strict-readiness=false", keys=False, **variables)
        server.stop()
        assert "file-secret" not in server.text()
        return {asked.headers["Authorization"].split("Credential=")[1].split("/")[0] for asked in proxy.asked}

    assert used(f"{bucket.path}/inner") == {"INNER"}
    assert used(bucket.path) == {"OUTER"}
    elsewhere = bucket.path.removesuffix("models") + "elsewhere"
    s3.put(bucket.name, "elsewhere/c/config.pbtxt", b'backend: "identity"')
    assert used(elsewhere) == {"EMPTY"}


def test_a_credential_file_without_a_fitting_entry(bucket, start, tmp_path):
    bucket.add("a")
    entry = {"key_id": "K", "secret_key": "file-secret"}
    for content, text in [
        ({"s3": {"s3://other": entry}}, f"Cannot match credential for path  {bucket.path}"),
        ({"gs": {"": "x"}}, f"Cannot match credential for path  {bucket.path}"),
        ("{not json, file-secret", "credentials.json"),
    ]:
        log = failed_start(start(bucket.path, wait=False, keys=False, **REGION, **credential_file(tmp_path, content)))
        assert text in log and "file-secret" not in log, log
    log = failed_start(start(bucket.path, wait=False, TRITON_CLOUD_CREDENTIAL_PATH=str(tmp_path / "nothing.json")))
    assert "nothing.json" in log, log


@pytest.fixture
def metadata():
    service = object_stores.Metadata()
    yield service
    service.stop()


def test_the_metadata_service_of_a_machine(proxy, bucket, start, metadata):
    bucket.add("a")
    proxy.faults.append(only("METADATAKEY", "metadata-token"))
    server = start(bucket.path, "--log-verbose=2", keys=False, AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=metadata.url, **REGION)
    assert echo(server, "a")
    assert "/latest/api/token" in metadata.paths()
    assert "metadata-secret" not in server.text() and "metadata-token" not in server.text()


def test_the_metadata_service_of_a_container(proxy, bucket, start, metadata, tmp_path):
    bucket.add("a")
    proxy.faults.append(only("METADATAKEY", "metadata-token"))
    (tmp_path / "token").write_text("container-token")
    service = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{metadata.url}/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token")}
    assert echo(start(bucket.path, keys=False, **service, **REGION), "a")
    assert [headers["Authorization"] for _, path, headers in metadata.asked if path == "/container"] == ["container-token"]


def test_keys_that_expire_are_asked_for_again(proxy, bucket, start, metadata):
    """Each lives for so short that none is kept: the metadata service is asked each time."""
    bucket.add("a")
    metadata.life = 1
    server = start(bucket.path, "--model-control-mode=poll", "--repository-poll-secs=1", keys=False, AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=metadata.url, **REGION)
    metadata.s3 = ("SECONDKEY", "second")
    proxy.wait_for(lambda asked: "Credential=SECONDKEY/" in asked.headers.get("Authorization", ""), "the second key")
    assert echo(server, "a")


@pytest.mark.parametrize("variables", [{"AWS_SKIP_SIGNATURE": "true"}, NO_METADATA, {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"}])
def test_a_bucket_for_everybody(s3, proxy, start, variables):
    """Without any credentials, those of the machine included, a store is asked without; no signature is made up."""
    name = f"public-{len(variables)}-{len(str(variables))}"
    s3.create(name)
    for key, content in (("models/a/config.pbtxt", 'backend: "identity"\n' + CONFIG), ("models/a/1/x", "x")):
        s3.put(name, key, content.encode(), **{"x-amz-acl": "public-read"})
    path = f"s3://{proxy.address}/{name}/models"
    proxy.faults.append(lambda asked: fault_proxy.answers("", 403, fault_proxy.s3_error("AccessDenied", "signed"))(asked) if "Authorization" in asked.headers else None)
    proxy.changes.append(unlisted(s3, name))
    assert echo(start(path, keys=False, **variables, **REGION), "a")
    assert proxy.asked and not any("Authorization" in asked.headers for asked in proxy.asked)


CONFIG = "input [ { name: 'INPUT0' data_type: TYPE_FP32 dims: [ -1 ] } ]\noutput [ { name: 'OUTPUT0' data_type: TYPE_FP32 dims: [ -1 ] } ]\n"


def unlisted(s3, bucket):
    """The emulator lets strangers read objects that are public, and not list them: a real store lets them do both."""

    def change(asked, answer):
        if asked.is_listing and answer.status != 200:
            answer.body = s3.ask("GET", asked.target, headers=object_stores.S3_HEADERS)
            answer.status = 200

    return change


def test_expired_keys_are_told(proxy, bucket, start):
    bucket.add("a")
    proxy.faults.append(fault_proxy.answers("", 400, fault_proxy.s3_error("ExpiredToken", "The provided token has expired.")))
    log = failed_start(start(bucket.path, wait=False, AWS_SESSION_TOKEN="old-session"))
    assert "expired" in log.lower() and "old-session" not in log, log


def test_the_region_that_a_bucket_is_in(proxy, bucket, start):
    """Without a region the server asks with the usual one and, where the store names another, says so."""
    bucket.add("a")
    server = start(bucket.path, keys=False, AWS_ACCESS_KEY_ID="K", AWS_SECRET_ACCESS_KEY="s")
    assert echo(server, "a")
    assert {asked.headers["Authorization"].split("/")[2] for asked in proxy.asked} == {"us-east-1"}
    assert clients.is_ready(server)
