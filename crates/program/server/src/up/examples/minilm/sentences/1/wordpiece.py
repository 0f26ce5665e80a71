"""A small tokenizer for BERT models: reads the vocabulary of a tokenizer.json, needs nothing else."""

import json
import re
import unicodedata


class WordPiece:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            model = json.load(file)["model"]
        self.vocabulary = model["vocab"]
        self.unknown = self.vocabulary[model["unk_token"]]

    def ids(self, text):
        """Token ids of one text, with the marks of its begin and end."""
        pieces = [piece for word in self._words(text) for piece in self._pieces(word)]
        return [self.vocabulary["[CLS]"], *pieces, self.vocabulary["[SEP]"]]

    def batch(self, texts):
        """Ids and attention mask of several texts, padded to the longest."""
        rows = [self.ids(text) for text in texts]
        width = max(map(len, rows))
        ids = [row + [0] * (width - len(row)) for row in rows]
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        return ids, mask

    @staticmethod
    def _words(text):
        plain = unicodedata.normalize("NFD", text.lower())
        plain = "".join(c for c in plain if unicodedata.category(c) != "Mn")
        return re.findall(r"\w+|[^\w\s]", plain)

    def _pieces(self, word):
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if piece in self.vocabulary:
                    pieces.append(self.vocabulary[piece])
                    start = end
                    break
            else:
                return [self.unknown]
        return pieces
