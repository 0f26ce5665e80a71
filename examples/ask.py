"""Asks the served example models two questions with the stock clients and prints the answers.

Which of these sentences mean the same (minilm_int8, over HTTP)? And what kind of file is this
(magika, over gRPC, the label looked up by the server)?
"""

import argparse
from pathlib import Path

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient

from wordpiece import WordPiece

HERE = Path(__file__).parent
SENTENCES = [
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "Somebody has a meal.",
    "The new server answers in two milliseconds.",
]


def tensor(module, name, values):
    datatype = {np.dtype(np.int32): "INT32", np.dtype(np.int64): "INT64"}[values.dtype]
    wanted = module.InferInput(name, list(values.shape), datatype)
    wanted.set_data_from_numpy(values)
    return wanted


def embeddings(client, tokenizer, sentences):
    """One vector of length 1 per sentence: the mean of its tokens' vectors."""
    ids, mask = (np.array(rows, dtype=np.int64) for rows in tokenizer.batch(sentences))
    inputs = [
        tensor(httpclient, "input_ids", ids),
        tensor(httpclient, "attention_mask", mask),
        tensor(httpclient, "token_type_ids", np.zeros_like(ids)),
    ]
    hidden = client.infer("minilm_int8", inputs).as_numpy("last_hidden_state")
    weights = mask[:, :, None].astype(np.float32)
    means = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def file_features(content):
    """Head and tail of a file as the numbers magika wants: 1024 bytes each, 256 where there is none."""
    head, tail = content[:4096].lstrip()[:1024], content[-4096:].rstrip()[-1024:]
    row = list(head) + [256] * (1024 - len(head)) + [256] * (1024 - len(tail)) + list(tail)
    return np.array([row], dtype=np.int32)


def file_kinds(client, content, count):
    """The most likely kinds of a file as (label, probability)."""
    wanted = grpcclient.InferRequestedOutput("target_label", class_count=count)
    inputs = [tensor(grpcclient, "bytes", file_features(content))]
    answer = client.infer("magika", inputs, outputs=[wanted]).as_numpy("target_label")
    rows = [entry.decode().split(":") for entry in answer.reshape(-1)]
    return [(label, float(value)) for value, _, label in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", default="localhost:8000")
    parser.add_argument("--grpc", default="localhost:8001")
    args = parser.parse_args()

    http = httpclient.InferenceServerClient(args.http)
    vectors = embeddings(http, WordPiece(HERE / "models/minilm_int8/tokenizer.json"), SENTENCES)
    print(f'How close in meaning to "{SENTENCES[0]}"?')
    for score, sentence in sorted(zip(vectors @ vectors[0], SENTENCES), reverse=True)[1:]:
        print(f"  {score:6.3f}  {sentence}")

    grpc = grpcclient.InferenceServerClient(args.grpc)
    print("\nWhat kind of file is this?")
    for file in [Path(__file__), HERE / "models/simple/1/model.onnx", HERE / "models/simple/config.pbtxt"]:
        kinds = ", ".join(f"{label} {value:.0%}" for label, value in file_kinds(grpc, file.read_bytes(), 2))
        print(f"  {file.name:13} {kinds}")


if __name__ == "__main__":
    main()
