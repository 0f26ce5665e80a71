"""TLS of the server's ports, as stock clients see it: who is let in, which versions, what a mistake is answered with."""

import http.client
import json
import socket
import ssl
import subprocess

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

import certificates
import clients
import perf_tool
import repositories
import servers
import tiers

LIMIT = 60
protocols = pytest.mark.parametrize("protocol", ["http", "grpc"])


class Files:
    """What all tests of this file trust and show."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = certificates.Authority(folder)
        self.stranger = certificates.Authority(folder, "stranger")
        self.server = self.authority.issue()
        self.client = self.authority.issue("/O=Acme, Inc./CN=trainer")
        self.models = folder / "models"
        repositories.write_model(self.models, "identity", "galatea", "identity", repositories.identity_config())


def grpc_flags(pair, roots=None):
    mutual = ["--grpc-use-ssl-mutual=true", f"--grpc-root-cert={roots}"] if roots else []
    return ["--grpc-use-ssl=true", f"--grpc-server-cert={pair.certificate}", f"--grpc-server-key={pair.key}", *mutual]


def https_flags(pair, roots=None):
    mutual = [f"--https-root-cert={roots}"] if roots else []
    return [f"--https-cert={pair.certificate}", f"--https-key={pair.key}", *mutual]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(files):
    """All ports with TLS, clients without certificates."""
    with servers.galatea(
        files.models, *grpc_flags(files.server), *https_flags(files.server), "--metrics-https=true"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def strict(files):
    """All ports with TLS, for clients with a certificate alone."""
    roots = files.authority.certificate
    flags = [*grpc_flags(files.server, roots), *https_flags(files.server, roots), "--metrics-https=true"]
    with servers.galatea(files.models, *flags) as running:
        yield running


def localhost(address):
    return f"localhost:{address.rsplit(':', 1)[1]}"


def stock(server, protocol, trusts, shows=None):
    """The stock client over TLS."""
    if protocol == "grpc":
        files = {"private_key": str(shows.key), "certificate_chain": str(shows.certificate)} if shows else {}
        return grpcclient.InferenceServerClient(
            localhost(server.grpc), ssl=True, root_certificates=str(trusts), **files
        )
    options = {"ca_certs": str(trusts)}
    if shows:
        options |= {"keyfile": str(shows.key), "certfile": str(shows.certificate)}
    return httpclient.InferenceServerClient(localhost(server.http), ssl=True, ssl_options=options)


def infers(client, protocol):
    array = np.arange(4, dtype=np.float32)
    answer = clients.infer(client, protocol, "identity", {"INPUT0": array})
    assert np.array_equal(answer["OUTPUT0"], array)


def context(files, shows=None, trusts=None):
    made = ssl.create_default_context(cafile=str(trusts or files.authority.certificate))
    if shows:
        made.load_cert_chain(shows.certificate, shows.key)
    return made


def https(files, address, shows=None):
    host, port = address.split(":")
    return http.client.HTTPSConnection("localhost", int(port), timeout=LIMIT, context=context(files, shows))


def get(connection, path="/v2/health/ready"):
    connection.request("GET", path)
    reply = connection.getresponse()
    return reply.status, reply.read()


def curl(*args):
    run = subprocess.run(["curl", "-sS", "-m", str(LIMIT), *map(str, args)], capture_output=True, text=True)
    return run.returncode, run.stdout, run.stderr


def s_client(address, *args):
    run = subprocess.run(
        ["openssl", "s_client", "-connect", address, *map(str, args)],
        input="", capture_output=True, text=True, errors="replace", timeout=LIMIT,
    )
    return run.stdout + run.stderr


# --- who is let in ---------------------------------------------------------------------------------------------------


@protocols
def test_the_stock_client_connects_over_tls(protocol, server, files):
    with stock(server, protocol, files.authority.certificate) as client:
        assert client.is_server_ready()
        infers(client, protocol)


@protocols
def test_a_server_of_another_authority_is_not_trusted(protocol, server, files):
    with stock(server, protocol, files.stranger.certificate) as client, pytest.raises(Exception, match="(?i)ssl|certif|connect"):
        client.get_server_metadata()
    server.wait_for_line("a client's TLS handshake failed: ")


def refuses_strangers(running, files):
    """Over gRPC a client with a good certificate is let in; those with none, of another authority, or expired are not."""
    with stock(running, "grpc", files.authority.certificate, files.client) as client:
        infers(client, "grpc")
    for bad in (None, files.stranger.issue("/CN=x"), files.authority.issue("/CN=late", days=-1)):
        with stock(running, "grpc", files.authority.certificate, bad) as client:
            with pytest.raises(grpcclient.InferenceServerException, match="UNAVAILABLE"):
                client.is_server_ready()


def test_mutual_tls_over_grpc_refuses_unknown_clients(strict, files):
    refuses_strangers(strict, files)


@tiers.peers
def test_triton_refuses_unknown_clients_with_mutual_tls(files):
    folder = files.folder / "triton"
    repositories.write_model(folder, "identity", "triton", "identity", repositories.identity_config())
    with servers.triton(folder, *grpc_flags(files.server, files.authority.certificate)) as running:
        refuses_strangers(running, files)


def test_mutual_tls_over_http_refuses_unknown_clients(strict, files):
    with stock(strict, "http", files.authority.certificate, files.client) as client:
        infers(client, "http")
    for bad in (None, files.stranger.issue("/CN=x"), files.authority.issue("/CN=late", days=-1)):
        # With TLS 1.3 a client learns of the refusal when it reads.
        with pytest.raises((ssl.SSLError, OSError)):
            get(https(files, strict.http, bad))
    assert get(https(files, strict.metrics, files.client), "/metrics")[0] == 200
    with pytest.raises((ssl.SSLError, OSError)):
        get(https(files, strict.metrics), "/metrics")
    assert get(https(files, strict.http, files.client))[0] == 200, "it serves on"


@pytest.fixture(scope="module")
def half(files):
    """TLS over gRPC alone. --grpc-use-ssl-mutual switches it on whatever its value, as the real server has it."""
    flags = ["--grpc-use-ssl-mutual=false", *grpc_flags(files.server)[1:]]
    with servers.galatea(files.models, *flags) as running:
        yield running


def test_without_a_client_authority_no_client_certificate_is_needed(half, files):
    with stock(half, "grpc", files.authority.certificate) as client:
        infers(client, "grpc")
    assert clients.ask(half.http, "GET", "/v2/health/ready")[0] == 200, "HTTP is not concerned"


@tiers.peers
def test_triton_uses_tls_for_the_mutual_flag_too(files):
    flags = ["--grpc-use-ssl-mutual=false", *grpc_flags(files.server)[1:]]
    folder = files.folder / "real"
    repositories.write_model(folder, "identity", "triton", "identity", repositories.identity_config())
    with servers.triton(folder, *flags) as running:
        with stock(running, "grpc", files.authority.certificate) as client:
            infers(client, "grpc")


# --- versions, ciphers, protocols ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
@pytest.mark.parametrize("port", ["http", "grpc", "metrics"])
def test_tls_versions_1_2_and_1_3_are_accepted(port, version, server):
    said = s_client(getattr(server, port), version, "-alpn", "h2,http/1.1")
    assert f"ALPN protocol: {'h2' if port == 'grpc' else 'http/1.1'}" in said
    assert version.replace("-tls1_", "TLSv1.") in said


@pytest.mark.parametrize("args", [
    ["-tls1"], ["-tls1_1"],
    ["-tls1_2", "-cipher", "AES128-SHA:AES256-SHA:DES-CBC3-SHA:@SECLEVEL=0"],
    ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0"],
    ["-tls1_2", "-cipher", "aNULL:eNULL:@SECLEVEL=0"],
])
@pytest.mark.parametrize("port", ["http", "grpc"])
def test_weak_versions_and_ciphers_are_refused(port, args, server):
    if args[0] in ("-tls1", "-tls1_1"):
        args = [*args, "-cipher", "ALL:@SECLEVEL=0"]
    said = s_client(getattr(server, port), *args)
    assert "Cipher is (NONE)" in said and "BEGIN CERTIFICATE" not in said


@pytest.mark.parametrize("args", [["--tls-max", "1.2"], ["--tlsv1.3"], ["--http1.1"]])
def test_curl_connects_over_tls(args, server, files):
    url = f"https://{localhost(server.http)}/v2"
    code, out, err = curl("--cacert", files.authority.certificate, *args, url)
    assert code == 0 and json.loads(out)["name"] == "triton", err
    assert curl(*args, url)[0] == 60, "who does not trust the authority refuses"


def test_curl_connects_with_a_client_certificate(strict, files):
    url, trust = f"https://{localhost(strict.http)}/v2", ["--cacert", files.authority.certificate]
    shows = ["--cert", files.client.certificate, "--key", files.client.key]
    assert curl(*trust, *shows, url)[0] == 0
    assert curl(*trust, url)[0] != 0
    strict.wait_for_line("TLS handshake failed: the client showed no certificate, and this port asks for one")


def test_clients_without_alpn_are_accepted(server, files):
    """Both ports accept clients without ALPN and refuse clients that request another protocol."""
    for address in (server.http, server.grpc):
        with socket.create_connection(address.split(":"), LIMIT) as plain:
            with context(files).wrap_socket(plain, server_hostname="localhost") as stream:
                assert stream.selected_alpn_protocol() is None
        said = s_client(address, "-alpn", "ftp")
        assert "no application protocol" in said


def test_sessions_are_resumed_only_without_client_certificates(server, strict, files):
    for running, shows, is_resumed in ((server, None, True), (strict, files.client, False)):
        made = context(files, shows)
        made.maximum_version = ssl.TLSVersion.TLSv1_2
        session = None
        for _ in range(2):
            with socket.create_connection(running.http.split(":"), LIMIT) as plain:
                stream = made.wrap_socket(plain, server_hostname="localhost", session=session)
                with stream:
                    stream.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n")
                    assert stream.recv(12) == b"HTTP/1.1 200"
                    reused, session = stream.session_reused, stream.session
        assert reused == is_resumed


# --- what a mistake is answered with ---------------------------------------------------------------------------------


def test_http_to_a_tls_port_is_answered_with_advice(server):
    status, headers, body = clients.ask(server.http, "GET", "/v2")
    assert (status, body) == (400, b"this port speaks HTTPS: put https:// in place of http:// here\n")
    status, _, body = clients.ask(server.metrics, "GET", "/metrics")
    assert status == 400 and b"https://" in body
    status, _, body = clients.ask(server.http, "POST", "/v2/models/identity/infer", b"x" * 20_000)
    assert status == 400
    server.wait_for_line("a client's TLS handshake failed: it does not use TLS")


def test_plain_grpc_to_a_tls_port_is_logged_with_advice(half):
    with grpc.insecure_channel(half.grpc) as channel:
        call = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
        with pytest.raises(grpc.RpcError) as refused:
            call(b"", timeout=LIMIT)
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
    half.wait_for_line("a client's TLS handshake failed: it does not use TLS")


def test_tls_to_a_plain_port_is_logged_with_advice(half):
    assert curl("-k", f"https://{half.http}/v2")[0] != 0
    half.wait_for_line("a client speaks TLS to a port that does not: .*--https-cert")
    assert clients.ask(half.http, "GET", "/v2")[0] == 200


def refused(files, *flags):
    """What a server says that does not start."""
    running = servers.galatea(files.models, *flags, wait=False)
    try:
        assert running.wait_for_exit() == 1
    finally:
        running.stop()
    return running.text()


def written(files, name, text):
    path = files.folder / name
    path.write_bytes(text)
    return path


@protocols
def test_unusable_tls_files_end_the_start_with_advice(protocol, files):
    """The server does not start, and says which file, what is wrong and what to do."""
    good, of = files.server, grpc_flags if protocol == "grpc" else https_flags

    def pair(certificate=good.certificate, key=good.key):
        made = certificates.Pair(files.folder, "made")
        made.certificate, made.key = certificate, key
        return made

    certificate, key = good.certificate.read_bytes(), good.key.read_bytes()
    der = files.folder / "der.pem"
    certificates.openssl("x509", "-in", good.certificate, "-outform", "DER", "-out", der)
    secret = files.folder / "secret.key"
    certificates.openssl("pkey", "-in", good.key, "-aes256", "-passout", "pass:x", "-out", secret)
    old = files.folder / "old.key"
    certificates.openssl("genrsa", "-traditional", "-aes128", "-passout", "pass:x", "-out", old, 2048)
    expired = files.authority.issue(days=-1)
    other = files.authority.issue()
    turned = written(files, "turned.pem", files.authority.certificate.read_bytes() + certificate)
    for made, *said in [
        (pair(files.folder / "none"), "failed to read", "none'", "No such file"),
        (pair(key=files.folder), "failed to read"),
        (pair(written(files, "empty", b"")), "empty' holds no certificate", "the file is empty"),
        (pair(der), "der.pem' holds no certificate", "looks like DER"),
        (pair(good.key, good.certificate), "holds no certificate", "swapped"),
        (pair(key=good.certificate), "holds no private key", "swapped"),
        (pair(key=written(files, "cut", key[:100])), "cut'"),
        (pair(written(files, "broken", certificate.replace(b"\nM", b"\nA", 1))), "broken' is not usable"),
        (pair(key=secret), "secret.key' is encrypted", "openssl pkey"),
        (pair(key=old), "old.key' is encrypted"),
        (pair(key=other.key), "does not belong to the certificate in", "CN=localhost"),
        (pair(turned), "number 2 of the file", "it must be the first"),
        (expired, "expired on 20", "renew it"),
        (pair("/dev/zero"), "not a regular file"),
    ]:
        text = refused(files, *of(made))
        assert all(part in text for part in said), (said, text)
        assert "failed to start" in text and "Started" not in text
    for roots, part in [(written(files, "empty", b""), "holds no certificate"), ("/none", "failed to read '/none'")]:
        assert part in refused(files, *of(good, roots))


@pytest.mark.parametrize("flags, said", [
    (["--grpc-use-ssl=true"], "--grpc-use-ssl needs the server's certificate in --grpc-server-cert"),
    (["--grpc-use-ssl=1", "--grpc-server-cert=x"], "--grpc-use-ssl needs the key of the certificate in --grpc-server-key"),
    (["--grpc-use-ssl-mutual=1", "--grpc-server-cert=x", "--grpc-server-key=x"], "--grpc-use-ssl-mutual needs the authorities of clients in --grpc-root-cert"),
    (["--https-cert=x"], "--https-cert needs the key of the certificate in --https-key"),
    (["--https-key=x"], "--https-key needs the server's certificate in --https-cert"),
    (["--https-root-cert=x"], "--https-root-cert needs the server's certificate in --https-cert"),
    (["--metrics-https=true"], "--metrics-https needs the certificate of --https-cert"),
])
def test_incomplete_tls_flags_end_the_start(flags, said, files):
    assert said in refused(files, *flags)


def test_the_start_logs_tls_for_each_port(server, strict):
    for name in ("GRPCInferenceService", "HTTPService", "Metrics Service"):
        server.wait_for_line(f"Started {name} at \\S+ over TLS")
        strict.wait_for_line(f"Started {name} at \\S+ over TLS, for clients with a certificate")
    server.wait_for_line("The console is at https://")
    server.wait_for_line("Using the TLS certificate of 'CN=localhost', valid until 20")


# --- our own clients -------------------------------------------------------------------------------------------------


@protocols
def test_the_load_tool_connects_over_tls(protocol, strict, files, tmp_path):
    trust, client = files.authority.certificate, files.client
    if protocol == "grpc":
        args = [
            "-i", "grpc", "-u", localhost(strict.grpc), "--ssl-grpc-use-ssl", "true",
            "--ssl-grpc-root-certifications-file", trust, "--ssl-grpc-private-key-file", client.key,
            "--ssl-grpc-certificate-chain-file", client.certificate,
        ]
    else:
        args = [
            "-u", f"https://{localhost(strict.http)}", "--ssl-https-ca-certificates-file", trust,
            "--ssl-https-client-certificate-file", client.certificate, "--ssl-https-private-key-file", client.key,
        ]
    run = perf_tool.run(perf_tool.OURS, ["-m", "identity", "--request-count", "8", "--shape", "INPUT0:4", *args], tmp_path)
    assert run.code == 0, run.out + run.err


@pytest.mark.parametrize("url", ["https://{http}", "grpcs://{grpc}"])
def test_the_client_commands_connect_over_tls(url, strict, files):
    url = url.format(http=localhost(strict.http), grpc=localhost(strict.grpc))
    shows = ["--cert", files.client.certificate, "--key", files.client.key]
    trust = ["--cacert", files.authority.certificate]

    def ask(*args):
        command = [servers.galatea_binary(), *args[:1], "-u", url, *args[1:]]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT)

    run = ask("models", *trust, *shows)
    assert run.returncode == 0 and "identity" in run.stdout, run.stderr
    run = ask("infer", "identity", "--input", "INPUT0=1,2", *trust, *shows)
    assert run.returncode == 0, run.stderr
    run = ask("top", "--once", "--metrics-url", f"https://{localhost(strict.metrics)}", *trust, *shows)
    assert run.returncode == 0 and "No metrics" not in run.stdout + run.stderr, run.stdout + run.stderr
    for less in (trust, [*trust, "--cert", files.client.certificate], shows):
        run = ask("models", *less)
        assert run.returncode != 0 and run.stderr.strip(), less


def test_the_console_works_over_https(server, files):
    """Every address in the page leads to the same server, without a scheme."""
    status, body = get(https(files, server.http), "/")
    assert status == 200 and b"http://" not in body.replace(b"http://www.w3.org", b"")


def test_version_1_certificates_are_warned_about_or_refused(files):
    """openssl 3.0 makes them where it is given no extensions. That of the server is taken with a warning, as by the real one; that
    of a client is refused with the reason."""
    old, roots = files.authority.issue(version=1), files.authority.certificate
    assert "Version: 1" in certificates.openssl("x509", "-in", old.certificate, "-noout", "-text")
    with servers.galatea(files.models, *grpc_flags(old, roots)) as server:
        server.wait_for_line("is of version 1, which names no hosts")
        infers(stock(server, "grpc", roots, files.client), "grpc")
        with pytest.raises(InferenceServerException):
            infers(stock(server, "grpc", roots, old), "grpc")
        server.wait_for_line("the client's certificate is of version 1, which has no names or purposes")
