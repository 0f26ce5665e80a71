"""The requests of scenarios: how their steps are written and asked, and the answers as they came."""

import base64
import http.client
import json

import grpc
import numpy as np
from google.protobuf import json_format
from tritonclient.grpc import service_pb2, service_pb2_grpc

HEADERS = ("content-type", "inference-header-content-length", "transfer-encoding")
NUMPY = {
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16,
    "uint32": np.uint32, "uint64": np.uint64, "fp16": np.float16, "fp32": np.float32, "fp64": np.float64, "bool": np.bool_,
}


def packed(part):
    """Bytes of one part of a binary body: {json: ..}, {hex: ..}, {text: ..}, {bytes: [..]} or {int32: [..]} ..."""
    ((kind, value),) = part.items()
    if kind == "json":
        return json.dumps(value).encode()
    if kind == "hex":
        return bytes.fromhex(value)
    if kind == "text":
        return value.encode()
    if kind == "bytes":
        return b"".join(len(v.encode()).to_bytes(4, "little") + v.encode() for v in value)
    return np.array(value, dtype=NUMPY[kind]).tobytes()


def http_request(step):
    """Method, path, headers and body of a step."""
    method, path = step["http"].split(" ", 1)
    headers = {k: str(v) for k, v in step.get("headers", {}).items()}
    body = None
    if "json" in step:
        body = json.dumps(step["json"]).encode()
    elif "body" in step:
        body = step["body"].encode()
    elif "binary" in step:
        parts = [packed(part) for part in step["binary"]]
        body = b"".join(parts)
        headers.setdefault("Inference-Header-Content-Length", str(len(parts[0])))
    headers = {k: v for k, v in headers.items() if v != "None"}
    return method, path, headers, body


def ask_http(server, step):
    method, path, headers, body = http_request(step)
    address = server.metrics if step.get("port") == "metrics" else server.http
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        if body is not None and "Content-Length" not in headers:
            headers["Content-Length"] = str(len(body))
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        reply = connection.getresponse()
        content = reply.read()
    except (ConnectionError, http.client.HTTPException) as error:
        return {"closed": type(error).__name__}
    finally:
        connection.close()
    answer = {"status": reply.status}
    found = {name: reply.headers[name] for name in HEADERS if reply.headers[name] is not None}
    if found:
        answer["headers"] = found
    answer.update(body_fields(content))
    return answer


def body_fields(content):
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def ask_grpc(server, step):
    with grpc.insecure_channel(server.grpc) as channel:
        call, request = grpc_call(channel, step)
        metadata = [(name, str(value)) for name, value in step.get("metadata", {}).items()]
        try:
            reply = call(request, timeout=60, metadata=metadata)
            if step["grpc"] == "ModelStreamInfer":
                return {"code": "OK", "messages": [readable(one) for one in reply]}
        except grpc.RpcError as error:
            return {"code": error.code().name, "details": error.details()}
    return {"code": "OK", "message": readable(reply)}


def readable(reply):
    if isinstance(reply, bytes):
        return {"hex": reply.hex()}
    return json_format.MessageToDict(reply, preserving_proto_field_name=True)


def grpc_call(channel, step):
    """A bound method and its request; a method written as a path is called with the bytes in `hex`."""
    method = step["grpc"]
    if method.startswith("/"):
        return channel.unary_unary(method), bytes.fromhex(step.get("hex", ""))
    stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
    if method == "ModelStreamInfer":
        return stub.ModelStreamInfer, iter(infer_request(message) for message in step["messages"])
    request = json_format.ParseDict(step.get("message") or {}, getattr(service_pb2, f"{method}Request")())
    raw = [packed(part) for part in step.get("raw", [])]
    if raw:
        request.raw_input_contents.extend(raw)
    return getattr(stub, method), request


def infer_request(message):
    return json_format.ParseDict(message, service_pb2.ModelInferRequest())
