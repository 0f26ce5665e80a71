"""The trained network without PyTorch: a BiLSTM over several sentences at once, in plain numpy."""

import numpy as np

from viterbi_decoder import STOP


class Tagger:
    def __init__(self, file):
        """`file` is what train.py wrote: the parameters under PyTorch's names."""
        self.weights = dict(np.load(file))
        self.transitions = self.weights["transitions"]
        self.stop = self.transitions[STOP]

    def __call__(self, sentences):
        """FP32 [T, 20, 20] for each FP32 [T, 2148]."""
        if not sentences:
            return []
        lengths = np.array([len(vectors) for vectors in sentences])
        padded = np.zeros((len(sentences), lengths.max(), sentences[0].shape[1]), dtype=np.float32)
        for row, vectors in zip(padded, sentences):
            row[:len(vectors)] = vectors
        # The other direction reads each sentence from its own last word; padding stays behind.
        order = np.arange(lengths.max())
        turned = np.where(order < lengths[:, None], lengths[:, None] - 1 - order, order)
        rows = np.arange(len(sentences))[:, None]
        forward = self.read(padded, "l0")
        backward = self.read(padded[rows, turned], "l0_reverse")[rows, turned]
        states = np.concatenate([forward, backward], axis=2)
        emissions = states @ self.weights["linear.weight"].T + self.weights["linear.bias"]
        return [found[:n, :, None] + self.transitions for found, n in zip(emissions, lengths)]

    def read(self, padded, direction):
        into, own, bias, more_bias = (
            self.weights[f"lstm.{name}_{direction}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        gates = padded @ into.T + (bias + more_bias)
        own = own.T
        hidden = cell = np.zeros((len(padded), own.shape[0]), dtype=np.float32)
        states = np.empty((*padded.shape[:2], own.shape[0]), dtype=np.float32)
        for step in range(padded.shape[1]):
            let_in, keep, new, show = np.split(gates[:, step] + hidden @ own, 4, axis=1)
            cell = sigmoid(keep) * cell + sigmoid(let_in) * np.tanh(new)
            hidden = sigmoid(show) * np.tanh(cell)
            states[:, step] = hidden
        return states


def sigmoid(values):
    return 0.5 * np.tanh(0.5 * values) + 0.5
