"""Object stores in trouble, and connections to them that break: a model is served whole or not at all, and its reason told."""

import concurrent.futures
import re
import threading

import pytest

import clients
import tiers
from console_events import Events
from fault_proxy import answers, body_changed, cuts, headers_changed, s3_error, waits, zeros
from store_fixtures import bucket, check, echo, entries, index, proxy, s3, start

__all__ = ["bucket", "check", "proxy", "s3", "start"]

FILE = r"GET /[^/]+/models/a/1/weights\.bin"
SLOW_DOWN = s3_error("SlowDown", "Please reduce your request rate.")


@pytest.mark.parametrize(
    ("pattern", "status", "body"),
    [
        (FILE, 503, SLOW_DOWN), (FILE, 500, s3_error("InternalError", "We encountered an internal error.")),
        ("list-type", 503, SLOW_DOWN), ("list-type", 429, s3_error("TooManyRequests", "later")),
    ],
)
def test_a_busy_store_is_retried(proxy, bucket, check, pattern, status, body):
    bucket.add("a")
    proxy.faults.append(answers(pattern, status, body, times=3))
    assert check(bucket.path).code == 0
    assert not proxy.faults[0](proxy.asked[0]), "all of the faults were met"


def test_an_unavailable_file_is_reported_and_nothing_is_loaded(proxy, bucket, start, tmp_path):
    bucket.add("a")
    bucket.add("b")
    server = start(bucket.path, "--model-control-mode=explicit", "--load-model=b")
    for status, body in [(503, SLOW_DOWN), (403, s3_error("AccessDenied", "Access Denied"))]:
        proxy.faults.append(answers(FILE, status, body))
        with pytest.raises(Exception, match="failed to fetch model 'a' from 's3://") as failure:
            clients.client(server, "http").load_model("a")
        assert "weights.bin" in str(failure.value)
        assert echo(server, "b") and index(server)["a"][0] != "READY"
        assert [name.split("-")[0] for name in entries(tmp_path / "cache")] == ["b"]
        proxy.faults.clear()
    clients.client(server, "http").load_model("a")
    assert echo(server, "a")


@pytest.mark.parametrize("times", [1, 4])
def test_an_interrupted_download_is_resumed(proxy, bucket, check, times):
    size, after = 3_000_000, 700_000
    bucket.add("a", size=size)
    proxy.changes.append(cuts(FILE, after, times=times))
    assert check(bucket.path).code == 0
    asked = proxy.downloads("/a/1/weights.bin")
    starts = [int((each.range or "bytes=0-").removeprefix("bytes=").split("-")[0]) for each in asked]
    assert starts == [after * turn for turn in range(times + 1)], asked
    # The rest is asked for on the condition that it is of the same object.
    assert all(each.headers.get("If-Match") for each in asked[1:]), [dict(each.headers) for each in asked]


@tiers.peers
def test_an_abandoned_download_is_resumed_by_the_next_program(proxy, bucket, check):
    size, after = 3_000_000, 700_000
    bucket.add("a", size=size)
    proxy.changes.append(cuts(FILE, after, times=1))
    proxy.faults.append(lambda asked: answers(FILE, 503, SLOW_DOWN)(asked) if asked.range else None)
    seen = check(bucket.path)
    assert seen.code != 0 and "failed to fetch" in seen.text, seen.text
    proxy.faults.clear()
    proxy.asked.clear()
    assert check(bucket.path).code == 0
    assert [each.range.split("-")[0] for each in proxy.downloads("/a/1/weights.bin")] == [f"bytes={after}"]


