"""Compressed bodies with the stock client and by hand: the same from our server and from the real Triton."""

import gzip
import http.client
import json
import zlib

import numpy as np
import pytest
import tritonclient.http as httpclient

import repositories
import tiers

PLAIN = b'{"inputs":[{"name":"INPUT0","shape":[2],"datatype":"FP32","data":[1,2]}]}'
ANSWER = (
    b'{"model_name":"vector","model_version":"1","outputs":'
    b'[{"name":"OUTPUT0","datatype":"FP32","shape":[2],"data":[1.0,2.0]}]}'
)


def write(path, target):
    repositories.write_model(path, "vector", target, repositories.PASSES_ON[target], repositories.identity_config())


@pytest.fixture(scope="module", params=tiers.BOTH)
def server(request, module_stage):
    return module_stage.get(request.param, write)


def ask(server, body, headers):
    connection = http.client.HTTPConnection(server.http, timeout=60)
    try:
        connection.putrequest("POST", "/v2/models/vector/infer", skip_accept_encoding=True)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read()
    finally:
        connection.close()


@pytest.mark.parametrize("as_sent", [None, "gzip", "deflate"])
@pytest.mark.parametrize("as_wanted", [None, "gzip", "deflate"])
@pytest.mark.parametrize("count", [3, 100_000])
def test_the_stock_client_compresses_and_decompresses(server, as_sent, as_wanted, count):
    data = np.arange(count, dtype=np.float32)
    tensor = httpclient.InferInput("INPUT0", data.shape, "FP32")
    tensor.set_data_from_numpy(data)
    with httpclient.InferenceServerClient(server.http) as client:
        result = client.infer(
            "vector", [tensor], request_compression_algorithm=as_sent, response_compression_algorithm=as_wanted
        )
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), data)


@pytest.mark.parametrize("name", ["gzip", "deflate"])
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_each_format_is_accepted_under_each_name(server, name, pack):
    status, headers, content = ask(server, pack(PLAIN), {"Content-Encoding": name})
    assert (status, headers.get("Content-Encoding"), content) == (200, None, ANSWER)


@pytest.mark.parametrize("accepted, chosen", [
    ("gzip", "gzip"), ("deflate", "deflate"), ("gzip, deflate", "gzip"), ("deflate, gzip", "deflate"),
    ("gzip;q=0.5, deflate;q=0.8", "deflate"), ("gzip;q=0.5, identity;q=0.6", None),
    ("identity;q=0.5,gzip;q=0.5", None), ("gzip;q=0.5,identity;q=0.5", "gzip"), ("gzip;q=0", None),
    ("*;q=1, gzip;q=0.5", "gzip"), ("br, gzip;q=0.2", "gzip"), ("*", None), ("br", None), ("", None),
])
def test_the_response_encoding_follows_accept_encoding(server, accepted, chosen):
    status, headers, content = ask(server, PLAIN, {"Accept-Encoding": accepted})
    assert (status, headers.get("Content-Encoding")) == (200, chosen)
    assert (zlib.decompress(content, 47) if chosen else content) == ANSWER


@pytest.mark.parametrize("name", ["br", "GZIP", "x-gzip", "gzip, deflate", ""])
def test_unknown_encodings_are_refused(server, name):
    status, headers, content = ask(server, PLAIN, {"Content-Encoding": name})
    assert (status, headers["Content-Type"], headers["Accept-Encoding"]) == (501, "text/plain", "gzip, deflate")
    assert json.loads(content) == {"error": "Unsupported compression type"}


def test_damaged_bodies_are_refused_with_uncompressed_errors(server):
    status, headers, content = ask(server, b"", {"Content-Encoding": "gzip"})
    assert (status, headers["Content-Type"]) == (400, "text/plain")
    assert content == b'{"error":"there is nothing to decompress"}'
    sizes = {"Content-Encoding": "gzip", "Inference-Header-Content-Length": str(len(PLAIN) + 1)}
    status, _, content = ask(server, gzip.compress(PLAIN), sizes)
    text = f"inference header size should be in range (0, {len(PLAIN)}), got: {len(PLAIN) + 1}"
    assert (status, json.loads(content)) == (400, {"error": text})
    status, headers, _ = ask(server, b"{", {"Accept-Encoding": "gzip"})
    assert (status, headers.get("Content-Encoding")) == (500, None), "errors are never compressed"
