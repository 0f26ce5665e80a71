"""Asks a server over HTTP with Triton's client library: pip install 'tritonclient[http]'"""

import sys

import numpy as np
import tritonclient.http as httpclient
from tritonclient.utils import InferenceServerException

ROW, ONES = np.arange(16, dtype=np.int32).reshape(1, 16), np.ones((1, 16), dtype=np.int32)


def pair(binary):
    tensors = []
    for name, values in (("INPUT0", ROW), ("INPUT1", ONES)):
        tensor = httpclient.InferInput(name, list(values.shape), "INT32")
        tensor.set_data_from_numpy(values, binary_data=binary)
        tensors.append(tensor)
    return tensors


def main(url="localhost:8000"):
    # The time-outs are in seconds: one to connect, one for a response.
    client = httpclient.InferenceServerClient(url, connection_timeout=5.0, network_timeout=30.0)
    print("ready:", "yes" if client.is_server_ready() and client.is_model_ready("simple") else "no")
    inputs = client.get_model_metadata("simple")["inputs"]
    print("inputs:", "; ".join(f"{one['name']} {one['datatype']} {one['shape']}" for one in inputs))
    as_json = client.infer("simple", pair(binary=False), outputs=[httpclient.InferRequestedOutput("OUTPUT0", binary_data=False)])
    print("sum:", *as_json.as_numpy("OUTPUT0")[0])
    as_bytes = client.infer("simple", pair(binary=True), request_id="7")
    print("difference:", *as_bytes.as_numpy("OUTPUT1")[0])
    try:
        client.infer("nothing", pair(binary=True))
    except InferenceServerException as error:
        print("refused:", error.message())


if __name__ == "__main__":
    main(*sys.argv[1:])
