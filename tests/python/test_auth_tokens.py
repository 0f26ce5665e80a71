"""Tokens (JWT) of an issuer, made by another implementation: good ones of each algorithm, everything that makes one bad,
keys that change; and policies that change while a server serves."""

import contextlib
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
import tiers
from auth_cases import bearer, jwt_table, key_entry
from repositories import add_sub_config, tensor, write_model
from sequence_plays import controls
from waiting import LIMIT, eventually
from web_server import WebServer

EXPLICIT = ("--model-control-mode=explicit", "--load-model=*")
KIDS = ("rs", "es", "ed")

pytestmark = pytest.mark.skipif(not auth_cases.ISSUER.exists(), reason="cargo xtask setup installs what signs tokens")


@pytest.fixture(scope="module")
def issuer():
    made = auth_cases.Issuer()
    yield made
    made.stop()


# Adds up what a sequence sends.
SUMS = ("max_batch_size: 4\n" + tensor("input", "INPUT", "TYPE_INT32", "-1") + tensor("output", "OUTPUT", "TYPE_INT32", "-1")
        + "sequence_batching {\n" + "".join(line + "\n" for line in controls().splitlines() if '"START"' in line or '"READY"' in line) + "}\n")


class Policies:
    """A server whose policy each test replaces by its own; files that a policy names lie beside it, in `folder`."""

    def __init__(self, folder):
        self.folder, self.path = folder, folder / "policy.toml"
        write_model(folder / "models", "simple", "galatea", "add_sub", add_sub_config())
        write_model(folder / "models", "sums", "galatea", "sequence", SUMS)
        self.path.write_text(key_entry("first", "first", ["read"]))
        self.server = servers.galatea(folder / "models", *EXPLICIT, f"--auth-policy={self.path}")
        self.taken = 0

    def install(self, policy):
        """The server, once it has taken the policy; its log begins there."""
        server, before = self.server, len(self.server.log)
        server.log_begins = before
        # A file of the same text would be no change.
        replace(self.path, f"# {self.taken}\n{policy}")
        self.taken += 1
        server.wait_for_line("authentication: policy changed")
        return server


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    made = Policies(tmp_path_factory.mktemp("tokens"))
    yield made
    made.server.stop()


@pytest.fixture
def server(issuer, policies):
    """One that trusts the issuer."""
    (policies.folder / "keys.json").write_text(issuer.key_set(*KIDS))
    return policies.install(jwt_table('jwks_file = "keys.json"', "leeway_secs = 30") + '[[grants]]\ngroup = "ml-*"\nroles = "control"\n')


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
def test_each_algorithm_is_accepted(server, issuer, pair, kid):
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


def test_roles_and_groups_of_a_token_apply(server, issuer):
    assert ask(server, issuer.token(roles=["infer"]))[0] == 403
    assert ask(server, issuer.token(roles="infer read"))[0] == 200
    assert ask(server, issuer.token(roles=None))[0] == 403
    assert ask(server, issuer.token(roles=None), "/v2")[0] == 200
    token = issuer.token(roles=["ml-team"])
    assert clients.ask(server.http, "GET", "/v2/logging", headers=bearer(token))[0] == 200
    assert ask(server, token)[0] == 403


