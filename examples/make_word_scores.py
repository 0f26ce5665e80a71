"""Writes examples/tensorflow/word_scores, a SavedModel that takes texts: `pip install tensorflow`, then run this.

It adds up what the words of a text count for. The words are in a file of the model, an asset, and TensorFlow fills a table
from it when the model is loaded.
"""

import contextlib
import shutil
import tempfile
from pathlib import Path

import tensorflow as tf

SCORES = {
    "good": 2, "great": 3, "nice": 2, "love": 3, "like": 1, "works": 1, "fast": 1, "easy": 1,
    "bad": -2, "awful": -3, "hate": -3, "broken": -2, "slow": -1, "hard": -1, "wrong": -2, "crashes": -2,
}
TARGET = Path(__file__).resolve().parent / "tensorflow/word_scores/1/model.savedmodel"


class WordScores(tf.Module):
    def __init__(self, words):
        line = tf.lookup.TextFileInitializer(words, tf.string, 0, tf.float32, 1, delimiter="\t")
        self.scores = tf.lookup.StaticHashTable(line, 0.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.string, name="text")])
    def __call__(self, text):
        plain = tf.strings.regex_replace(tf.strings.lower(text[:, 0]), "[^a-z ]", " ")
        words = tf.strings.split(plain)
        total = tf.reduce_sum(self.scores.lookup(words).to_tensor(0.0), axis=1, keepdims=True)
        return {"score": total, "verdict": tf.where(total > 0, "good", tf.where(total < 0, "bad", "neither"))}


def main():
    shutil.rmtree(TARGET, ignore_errors=True)
    # The name of the file becomes part of the model.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("words.tsv").write_text("".join(f"{word}\t{score}\n" for word, score in SCORES.items()))
        model = WordScores("words.tsv")
        tf.saved_model.save(model, str(TARGET), signatures=model.__call__)


if __name__ == "__main__":
    main()
