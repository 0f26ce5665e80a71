"""Object stores in trouble, and connections to them that break: a model is served whole or not at all, and its reason told."""

import threading

import pytest

import clients
from console_events import Events
from fault_proxy import answers, body_changed, cuts, headers_changed, s3_error, waits, zeros
from store_fixtures import bucket, echo, entries, failed_start, index, proxy, s3, start

__all__ = ["bucket", "proxy", "s3", "start"]

FILE = r"GET /[^/]+/models/a/1/weights\.bin"
SLOW_DOWN = s3_error("SlowDown", "Please reduce your request rate.")


@pytest.mark.parametrize(
    ("pattern", "status", "body"),
    [
        (FILE, 503, SLOW_DOWN), (FILE, 500, s3_error("InternalError", "We encountered an internal error.")),
        ("list-type", 503, SLOW_DOWN), ("list-type", 429, s3_error("TooManyRequests", "later")),
    ],
)
def test_a_busy_store_is_asked_again(proxy, bucket, start, pattern, status, body):
    bucket.add("a")
    proxy.faults.append(answers(pattern, status, body, times=3))
    server = start(bucket.path)
    assert echo(server, "a")
    assert not proxy.faults[0](proxy.asked[0]), "all of the faults were met"


@pytest.mark.parametrize(("status", "body"), [(503, SLOW_DOWN), (403, s3_error("AccessDenied", "Access Denied"))])
def test_a_file_that_cannot_be_had_is_told_and_nothing_is_loaded(proxy, bucket, start, tmp_path, status, body):
    bucket.add("a")
    bucket.add("b")
    proxy.faults.append(answers(FILE, status, body))
    server = start(bucket.path, "--exit-on-error=false", "--model-control-mode=explicit", "--load-model=b")
    with pytest.raises(Exception, match="failed to fetch model 'a' from 's3://") as failure:
        clients.client(server, "http").load_model("a")
    assert "weights.bin" in str(failure.value)
    assert echo(server, "b") and index(server)["a"][0] != "READY"
    assert [name.split("-")[0] for name in entries(tmp_path / "cache")] == ["b"]
    proxy.faults.clear()
    clients.client(server, "http").load_model("a")
    assert echo(server, "a")


@pytest.mark.parametrize("times", [1, 4])
def test_a_broken_download_is_taken_up_where_it_broke(proxy, bucket, start, times):
    size, after = 3_000_000, 700_000
    bucket.add("a", size=size)
    proxy.changes.append(cuts(FILE, after, times=times))
    server = start(bucket.path)
    assert echo(server, "a")
    asked = proxy.downloads("/a/1/weights.bin")
    starts = [int((each.range or "bytes=0-").removeprefix("bytes=").split("-")[0]) for each in asked]
    assert starts == [after * turn for turn in range(times + 1)], asked
    # The rest is asked for on the condition that it is of the same object.
    assert all(each.headers.get("If-Match") for each in asked[1:]), [dict(each.headers) for each in asked]


def test_a_download_that_was_given_up_is_taken_up_by_the_next_server(proxy, bucket, start):
    size, after = 3_000_000, 700_000
    bucket.add("a", size=size)
    proxy.changes.append(cuts(FILE, after, times=1))
    proxy.faults.append(lambda asked: answers(FILE, 503, SLOW_DOWN)(asked) if asked.range else None)
    log = failed_start(start(bucket.path, wait=False))
    assert "failed to fetch" in log, log
    proxy.faults.clear()
    proxy.asked.clear()
    assert echo(start(bucket.path), "a")
    assert [each.range.split("-")[0] for each in proxy.downloads("/a/1/weights.bin")] == [f"bytes={after}"]


def test_an_object_that_changes_while_it_is_fetched(proxy, bucket, start, tmp_path):
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
    server = start(bucket.path, wait=False)
    assert begun.wait(60)
    bucket.put("models/a/1/weights.bin", b"n" * 1_000_000)
    changed.set()
    server.wait(lambda: len(server.addresses) == 3, "the services to start")
    assert echo(server, "a")
    # What is served is all of the new one.
    fetched = next((tmp_path / "cache/v1/models").glob("a-*/a/1/weights.bin")).read_bytes()
    assert fetched == b"n" * 1_000_000


def test_an_answer_with_another_version_is_refused(proxy, bucket, start, tmp_path):
    bucket.add("a")
    proxy.changes.append(headers_changed(FILE, ETag='"0123456789abcdef0123456789abcdef"'))
    log = failed_start(start(bucket.path, wait=False))
    assert "failed to fetch" in log and "weights.bin" in log, log
    assert entries(tmp_path / "cache") == []


def test_damaged_content_is_refused(proxy, bucket, start, tmp_path):
    bucket.add("a", size=50_000)
    proxy.changes.append(body_changed(FILE, lambda body: body[:-1] + b"!"))
    log = failed_start(start(bucket.path, wait=False))
    assert "checksum" in log and "weights.bin" in log, log
    assert entries(tmp_path / "cache") == []
    proxy.changes.clear()
    assert echo(start(bucket.path), "a")