def test_an_object_that_changes_during_the_download_is_fetched_again(proxy, bucket, check, tmp_path):
    bucket.add("a", size=1_000_000)
    begun, changed = threading.Event(), threading.Event()

    def change(asked, answer):
        if "weights.bin" in asked.path and not begun.is_set():
            begun.set()
            waits(FILE, changed, after=300_000)(asked, answer)
            whole = answer.body

            def body():
                # The first part, then the end of the connection: the rest is another object's by then.
                yield next(iter(whole))
                changed.wait(60)
                raise ConnectionError

            answer.body = body()

    proxy.changes.append(change)
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        seen = other.submit(check, bucket.path)
        assert begun.wait(60)
        bucket.put("models/a/1/weights.bin", b"n" * 1_000_000)
        changed.set()
        assert seen.result().code == 0, seen.result().text
    # What is served is all of the new one.
    fetched = next((tmp_path / "cache/v1/models").glob("a-*/a/1/weights.bin")).read_bytes()
    assert fetched == b"n" * 1_000_000


def test_a_response_with_another_version_is_refused(proxy, bucket, check, tmp_path):
    bucket.add("a")
    proxy.changes.append(headers_changed(FILE, ETag='"0123456789abcdef0123456789abcdef"'))
    seen = check(bucket.path)
    assert seen.code != 0 and "failed to fetch" in seen.text and "weights.bin" in seen.text, seen.text
    assert entries(tmp_path / "cache") == []


def test_damaged_content_is_refused(proxy, bucket, check, tmp_path):
    bucket.add("a", size=50_000)
    proxy.changes.append(body_changed(FILE, lambda body: body[:-1] + b"!"))
    seen = check(bucket.path)
    assert seen.code != 0 and "checksum" in seen.text and "weights.bin" in seen.text, seen.text
    assert entries(tmp_path / "cache") == []
    proxy.changes.clear()
    assert check(bucket.path).code == 0


