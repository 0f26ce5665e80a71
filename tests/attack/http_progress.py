"""HTTP/1.1 clients that do not read, go away behind what they sent, or send bodies whose end never comes."""

import raw_http
import watch
from http_bodies import binary
from http_connections import BODY, INFER, PATIENCE, until_closed
from registry import Achieved, attack

CHUNKED = raw_http.head("POST", INFER, Transfer_Encoding="chunked")


@attack("unread-long-answers", flags=("--connection-progress-timeout-secs=10",))
def unread_long_answers(target):
    """five clients that ask for 40 MB each and read nothing of it"""
    sent = binary("vector", 10_000_000, {"parameters": {"binary_data_output": True}})
    before = watch.use_of(target.pid).descriptors
    held = raw_http.many(target.http, 5, sent, keep_trying=True)
    # Only the server tells, since to look for the end of an answer is to read it.
    now, seconds = watch.settled(target.pid, lambda now: now.descriptors <= before, PATIENCE)
    raw_http.close(held)
    if now is not None and now.descriptors > before:
        raise Achieved(f"{now.descriptors - before} of 5 answers that nobody reads stay after {PATIENCE} s")
    return f"{len(held)} ended within {seconds:.0f} s"


@attack("gone-behind-a-byte")
def gone_behind_a_byte(target):
    """400 clients that ask a slow model, send one byte more and leave"""
    held = raw_http.many(target.http, 400, raw_http.post("/v2/models/slow/infer", BODY) + b"G", keep_trying=True)
    raw_http.close(held)
    status, text = raw_http.exchange(target.http, raw_http.post("/v2/models/slow/infer", BODY), 5)
    if status != 200:
        raise Achieved(f"the next request was answered {status} {text[:80]} within 5 s")
    return f"{len(held)} left; the next request was answered at once"


@attack("endless-chunks", flags=("--client-max-request-bytes=1M",))
def endless_chunks(target):
    """one client that sends 2 MB of a chunk that does not end, where it may have 1 MB"""
    with raw_http.connect(target.http, 10) as connection:
        connection.sendall(CHUNKED + b"40000000\r\n" + b" " * 2_000_000)
        status, _ = raw_http.answer(connection)
    if status != 429:
        raise Achieved(f"more than it may have is answered {status}")
    return "429 in the midst of the chunk"


@attack("swallowed-request")
def swallowed_request(target):
    """a request behind trailers that end with a line feed alone"""
    sent = CHUNKED + b"0\r\nX: a\n\r\n" + raw_http.head("GET", "/v2/health/live")
    status, _ = raw_http.exchange(target.http, sent, 10)
    if status != 400:
        raise Achieved(f"answered {status}")
    return "400"


@attack("zeros-before-a-length")
def zeros_before_a_length(target):
    """ten clients that send zeros before the length of a chunk and nothing else"""
    held = raw_http.many(target.http, 10, CHUNKED + b"0" * 100_000, keep_trying=True)
    left, seconds = until_closed(held)
    raw_http.close(held)
    if left:
        raise Achieved(f"{left} of 10 are still read")
    return f"ended within {seconds:.0f} s"
