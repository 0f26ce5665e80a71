"""TLS while the server runs: certificates renewed without a connection lost, and clients that mean harm."""

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest

import certificates
import clients
import servers
from test_tls import LIMIT, Files, context, get, grpc_flags, https, https_flags, infers, stock

RELOADED = "Reloaded the TLS certificate of "


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Files(tmp_path_factory.mktemp("tls-live"))


def serial_shown(files, address):
    """Of the certificate that a new connection gets."""
    shown = ssl.get_server_certificate(tuple(address.split(":")))
    file = files.folder / "shown.pem"
    file.write_text(shown)
    return certificates.openssl("x509", "-in", file, "-noout", "-serial").strip()


def install(pair, place):
    """Each file by a rename, as tools that renew do."""
    for source, target in ((pair.certificate, place.certificate), (pair.key, place.key)):
        temporary = target.with_suffix(".new")
        shutil.copy(source, temporary)
        os.replace(temporary, target)


def lines(server, pattern):
    return sum(pattern in line for line in server.text().splitlines())


def wait_for_lines(server, pattern, count):
    server.wait(lambda: sum(pattern in line for line in server.log) >= count, f"{count} lines like {pattern}")


@pytest.fixture
def place(files, tmp_path):
    made = certificates.Pair(tmp_path, "server")
    install(files.server, made)
    return made


def test_a_new_certificate_loses_no_connection(files, place):
    with servers.galatea(files.models, *https_flags(place), *grpc_flags(place), "--metrics-https=true") as running:
        kept = https(files, running.http)
        assert get(kept)[0] == 200
        before = kept.sock
        with stock(running, "grpc", files.authority.certificate) as client:
            infers(client, "grpc")
            renewed = files.authority.issue()
            install(renewed, place)
            # One line for HTTP and the metrics, one for gRPC.
            wait_for_lines(running, RELOADED, 2)
            running.wait_for_line("Reloaded the TLS certificate of 'CN=localhost', valid until 20")
            infers(client, "grpc")
        assert get(kept)[0] == 200 and kept.sock is before, "the open connection goes on"
        for address in (running.http, running.grpc, running.metrics):
            assert serial_shown(files, address) == renewed.serial()


def test_links_that_are_put_in_the_place_of_others(files, tmp_path):
    """As Kubernetes writes secrets: files are links into a folder that is itself a link."""
    for number, pair in enumerate((files.server, files.authority.issue())):
        folder = tmp_path / f"version-{number}"
        folder.mkdir()
        shutil.copy(pair.certificate, folder / "tls.crt")
        shutil.copy(pair.key, folder / "tls.key")
    (tmp_path / "data").symlink_to("version-0")
    place = certificates.Pair(tmp_path, "tls")
    place.certificate, place.key = tmp_path / "tls.crt", tmp_path / "tls.key"
    place.certificate.symlink_to("data/tls.crt")
    place.key.symlink_to("data/tls.key")
    with servers.galatea(files.models, *https_flags(place)) as running:
        (tmp_path / "data-new").symlink_to("version-1")
        os.replace(tmp_path / "data-new", tmp_path / "data")
        running.wait_for_line(RELOADED)
        assert serial_shown(files, running.http) == pair.serial()


def test_a_broken_pair_keeps_the_old(files, place):
    failed = "the TLS files have changed and cannot be used, the certificate of before stays: "
    with servers.galatea(files.models, *https_flags(place)) as running:
        other = files.authority.issue()
        shutil.copy(other.key, place.key)
        running.wait_for_line(f"{failed}the key in '.*' is not that of the certificate")
        assert serial_shown(files, running.http) == files.server.serial()
        expired = files.authority.issue(days=-1)
        install(expired, place)
        running.wait_for_line(f"{failed}.* expired on ")
        place.key.unlink()
        running.wait_for_line(f"{failed}failed to read")
        assert serial_shown(files, running.http) == files.server.serial()
        install(other, place)
        running.wait_for_line(RELOADED)
        assert serial_shown(files, running.http) == other.serial()
        assert lines(running, failed) == 3, "each told once"


def test_authorities_of_clients_are_taken_back(files, place, tmp_path):
    """New connections of its clients are refused, those that are open go on."""
    roots = tmp_path / "roots.pem"
    shutil.copy(files.authority.certificate, roots)
    with servers.galatea(files.models, *https_flags(place, roots)) as running:
        kept = https(files, running.http, files.client)
        assert get(kept)[0] == 200
        with pytest.raises(OSError):
            get(https(files, running.http, files.stranger.issue("/CN=x")))
        shutil.copy(files.stranger.certificate, roots)
        running.wait_for_line(RELOADED)
        with pytest.raises(OSError):
            get(https(files, running.http, files.client))
        assert get(https(files, running.http, files.stranger.issue("/CN=x")))[0] == 200
        assert get(kept)[0] == 200


