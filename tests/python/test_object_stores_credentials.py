"""Who asks an object store: variables, profiles, the credential file, the services of a machine in a cloud, nobody."""

import json

import fault_proxy
import object_stores
import pytest
from store_fixtures import bucket, check, echo, proxy, s3, start

__all__ = ["bucket", "check", "proxy", "s3", "start"]

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


def regions(proxy):
    """The regions that requests were signed for."""
    return {asked.headers["Authorization"].split("/")[2] for asked in proxy.asked}


def test_credentials_are_read_from_variables(proxy, bucket, check):
    bucket.add("a")
    proxy.faults.append(only("KEYID", "session"))
    keys = {"AWS_ACCESS_KEY_ID": "KEYID", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session"}
    assert check(bucket.path, keys=False, **keys, **REGION).code == 0
    assert regions(proxy) == {"us-east-1"}
    proxy.asked.clear()
    assert check(bucket.path, keys=False, **keys, AWS_REGION="eu-west-3").code == 0
    assert regions(proxy) == {"eu-west-3"}


def test_wrong_keys_are_reported_without_being_shown(proxy, bucket, check):
    bucket.add("a")
    proxy.faults.append(only("OTHER"))
    seen = check(bucket.path, AWS_SECRET_ACCESS_KEY="wrong-secret")
    assert seen.code != 0 and ("InvalidAccessKeyId" in seen.text or "does not exist in our records" in seen.text), seen.text
    assert "wrong-secret" not in seen.text


@pytest.mark.parametrize("where", ["default", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE"])
def test_credentials_are_read_from_profiles(proxy, bucket, check, tmp_path, where):
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
    assert check(bucket.path, keys=False, **variables).code == 0
    assert regions(proxy) == {"eu-north-1"}


def test_missing_and_unsupported_profiles_are_reported(bucket, check, tmp_path):
    bucket.add("a")
    seen = check(bucket.path, keys=False, AWS_PROFILE="nowhere", **REGION)
    assert seen.code != 0 and "nowhere" in seen.text, seen.text
    (tmp_path / ".aws").mkdir(exist_ok=True)
    (tmp_path / ".aws/config").write_text("[profile sso]\nsso_start_url = https://example.invalid\nsso_account_id = 1\n")
    seen = check(bucket.path, keys=False, AWS_PROFILE="sso", **REGION)
    assert seen.code != 0 and "sso_start_url, which is not supported" in seen.text and "export-credentials" in seen.text, seen.text


def credential_file(tmp_path, content):
    file = tmp_path / "credentials.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return {"TRITON_CLOUD_CREDENTIAL_PATH": str(file)}


def test_the_longest_prefix_in_the_credential_file_counts(s3, proxy, bucket, check, tmp_path):
    for prefix, model in (("models", "a"), ("models/inner", "b")):
        bucket.add(model, prefix=prefix)
    key = lambda key_id: {"key_id": key_id, "secret_key": "file-secret", "region": "us-east-1", "session_token": "", "profile": ""}  # noqa: E731
    variables = credential_file(tmp_path, {"s3": {"": key("EMPTY"), bucket.path: key("OUTER"), f"{bucket.path}/inner": key("INNER"), "s3://other": key("OTHER")}})

    def used(path):
        proxy.asked.clear()
        assert "file-secret" not in check(path, keys=False, **variables).text
        return {asked.headers["Authorization"].split("Credential=")[1].split("/")[0] for asked in proxy.asked}

    assert used(f"{bucket.path}/inner") == {"INNER"}
    assert used(bucket.path) == {"OUTER"}
    elsewhere = bucket.path.removesuffix("models") + "elsewhere"
    s3.put(bucket.name, "elsewhere/c/config.pbtxt", b'backend: "identity"')
    assert used(elsewhere) == {"EMPTY"}


def test_a_credential_file_without_a_matching_entry_is_an_error(bucket, check, tmp_path):
    bucket.add("a")
    entry = {"key_id": "K", "secret_key": "file-secret"}
    for content, text in [
        ({"s3": {"s3://other": entry}}, f"Cannot match credential for path  {bucket.path}"),
        ({"gs": {"": "x"}}, f"Cannot match credential for path  {bucket.path}"),
        ("{not json, file-secret", "credentials.json"),
    ]:
        seen = check(bucket.path, keys=False, **REGION, **credential_file(tmp_path, content))
        assert seen.code != 0 and text in seen.text and "file-secret" not in seen.text, seen.text
    seen = check(bucket.path, TRITON_CLOUD_CREDENTIAL_PATH=str(tmp_path / "nothing.json"))
    assert seen.code != 0 and "nothing.json" in seen.text, seen.text


@pytest.fixture
def metadata():
    service = object_stores.Metadata()
    yield service
    service.stop()


def test_the_metadata_service_of_a_machine_gives_keys(proxy, bucket, start, metadata):
    """Its keys expire so soon that the server asks the service each time."""
    bucket.add("a")
    metadata.life = 1
    proxy.faults.append(only("METADATAKEY", "metadata-token"))
    flags = ["--log-verbose=2", "--model-control-mode=poll", "--repository-poll-secs=1"]
    server = start(bucket.path, *flags, keys=False, AWS_EC2_METADATA_DISABLED="", AWS_EC2_METADATA_SERVICE_ENDPOINT=metadata.url, **REGION)
    assert echo(server, "a")
    assert "/latest/api/token" in metadata.paths()
    proxy.faults.clear()
    metadata.s3 = ("SECONDKEY", "second")
    proxy.wait_for(lambda asked: "Credential=SECONDKEY/" in asked.headers.get("Authorization", ""), "the second key")
    assert echo(server, "a")
    assert "metadata-secret" not in server.text() and "metadata-token" not in server.text()


def test_the_metadata_service_of_a_container_gives_keys(proxy, bucket, check, metadata, tmp_path):
    bucket.add("a")
    proxy.faults.append(only("METADATAKEY", "metadata-token"))
    (tmp_path / "token").write_text("container-token")
    service = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{metadata.url}/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token")}
    assert check(bucket.path, keys=False, **service, **REGION).code == 0
    assert [headers["Authorization"] for _, path, headers in metadata.asked if path == "/container"] == ["container-token"]


@pytest.mark.parametrize("variables", [{"AWS_SKIP_SIGNATURE": "true"}, NO_METADATA, {"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"}])
def test_a_public_bucket_needs_no_credentials(s3, proxy, check, variables):
    """Without any credentials the server sends unsigned requests."""
    name = f"public-{len(variables)}-{len(str(variables))}"
    s3.create(name)
    for key, content in (("models/a/config.pbtxt", 'backend: "identity"\n' + CONFIG), ("models/a/1/x", "x")):
        s3.put(name, key, content.encode(), **{"x-amz-acl": "public-read"})
    path = f"s3://{proxy.address}/{name}/models"
    proxy.faults.append(lambda asked: fault_proxy.answers("", 403, fault_proxy.s3_error("AccessDenied", "signed"))(asked) if "Authorization" in asked.headers else None)
    proxy.changes.append(unlisted(s3, name))
    assert check(path, keys=False, **variables, **REGION).code == 0
    assert proxy.asked and not any("Authorization" in asked.headers for asked in proxy.asked)


CONFIG = "input [ { name: 'INPUT0' data_type: TYPE_FP32 dims: [ -1 ] } ]\noutput [ { name: 'OUTPUT0' data_type: TYPE_FP32 dims: [ -1 ] } ]\n"


def unlisted(s3, bucket):
    """The emulator lets strangers read objects that are public, and not list them: a real store lets them do both."""

    def change(asked, answer):
        if asked.is_listing and answer.status != 200:
            answer.body = s3.ask("GET", asked.target, headers=object_stores.S3_HEADERS)
            answer.status = 200

    return change


def test_expired_keys_are_reported(proxy, bucket, check):
    bucket.add("a")
    proxy.faults.append(fault_proxy.answers("", 400, fault_proxy.s3_error("ExpiredToken", "The provided token has expired.")))
    seen = check(bucket.path, AWS_SESSION_TOKEN="old-session")
    assert seen.code != 0 and "expired" in seen.text.lower() and "old-session" not in seen.text, seen.text


def test_the_region_of_a_bucket_is_found(proxy, bucket, check):
    """Without a region the server uses the default one and reports the one that the store names."""
    bucket.add("a")
    assert check(bucket.path, keys=False, AWS_ACCESS_KEY_ID="K", AWS_SECRET_ACCESS_KEY="s").code == 0
    assert regions(proxy) == {"us-east-1"}
