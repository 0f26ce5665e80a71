"""What a load tool sends: proxies in front of a server that keep every request. HTTP is read from the bytes, gRPC
as messages."""

import json
import socket
import threading
from concurrent import futures

import grpc
from tritonclient.grpc import service_pb2

SERVICE = "/inference.GRPCInferenceService/"


class HttpProxy:
    """`address` to talk to; `connections`: for each one the requests it carried, as (line, headers, body)."""

    def __init__(self, upstream):
        host, port = upstream.split(":")
        self._upstream = host, int(port)
        self._raw = []
        self._pumps = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._upstream)
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sent = bytearray()
            self._raw.append(sent)
            for pump in ((near, far, sent), (far, near, bytearray())):
                self._pumps.append(threading.Thread(target=self._pump, args=pump, daemon=True))
                self._pumps[-1].start()

    @staticmethod
    def _pump(source, sink, kept):
        try:
            while piece := source.recv(1 << 20):
                kept += piece
                sink.sendall(piece)
        except OSError:
            pass
        for end, how in ((source, socket.SHUT_RD), (sink, socket.SHUT_WR)):
            try:
                end.shutdown(how)
            except OSError:
                pass

    @property
    def connections(self):
        return [list(split_requests(bytes(raw))) for raw in self._raw]

    def requests(self, path):
        """Requests to this path over all connections."""
        return [r for c in self.connections for r in c if r[0].split(" ")[1] == path]

    def close(self):
        self._listener.close()
        for pump in self._pumps:
            pump.join(5)


def split_requests(raw):
    while raw:
        head, raw = raw.split(b"\r\n\r\n", 1)
        line, *rest = head.decode().split("\r\n")
        headers = {name.lower(): value for name, value in (field.split(": ", 1) for field in rest)}
        size = int(headers.get("content-length", 0))
        yield line, headers, raw[:size]
        raw = raw[size:]


def parts_of(request):
    """(JSON object, binary tail) of an inference request."""
    _, headers, body = request
    size = int(headers.get("inference-header-content-length", len(body)))
    return json.loads(body[:size]), body[size:]


class GrpcProxy(grpc.GenericRpcHandler):
    """`address` to talk to; `calls`: (method, metadata, connection, messages) of every call, streams with all."""

    def __init__(self, upstream):
        self.calls = []
        self._channel = grpc.insecure_channel(upstream)
        self._server = grpc.server(futures.ThreadPoolExecutor(32), handlers=[self])
        self.address = "127.0.0.1:%d" % self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def service(self, details):
        name = details.method.removeprefix(SERVICE)
        call = (name, dict(details.invocation_metadata), [], [])
        self.calls.append(call)
        if name == "ModelStreamInfer":
            return grpc.stream_stream_rpc_method_handler(lambda *args: self._stream(details.method, call, *args))
        return grpc.unary_unary_rpc_method_handler(lambda *args: self._one(details.method, call, *args))

    def _keep(self, call, message):
        kind = "ModelInfer" if call[0] == "ModelStreamInfer" else call[0]
        call[3].append(getattr(service_pb2, f"{kind}Request").FromString(message))
        return message

    def _one(self, method, call, message, context):
        call[2].append(context.peer())
        self._keep(call, message)
        try:
            return self._channel.unary_unary(method)(message)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def _stream(self, method, call, messages, context):
        call[2].append(context.peer())
        yield from self._channel.stream_stream(method)(self._keep(call, message) for message in messages)

    def messages(self, name):
        """All messages of the calls to this method."""
        return [message for call in self.calls if call[0] == name for message in call[3]]

    def close(self):
        self._server.stop(None).wait(5)
        self._channel.close()


def start(protocol, server):
    return GrpcProxy(server.grpc) if protocol == "grpc" else HttpProxy(server.http)
