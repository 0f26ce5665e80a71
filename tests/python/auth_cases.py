"""Policies, keys and tokens of the tests of authentication, and what each kind of call needs."""

import base64
import hashlib
import json
import subprocess
import time

import servers

ISSUER = servers.PEERS / "token-issuer/bin/python"

# Runs where PyJWT is. A line of JSON in is a question, a line out its answer. Keys are made when first named: `kid` tells
# of which kind by its first two letters.
PROGRAM = """
import base64, hmac, json, sys
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
KINDS = {
    "rs": (lambda: rsa.generate_private_key(65537, 2048), "RS256", jwt.algorithms.RSAAlgorithm),
    "es": (lambda: ec.generate_private_key(ec.SECP256R1()), "ES256", jwt.algorithms.ECAlgorithm),
    "ed": (ed25519.Ed25519PrivateKey.generate, "EdDSA", jwt.algorithms.OKPAlgorithm),
}
keys = {}
def key(kid):
    return keys.setdefault(kid, KINDS[kid[:2]][0]())
def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")
def set_of(kids):
    made = [json.loads(KINDS[kid[:2]][2].to_jwk(key(kid).public_key())) for kid in kids]
    return {"keys": [{**jwk, "kid": kid, "use": "sig"} for jwk, kid in zip(made, kids)]}
def token(claims, kid, headers=None, algorithm=None):
    return jwt.encode(claims, key(kid), algorithm or KINDS[kid[:2]][1], headers={"kid": kid, **(headers or {})})
def forged(claims, kid, header):
    # Signed by HMAC with the public key as the secret, as a confused verifier would check it.
    secret = key(kid).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    message = b64(json.dumps(header).encode()) + b"." + b64(json.dumps(claims).encode())
    signature = b"" if header["alg"] == "none" else hmac.digest(secret, message, "sha256")
    return (message + b"." + b64(signature)).decode()
for line in sys.stdin:
    name, *arguments = json.loads(line)
    print(json.dumps({"set_of": set_of, "token": token, "forged": forged}[name](*arguments)), flush=True)
"""


class Issuer:
    """Signs tokens, in a process of its own; one of those that a policy trusts."""

    def __init__(self):
        self.process = subprocess.Popen(
            [ISSUER, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def _ask(self, *question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def key_set(self, *kids):
        return json.dumps(self._ask("set_of", kids))

    def token(self, kid="ed", headers=None, **claims):
        return self._ask("token", good_claims(**claims), kid, headers)

    def forged(self, kid, header, **claims):
        return self._ask("forged", good_claims(**claims), kid, header)

    def stop(self):
        self.process.stdin.close()
        self.process.wait(10)


def good_claims(**other):
    claims = {"iss": "https://issuer.test", "aud": "galatea", "sub": "ann", "exp": time.time() + 600, "roles": ["infer", "read"], **other}
    return {name: value for name, value in claims.items() if value is not None}


def sha256(secret):
    return hashlib.sha256(secret.encode()).hexdigest()


def key_entry(name, secret, roles=(), models=("*",), expires=None):
    lines = ["[[keys]]", f"name = {json.dumps(name)}", f'sha256 = "{sha256(secret)}"']
    lines += [f"roles = {json.dumps(list(roles))}", f"models = {json.dumps(list(models))}"] if roles else []
    lines += [f"expires = {expires}"] if expires else []
    return "\n".join(lines) + "\n"


def jwt_table(keys, more=""):
    return f'[jwt]\nissuer = "https://issuer.test"\naudience = "galatea"\nroles_claim = "roles"\n{keys}\n{more}\n'


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def basic(secret, user="anyone"):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()}


# Who may do what: for all models, and for one that is not asked for.
ROLES = ("infer", "read", "control", "admin")
KEYS = {"": ()} | {role: (role, ("*",)) for role in ROLES} | {f"{role}@other": (role, ("other*",)) for role in ROLES}


def secret_of(key):
    return f"secret-of-{key or 'nobody'}"


def table_policy():
    """A key for each role and reach, and one that has run out."""
    entries = [key_entry(key or "nobody", secret_of(key), KEYS[key][:1], KEYS[key][1] if KEYS[key] else ()) for key in KEYS]
    return "".join(entries) + key_entry("late", secret_of("late"), ["admin"], expires="2020-01-01")


# Needs of calls: nobody has to say who it is; anybody whom the policy knows; a role for the model `simple`; a role for any
# model (what is told is about those); a role for all models.
OPEN, KNOWN = "open", "known"


def allowed(need, key):
    """Whether the policy's key is enough."""
    role, _, reach = key.partition("@")
    if need in (OPEN, KNOWN):
        return True
    wanted, _, scope = need.partition(" ")
    has = role == "admin" or role in wanted.split("|")
    return has and (not reach or scope == "of any")
