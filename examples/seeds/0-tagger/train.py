"""Trains the tagger on this machine's own text and writes what the repository needs.

The network has the shape of Flair's: vectors of 2148 numbers a word, a bidirectional LSTM over packed sequences, a
linear layer, scores of a conditional random field. It is far smaller, and its text is labelled by rules (corpus.py):
it shows that such a model is served, not how well names can be found.

Written to the given folder: model.pt (TorchScript, traced), crf_transitions.npy, model.npz (all parameters for the
form without PyTorch), expected.npz (what the traced module says to some sentences), report.json (how training went).
"""

import argparse
import json
import random
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import rnn

HERE = Path(__file__).resolve().parent
MODELS = HERE / "model_repository"
sys.path[:0] = [str(MODELS / f"flair-ner-english-fast-{step}/1") for step in ("tokenization", "viterbi-decoder")]

import corpus  # noqa: E402
from embeddings import WIDTH, sentence_vectors, words_of  # noqa: E402
from viterbi_decoder import START, STOP, TAGS, best_path  # noqa: E402

HIDDEN, BATCH, PASSES, RATE = 128, 32, 3, 0.004
IMPOSSIBLE = -10000.0
# The documents' sentences; none of them is in the corpus.
SENTENCES = [
    "NVIDIA is founded by Jensen Huang, Chris Malachowsky and Curtis Priem.",
    "George Washington went to Washington.",
    "Nothing to see here.",
]


class Tagger(torch.nn.Module):
    """(lengths INT64 [B], longest first; vectors FP32 [B, T, 2148]) to (features FP32 [B, T, 20, 20], lengths)."""

    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(WIDTH, HIDDEN, batch_first=True, bidirectional=True)
        self.linear = torch.nn.Linear(2 * HIDDEN, len(TAGS))
        transitions = torch.randn(len(TAGS), len(TAGS)) * 0.1
        transitions[START, :] = IMPOSSIBLE
        transitions[:, STOP] = IMPOSSIBLE
        self.transitions = torch.nn.Parameter(transitions)

    def forward(self, lengths, vectors):
        packed = rnn.pack_padded_sequence(vectors, lengths, batch_first=True)
        # Given, because traced without them the LSTM would remember how many sentences the trace had.
        begin = torch.zeros(2, vectors.size(0), HIDDEN, device=vectors.device)
        states, _ = self.lstm(packed, (begin, begin))
        padded, lengths = rnn.pad_packed_sequence(states, batch_first=True)
        return self.linear(padded).unsqueeze(-1) + self.transitions, lengths


def loss_of(features, lengths, tags, stop):
    """Negative log-likelihood of the right tags, mean over the sentences."""
    count = len(lengths)
    before = torch.cat([torch.full((count, 1), START), tags[:, :-1]], dim=1)
    rows = torch.arange(count)
    scores = features[rows[:, None], torch.arange(tags.shape[1]), tags, before]
    inside = torch.arange(tags.shape[1]) < lengths[:, None]
    right = (scores * inside).sum(dim=1) + stop[tags[rows, lengths - 1]]
    summed = features[:, 0, :, START]
    for step in range(1, tags.shape[1]):
        further = torch.logsumexp(features[:, step] + summed[:, None, :], dim=2)
        summed = torch.where(inside[:, step, None], further, summed)
    return (torch.logsumexp(summed + stop, dim=1) - right).mean()


def batches(sentences, seed):
    """(lengths, vectors, tags) of sentences of about one length, the longest of each batch first."""
    choice = random.Random(seed)
    order = sorted(sentences, key=lambda s: len(s[0]) + choice.random() * 3)
    groups = [order[i:i + BATCH] for i in range(0, len(order), BATCH)]
    choice.shuffle(groups)
    for group in groups:
        group.sort(key=lambda s: -len(s[0]))
        lengths = torch.tensor([len(words) for words, _ in group])
        tags = rnn.pad_sequence([torch.tensor([TAGS.index(tag) for tag in tags]) for _, tags in group], batch_first=True)
        vectors = rnn.pad_sequence([torch.from_numpy(sentence_vectors(words)) for words, _ in group], batch_first=True)
        yield lengths, vectors, tags


