"""Sentences in, how close in meaning each is to the first out: words become numbers, which the model minilm_int8 turns into
vectors, one for each word; a sentence is the mean of them."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb

from wordpiece import WordPiece

# What the model was trained on.
MOST_WORDS = 256
MOST_SENTENCES = 32


class TritonPythonModel:
    def initialize(self, args):
        self.tokenizer = WordPiece(Path(__file__).parent / "tokenizer.json")

    def execute(self, requests):
        return [self.answer(pb.get_input_tensor_by_name(request, "text").as_numpy()) for request in requests]

    def answer(self, texts):
        if not 0 < len(texts) <= MOST_SENTENCES:
            return pb.InferenceResponse(error=pb.TritonError(f"expected 1 to {MOST_SENTENCES} sentences, got {len(texts)}"))
        sentences = [text.decode(errors="replace") for text in texts]
        ids, mask = (np.array(rows, dtype=np.int64)[:, :MOST_WORDS] for rows in self.tokenizer.batch(sentences))
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        asked = pb.InferenceRequest(
            model_name="minilm_int8",
            requested_output_names=["last_hidden_state"],
            inputs=[pb.Tensor(name, value) for name, value in inputs.items()],
        ).exec()
        if asked.has_error():
            return pb.InferenceResponse(error=asked.error())
        words = pb.get_output_tensor_by_name(asked, "last_hidden_state").as_numpy()
        weights = mask[:, :, None].astype(np.float32)
        vectors = (words * weights).sum(axis=1) / weights.sum(axis=1)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return pb.InferenceResponse([pb.Tensor("closeness", vectors @ vectors[0])])