# --- clients that mean harm ------------------------------------------------------------------------------------------

HEAD_TIMEOUT = "--connection-head-timeout-secs=1"


def client_hello(files):
    """The first record of a handshake, as Python's TLS writes it."""
    out = ssl.MemoryBIO()
    stream = context(files).wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        stream.do_handshake()
    return out.read()


def answer_to(address, *parts):
    """All that comes until the server closes."""
    with socket.create_connection(address.split(":"), LIMIT) as stream:
        for part in parts:
            with contextlib.suppress(OSError):
                stream.sendall(part)
        received = b""
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            while piece := stream.recv(1 << 16):
                received += piece
        return received


@pytest.fixture(scope="module")
def server(files):
    with servers.galatea(
        files.models, *https_flags(files.server), *grpc_flags(files.server), "--max-connections=200", HEAD_TIMEOUT
    ) as running:
        yield running


@pytest.mark.parametrize("port", ["http", "grpc"])
def test_garbage(port, server, files):
    hello = client_hello(files)
    address = getattr(server, port)
    for sent in (
        b"\x16\x03\x01\xff\xff" + b"x" * 70_000,  # a record longer than any may be
        b"\x16\x03\x01\x00\x04\x01\xff\xff\xff" + (b"\x16\x03\x01\x40\x00" + b"x" * 0x4000) * 16,  # a message of 16 MB
        b"\x16\x03\x01\x00\x00" * 1000,  # empty records
        b"\x16" + os.urandom(5000),
        b"\x17\x03\x03\x00\x05hello",
        b"\x80\x2e\x01\x00\x02" + b"x" * 100,  # SSL 2
        b"\x00" * 1000,
        hello[:60] + os.urandom(len(hello) - 60),
        hello + hello,
        hello + b"\x14\x03\x03\x00\x01\x01" * 100,
        hello + b"\x17\x03\x03\x00\x20" + os.urandom(32),
    ):
        received = answer_to(address, sent)
        assert b"BEGIN" not in received and len(received) < 20_000
    assert get(https(files, server.http))[0] == 200, "it serves on"


def test_half_a_handshake_is_not_waited_for(files):
    """Silence at every point of a handshake ends with the time for what opens a connection; the place is free again."""
    hello = client_hello(files)
    flags = [*https_flags(files.server), *grpc_flags(files.server), "--max-connections=100", HEAD_TIMEOUT]
    with servers.galatea(files.models, *flags) as running:
        for address in (running.http, running.grpc):
            for sent in (b"", hello[:1], hello[:50], hello):
                started = time.monotonic()
                answer_to(address, sent)
                assert time.monotonic() - started < LIMIT / 2
        assert get(https(files, running.http))[0] == 200


def test_thousands_of_half_open_connections(server, files):
    """More than the server takes: they give way to those that ask something."""
    hello = client_hello(files)
    with contextlib.ExitStack() as stack:
        for number in range(600):
            stream = stack.enter_context(socket.create_connection(server.http.split(":"), LIMIT))
            with contextlib.suppress(OSError):
                stream.sendall(hello[: 50 if number % 2 else len(hello)])
        assert get(https(files, server.http))[0] == 200
        with stock(server, "grpc", files.authority.certificate) as client:
            infers(client, "grpc")
    assert server.rss_mb() < 600


def test_renegotiation_is_refused(server, files):
    """TLS 1.2 had it, and a handshake costs the server more than the client."""
    run = subprocess.run(
        ["openssl", "s_client", "-connect", server.http, "-tls1_2"], input="R\nR\nR\n", capture_output=True, text=True, errors="replace",
        timeout=LIMIT,
    )
    said = run.stdout + run.stderr
    assert "RENEGOTIATING" in said and "no renegotiation" in said
    assert get(https(files, server.http))[0] == 200


@pytest.mark.parametrize("key", ["ec", "rsa"])
def test_slow_handshakes_hold_up_nobody(key, files):
    """One thread serves all; beside thousands of handshakes begun and left, a kept connection is answered in time."""
    pair = files.authority.issue(key=key)
    hello = client_hello(files)
    with servers.galatea(files.models, *https_flags(pair), "--http-thread-count=1") as running:
        kept = https(files, running.http)
        assert get(kept)[0] == 200
        done = threading.Event()

        def flood():
            while not done.is_set():
                with contextlib.suppress(OSError), socket.create_connection(running.http.split(":"), LIMIT) as stream:
                    stream.sendall(hello)

        floods = [threading.Thread(target=flood) for _ in range(2)]
        for thread in floods:
            thread.start()
        try:
            waits = []
            for _ in range(200):
                started = time.monotonic()
                assert get(kept)[0] == 200
                waits.append(time.monotonic() - started)
        finally:
            done.set()
            for thread in floods:
                thread.join()
        assert sorted(waits)[len(waits) // 2] < 0.5
