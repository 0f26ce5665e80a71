"""Certificates for tests, made while they run: authorities, servers, clients, with openssl."""

import itertools
import subprocess

NAMES = itertools.count()
# Of every kind that a server's key may have, with the arguments of openssl.
KEYS = {
    "ec": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
    "rsa": ["-newkey", "rsa:2048"],
}


def openssl(*args, **options):
    run = subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True, timeout=60, **options)
    assert run.returncode == 0, run.stderr
    return run.stdout


class Pair:
    """Files of a certificate and its key."""

    def __init__(self, folder, name):
        self.certificate, self.key = folder / f"{name}.pem", folder / f"{name}.key"

    def serial(self):
        return openssl("x509", "-in", self.certificate, "-noout", "-serial").strip()


class Authority(Pair):
    """Signs; `certificate` is what is trusted."""

    def __init__(self, folder, name="authority"):
        super().__init__(folder, name)
        self._folder = folder
        openssl(
            "req", "-x509", *KEYS["ec"], "-nodes", "-keyout", self.key, "-out", self.certificate,
            "-subj", f"/CN={name}", "-days", 30,
        )

    def issue(self, subject="/CN=localhost", key="ec", days=30, authority=False, version=3):
        """A certificate for localhost, or for a client; version 1 is what openssl makes without a file of extensions."""
        pair = Pair(self._folder, f"issued-{next(NAMES)}")
        request, extensions = pair.key.with_suffix(".csr"), pair.key.with_suffix(".ext")
        extensions.write_text(
            "basicConstraints=critical,CA:TRUE" if authority else "subjectAltName=DNS:localhost,IP:127.0.0.1"
        )
        openssl("req", *KEYS[key], "-nodes", "-keyout", pair.key, "-out", request, "-utf8", "-subj", subject)
        openssl(
            "x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
            "-days", days, *(["-extfile", extensions] if version == 3 else []), "-out", pair.certificate,
        )
        return pair

    def below(self, subject="/CN=intermediate"):
        """An authority whose certificate this one has signed."""
        made = object.__new__(Authority)
        pair = self.issue(subject, authority=True)
        made.certificate, made.key, made._folder = pair.certificate, pair.key, self._folder
        return made
