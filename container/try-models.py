"""Asks a server for its ready models, over HTTP and gRPC, and sends each one request of zeros.

A dimension that may vary is sent as 1, a text as "0".
"""

import argparse

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient
from tritonclient.utils import triton_to_np_dtype

MODULES = {"HTTP": httpclient, "gRPC": grpcclient}


def zeros(module, metadata):
    """The inputs that a model's metadata asks for."""
    for spec in metadata["inputs"]:
        shape = [max(1, int(size)) for size in spec["shape"]]
        array = (
            np.full(shape, b"0", object)
            if spec["datatype"] == "BYTES"
            else np.zeros(shape, triton_to_np_dtype(spec["datatype"]))
        )
        tensor = module.InferInput(spec["name"], shape, spec["datatype"])
        yield tensor.set_data_from_numpy(array)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", default="localhost:8000")
    parser.add_argument("--grpc", default="localhost:8001")
    args = parser.parse_args()
    http = httpclient.InferenceServerClient(args.http)
    clients = {"HTTP": http, "gRPC": grpcclient.InferenceServerClient(args.grpc)}
    ready = sorted({entry["name"] for entry in http.get_model_repository_index() if entry.get("state") == "READY"})
    print("ready:", ", ".join(ready) or "nothing", flush=True)
    for model in ready:
        metadata = http.get_model_metadata(model)
        for protocol, client in clients.items():
            inputs = list(zeros(MODULES[protocol], metadata))
            answer = client.infer(model, inputs)
            outputs = ", ".join(f"{o['name']} {list(answer.as_numpy(o['name']).shape)}" for o in metadata["outputs"])
            print(f"{model} over {protocol}: {outputs}", flush=True)


if __name__ == "__main__":
    main()
