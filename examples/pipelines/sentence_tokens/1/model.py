"""Sentences to token ids, padded to the longest of the batch."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer

# The vocabulary lies beside the model that it belongs to, in the other example repository.
VOCABULARY = Path(__file__).resolve().parents[3] / "models/minilm_int8/tokenizer.json"


class TritonPythonModel:
    def initialize(self, args):
        self.tokenizer = Tokenizer.from_file(str(VOCABULARY))
        self.tokenizer.enable_padding()
        self.tokenizer.enable_truncation(256)

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        sentences = pb_utils.get_input_tensor_by_name(request, "sentence").as_numpy().reshape(-1)
        rows = self.tokenizer.encode_batch([sentence.decode() for sentence in sentences])
        ids = np.array([row.ids for row in rows], dtype=np.int64)
        mask = np.array([row.attention_mask for row in rows], dtype=np.int64)
        named = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return pb_utils.InferenceResponse([pb_utils.Tensor(name, array) for name, array in named.items()])
