"""Asks a served captioner for one word after another: the image and all words so far go in, the next word comes out.

Every request is longer than the one before it, and each of the three inputs goes in binary form.
"""

import argparse

import numpy as np
import tritonclient.http as httpclient

from generate_onnx import WORDS, draw

# BLIP begins captions with the first of these and ends them with the second; the small model has its own.
BOUNDS = {"base_model_cpu": (30522, 102), "shapes_captioner": (0, 1)}


def logits(client, model, image, ids):
    """FP32 [tokens, vocabulary] for one image and its tokens so far."""
    arrays = {
        "pixel_values": image[None],
        "input_ids": np.array([ids]),
        "attention_mask": np.ones((1, len(ids)), np.int64),
    }
    inputs = []
    for name, array in arrays.items():
        inputs.append(httpclient.InferInput(name, list(array.shape), "FP32" if array.dtype == np.float32 else "INT64"))
        inputs[-1].set_data_from_numpy(array, binary_data=True)
    wanted = [httpclient.InferRequestedOutput("logits", binary_data=True)]
    return client.infer(model, inputs, outputs=wanted).as_numpy("logits")[0]


def caption(client, model, image, longest=20):
    """Token ids of the caption, without where it begins and ends."""
    begin, end = BOUNDS[model]
    ids = [begin]
    while len(ids) <= longest:
        following = int(logits(client, model, image, ids)[-1].argmax())
        if following == end:
            break
        ids.append(following)
    return ids[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="localhost:8000")
    args = parser.parse_args()
    client = httpclient.InferenceServerClient(args.url)
    image, truth = draw(np.random.default_rng(7))
    print("base_model_cpu (random weights):", *caption(client, "base_model_cpu", image))
    print("shapes_captioner:", *(WORDS[word] for word in caption(client, "shapes_captioner", image)))
    print("what was drawn:", truth)


if __name__ == "__main__":
    main()
