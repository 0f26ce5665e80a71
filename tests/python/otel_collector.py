"""A collector of OpenTelemetry inside the tests: it takes spans as JSON and protobuf over HTTP, and over gRPC."""

import concurrent.futures
import contextlib
import http.server
import json
import ssl
import threading

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service

KINDS = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT"}
MOST_MESSAGE = 64 << 20


class Span:
    """A span, the same whatever form it came in."""

    def __init__(self, name, kind, ids, times, attributes, events, status, state):
        self.name, self.kind, self.attributes, self.events, self.state = name, KINDS[kind], attributes, events, state
        self.trace, self.id, self.parent = ids
        self.start, self.end = times
        # The code and the message; code 2 is an error.
        self.status, self.reason = status

    @property
    def event_names(self):
        return [name for name, _ in self.events]

    @classmethod
    def of_json(cls, span):
        status = span.get("status", {})
        values = {one["key"]: plain(one["value"]) for one in span.get("attributes", [])}
        events = [(one["name"], int(one["timeUnixNano"])) for one in span.get("events", [])]
        assert isinstance(span["startTimeUnixNano"], str), "numbers of 64 bits are texts"
        return cls(
            span["name"], span["kind"], (span["traceId"], span["spanId"], span.get("parentSpanId", "")),
            (int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])), values, events,
            (status.get("code", 0), status.get("message", "")), span.get("traceState", ""),
        )

    @classmethod
    def of_message(cls, span):
        values = {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}
        return cls(
            span.name, span.kind, (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()),
            (span.start_time_unix_nano, span.end_time_unix_nano), values,
            [(one.name, one.time_unix_nano) for one in span.events], (span.status.code, span.status.message), span.trace_state,
        )


def plain(value):
    [(kind, content)] = value.items()
    return int(content) if kind == "intValue" else content


class Collector:
    """What has come so far: `spans`, the attributes of their `resources`, their `scopes`, and the headers of each request."""

    def __init__(self, port=0, tls=None):
        self.spans, self.resources, self.scopes, self.headers, self.paths = [], [], [], [], []
        # A test sets the status that the next requests get.
        self.status = 200
        self._lock = threading.Lock()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = collector.status
                if status == 200:
                    collector.take_http(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.certificate, tls.key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server.server_port}/v1/traces"

    def take_http(self, path, headers, body):
        if headers["content-type"] == "application/json":
            request = json.loads(body)
            groups = [
                ({one["key"]: plain(one["value"]) for one in group["resource"]["attributes"]}, scope["scope"],
                 [Span.of_json(span) for span in scope["spans"]])
                for group in request["resourceSpans"] for scope in group["scopeSpans"]
            ]
            self.take(headers, groups, path)
        else:
            assert headers["content-type"] == "application/x-protobuf"
            self.take(headers, groups_of(messages.ExportTraceServiceRequest.FromString(body)), path)

    def take(self, headers, groups, path):
        with self._lock:
            self.headers.append(headers)
            self.paths.append(path)
            for resource, scope, spans in groups:
                self.resources.append(resource)
                self.scopes.append(scope)
                self.spans += spans

    def of(self, trace):
        """The spans of a trace so far."""
        with self._lock:
            return [span for span in self.spans if span.trace == trace]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class GrpcCollector(Collector):
    """The same over gRPC."""

    def __init__(self, tls=None):
        super().__init__()
        super().stop()
        collector = self

        class Service(service.TraceServiceServicer):
            def Export(self, request, context):
                if collector.status != 200:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "not now")
                collector.take(dict(context.invocation_metadata()), groups_of(request), "Export")
                return messages.ExportTraceServiceResponse()

        workers = concurrent.futures.ThreadPoolExecutor(4)
        self.server = grpc.server(workers, options=[("grpc.max_receive_message_length", MOST_MESSAGE)])
        service.add_TraceServiceServicer_to_server(Service(), self.server)
        if tls:
            keys = grpc.ssl_server_credentials([(tls.key.read_bytes(), tls.certificate.read_bytes())])
            port = self.server.add_secure_port("127.0.0.1:0", keys)
        else:
            port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"

    def stop(self):
        self.server.stop(0)


def groups_of(request):
    for group in request.resource_spans:
        resource = {one.key: one.value.string_value for one in group.resource.attributes}
        for scope in group.scope_spans:
            yield resource, {"name": scope.scope.name}, [Span.of_message(span) for span in scope.spans]


@contextlib.contextmanager
def collecting(protocol="http/json", **more):
    """A collector that runs as long as the block."""
    collector = (GrpcCollector if protocol == "grpc" else Collector)(**more)
    try:
        yield collector
    finally:
        collector.stop()


def tree(spans):
    """The spans as nested lists `[name, children]`, children by name; spans whose parent is not there are roots."""
    ids = {span.id for span in spans}

    def below(parent):
        children = sorted((span for span in spans if span.parent == parent), key=lambda span: span.name)
        return [[span.name, below(span.id)] for span in children]

    return [entry for root in {span.parent for span in spans} - ids for entry in below(root)]
