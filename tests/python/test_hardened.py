"""--hardened: what a server does that strangers may reach, and the warning of one that asks nobody who they are."""

import re
import socket

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

import clients
import servers
from auth_cases import bearer
from repositories import add_sub_config, write_model

EXPLICIT = ("--model-control-mode=explicit", "--load-model=simple")
CLOSED = "no client of this server has the role 'control'"
ARRAYS = {name: np.ones([1, 16], np.int32) for name in ("INPUT0", "INPUT1")}
WARNING = "without credentials"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    path = tmp_path_factory.mktemp("hardened") / "models"
    write_model(path, "simple", "galatea", "add_sub", add_sub_config())
    return path


def start(models, *flags):
    """A server that is not told where to listen."""
    command = [servers.galatea_binary(), "serve", f"--model-repository={models}", "--http-port=0", "--grpc-port=0", "--metrics-port=0"]
    return servers.Server([*command, *EXPLICIT, *flags], {})


@pytest.fixture(scope="module")
def hardened(models):
    with start(models, "--hardened") as server:
        yield server


def test_a_hardened_server_answers_inference_and_reads(hardened):
    for protocol in ("http", "grpc"):
        stock = clients.client(hardened, protocol)
        assert clients.infer(stock, protocol, "simple", ARRAYS)
        assert stock.get_model_metadata("simple") and stock.get_model_repository_index() and stock.is_model_ready("simple")
    assert clients.ask(hardened.metrics, "GET", "/metrics")[0] == 200
    # What a proxy in front sends for itself is not looked at.
    assert clients.ask(hardened.http, "GET", "/v2/models/simple", headers=bearer("of another server"))[0] == 200


def test_a_hardened_server_refuses_changes(hardened):
    for method, path in (
        ("POST", "/v2/repository/models/simple/unload"), ("POST", "/v2/repository/models/simple/load"), ("POST", "/v2/logging"),
        ("GET", "/v2/logging"), ("POST", "/v2/trace/setting"), ("POST", "/v2/models/simple/trace/setting"),
        ("POST", "/v2/systemsharedmemory/region/r/register"), ("POST", "/v2/cudasharedmemory/region/r/register"),
    ):
        status, _, body = clients.ask(hardened.http, method, path, {} if method == "POST" else None)
        assert status == 403 and CLOSED in body.decode() and "--auth-policy" in body.decode(), (path, status, body)
    stock = clients.client(hardened, "grpc")
    for call in (lambda: stock.unload_model("simple"), lambda: stock.load_model("simple"), lambda: stock.update_log_settings({}),
                 lambda: stock.register_system_shared_memory("r", "/r", 16)):
        with pytest.raises(grpcclient.InferenceServerException, match=CLOSED) as error:
            call()
        assert error.value.status() == "StatusCode.PERMISSION_DENIED"
    assert clients.client(hardened, "http").is_model_ready("simple")


def test_a_hardened_server_has_no_console(hardened):
    assert clients.ask(hardened.http, "GET", "/")[0] == 404


def listening(server):
    """Whether the ports of a server that was not told where to listen are open at this machine's other addresses."""
    port = int(server.http.rpartition(":")[2])
    with socket.socket() as client:
        client.settimeout(5)
        return client.connect_ex(("127.0.0.2", port)) == 0


def test_a_hardened_server_listens_on_localhost_by_default(hardened):
    assert not listening(hardened)
    assert WARNING not in hardened.text()


@pytest.fixture(scope="module")
def warned(models):
    """A server that has reasons to warn."""
    with start(models, "--grpc-server-cert=/none", "--grpc-root-cert=/none") as server:
        yield server


def test_other_servers_listen_on_all_addresses_with_a_warning(warned):
    assert listening(warned)
    [line] = [line for line in warned.text().splitlines() if WARNING in line]
    assert re.search(r"can reach 0\.0\.0\.0 \(HTTP\), 0\.0\.0\.0 \(GRPC\), 0\.0\.0\.0 \(metrics\)", line), line
    for part in ("inference", "model control", "settings of the log", "console", "metrics", "--auth-policy", "--hardened"):
        assert part in line, line


def test_tls_flags_without_effect_are_warned_about(warned):
    for flag in ("--grpc-server-cert", "--grpc-root-cert"):
        warned.wait_for_line(f"{flag} has no effect without --grpc-use-ssl=true")
    assert clients.client(warned, "grpc").is_server_live()
