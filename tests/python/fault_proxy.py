"""An HTTP proxy before an emulator of an object store: it counts requests and has the faults of a network and of a store in
trouble when asked."""

import http.client
import http.server
import re
import socket
import threading
import time
import urllib.parse

CHUNK = 64 * 1024


class Asked:
    """One request that came."""

    def __init__(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        self.method, self.target, self.headers = handler.command, handler.path, handler.headers
        self.path, self.query = urllib.parse.unquote(url.path), urllib.parse.unquote(url.query)
        self.range = handler.headers.get("Range")

    @property
    def is_listing(self):
        return self.method == "GET" and any(word in self.query for word in ("list-type", "prefix=", "comp=list"))

    def __repr__(self):
        return f"{self.method} {self.path}?{self.query} {self.range or ''}"


class Answer:
    """What a store answered, or a fault in its place. `body` is bytes or an iterable of them."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, dict(headers), body


class FaultProxy:
    """`url` is where it listens. A fault is a function of the request; it answers, or gives None to let others see it."""

    def __init__(self, target, host=None):
        self.target, self.host = target, host
        self.asked, self.faults, self.changes = [], [], []
        self.changed = threading.Condition()
        self.server = None
        self.port = 0
        self.start()

    def start(self):
        """Listens, at the same port as before."""
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self):
                proxy.handle(self)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = do

            def log_message(self, *_):
                pass

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request, address):
                pass  # a client that went away, or a cut of our own

            def get_request(self):
                connection, address = super().get_request()
                proxy.connections.add(connection)
                return connection, address

            def shutdown_request(self, request):
                proxy.connections.discard(request)
                super().shutdown_request(request)

        self.connections = set()
        self.server = Listener(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        """Connections are refused from now on, and those that are open are cut."""
        if self.server is None:
            return
        self.server.shutdown()
        self.server.server_close()
        self.server = None
        for connection in list(self.connections):
            cut(connection)

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def url(self):
        return f"http://{self.address}"

    def handle(self, handler):
        asked = Asked(handler)
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else None
        answer = next(filter(None, (fault(asked) for fault in list(self.faults))), None)
        if answer is None:
            answer = self.forward(asked, body)
        for change in list(self.changes):
            change(asked, answer)
        # Noted when it is known what it gets, before it gets it: who waits for an answer finds its request counted.
        with self.changed:
            self.asked.append(asked)
            self.changed.notify_all()
        self.reply(handler, asked, answer)

    def forward(self, asked, body):
        connection = http.client.HTTPConnection(self.target, timeout=60)
        headers = {name: value for name, value in asked.headers.items() if name.lower() not in ("connection", "host")}
        headers["Host"] = self.host or asked.headers.get("Host")
        connection.request(asked.method, asked.target, body, headers)
        reply = connection.getresponse()
        kept = {n: v for n, v in reply.headers.items() if n.lower() not in ("connection", "transfer-encoding", "date", "server")}
        return Answer(reply.status, kept, reply.read())

    def reply(self, handler, asked, answer):
        handler.send_response(answer.status)
        if isinstance(answer.body, bytes) and asked.method != "HEAD":
            answer.headers["Content-Length"] = str(len(answer.body))
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        if asked.method == "HEAD":
            return
        try:
            for part in [answer.body] if isinstance(answer.body, bytes) else answer.body:
                handler.wfile.write(part)
        except Cut:
            handler.close_connection = True
            cut(handler.connection)
        except OSError:
            handler.close_connection = True

    def wait_for(self, fits, what, timeout=60):
        """The first request that fits, waited for."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while not (found := [asked for asked in self.asked if fits(asked)]):
                left = deadline - time.monotonic()
                assert left > 0, f"waited in vain for {what}: {self.asked[-20:]}"
                self.changed.wait(left)
        return found[0]

    def downloads(self, part=""):
        """Requests for the content of objects whose path has this part."""
        return [asked for asked in self.asked if asked.method == "GET" and not asked.is_listing and part in asked.path]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Cut(Exception):
    """Raised by a body: the connection ends here."""


def cut(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is gone already


def fits(pattern):
    """Whether a request's path and query fit a regular expression; a listing's prefix stands in its query."""
    return lambda asked: re.search(pattern, f"{asked.method} {asked.path}?{asked.query}")


def answers(pattern, status, body=b"", times=None, **headers):
    """The first `times` requests that fit, or all, get this answer in place of the store's."""
    left = [times]
    lock = threading.Lock()

    def fault(asked):
        with lock:
            if not fits(pattern)(asked) or left[0] == 0:
                return None
            if left[0] is not None:
                left[0] -= 1
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return Answer(status, {"Content-Type": "application/xml", **more}, body)

    return fault


def s3_error(code, text):
    return f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{text}</Message></Error>'.encode()


def cuts(pattern, after, times=None):
    """A change that ends the answers that fit after so many bytes of what they announce."""
    left = [times]
    lock = threading.Lock()

    def change(asked, answer):
        with lock:
            if not fits(pattern)(asked) or left[0] == 0 or asked.method == "HEAD":
                return
            if left[0] is not None:
                left[0] -= 1
        whole = answer.body
        answer.headers["Content-Length"] = str(len(whole))

        def body():
            yield whole[:after]
            raise Cut

        answer.body = body()

    return change


def waits(pattern, event, after=0):
    """A change that sends so many bytes of what fits, and the rest when the event has come."""

    def change(asked, answer):
        if not fits(pattern)(asked) or asked.method == "HEAD":
            return
        whole = answer.body
        answer.headers["Content-Length"] = str(len(whole))

        def body():
            yield whole[:after]
            event.wait(60)
            yield whole[after:]

        answer.body = body()

    return change


def headers_changed(pattern, **headers):
    """A change of headers of the answers that fit; None takes one out."""

    def change(asked, answer):
        if not fits(pattern)(asked):
            return
        for name, value in headers.items():
            name = name.replace("_", "-")
            for known in [known for known in answer.headers if known.lower() == name.lower()]:
                del answer.headers[known]
            if value is not None:
                answer.headers[name] = value

    return change


def body_changed(pattern, function):
    """A change of the bytes of the answers that fit."""

    def change(asked, answer):
        if fits(pattern)(asked) and isinstance(answer.body, bytes) and asked.method != "HEAD":
            answer.body = function(answer.body)

    return change


def zeros(key, size, etag='"zeros"'):
    """A fault and a change that make an object of S3 one of so many zeros, of which nothing is kept."""

    def fault(asked):
        if not asked.path.endswith(key) or asked.method not in ("GET", "HEAD"):
            return None
        first = int((asked.range or "bytes=0-").removeprefix("bytes=").split("-")[0])
        last = (asked.range or "").removeprefix("bytes=").partition("-")[2]
        end = min(int(last) + 1, size) if last else size
        headers = {"Content-Length": str(end - first), "ETag": etag, "Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT", "Accept-Ranges": "bytes"}
        if asked.range:
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{size}"

        def body():
            chunk, left = bytes(1024 * 1024), end - first
            while left > 0:
                yield chunk[:left] if left < len(chunk) else chunk
                left -= len(chunk)

        return Answer(206 if asked.range else 200, headers, body())

    def resized(body):
        def contents(found):
            if not found[0].split(b"<Key>")[1].split(b"</Key>")[0].endswith(key.encode()):
                return found[0]
            entry = re.sub(rb"<Size>\d+</Size>", f"<Size>{size}</Size>".encode(), found[0])
            return re.sub(rb"<ETag>[^<]*</ETag>", f"<ETag>{etag}</ETag>".encode(), entry)

        return re.sub(rb"<Contents>.*?</Contents>", contents, body, flags=re.S)

    return fault, body_changed(r"list-type", resized)