def train(model, sentences, say):
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for number in range(PASSES):
        total, count = 0.0, 0
        for lengths, vectors, tags in batches(sentences, number):
            features, _ = model(lengths, torch.nn.functional.dropout(vectors, 0.2))
            loss = loss_of(features, lengths, tags, model.transitions[STOP])
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total, count = total + loss.item(), count + 1
        for group in optimizer.param_groups:
            group["lr"] /= 2
        say(f"pass {number + 1} of {PASSES}: mean loss {total / count:.2f}")


# ---- how good


def spans(tags):
    """{(first word, last word, kind)}."""
    found, begin = set(), None
    for place, tag in enumerate(tags):
        position, _, kind = tag.partition("-")
        if position in ("B", "S"):
            begin = place
        if position in ("E", "S") and begin is not None:
            found.add((begin, place, kind))
            begin = None
    return found


def predicted(model, words):
    lengths, vectors = torch.tensor([len(words)]), torch.from_numpy(sentence_vectors(words))[None]
    with torch.no_grad():
        features, _ = model(lengths, vectors)
    path, _ = best_path(features[0].numpy(), model.transitions[STOP].detach().numpy())
    return [TAGS[tag] for tag in path]


def f1(model, sentences):
    hits = ours = theirs = 0
    for words, tags in sentences:
        found, wanted = spans(predicted(model, words)), spans(tags)
        hits, ours, theirs = hits + len(found & wanted), ours + len(found), theirs + len(wanted)
    return 2 * hits / max(ours + theirs, 1)


# ---- what is written


def traced(model):
    """The module as TorchScript; the example has two sentences of different lengths."""
    vectors = torch.zeros(2, 5, WIDTH)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        return torch.jit.trace(model, (torch.tensor([5, 3]), vectors))


def expected(module):
    """Features of the module for each of the sentences, by themselves and all at once."""
    inputs = [torch.from_numpy(sentence_vectors([text for text, _, _ in words_of(s)])) for s in SENTENCES]
    inputs.sort(key=len, reverse=True)
    found = {"lengths": np.array([len(vectors) for vectors in inputs])}
    with torch.no_grad():
        for number, vectors in enumerate(inputs):
            found[f"alone_{number}"] = module(torch.tensor([len(vectors)]), vectors[None])[0].numpy()
        found["vectors"] = rnn.pad_sequence(inputs, batch_first=True).numpy()
        found["together"] = module(torch.from_numpy(found["lengths"]), torch.from_numpy(found["vectors"]))[0].numpy()
    return found


def write(model, folder, report):
    module = traced(model)
    module.save(str(folder / "model.pt"))
    np.save(folder / "crf_transitions.npy", model.transitions.detach().numpy())
    np.savez(folder / "model.npz", **{name: value.numpy() for name, value in model.state_dict().items()})
    np.savez(folder / "expected.npz", **expected(torch.jit.load(str(folder / "model.pt"))))
    (folder / "report.json").write_text(json.dumps(report, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path, help="where the Debian package debian-history was unpacked")
    parser.add_argument("folder", type=Path, help="where the files are written")
    args = parser.parse_args()
    say = lambda text: print(text, flush=True)  # noqa: E731
    torch.set_num_threads(1)
    torch.manual_seed(5)
    started = time.monotonic()
    training, checks = corpus.corpora(args.text)
    say(f"{len(training)} sentences, {sum(len(words) for words, _ in training)} words, "
        f"{sum(len(spans(tags)) for _, tags in training)} names")
    model = Tagger()
    train(model, training, say)
    model.eval()
    report = {"sentences": len(training), "seconds": round(time.monotonic() - started, 1), "torch": torch.__version__,
              "f1": {name: round(f1(model, sentences), 3) for name, sentences in checks.items()}}
    for sentence in SENTENCES:
        words = [text for text, _, _ in words_of(sentence)]
        say(" ".join(f"{word} <{tag}>" if tag != "O" else word for word, tag in zip(words, predicted(model, words))))
    args.folder.mkdir(parents=True, exist_ok=True)
    write(model, args.folder, report)
    say(json.dumps(report))


if __name__ == "__main__":
    main()