@pytest.mark.parametrize("change", [lambda body: body[: len(body) // 2], lambda body: body + b"more"])
def test_content_of_another_length_is_refused(proxy, bucket, check, tmp_path, change):
    bucket.add("a", size=50_000)
    proxy.changes.append(body_changed(FILE, change))
    seen = check(bucket.path)
    assert seen.code != 0 and "failed to fetch" in seen.text, seen.text
    assert entries(tmp_path / "cache") == []


@pytest.mark.parametrize(
    "body",
    [b"", b"<ListBucketResult><Contents><Key>models/a/1/x</Key><Size>-5</Size></Contents></ListBucketResult>", b"{" * 100_000],
)
def test_invalid_listings_are_refused(proxy, bucket, check, body):
    bucket.add("a")
    proxy.faults.append(answers("list-type", 200, body))
    seen = check(bucket.path)
    assert seen.code != 0 and "panic" not in seen.text, seen.text


PAGES = [(b"<!DOCTYPE html><html><body>Sign in</body></html>", "text/html"), (b"", "text/plain"), (b"{}", "application/json")]


@pytest.mark.parametrize("pages", [PAGES[:1], pytest.param(PAGES, marks=tiers.peers)], ids=["one page", "all pages"])
def test_a_failing_store_does_not_affect_loaded_models(proxy, bucket, start, pages):
    """Keys expire, other pages replace a listing, the store goes away: none of it counts as an empty bucket."""
    bucket.add("a")
    server = start(bucket.path, "--model-control-mode=poll", "--repository-poll-secs=1")

    def lines(text):
        return [line for line in server.log if re.search(text, line)]

    def told(text, times):
        server.wait(lambda: len(lines(text)) == times, f"{text!r} for the {times}. time")
        return lines(text)[-1]

    proxy.faults.append(answers("GET", 400, s3_error("ExpiredToken", "The provided token has expired.")))
    told("model repository '.*' cannot be read: .*(ExpiredToken|expired)", 1)
    assert echo(server, "a") and clients.is_ready(server)
    proxy.faults.clear()
    told("model repository '.*' can be read again", 1)
    for times, (body, kind) in enumerate(pages, 2):
        proxy.faults.append(answers("list-type", 200, body, Content_Type=kind))
        line = told("cannot be read: .*", times)
        assert f"'{proxy.url}/{bucket.name}' answered with {kind}" in line, line
        assert "instead of a listing of objects: check the host and port" in line and "list-type" not in line, line
        assert echo(server, "a")
        proxy.faults.clear()
        told("can be read again", times)
    proxy.stop()
    told("cannot be read: .*its loaded models stay loaded", len(pages) + 2)
    assert echo(server, "a") and clients.is_ready(server)
    # It stands where readiness is explained.
    status, _, body = clients.ask(server.http, "GET", "/v2/health/ready")
    assert status == 200 and b"cannot be read now" in body and proxy.address.encode() not in body
    proxy.start()
    told("can be read again", len(pages) + 2)
    bucket.add("b")
    server.wait_for_line("successfully loaded 'b'")
    assert echo(server, "a") and echo(server, "b") and "unloaded" not in server.text()
    assert len(lines("its loaded models stay loaded")) == len(pages) + 2, "each is told once, not with every poll"


def test_an_endless_listing_is_refused(proxy, bucket, check):
    bucket.add("a")
    page = "".join(f"<CommonPrefixes><Prefix>models/m{{0}}_{n}/</Prefix></CommonPrefixes>" for n in range(1000))
    turn = iter(range(10_000))

    def fault(asked):
        if not asked.is_listing or asked.method != "GET":
            return None
        body = f"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t{next(turn)}</NextContinuationToken>{page.format(next(turn))}</ListBucketResult>"
        return answers("", 200, body.encode())(asked)

    proxy.faults.append(fault)
    seen = check(bucket.path)
    assert seen.code != 0 and "more than 100000" in seen.text, seen.text


def test_an_unreachable_store_is_not_asked_for_each_model(proxy, bucket, start):
    models = ("a", "b", "c", "d")
    for model in models:
        bucket.add(model)
    server = start(bucket.path, "--model-control-mode=explicit", *[f"--load-model={model}" for model in models])
    server.wait_for_line(r"\| d +\| 1 ")
    proxy.faults.append(answers("list-type", 503, SLOW_DOWN))
    proxy.asked.clear()
    assert index(server) == {model: ("READY", "") for model in models}
    assert len(proxy.asked) == 7, "one question with its repetitions"
    # The console says it too, without the address.
    with Events(server, timeout=60) as events:
        events.next()
        assert events.server["repositories_away"] == 1 and proxy.address not in repr(events.server)
        proxy.faults.clear()
        index(server)
        while events.server["repositories_away"]:
            assert events.next()
    # A load while it cannot be reached fails, and succeeds afterwards.
    bucket.add("e")
    proxy.stop()
    with pytest.raises(Exception, match="e"):
        clients.client(server, "http", network_timeout=120, connection_timeout=120).load_model("e")
    assert echo(server, "a")
    proxy.start()
    clients.client(server, "http").load_model("e")
    assert echo(server, "e")


def test_an_unreachable_store_at_the_start_is_reported(proxy, bucket, check):
    bucket.add("a")
    proxy.stop()
    seen = check(bucket.path)
    assert seen.code != 0 and proxy.address in seen.text and "cannot connect" in seen.text, seen.text


@tiers.measure
def test_memory_does_not_grow_with_a_large_model(proxy, bucket, start, tmp_path):
    """The file has 1 GB, and the server never holds it in memory."""
    size = 1_000_000_000
    bucket.add("a")
    server = start(bucket.path, "--model-control-mode=explicit")
    before = peak_mb(server)
    fault, change = zeros("models/a/1/weights.bin", size)
    proxy.faults.append(fault)
    proxy.changes.append(change)
    clients.client(server, "http", network_timeout=300, connection_timeout=300).load_model("a")
    assert echo(server, "a")
    assert next((tmp_path / "cache/v1/models").glob("a-*/a/1/weights.bin")).stat().st_size == size
    assert peak_mb(server) - before < 64, (before, peak_mb(server))


def peak_mb(server):
    """The most memory that the server's process has held."""
    with open(f"/proc/{server.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
