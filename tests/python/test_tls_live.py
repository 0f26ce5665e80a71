"""TLS while the server runs: certificates renewed without a connection lost, and clients that mean harm."""

import contextlib
import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

import browser
import certificates
import clients
import raw_http
import raw_http2
import repositories
import servers
import tiers
from test_tls import LIMIT, Files, context, curl, get, grpc_flags, https, https_flags, infers, localhost, stock
from waiting import eventually

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


class Live:
    """A server whose certificates each test replaces: `pair` over HTTP, in its place, and over gRPC, behind links; there clients
    show certificates of `roots`."""

    def __init__(self, files, folder):
        self.files, self.folder, self.roots, self.number = files, folder, folder / "roots.pem", 0
        self.pair, self.linked = certificates.Pair(folder, "server"), certificates.Pair(folder, "tls")
        install(files.server, self.pair)
        shutil.copy(files.authority.certificate, self.roots)
        for name in ("certificate", "key"):
            getattr(self.linked, name).symlink_to(f"data/tls.{name}")
        self.link(files.server)
        self.server = servers.galatea(
            files.models, *https_flags(self.pair), *grpc_flags(self.linked, self.roots), "--metrics-https=true"
        )

    def link(self, pair):
        """As Kubernetes writes secrets: files are links into a folder that is itself a link."""
        self.number += 1
        version = self.folder / f"version-{self.number}"
        version.mkdir()
        shutil.copy(pair.certificate, version / "tls.certificate")
        shutil.copy(pair.key, version / "tls.key")
        (self.folder / "data-new").symlink_to(version.name)
        os.replace(self.folder / "data-new", self.folder / "data")

    def reloads(self, change, count=1):
        """Waits until so many lines say that the server has taken what `change` did."""
        self.server.log_begins = len(self.server.log)
        change()
        self.server.wait(lambda: lines(self.server, RELOADED) >= count, f"{count} lines like {RELOADED}")


@pytest.fixture(scope="module")
def live(files, tmp_path_factory):
    made = Live(files, tmp_path_factory.mktemp("live"))
    with made.server:
        yield made


def test_a_new_certificate_loses_no_connection(files, live):
    running = live.server
    kept = https(files, running.http)
    assert get(kept)[0] == 200
    before = kept.sock
    with stock(running, "grpc", files.authority.certificate, files.client) as client:
        infers(client, "grpc")
        renewed, linked = files.authority.issue(), files.authority.issue()
        # One line for HTTP and the metrics, one for gRPC.
        live.reloads(lambda: (install(renewed, live.pair), live.link(linked)), 2)
        running.wait_for_line("Reloaded the TLS certificate of 'CN=localhost', valid until 20")
        infers(client, "grpc")
    assert get(kept)[0] == 200 and kept.sock is before, "the open connection goes on"
    for address in (running.http, running.metrics):
        assert serial_shown(files, address) == renewed.serial()
    assert serial_shown(files, running.grpc) == linked.serial()


def test_a_broken_pair_keeps_the_old_certificate(files, live):
    failed = "the new TLS files cannot be used, so the previous certificate stays: "
    running, other = live.server, files.authority.issue()
    before = serial_shown(files, running.http)
    running.log_begins = len(running.log)
    shutil.copy(other.key, live.pair.key)
    running.wait_for_line(f"{failed}the key in '.*' does not belong to the certificate")
    assert serial_shown(files, running.http) == before
    install(files.authority.issue(days=-1), live.pair)
    running.wait_for_line(f"{failed}.* expired on ")
    live.pair.key.unlink()
    running.wait_for_line(f"{failed}failed to read")
    assert serial_shown(files, running.http) == before
    assert lines(running, failed) == 3, "each told once"
    live.reloads(lambda: install(other, live.pair))
    assert serial_shown(files, running.http) == other.serial()


def test_client_authorities_can_be_withdrawn(files, live):
    """New connections of its clients are refused, those that are open go on."""
    running, trusts, theirs = live.server, files.authority.certificate, files.stranger.issue("/CN=x")

    def is_let_in(shows):
        with stock(running, "grpc", trusts, shows) as client:
            try:
                return client.is_server_live()
            except Exception:
                return False

    with stock(running, "grpc", trusts, files.client) as kept:
        infers(kept, "grpc")
        assert not is_let_in(theirs)
        live.reloads(lambda: shutil.copy(files.stranger.certificate, live.roots))
        assert is_let_in(theirs) and not is_let_in(files.client)
        infers(kept, "grpc")
    live.reloads(lambda: shutil.copy(files.authority.certificate, live.roots))
    assert is_let_in(files.client)


