"""The load tool over TLS, through a proxy in front of the server: which certificates are accepted, and what is reported
about those that are not. The real tool, where it is at hand, must decide alike."""

import pytest

import perf_tls
import perf_tool
from perf_tls import certificate

COUNT = ["-m", "simple", "--request-count", "8"]

TRUST = {"http": "--ssl-https-ca-certificates-file", "grpc": "--ssl-grpc-root-certifications-file"}
CLIENT = {
    "http": ["--ssl-https-client-certificate-file", "--ssl-https-private-key-file"],
    "grpc": ["--ssl-grpc-certificate-chain-file", "--ssl-grpc-private-key-file"],
}


def call(tool, protocol, proxy, folder, *more, trusts="authority.pem"):
    """A short run through the proxy that trusts this authority."""
    url = f"https://localhost:{proxy.port}" if protocol == "http" else f"localhost:{proxy.port}"
    args = [*COUNT, "-u", url, *more]
    if protocol == "grpc":
        args += ["-i", "grpc", "--ssl-grpc-use-ssl", "true"]
    if trusts:
        args += [TRUST[protocol], certificate(trusts)]
    return perf_tool.run(tool, args, folder)


def shows_client(protocol, form="pem", key="client.key"):
    chain_option, key_option = CLIENT[protocol]
    args = [chain_option, certificate(f"client.{form}"), key_option, certificate(key)]
    if form == "der":
        args += ["--ssl-https-client-certificate-type", "DER", "--ssl-https-private-key-type", "DER"]
    return args


def answered(run):
    assert run.code == 0, run.out + run.err
    assert run.report()["points"][0]["client"]["Request count"] == [8]


def refused(run, tool, *parts):
    """The run ends before any load; ours reports why and where."""
    assert run.code == 99, run.out + run.err
    assert "Request concurrency" not in run.out
    if tool == perf_tool.OURS and not perf_tool.STAND_IN:
        assert all(part in run.err for part in parts), run.err


@pytest.mark.parametrize("tool", perf_tool.BOTH)
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_trusted_certificate_is_accepted(protocol, tool, perf_servers, tmp_path):
    with perf_tls.TlsProxy(protocol, perf_servers.get("galatea")) as proxy:
        answered(call(tool, protocol, proxy, tmp_path))
        assert proxy.handshakes and set(proxy.handshakes) == {None}


@pytest.mark.parametrize("more", [["-a", "--concurrency-range", "3"], ["-a", "--streaming"]])
def test_grpc_streams_work_over_tls(more, perf_servers, tmp_path):
    with perf_tls.TlsProxy("grpc", perf_servers.get("galatea")) as proxy:
        answered(call(perf_tool.OURS, "grpc", proxy, tmp_path, *more))


@pytest.mark.parametrize("tool", perf_tool.BOTH)
@pytest.mark.parametrize("trusts", ["client.pem", None])
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_an_unknown_authority_is_refused(protocol, trusts, tool, perf_servers, tmp_path):
    """None stands for the authorities of the system, which do not include the test's."""
    with perf_tls.TlsProxy(protocol, perf_servers.get("galatea")) as proxy:
        run = call(tool, protocol, proxy, tmp_path, trusts=trusts)
        refused(run, tool, "certificate", f"localhost:{proxy.port}")


@pytest.mark.parametrize("tool", perf_tool.BOTH)
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_certificate_for_another_name_is_refused(protocol, tool, perf_servers, tmp_path):
    with perf_tls.TlsProxy(protocol, perf_servers.get("galatea"), shows="elsewhere") as proxy:
        refused(call(tool, protocol, proxy, tmp_path), tool, "certificate", f"localhost:{proxy.port}")


@pytest.mark.parametrize("tool", perf_tool.BOTH)
@pytest.mark.parametrize("shows, trusts, peer, host, is_answered", [
    ("elsewhere", "authority.pem", 1, 0, True),
    ("elsewhere", "authority.pem", 0, 2, False),
    ("server", "client.pem", 0, 2, True),
    ("server", "client.pem", 1, 0, False),
    ("elsewhere", None, 0, 0, True),
])
def test_authority_and_name_checks_are_separate_over_https(shows, trusts, peer, host, is_answered, tool, perf_servers, tmp_path):
    """Separate options switch off the checks of authority and name."""
    checks = ["--ssl-https-verify-peer", peer, "--ssl-https-verify-host", host]
    with perf_tls.TlsProxy("http", perf_servers.get("galatea"), shows) as proxy:
        run = call(tool, "http", proxy, tmp_path, *checks, trusts=trusts)
        answered(run) if is_answered else refused(run, tool, "certificate")


@pytest.mark.parametrize("tool", perf_tool.BOTH)
@pytest.mark.parametrize("protocol, form", [("http", "pem"), ("http", "der"), ("grpc", "pem")])
def test_a_client_certificate_is_sent(protocol, form, tool, perf_servers, tmp_path):
    key = "client.key.der" if form == "der" else "client.key"
    with perf_tls.TlsProxy(protocol, perf_servers.get("galatea"), asks_for_client=True) as proxy:
        answered(call(tool, protocol, proxy, tmp_path, *shows_client(protocol, form, key)))
        assert {subject for ((subject,),) in proxy.handshakes} == {("commonName", "client")}


@pytest.mark.parametrize("tool", perf_tool.BOTH)
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_missing_client_certificate_is_reported(protocol, tool, perf_servers, tmp_path):
    """Python's asyncio ends such a connection without the alert that gives the reason; the client crate's tests have
    a server that sends it."""
    with perf_tls.TlsProxy(protocol, perf_servers.get("galatea"), asks_for_client=True) as proxy:
        refused(call(tool, protocol, proxy, tmp_path), tool, f"localhost:{proxy.port}")
        assert not proxy.handshakes


def test_a_key_of_another_certificate_is_refused(perf_servers, tmp_path):
    """The tool refuses it by the name of the file before it sends anything."""
    with perf_tls.TlsProxy("http", perf_servers.get("galatea")) as proxy:
        run = call(perf_tool.OURS, "http", proxy, tmp_path, *shows_client("http", key="server.key"))
        refused(run, perf_tool.OURS, "client.pem", "server.key")
        assert not proxy.handshakes


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_port_without_tls_is_reported(protocol, perf_servers, tmp_path):
    server = perf_servers.get("galatea")

    class Plain:
        port = (server.grpc if protocol == "grpc" else server.http).rsplit(":", 1)[1]

    refused(call(perf_tool.OURS, protocol, Plain, tmp_path), perf_tool.OURS, "TLS")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_port_with_tls_called_without_it_is_reported(protocol, perf_servers, tmp_path):
    with perf_tls.TlsProxy(protocol, perf_servers.get("galatea")) as proxy:
        args = [*COUNT, "-i", protocol, "-u", f"localhost:{proxy.port}"]
        refused(perf_tool.run(perf_tool.OURS, args, tmp_path), perf_tool.OURS, f"localhost:{proxy.port}")
