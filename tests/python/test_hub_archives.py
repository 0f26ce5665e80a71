"""Models in an archive on a server of the web: `https://HOST/PATH.tar.gz#sha256=DIGEST`, here on this machine."""

import gzip
import hashlib
import io
import tarfile

import numpy as np
import pytest

import clients
import fault_proxy
from check_cases import onnx_model
from model_hub import WebServer
from store_fixtures import check, echo, identity, index, start

__all__ = ["check", "start"]


def packed(files, entries=()):
    """A tar.gz of files by path, and of entries made by hand."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            content = content.encode() if isinstance(content, str) else content
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for entry in entries:
            archive.addfile(entry)
    return out.getvalue()


def link(path, target, kind=tarfile.SYMTYPE):
    entry = tarfile.TarInfo(path)
    entry.type, entry.linkname = kind, target
    return entry


def model(name, folder=None):
    folder = name if folder is None else folder
    return {f"{folder}/config.pbtxt".lstrip("/"): identity(name), f"{folder}/1/x".lstrip("/"): "x"}


class Shelf:
    """A server with archives by name."""

    def __init__(self):
        self.archives = {}
        self.web = WebServer(self.respond)
        self.knows_ranges = True

    def respond(self, request):
        content = self.archives.get(request.path.split("?")[0].strip("/"))
        if content is None:
            return request.answer(404)
        if not self.knows_ranges:
            del request.headers["Range"]
        return request.content(content, ETag=f'"{hashlib.md5(content).hexdigest()}"')

    def add(self, content, name="models.tar.gz", url=None, query=""):
        """The address of an archive."""
        self.archives[name] = content
        return f"{url or self.web.url}/{name}{query}#sha256={hashlib.sha256(content).hexdigest()}"


@pytest.fixture
def shelf():
    found = Shelf()
    yield found
    found.web.stop()


def names(server):
    return sorted(index(server))


def test_every_archive_layout_is_served(shelf, start):
    """Folders, folders in one, a folder, the model itself, one file, a file in a folder: with a server that polls them."""
    held = {
        "folders": {**model("a"), **model("b")},
        "folders-in-one": {**model("c", "repository/c"), **model("d", "repository/d")},
        "a-folder": model("e"),
        "the-model-itself": model("the-model-itself", folder=""),
        "file": {"net.onnx": onnx_model()},
        "file-in-a-folder": {"net/other.onnx": onnx_model()},
    }
    first, *more = [shelf.add(packed(files), f"{name}.tar.gz") for name, files in held.items()]
    flags = ["--model-control-mode=poll", "--repository-poll-secs=1"]
    server = start(first, *[f"--model-repository={address}" for address in more], *flags)
    identities = ["a", "b", "c", "d", "e", "the-model-itself"]
    assert names(server) == sorted([*identities, "net", "other"])
    assert all(echo(server, name) for name in identities)
    assert all(clients.client(server, "grpc").is_model_ready(name) for name in ("net", "other"))
    assert len(shelf.web.asked) == len(held)


def test_a_cached_archive_needs_no_requests(shelf, start, check):
    address = shelf.add(packed({**model("a"), **model("b")}), query="?signature=archive-secret")
    server = start(address, "--model-control-mode=explicit", "--load-model=a", "--log-verbose=2")
    assert echo(server, "a") and names(server) == ["a", "b"]
    stock = clients.client(server, "http")
    stock.load_model("b")
    assert echo(server, "b")
    stock.unload_model("b")
    server.wait_for_line("successfully unloaded 'b'")
    assert "archive-secret" not in server.text()
    server.stop()
    assert len(shelf.web.asked) == 1
    assert check(address).code == 0 and len(shelf.web.asked) == 1
    shelf.web.stop()
    assert check(address).code == 0


def test_invalid_archive_addresses_are_refused(shelf, check, tmp_path):
    address = shelf.add(packed(model("a")))
    plain, digest = address.split("#")
    for wrong, text in [
        (plain, "'sha256sum models.tar.gz' prints"),
        (f"{plain}#sha256=12", "not a SHA-256 digest of 64 digits"),
        (f"{plain[:-7]}.zip#{digest}", "must end in .tar.gz"),
        (f"http://models.invalid/models.tar.gz#{digest}", "is not encrypted"),
        (f"{plain}#sha256={'0' * 64}", "it is not the archive that was named"),
        (address.replace("models.tar.gz", "other.tar.gz"), "status 404"),
    ]:
        seen = check(wrong)
        assert seen.code != 0 and text in seen.text, seen.text
    assert not list(tmp_path.glob("cache/v1/models/*")), "nothing of it is kept"


def test_an_interrupted_download_is_resumed(shelf, check):
    # So that it does not become small.
    noise = np.random.default_rng(1).bytes(600_000)
    address_of = packed({**model("a"), "a/1/large": noise})
    with fault_proxy.FaultProxy(shelf.web.address) as proxy:
        address = shelf.add(address_of, url=proxy.url)
        proxy.changes.append(fault_proxy.cuts("GET", 200_000, times=2))
        assert check(address).code == 0
        assert [asked.range for asked in proxy.asked] == [None, "bytes=200000-", "bytes=400000-"]
        # A server that sends everything from the start again.
        shelf.knows_ranges = False
        proxy.changes[:] = [fault_proxy.cuts("GET", 200_000, times=1)]
        assert check(shelf.add(address_of + gzip.compress(b""), name="again.tar.gz", url=proxy.url)).code == 0


def test_an_archive_replaced_during_the_download_is_refused(shelf, check):
    first = packed({**model("a"), "a/1/large": np.random.default_rng(1).bytes(600_000)})
    with fault_proxy.FaultProxy(shelf.web.address) as proxy:
        address = shelf.add(first, url=proxy.url)
        proxy.changes.append(fault_proxy.cuts("GET", 200_000, times=1))
        proxy.changes.append(lambda asked, answer: asked.range and answer.headers.update(ETag='"other"'))
        seen = check(address)
        assert seen.code != 0 and "replaced by another" in seen.text, seen.text


@pytest.mark.parametrize(
    ("files", "entries", "text"),
    [
        ({"../escape": "x"}, [], "outside of the folder"),
        ({"/etc/escape": "x"}, [], "outside of the folder"),
        ({}, [link("a/1", "/etc")], "leads outside of the folder"),
        ({}, [link("a/1", "../../..")], "leads outside of the folder"),
        ({}, [link("a/passwd", "../../etc/passwd", tarfile.LNKTYPE)], "leads outside of the folder"),
        ({}, [link("a/device", "", tarfile.CHRTYPE)], "neither a file nor a folder nor a link"),
    ],
)
def test_hostile_entries_are_refused(shelf, check, tmp_path, files, entries, text):
    seen = check(shelf.add(packed({**model("a"), **files}, entries)))
    assert seen.code != 0 and text in seen.text, seen.text
    assert not list(tmp_path.rglob("*escape*"))


def test_files_that_are_not_archives_are_refused(shelf, check):
    for content, text in [(b"<html>not here</html>", "archive cannot be read"), (gzip.compress(b"x" * 5000), "archive cannot be read")]:
        seen = check(shelf.add(content))
        assert seen.code != 0 and text in seen.text, seen.text


def test_an_archive_bomb_is_refused_before_it_is_written(shelf, check, tmp_path):
    """The declared size of an entry counts before a byte of it is written."""
    entry = tarfile.TarInfo("a/1/bomb")
    entry.size = 1 << 41
    seen = check(shelf.add(packed(model("a"), [entry])))
    assert seen.code != 0 and "the archive unpacks to more than the" in seen.text, seen.text
    assert not list(tmp_path.glob("cache/v1/models/*"))