def test_a_token_with_a_wrong_claim_is_refused(server, issuer):
    now = time.time()
    for text, claims in (
        ("another issuer", {"iss": "https://issuer.test.evil"}), ("no 'iss'", {"iss": None}), ("another audience", {"aud": "other"}),
        ("no 'aud'", {"aud": None}), ("no 'exp'", {"exp": None}), ("expired", {"exp": now - 40}), ("not valid yet", {"nbf": now + 40}),
        ("names no identity", {"sub": None}), ("names no identity", {"sub": "x" * 300}),
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
        refused(server, issuer.token(kid, {"kid": other}), "the algorithm of the token is not that of its key")
    refused(server, issuer.token("ed", {"kid": "nosuch"}), "the key that signed the token is not known")
    refused(server, issuer.token("ed2", {"kid": "ed"}), "the signature of the token is wrong")
    refused(server, issuer.token("ed", {"crit": ["b64"]}), "critical extensions")
    assert ask(server, issuer.token("ed", {"jku": "http://127.0.0.1:1/", "x5u": "http://127.0.0.1:1/"}))[0] == 200


def test_a_truncated_or_modified_token_is_refused(server, issuer):
    token = issuer.token()
    head, claims, signature = token.split(".")
    for bad in (
        token[:-1], token[:-10], f"{head}.{claims}.", f"{head}..{signature}", f".{claims}.{signature}", f"{head}.{claims[:-4]}.{signature}",
        f"{claims}.{head}.{signature}", token + "A", token + ".x", "..", "a.b.c", f"{head}.{claims}.{signature[::-1]}",
    ):
        assert ask(server, bad)[0] == 401, bad


def test_no_token_is_in_the_log(issuer, server):
    tokens = [issuer.token(), issuer.token(aud="other"), issuer.token("ed2", {"kid": "ed"})]
    for token, said in zip(tokens, ("simple", "another audience", "the signature of the token is wrong")):
        assert said in ask(server, token)[1]
    # In a second in which much is refused, not each is told.
    server.log_begins = 0
    for token, said in zip(tokens[1:], ("another audience", "the signature of the token is wrong")):
        eventually(f"the log has {said}", lambda: ask(server, token)[0] == 401 and said in server.text())  # noqa: B023
    for token in tokens:
        for part in token.split(".")[1:]:
            assert part not in server.text()


class KeyServer(WebServer):
    """The address that an issuer publishes its keys at."""

    def __init__(self):
        self.answer, self.asked = (503, b""), threading.Semaphore(0)
        super().__init__(self.respond)

    def respond(self, request):
        status, body = self.answer
        request.send_response(status)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        with contextlib.suppress(OSError):
            request.wfile.write(body)
        self.asked.release()

    def wait(self, times=1):
        for _ in range(times):
            assert self.asked.acquire(timeout=LIMIT), "nobody asked for the keys"


@pytest.fixture
def keys():
    made = KeyServer()
    yield made
    made.stop()


def of_address(keys, refresh):
    return jwt_table(f'jwks_url = "{keys.url}/jwks.json"\nrefresh_secs = {refresh}')


def test_keys_at_an_address_are_fetched_and_updated(issuer, policies, keys):
    keys.answer = (200, issuer.key_set("ed").encode())
    server = policies.install(of_address(keys, 1))
    server.wait_for_line("authentication: 1 keys of the issuer")
    assert ask(server, issuer.token("ed"))[0] == 200
    refused(server, issuer.token("es"), "is not known to this server")
    keys.answer = (200, issuer.key_set("es", "rs").encode())
    server.wait_for_line("authentication: 2 keys of the issuer")
    assert ask(server, issuer.token("es"))[0] == 200
    # Also one that was let in before.
    assert ask(server, issuer.token("ed"))[0] == 401


def test_an_unknown_key_triggers_an_early_fetch(issuer, policies, keys):
    keys.answer = (200, issuer.key_set("ed").encode())
    server = policies.install(of_address(keys, 86400))
    server.wait_for_line("authentication: 1 keys of the issuer")
    keys.answer = (200, issuer.key_set("ed", "es").encode())
    assert ask(server, issuer.token("es"))[0] == 401
    server.wait_for_line("authentication: 2 keys of the issuer")
    assert ask(server, issuer.token("es"))[0] == 200


FAILURES = [(500, b"down"), (200, b"no keys")]
MORE_FAILURES = [(200, b"{\"keys\": []}"), (200, b" " * (1 << 20)), (302, b"")]


@pytest.mark.parametrize("answer", [*FAILURES, *(pytest.param(each, marks=tiers.peers) for each in MORE_FAILURES)])
def test_a_failing_address_keeps_the_keys(issuer, policies, keys, answer):
    keys.answer = (200, issuer.key_set("ed").encode())
    server = policies.install(of_address(keys, 1))
    server.wait_for_line("authentication: 1 keys of the issuer")
    keys.answer = answer
    server.wait_for_line("could not be fetched, so the previous ones stay")
    while keys.asked.acquire(blocking=False):
        pass
    keys.wait(2)
    assert ask(server, issuer.token("ed"))[0] == 200
    assert server.text().count("could not be fetched") == 1, "told once"
    keys.answer = (200, issuer.key_set("es").encode())
    server.wait_for_line("answers again")
    server.wait(lambda: server.text().count("authentication: 1 keys of the issuer") == 2, "the new keys")
    assert ask(server, issuer.token("es"))[0] == 200


def test_a_server_starts_without_its_issuer(issuer, tmp_path, keys):
    write_model(tmp_path / "models", "simple", "galatea", "add_sub", add_sub_config())
    (tmp_path / "policy.toml").write_text(of_address(keys, 1) + key_entry("k", "secret", ["read"]))
    with servers.galatea(tmp_path / "models", *EXPLICIT, f"--auth-policy={tmp_path / 'policy.toml'}") as server:
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


def test_a_changed_policy_is_applied_unless_it_is_invalid(policies):
    server = policies.install(key_entry("a", "old", ["read"]))
    assert (ask(server, "old")[0], ask(server, "new")[0]) == (200, 401)
    replace(policies.path, key_entry("a", "new", ["raed"]))
    line = server.wait_for_line("the new policy cannot be used")
    assert 'policy.toml:4:10: there is no role \'raed\'; did you mean' in line.replace('\\"', '"'), line
    assert (ask(server, "old")[0], ask(server, "new")[0]) == (200, 401)
    server.log_begins = len(server.log)
    replace(policies.path, key_entry("a", "new", ["read"]))
    server.wait_for_line("authentication: policy changed: 1 API keys")
    assert (ask(server, "old")[0], ask(server, "new")[0]) == (401, 200)


def test_a_changed_key_file_is_applied_unless_it_is_invalid(issuer, policies):
    path = policies.folder / "keys.json"
    path.write_text(issuer.key_set("ed"))
    server = policies.install(jwt_table('jwks_file = "keys.json"'))
    assert ask(server, issuer.token("ed"))[0] == 200
    server.log_begins = len(server.log)
    replace(path, "{")
    server.wait_for_line("the new keys cannot be used")
    assert ask(server, issuer.token("ed"))[0] == 200
    replace(path, issuer.key_set("es"))
    server.wait_for_line("authentication: 1 keys of the issuer")
    assert (ask(server, issuer.token("ed"))[0], ask(server, issuer.token("es"))[0]) == (401, 200)


def test_a_stream_is_refused_after_its_token_expires(issuer, policies, pair):
    (policies.folder / "keys.json").write_text(issuer.key_set("ed"))
    server = policies.install(jwt_table('jwks_file = "keys.json"', "leeway_secs = 0"))
    stock, answers = grpcclient.InferenceServerClient(server.grpc), queue.Queue()
    # The first answer is there long before; nothing tells the server another time.
    token = issuer.token(exp=int(time.time()) + 5)
    stock.start_stream(lambda result, error: answers.put(error), headers={"authorization": f"Bearer {token}"})
    inputs = clients.inputs(grpcclient, dict(zip(("INPUT0", "INPUT1"), pair)))

    def answer():
        stock.async_stream_infer("simple", inputs)
        return answers.get(timeout=LIMIT)

    assert answer() is None
    assert "the credential has expired" in str(eventually("the token expires", answer))
    stock.stop_stream()


def test_a_removed_key_is_refused_on_open_streams(policies, pair):
    server = policies.install(key_entry("a", "secret", ["infer"]))
    stock, answers = grpcclient.InferenceServerClient(server.grpc), queue.Queue()
    stock.start_stream(lambda result, error: answers.put(error), headers={"x-api-key": "secret"})
    inputs = clients.inputs(grpcclient, dict(zip(("INPUT0", "INPUT1"), pair)))
    stock.async_stream_infer("simple", inputs)
    assert answers.get(timeout=LIMIT) is None
    policies.install(key_entry("a", "secret", ["read"]))
    stock.async_stream_infer("simple", inputs)
    assert "identity 'a' lacks the role 'infer' for model 'simple'" in str(answers.get(timeout=LIMIT))
    policies.install(key_entry("a", "other", ["infer"]))
    stock.async_stream_infer("simple", inputs)
    assert "the API key is not known" in str(answers.get(timeout=LIMIT))
    stock.stop_stream()


def test_an_invalid_policy_ends_the_start(tmp_path):
    path = tmp_path / "policy.toml"
    for policy, said in (("[[keys]]\nname = 'a'\n", "policy.toml:1:1: [[keys]] has no 'sha256'"), (jwt_table('jwks_file = "nosuch.json"'), "nosuch.json")):
        path.write_text(policy)
        with servers.galatea(tmp_path, *EXPLICIT, f"--auth-policy={path}", wait=False) as server:
            assert server.wait_for_exit() == 1
            assert said in server.text()


def run(*words, **environment):
    return subprocess.run([servers.galatea_binary(), *words], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)


def test_check_finds_mistakes_in_a_policy(tmp_path):
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


def test_the_documented_policy_is_valid(tmp_path):
    text = re.search(r"```toml\n(.*?)```", (servers.ROOT / "docs/authentication.md").read_text(), re.DOTALL)[1]
    (tmp_path / "policy.toml").write_text(text)
    found = run("check", "--auth-policy", tmp_path / "policy.toml")
    assert found.returncode == 0 and "0 mistakes, 0 warnings" in found.stdout, found.stdout


def test_a_key_from_the_auth_command_works_for_the_commands(policies):
    made = run("auth", "key", "trainer", "infer", "read").stdout
    key = made.splitlines()[1]
    server = policies.install(made.replace(key, ""))
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


def test_a_token_named_like_a_key_is_another_client(issuer, policies):
    """It cannot continue a sequence of the key's owner."""
    (policies.folder / "keys.json").write_text(issuer.key_set(*KIDS))
    server = policies.install(key_entry("ann", "secret", ["admin"]) + jwt_table('jwks_file = "keys.json"'))

    def add(secret, start=False):
        body = {"inputs": [{"name": "INPUT", "shape": [1, 1], "datatype": "INT32", "data": [5]}],
                "parameters": {"sequence_id": 7, "sequence_start": start}}
        status, _, text = clients.ask(server.http, "POST", "/v2/models/sums/infer", body, headers=bearer(secret))
        return status, text.decode()

    assert add("secret", True)[0] == 200
    status, text = add(issuer.token(sub="ann"))
    assert status == 400 and "another client has a sequence of this correlation ID" in text, text
    assert '"data":[10]' in add("secret")[1].replace(" ", "")