@pytest.mark.parametrize("change", [lambda body: body[: len(body) // 2], lambda body: body + b"more"])
def test_content_of_another_length_is_refused(proxy, bucket, start, tmp_path, change):
    bucket.add("a", size=50_000)
    proxy.changes.append(body_changed(FILE, change))
    log = failed_start(start(bucket.path, wait=False))
    assert "failed to fetch" in log, log
    assert entries(tmp_path / "cache") == []


@pytest.mark.parametrize(
    "body",
    [b"", b"<ListBucketResult><Contents><Key>models/a/1/x</Key><Size>-5</Size></Contents></ListBucketResult>", b"{" * 100_000],
)
def test_listings_that_are_none(proxy, bucket, start, body):
    bucket.add("a")
    proxy.faults.append(answers("list-type", 200, body))
    server = start(bucket.path, wait=False)
    failed_start(server)
    assert "panic" not in server.text()


@pytest.mark.parametrize(("body", "kind"), [(b"<!DOCTYPE html><html><body>Sign in</body></html>", "text/html"), (b"", "text/plain"), (b"{}", "application/json")])
def test_another_page_in_place_of_a_listing_is_no_empty_bucket(proxy, bucket, start, body, kind):
    bucket.add("a")
    server = start(bucket.path, "--model-control-mode=poll", "--repository-poll-secs=1")
    proxy.faults.append(answers("list-type", 200, body, Content_Type=kind))
    line = server.wait_for_line("cannot be read: .*")
    assert f"'{proxy.url}/{bucket.name}' answered with no listing of objects but with {kind}" in line, line
    assert "check the host and the port" in line and "list-type" not in line, line
    assert echo(server, "a")
    proxy.faults.clear()
    server.wait_for_line("can be read again")
    bucket.add("b")
    server.wait_for_line("successfully loaded 'b'")
    assert echo(server, "a") and "unloaded" not in server.text()


def test_a_listing_without_end_ends(proxy, bucket, start):
    bucket.add("a")
    page = "".join(f"<CommonPrefixes><Prefix>models/m{{0}}_{n}/</Prefix></CommonPrefixes>" for n in range(1000))
    turn = iter(range(10_000))

    def fault(asked):
        if not asked.is_listing or asked.method != "GET":
            return None
        body = f"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t{next(turn)}</NextContinuationToken>{page.format(next(turn))}</ListBucketResult>"
        return answers("", 200, body.encode())(asked)

    proxy.faults.append(fault)
    server = start(bucket.path, wait=False)
    log = failed_start(server)
    assert "more than 100000" in log, log


def test_credentials_that_expire_while_serving(proxy, bucket, start):
    bucket.add("a")
    server = start(bucket.path, "--model-control-mode=poll", "--repository-poll-secs=1")
    proxy.faults.append(answers("GET", 400, s3_error("ExpiredToken", "The provided token has expired.")))
    server.wait_for_line("model repository '.*' cannot be read: .*(ExpiredToken|expired)")
    assert echo(server, "a") and clients.is_ready(server)
    proxy.faults.clear()
    server.wait_for_line("model repository '.*' can be read again")


def test_a_bucket_that_goes_away_while_serving(proxy, bucket, start):
    bucket.add("a")
    server = start(bucket.path, "--model-control-mode=poll", "--repository-poll-secs=1")
    proxy.stop()
    server.wait_for_line("cannot be read: .*what is loaded from it stays")
    assert echo(server, "a") and clients.is_ready(server)
    # It is told once, not with every poll, and stands where readiness is explained.
    status, _, body = clients.ask(server.http, "GET", "/v2/health/ready")
    assert status == 200 and b"cannot be read now" in body and proxy.address.encode() not in body
    proxy.start()
    server.wait_for_line("can be read again")
    assert len([line for line in server.log if "what is loaded from it stays" in line]) == 1
    bucket.add("b")
    server.wait_for_line("successfully loaded 'b'")
    assert echo(server, "a") and echo(server, "b")


def test_a_store_that_is_away_is_not_asked_for_each_model(proxy, bucket, start):
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


def test_a_load_while_the_store_is_away(proxy, bucket, start):
    for model in ("a", "b"):
        bucket.add(model)
    server = start(bucket.path, "--model-control-mode=explicit", "--load-model=a")
    proxy.stop()
    with pytest.raises(Exception, match="b"):
        clients.client(server, "http", network_timeout=120, connection_timeout=120).load_model("b")
    assert echo(server, "a")
    proxy.start()
    clients.client(server, "http").load_model("b")
    assert echo(server, "b")


def test_a_store_that_is_away_at_the_start(proxy, bucket, start):
    bucket.add("a")
    proxy.stop()
    log = failed_start(start(bucket.path, wait=False))
    assert proxy.address in log and "cannot connect" in log, log


def test_memory_stays_flat_for_a_large_model(proxy, bucket, start, tmp_path):
    """A file of 1 GB, which nobody here holds in memory."""
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
