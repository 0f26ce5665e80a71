"""Asks a server over HTTP with nothing but Python itself."""

import json
import struct
import sys
import urllib.error
import urllib.request

ROW, ONES = list(range(16)), [1] * 16
SECONDS = 30


def ask(url, body=None, headers=()):
    request = urllib.request.Request(url, data=body, headers=dict(headers))
    return urllib.request.urlopen(request, timeout=SECONDS)


def infer_json(base):
    tensors = [{"name": name, "shape": [1, 16], "datatype": "INT32", "data": data} for name, data in (("INPUT0", ROW), ("INPUT1", ONES))]
    with ask(f"{base}/v2/models/simple/infer", json.dumps({"inputs": tensors}).encode()) as answer:
        outputs = json.load(answer)["outputs"]
    return next(output["data"] for output in outputs if output["name"] == "OUTPUT0")


def infer_binary(base):
    """A JSON header, then the numbers as they lie in memory; the length of the header stands in a header of HTTP."""
    data = [struct.pack("<16i", *row) for row in (ROW, ONES)]
    inputs = [
        {"name": f"INPUT{n}", "shape": [1, 16], "datatype": "INT32", "parameters": {"binary_data_size": len(part)}}
        for n, part in enumerate(data)
    ]
    outputs = [{"name": "OUTPUT1", "parameters": {"binary_data": True}}]
    header = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    length = {"Inference-Header-Content-Length": str(len(header)), "Content-Type": "application/octet-stream"}
    with ask(f"{base}/v2/models/simple/infer", header + b"".join(data), length) as answer:
        body = answer.read()
        return struct.unpack("<16i", body[int(answer.headers["Inference-Header-Content-Length"]):])


def words(base, text):
    """Server-sent events: a line `data: {...}` for each response."""
    with ask(f"{base}/v2/models/words/generate_stream", json.dumps({"TEXT": text}).encode()) as answer:
        for line in answer:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])["WORD"]


def main(address="localhost:8000"):
    base = f"http://{address}"
    with ask(f"{base}/v2/health/ready") as answer:
        print("ready:", "yes" if answer.status == 200 else "no")
    with ask(f"{base}/v2/models/simple") as answer:
        inputs = json.load(answer)["inputs"]
    print("inputs:", "; ".join(f"{one['name']} {one['datatype']} {one['shape']}" for one in inputs))
    print("sum:", *infer_json(base))
    print("difference:", *infer_binary(base))
    print("words:", *words(base, "one word after another"), sep=" | ")
    try:
        ask(f"{base}/v2/models/nothing/infer", b'{"inputs": []}')
    except urllib.error.HTTPError as error:
        print("refused:", json.load(error)["error"])


if __name__ == "__main__":
    main(*sys.argv[1:])
