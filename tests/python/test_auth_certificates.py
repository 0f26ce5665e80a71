"""Clients that prove who they are in the TLS handshake: what their certificates are worth to the policy."""

import subprocess

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

import certificates
import clients
import servers
from auth_cases import key_entry
from repositories import identity_config, write_model

ARRAYS = {"INPUT0": np.ones([1, 4], np.float32)}
POLICY = """
[[certificates]]
subject = "CN=trainer-*,O=Acme"
name = "trainers"
roles = ["infer"]
"""


class Files:
    def __init__(self, folder):
        self.folder = folder
        self.authority = certificates.Authority(folder)
        self.server = self.authority.issue()
        self.known = self.authority.issue("/O=Acme/CN=trainer-1")
        self.unknown = self.authority.issue("/O=Acme Two/CN=trainer-1")
        write_model(folder / "models", "identity", "galatea", "identity", identity_config(dims="4", max_batch_size=2))
        (folder / "policy.toml").write_text(POLICY + key_entry("reader", "secret-of-reader", ["read"])
                                            + key_entry("operator", "secret-of-operator", ["admin"]))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Files(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(files):
    roots, pair = files.authority.certificate, files.server
    flags = [
        f"--https-cert={pair.certificate}", f"--https-key={pair.key}", f"--https-root-cert={roots}", "--grpc-use-ssl-mutual=true",
        f"--grpc-server-cert={pair.certificate}", f"--grpc-server-key={pair.key}", f"--grpc-root-cert={roots}",
        "--hardened", "--model-control-mode=explicit", "--load-model=*", f"--auth-policy={files.folder / 'policy.toml'}", f"--access-log={files.folder / 'access.log'}",
    ]
    with servers.galatea(files.folder / "models", *flags) as running:
        yield running


def curl(files, server, pair, path, *options):
    """The status."""
    trusts = ["--cacert", files.authority.certificate, "--cert", pair.certificate, "--key", pair.key]
    url = f"https://localhost:{server.http.rpartition(':')[2]}{path}"
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *trusts, *options, url]
    return int(subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, timeout=30).stdout)


def stock(files, server, pair):
    return grpcclient.InferenceServerClient(
        f"localhost:{server.grpc.rpartition(':')[2]}", ssl=True, root_certificates=str(files.authority.certificate),
        private_key=str(pair.key), certificate_chain=str(pair.certificate),
    )


def test_a_certificate_in_the_policy_has_its_roles(files, server):
    stated = '{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[1,4],"data":[1,1,1,1]}]}'
    assert curl(files, server, files.known, "/v2/models/identity/infer", "-d", stated) == 200
    assert curl(files, server, files.known, "/v2/models/identity") == 403
    client = stock(files, server, files.known)
    assert clients.infer(client, "grpc", "identity", ARRAYS)["OUTPUT0"].sum() == 4
    with pytest.raises(grpcclient.InferenceServerException, match="identity 'trainers' lacks the role 'read'") as error:
        client.get_model_metadata("identity")
    assert error.value.status() == "StatusCode.PERMISSION_DENIED"
    client.close()
    assert "trainers" in (files.folder / "access.log").read_text()


def test_a_certificate_outside_the_policy_has_no_roles(files, server):
    assert curl(files, server, files.unknown, "/v2/models/identity") == 401
    assert curl(files, server, files.unknown, "/v2/health/ready") == 200
    client = stock(files, server, files.unknown)
    with pytest.raises(grpcclient.InferenceServerException, match="subject of the client's certificate is not known") as error:
        clients.infer(client, "grpc", "identity", ARRAYS)
    assert error.value.status() == "StatusCode.UNAUTHENTICATED"
    client.close()


def test_a_key_takes_precedence_over_a_certificate(files, server):
    header = "Authorization: Bearer secret-of-reader"
    for pair in (files.known, files.unknown):
        assert curl(files, server, pair, "/v2/models/identity", "-H", header) == 200
        assert curl(files, server, pair, "/v2/models/identity", "-H", "Authorization: Bearer wrong") == 401


def test_a_hardened_server_allows_control_to_its_role(files, server):
    unload = "/v2/repository/models/identity/unload"
    assert curl(files, server, files.unknown, unload, "-d", "{}") == 401
    assert curl(files, server, files.known, unload, "-d", "{}") == 403
    header = "Authorization: Bearer secret-of-operator"
    assert curl(files, server, files.unknown, unload, "-H", header, "-d", "{}") == 200
