"""Tokens (JWT) of an issuer, made by another implementation: good ones of each algorithm, everything that makes one bad,
keys that change; and policies that change while a server serves."""

import contextlib
import http.server
import json
import os
import queue
import re
import subprocess
import threading
import time

import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient

import auth_cases
import clients
import servers
from auth_cases import bearer, jwt_table, key_entry
from repositories import add_sub_config, write_model

EXPLICIT = ("--model-control-mode=explicit", "--load-model=*")
KIDS = ("rs", "es", "ed")

pytestmark = pytest.mark.skipif(not auth_cases.ISSUER.exists(), reason="cargo xtask setup installs what signs tokens")


@pytest.fixture(scope="module")
def issuer():
    made = auth_cases.Issuer()
    yield made
    made.stop()


@pytest.fixture
def models(tmp_path):
    write_model(tmp_path / "models", "simple", "galatea", "add_sub", add_sub_config())
    return tmp_path / "models"


@contextlib.contextmanager
def serving(models, policy, wait=True, **options):
    """A server with this policy, which lies beside the models."""
    path = models.parent / "policy.toml"
    path.write_text(policy)
    with servers.galatea(models, *EXPLICIT, f"--auth-policy={path}", wait=wait, **options) as server:
        yield server


@pytest.fixture(scope="module")
def server(issuer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    write_model(folder / "models", "simple", "galatea", "add_sub", add_sub_config())
    (folder / "keys.json").write_text(issuer.key_set(*KIDS))
    policy = jwt_table('jwks_file = "keys.json"', "leeway_secs = 30") + '[[grants]]\ngroup = "ml-*"\nroles = "control"\n'
    with serving(folder / "models", policy) as running:
        yield running


def ask(server, token, path="/v2/models/simple"):
    status, _, body = clients.ask(server.http, "GET", path, headers=bearer(token))
    return status, body.decode()


def refused(server, token, text):
    status, body = ask(server, token)
    assert status == 401 and text in body, (status, body)
    stock = grpcclient.InferenceServerClient(server.grpc)
    with pytest.raises(Exception, match="UNAUTHENTICATED"):
        stock.get_model_metadata("simple", headers={"authorization": f"Bearer {token}"})


@pytest.mark.parametrize("kid", KIDS)
def test_each_algorithm(server, issuer, pair, kid):
    token = issuer.token(kid)
    for module, address in ((httpclient, server.http), (grpcclient, server.grpc)):
        # The client for HTTP adds to it.
        headers = {"authorization": f"Bearer {token}"}
        stock = module.InferenceServerClient(address)
        inputs = clients.inputs(module, dict(zip(("INPUT0", "INPUT1"), pair)))
        for _ in range(3):
            assert (stock.infer("simple", inputs, headers=headers).as_numpy("OUTPUT0") == sum(pair)).all()
        with pytest.raises(Exception, match="identity 'ann' lacks the role 'control'"):
            stock.unload_model("simple", headers=headers)


def test_roles_and_groups(server, issuer):
    assert ask(server, issuer.token(roles=["infer"]))[0] == 403
    assert ask(server, issuer.token(roles="infer read"))[0] == 200
    assert ask(server, issuer.token(roles=None))[0] == 403
    assert ask(server, issuer.token(roles=None), "/v2")[0] == 200
    token = issuer.token(roles=["ml-team"])
    assert clients.ask(server.http, "GET", "/v2/logging", headers=bearer(token))[0] == 200
    assert ask(server, token)[0] == 403


def test_what_makes_a_token_bad(server, issuer):
    now = time.time()
    for text, claims in (
        ("another issuer", {"iss": "https://issuer.test.evil"}), ("no 'iss'", {"iss": None}), ("another audience", {"aud": "other"}),
        ("no 'aud'", {"aud": None}), ("no 'exp'", {"exp": None}), ("expired", {"exp": now - 40}), ("not valid yet", {"nbf": now + 40}),
        ("does not say whose", {"sub": None}), ("does not say whose", {"sub": "x" * 300}),
    ):
        refused(server, issuer.token(**claims), text)
    for claims in ({"exp": now - 10}, {"nbf": now + 10}, {"aud": ["x", "galatea"]}, {"exp": int(now + 60)}):
        assert ask(server, issuer.token(**claims))[0] == 200, claims


def test_the_key_decides_the_algorithm(server, issuer):
    for kid in KIDS:
        for algorithm in ("HS256", "none"):
            token = issuer.forged(kid, {"alg": algorithm, "kid": kid, "typ": "JWT"}, sub="root", roles=["admin"])
            assert ask(server, token)[0] == 401
    for kid, other in (("rs", "ed"), ("es", "ed"), ("ed", "es"), ("ed", "rs"), ("es", "rs")):
        refused(server, issuer.token(kid, {"kid": other}), "another algorithm than that of its key")
    refused(server, issuer.token("ed", {"kid": "nosuch"}), "the key that signed the token is not known")
    refused(server, issuer.token("ed2", {"kid": "ed"}), "the signature of the token is wrong")
    refused(server, issuer.token("ed", {"crit": ["b64"]}), "critical extensions")
    assert ask(server, issuer.token("ed", {"jku": "http://127.0.0.1:1/", "x5u": "http://127.0.0.1:1/"}))[0] == 200


def test_a_token_that_was_cut_or_changed(server, issuer):
    token = issuer.token()
    head, claims, signature = token.split(".")
    for bad in (
        token[:-1], token[:-10], f"{head}.{claims}.", f"{head}..{signature}", f".{claims}.{signature}", f"{head}.{claims[:-4]}.{signature}",
        f"{claims}.{head}.{signature}", token + "A", token + ".x", "..", "a.b.c", f"{head}.{claims}.{signature[::-1]}",
    ):
        assert ask(server, bad)[0] == 401, bad


def test_no_token_is_in_the_log(issuer, models):
    (models.parent / "keys.json").write_text(issuer.key_set("ed"))
    tokens = [issuer.token(), issuer.token(aud="other"), issuer.token("ed2", {"kid": "ed"})]
    with serving(models, jwt_table('jwks_file = "keys.json"')) as server:
        for token in tokens:
            ask(server, token)
        server.wait_for_line("the signature of the token is wrong")
        assert "another audience" in server.text()
        for token in tokens:
            for part in token.split(".")[1:]:
                assert part not in server.text()


class KeyServer:
    """The address that an issuer publishes its keys at."""

    def __init__(self):
        self.answer, self.asked = (503, b""), threading.Semaphore(0)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                status, body = outer.answer
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    self.wfile.write(body)
                outer.asked.release()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/jwks.json"

    def wait(self, times=1):
        for _ in range(times):
            assert self.asked.acquire(timeout=30), "nobody asked for the keys"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def keys():
    made = KeyServer()
    yield made
    made.stop()


def test_keys_of_an_address_are_fetched_and_change(issuer, models, keys):
    keys.answer = (200, issuer.key_set("ed").encode())
    with serving(models, jwt_table(f'jwks_url = "{keys.url()}"\nrefresh_secs = 1')) as server:
        server.wait_for_line("authentication: 1 keys of the issuer")
        assert ask(server, issuer.token("ed"))[0] == 200
        refused(server, issuer.token("es"), "is not known to this server")
        keys.answer = (200, issuer.key_set("es", "rs").encode())
        server.wait_for_line("authentication: 2 keys of the issuer")
        assert ask(server, issuer.token("es"))[0] == 200
        # Also one that was let in before.
        assert ask(server, issuer.token("ed"))[0] == 401


def test_an_unknown_key_has_the_keys_fetched_before_their_time(issuer, models, keys):
    keys.answer = (200, issuer.key_set("ed").encode())
    with serving(models, jwt_table(f'jwks_url = "{keys.url()}"\nrefresh_secs = 86400')) as server:
        server.wait_for_line("authentication: 1 keys of the issuer")
        keys.answer = (200, issuer.key_set("ed", "es").encode())
        assert ask(server, issuer.token("es"))[0] == 401
        server.wait_for_line("authentication: 2 keys of the issuer")
        assert ask(server, issuer.token("es"))[0] == 200


@pytest.mark.parametrize("answer", [(500, b"down"), (200, b"no keys"), (200, b"{\"keys\": []}"), (200, b" " * (1 << 20)), (302, b"")])
def test_an_address_that_fails_keeps_the_keys(issuer, models, keys, answer):
    keys.answer = (200, issuer.key_set("ed").encode())
    with serving(models, jwt_table(f'jwks_url = "{keys.url()}"\nrefresh_secs = 1')) as server:
        server.wait_for_line("authentication: 1 keys of the issuer")
        keys.answer = answer
        server.wait_for_line("could not be fetched, those before go on")
        while keys.asked.acquire(blocking=False):
            pass
        keys.wait(2)
        assert ask(server, issuer.token("ed"))[0] == 200
        assert server.text().count("could not be fetched") == 1, "told once"
        keys.answer = (200, issuer.key_set("es").encode())
        server.wait_for_line("answers again")
        server.wait(lambda: server.text().count("authentication: 1 keys of the issuer") == 2, "the new keys")
        assert ask(server, issuer.token("es"))[0] == 200


def test_a_server_starts_without_its_issuer(issuer, models, keys):
    with serving(models, jwt_table(f'jwks_url = "{keys.url()}"\nrefresh_secs = 1') + key_entry("k", "secret", ["read"])) as server:
        server.wait_for_line("could not be fetched")
        assert ask(server, "secret")[0] == 200
        refused(server, issuer.token("ed"), "is not known to this server")
        keys.answer = (200, issuer.key_set("ed").encode())
        server.wait_for_line("authentication: 1 keys of the issuer")
        assert ask(server, issuer.token("ed"))[0] == 200


def replace(path, text):
    """As tools do: a new file in the place of the old one."""
    other = path.with_name("other")
    other.write_text(text)
    os.replace(other, path)


def test_a_changed_policy_is_taken_and_a_broken_one_is_not(models):
    path = models.parent / "policy.toml"
    with serving(models, key_entry("a", "old", ["read"])) as server:
        assert (ask(server, "old")[0], ask(server, "new")[0]) == (200, 401)
        replace(path, key_entry("a", "new", ["raed"]))
        line = server.wait_for_line("the changed policy is not taken")
        assert 'policy.toml:4:10: there is no role \'raed\'; did you mean' in line.replace('\\"', '"'), line
        assert (ask(server, "old")[0], ask(server, "new")[0]) == (200, 401)
        replace(path, key_entry("a", "new", ["read"]))
        server.wait_for_line("authentication: policy changed: 1 API keys")
        assert (ask(server, "old")[0], ask(server, "new")[0]) == (401, 200)


def test_a_changed_file_of_keys_is_taken_and_a_broken_one_is_not(issuer, models):
    path = models.parent / "keys.json"
    path.write_text(issuer.key_set("ed"))
    with serving(models, jwt_table('jwks_file = "keys.json"')) as server:
        assert ask(server, issuer.token("ed"))[0] == 200
        replace(path, "{")
        server.wait_for_line("the changed keys are not taken")
        assert ask(server, issuer.token("ed"))[0] == 200
        replace(path, issuer.key_set("es"))
        server.wait_for_line("authentication: 1 keys of the issuer")
        assert (ask(server, issuer.token("ed"))[0], ask(server, issuer.token("es"))[0]) == (401, 200)


def test_a_stream_ends_to_be_answered_when_its_token_expires(issuer, models, pair):
    (models.parent / "keys.json").write_text(issuer.key_set("ed"))
    with serving(models, jwt_table('jwks_file = "keys.json"', "leeway_secs = 0")) as server:
        stock, answers = grpcclient.InferenceServerClient(server.grpc), []
        got = threading.Condition()

        def take(result, error):
            with got:
                answers.append(error)
                got.notify_all()

        token = issuer.token(exp=int(time.time()) + 3)
        stock.start_stream(take, headers={"authorization": f"Bearer {token}"})
        inputs = clients.inputs(grpcclient, dict(zip(("INPUT0", "INPUT1"), pair)))
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not any(answers):
            sent = len(answers)
            stock.async_stream_infer("simple", inputs)
            with got:
                assert got.wait_for(lambda: len(answers) > sent, 10)
        assert answers[0] is None and "the credential has expired" in str(answers[-1])
        stock.stop_stream()


def test_a_key_that_is_taken_out_is_not_known_on_open_streams(models, pair):
    with serving(models, key_entry("a", "secret", ["infer"])) as server:
        stock, answers = grpcclient.InferenceServerClient(server.grpc), queue.Queue()
        stock.start_stream(lambda result, error: answers.put(error), headers={"x-api-key": "secret"})
        inputs = clients.inputs(grpcclient, dict(zip(("INPUT0", "INPUT1"), pair)))
        stock.async_stream_infer("simple", inputs)
        assert answers.get(timeout=20) is None
        replace(models.parent / "policy.toml", key_entry("a", "secret", ["read"]))
        server.wait_for_line("authentication: policy changed")
        stock.async_stream_infer("simple", inputs)
        assert "identity 'a' lacks the role 'infer' for model 'simple'" in str(answers.get(timeout=20))
        replace(models.parent / "policy.toml", key_entry("a", "other", ["infer"]))
        server.wait(lambda: server.text().count("authentication: policy changed") == 2, "the second change")
        stock.async_stream_infer("simple", inputs)
        assert "the API key is not known" in str(answers.get(timeout=20))
        stock.stop_stream()


def test_a_policy_that_is_wrong_ends_the_start(models):
    with serving(models, "[[keys]]\nname = 'a'\n", wait=False) as server:
        assert server.wait_for_exit() == 1
        assert "policy.toml:1:1: [[keys]] has no 'sha256'" in server.text()
    with serving(models, jwt_table('jwks_file = "nosuch.json"'), wait=False) as server:
        assert server.wait_for_exit() == 1
        assert "nosuch.json" in server.text()


def run(*words, **environment):
    return subprocess.run([servers.galatea_binary(), *words], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)


def test_check_finds_mistakes_of_a_policy(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(key_entry("a", "b", ["read"]))
    good = run("check", "--auth-policy", path)
    assert good.returncode == 0 and "0 mistakes" in good.stdout
    path.write_text(key_entry("a", "b", ["read"]) + "modles = 'x'\n")
    bad = run("check", "--auth-policy", path)
    assert bad.returncode == 1 and "policy.toml:6:1: error: [[keys]] has no 'modles'" in bad.stdout and "did you mean 'models'?" in bad.stdout
    finding = json.loads(run("check", "--json", "--auth-policy", path).stdout)["findings"][0]
    assert (finding["line"], finding["column"], finding["severity"]) == (6, 1, "error")
    path.write_text(jwt_table('jwks_file = "nosuch.json"'))
    assert "nosuch.json" in run("check", "--auth-policy", path).stdout


def test_the_policy_of_the_documentation_is_good(tmp_path):
    text = re.search(r"```toml\n(.*?)```", (servers.ROOT / "docs/authentication.md").read_text(), re.DOTALL)[1]
    (tmp_path / "policy.toml").write_text(text)
    found = run("check", "--auth-policy", tmp_path / "policy.toml")
    assert found.returncode == 0 and "0 mistakes, 0 warnings" in found.stdout, found.stdout


def test_a_key_that_the_command_makes_works_for_the_commands(models):
    made = run("auth", "key", "trainer", "infer", "read").stdout
    key = made.splitlines()[1]
    policy = made.replace(key, "")
    with serving(models, policy) as server:
        refused_run = run("models", "-u", server.http)
        assert refused_run.returncode == 1 and "authentication is required" in refused_run.stderr
        for words in (("models",), ("models", "simple"), ("infer", "simple", "--input", "INPUT0=zeros", "--input", "INPUT1=zeros")):
            for url in (server.http, f"grpc://{server.grpc}"):
                done = run(*words, "-u", url, GALATEA_API_KEY=key)
                assert done.returncode == 0, (words, done.stdout, done.stderr)
        measured = run("perf", "-m", "simple", "-u", server.http, "--request-count", "20", GALATEA_API_KEY=key)
        assert measured.returncode == 0, measured.stdout + measured.stderr
        wrong = run("models", "-u", server.http, GALATEA_API_KEY="two words")
        assert wrong.returncode == 2 and "two words" not in wrong.stderr
        assert key not in server.text()
