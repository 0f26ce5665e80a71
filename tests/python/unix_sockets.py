"""HTTP over a Unix socket, with descriptors that are passed along."""

import http.client
import json
import os
import socket

REGION = "/v2/systemsharedmemory/region"


def connect(path, timeout=60):
    found = socket.socket(socket.AF_UNIX)
    found.settimeout(timeout)
    found.connect(str(path))
    return found


class Connection(http.client.HTTPConnection):
    """A connection of Python's own HTTP client to a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = connect(self.path)


def ask(path, method, target, body=None):
    """(status, headers, body) of one request."""
    connection = Connection(path)
    try:
        connection.request(method, target, json.dumps(body).encode() if isinstance(body, dict) else body)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


def request(target, body, chunked=False):
    """The bytes of a POST request: its head and its body."""
    data = json.dumps(body).encode()
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(data)}"
    if chunked:
        data = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
    return f"POST {target} HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n".encode(), data


def answer(connection):
    """(status, the error's text or the body) of the next answer on a connection."""
    reply = http.client.HTTPResponse(connection)
    reply.begin()
    text = reply.read().decode()
    reply.close()
    return reply.status, json.loads(text)["error"] if reply.status != 200 else text


def answers(connection, count):
    """The answers that follow each other on a connection."""

    class Reader:
        """Lets each answer begin where the one before it ended."""

        file = connection.makefile("rb")
        file.close = lambda: None

        def makefile(self, _):
            return self.file

    reader = Reader()
    return [answer(reader) for _ in range(count)]


def register(connection, name, body, descriptors):
    """Registers a region on an open connection, with descriptors at the first byte of the request."""
    socket.send_fds(connection, [b"".join(request(f"{REGION}/{name}/register", body))], descriptors)
    return answer(connection)


def memory(size, content=b"", name="galatea-test"):
    """The descriptor of memory without a name in any folder."""
    descriptor = os.memfd_create(name)
    os.ftruncate(descriptor, size)
    os.pwrite(descriptor, content, 0)
    return descriptor
