"""Sentences in, named entities out: through the three-step pipeline over HTTP or gRPC, or through the one model.

    python3 client.py "George Washington went to Washington."
    python3 client.py --model ner-english-fast --protocol grpc --url localhost:8001 "Ada met Charles." "It rained."
"""

import argparse
import ast

import numpy as np
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient

MODULES = {"http": httpclient, "grpc": grpcclient}
ENSEMBLE = "flair-ner-english-fast-ensemble"
SENTENCES = [
    "NVIDIA is founded by Jensen Huang, Chris Malachowsky and Curtis Priem.",
    "George Washington went to Washington.",
    "The German painter Otto Fischer moved from Hamburg to New York in 1921.",
    "Nothing to see here.",
]


def connect(url, protocol="http"):
    return MODULES[protocol].InferenceServerClient(url)


def tensor(client, name, values, datatype):
    """An input for the kind of client at hand."""
    module = grpcclient if isinstance(client, grpcclient.InferenceServerClient) else httpclient
    wanted = module.InferInput(name, list(values.shape), datatype)
    wanted.set_data_from_numpy(values)
    return wanted


def ask_ensemble(client, sentence):
    """The entities of one sentence as text; bytes travel as INT64, one each."""
    values = np.frombuffer(sentence.encode(), dtype=np.uint8).astype(np.int64)
    answer = client.infer(ENSEMBLE, [tensor(client, "sentence_bytes", values, "INT64")]).as_numpy("tagged_sentences")
    return bytes(answer.astype(np.uint8)).decode()


def ask_one_model(client, sentences):
    """The entities of several sentences as one text."""
    values = np.array([[sentence] for sentence in sentences], dtype=object)
    answer = client.infer("ner-english-fast", [tensor(client, "INPUT_0", values, "BYTES")]).as_numpy("OUTPUT_0")
    return answer.item().decode()


def show(text):
    """Prints a served dictionary a sentence a line."""
    for sentence, entities in ast.literal_eval(text).items():
        found = ", ".join(f"{e['word']} ({e['entity_group']} {e['score']}%, {e['start']} to {e['end']})" for e in entities)
        print(f"{sentence}\n    {found or 'no names'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="localhost:8000")
    parser.add_argument("--protocol", choices=list(MODULES), default="http")
    parser.add_argument("--model", choices=[ENSEMBLE, "ner-english-fast"], default=ENSEMBLE)
    parser.add_argument("sentences", nargs="*", default=SENTENCES)
    args = parser.parse_args()
    client = connect(args.url, args.protocol)
    if args.model == ENSEMBLE:
        for sentence in args.sentences:
            show(ask_ensemble(client, sentence))
    else:
        show(ask_one_model(client, args.sentences))


if __name__ == "__main__":
    main()
