"""Sends sentences as text to the served pipeline and prints how close in meaning they are.

All in one request, over HTTP or, with --protocol grpc, over gRPC: the server cuts them into tokens.
"""

import argparse

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient

from ask import SENTENCES


def embeddings(module, client, sentences):
    """One vector of length 1 per sentence."""
    texts = np.array([[sentence.encode()] for sentence in sentences], dtype=object)
    wanted = module.InferInput("sentence", list(texts.shape), "BYTES")
    wanted.set_data_from_numpy(texts)
    return client.infer("sentence_embedding", [wanted]).as_numpy("embedding")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", default="localhost:8000")
    parser.add_argument("--grpc", default="localhost:8001")
    parser.add_argument("--protocol", choices=("http", "grpc"), default="http")
    args = parser.parse_args()

    module = {"http": httpclient, "grpc": grpcclient}[args.protocol]
    client = module.InferenceServerClient(getattr(args, args.protocol))
    vectors = embeddings(module, client, SENTENCES)
    print(f"Vectors of {vectors.shape[1]} numbers; their cosines:\n")
    for sentence, row in zip(SENTENCES, vectors @ vectors.T):
        print("  " + " ".join(f"{cosine:6.3f}" for cosine in row) + f"  {sentence}")


if __name__ == "__main__":
    main()