@pytest.mark.parametrize("form", ["traditional", "ed25519", "rsa", "chain"])
def test_keys_in_every_form_are_read_on_reload(form, files, live):
    """A start reads files with the same code; other tests start with PKCS #8 keys."""
    pair = files.authority.issue(key="rsa" if form == "rsa" else "ec")
    if form == "traditional":
        certificates.openssl("ec", "-in", pair.key, "-out", pair.key)
        assert b"BEGIN EC PRIVATE KEY" in pair.key.read_bytes()
    if form == "rsa":
        certificates.openssl("rsa", "-in", pair.key, "-traditional", "-out", pair.key)
        assert b"BEGIN RSA PRIVATE KEY" in pair.key.read_bytes()
    if form == "ed25519":
        certificates.openssl("genpkey", "-algorithm", "ed25519", "-out", pair.key)
        certificates.openssl("req", "-x509", "-key", pair.key, "-out", pair.certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    if form == "chain":
        between = files.authority.below()
        pair = between.issue()
        pair.certificate.write_bytes(pair.certificate.read_bytes() + between.certificate.read_bytes())
    live.reloads(lambda: (install(pair, live.pair), live.link(pair)), 2)
    trusted = pair.certificate if form == "ed25519" else files.authority.certificate
    for version in ("1.2", "1.3"):
        code, _, err = curl("--cacert", trusted, "--tls-max", version, f"https://{localhost(live.server.http)}/v2")
        assert code == 0, err
    if form == "chain":
        with stock(live.server, "grpc", trusted, files.client) as client:
            infers(client, "grpc")


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
def test_garbage_ends_only_its_connection(port, server, files):
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


def test_an_unfinished_handshake_times_out(files, server):
    """Silence at every point of a handshake ends with the time for what opens a connection; the place is free again."""
    hello = client_hello(files)
    for address in (server.http, server.grpc):
        for sent in (b"", hello[:1], hello[:50], hello):
            # Without an end the socket's own time-out would be raised.
            answer_to(address, sent)
    assert get(https(files, server.http))[0] == 200


def test_thousands_of_half_open_connections_lock_nobody_out(server, files):
    """More connections than the server accepts give way to those that send a request."""
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


@tiers.measure
@pytest.mark.parametrize("key", ["ec", "rsa"])
def test_slow_handshakes_delay_nobody(key, files):
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


# The model answers with zeros of so many bytes when it is sent nothing.
ZEROS = 16_000_000
MEMORY = ("galatea_memory_budget_used_bytes", "")


@pytest.mark.parametrize("transport", ["plain", "tls"])
def test_an_unread_response_is_cut_off_over_every_transport(files, tmp_path, transport):
    vector = '{ name: "%s" data_type: TYPE_FP32 dims: [ ' + str(ZEROS // 4) + " ] %s }"
    config = f"input [ {vector % ('INPUT0', 'optional: true')} ]\noutput [ {vector % ('OUTPUT0', '')} ]\n"
    repositories.write_model(tmp_path, "zeros", "galatea", "identity", config)
    flags = [*https_flags(files.server), *grpc_flags(files.server)] if transport == "tls" else []
    body = b'{"inputs": [], "parameters": {"binary_data_output": true}}'
    windows = raw_http2.frame(raw_http2.SETTINGS, 0, 0, struct.pack(">HI", raw_http2.INITIAL_WINDOW, 2**31 - 1))
    windows += raw_http2.frame(raw_http2.WINDOW, 0, 0, struct.pack(">I", 2**31 - 1 - 65535))
    call = raw_http2.frame(raw_http2.HEADERS, raw_http2.END_HEADERS, 1, raw_http2.call("ModelInfer"))
    call += raw_http2.frame(raw_http2.DATA, raw_http2.END_STREAM, 1, raw_http2.message(b"\x0a\x05zeros"))
    with servers.galatea(tmp_path, "--connection-progress-timeout-secs=1", *flags) as server:
        used = lambda: clients.metrics(server)[MEMORY]  # noqa: E731
        for address, sent in (
            (server.http, raw_http.post("/v2/models/zeros/infer", body)), (server.grpc, raw_http2.PREFACE + windows + call),
        ):
            host, port = address.split(":")
            connection = raw_http.connect((host, int(port)), LIMIT, receive_buffer=4096)
            if transport == "tls":
                made = context(files)
                made.set_alpn_protocols(["h2"] if address == server.grpc else ["http/1.1"])
                connection = made.wrap_socket(connection, server_hostname="localhost")
            with connection:
                connection.sendall(sent)
                eventually("the answer waits", lambda: used() > ZEROS / 4)
                eventually("the answer is given up", lambda: used() < ZEROS / 100)


def test_a_web_page_cannot_make_grpc_calls(files):
    """Each way in which a page can have its browser send bytes to another site unasked."""
    unload = raw_http2.message(b"\x12\x08identity")
    body = f"new Uint8Array({list(unload)})"
    explicit = ("--model-control-mode=explicit", "--load-model=*")
    with servers.galatea(files.models, *explicit, *https_flags(files.server), *grpc_flags(files.server)) as server, \
            browser.open_browser(ignore_https_errors=True) as page:
        page.goto(f"https://{server.http}/v2/health/live")
        call = f"https://{server.grpc}{raw_http2.SERVICE}RepositoryModelUnload"
        for options in ("method: 'GET'", f"method: 'POST', body: {body}", f"method: 'POST', body: new Blob([{body}], {{type: 'text/plain'}})"):
            page.evaluate(f"fetch('{call}', {{mode: 'no-cors', credentials: 'include', {options}}}).then(String, String)")
        # One that the browser asks about first.
        page.evaluate(f"fetch('{call}', {{method: 'POST', headers: {{'content-type': 'application/grpc'}}, body: {body}}}).then(String, String)")
        told = ("Bad method header", "Missing :te header")
        eventually("the calls have come", lambda: all(text in server.text() for text in told))
        with stock(server, "grpc", files.authority.certificate) as client:
            infers(client, "grpc")
