"""Asks a server over gRPC with Triton's client library, a stream included: pip install 'tritonclient[grpc]'"""

import queue
import sys

import numpy as np
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

ROW, ONES = np.arange(16, dtype=np.int32).reshape(1, 16), np.ones((1, 16), dtype=np.int32)
SECONDS = 30


def pair():
    tensors = []
    for name, values in (("INPUT0", ROW), ("INPUT1", ONES)):
        tensor = grpcclient.InferInput(name, list(values.shape), "INT32")
        tensor.set_data_from_numpy(values)
        tensors.append(tensor)
    return tensors


def words(client, text):
    """A model that responds several times to one request is asked on a stream."""
    tensor = grpcclient.InferInput("TEXT", [1], "BYTES")
    tensor.set_data_from_numpy(np.array([text.encode()], dtype=object))
    answers = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    # Without the end of the stream, its thread would keep the program running after an error.
    try:
        client.async_stream_infer("words", [tensor], enable_empty_final_response=True)
        while True:
            result, error = answers.get(timeout=SECONDS)
            if error is not None:
                raise error
            word = result.as_numpy("WORD")
            if word is not None:
                yield word[0].decode()
            if result.get_response().parameters["triton_final_response"].bool_param:
                break
    finally:
        client.stop_stream()


def main(url="localhost:8001"):
    client = grpcclient.InferenceServerClient(url)
    print("ready:", "yes" if client.is_server_ready() and client.is_model_ready("simple") else "no")
    inputs = client.get_model_metadata("simple").inputs
    print("inputs:", "; ".join(f"{one.name} {one.datatype} {list(one.shape)}" for one in inputs))
    result = client.infer("simple", pair(), request_id="7", client_timeout=SECONDS)
    print("sum:", *result.as_numpy("OUTPUT0")[0])
    print("difference:", *result.as_numpy("OUTPUT1")[0])
    print("words:", *words(client, "one word after another"), sep=" | ")
    try:
        client.infer("nothing", pair(), client_timeout=SECONDS)
    except InferenceServerException as error:
        print("refused:", error.message())


if __name__ == "__main__":
    main(*sys.argv[1:])
