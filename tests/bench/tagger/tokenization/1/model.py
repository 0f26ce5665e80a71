import numpy as np
import triton_python_backend_utils as pb_utils

WORD, VOCABULARY = 2148, 512


class TritonPythonModel:
    """UTF-8 byte values to word vectors; the vectors are a hashed table, the shapes are the seed's."""

    def initialize(self, args):
        self.table = np.random.default_rng(3).standard_normal((VOCABULARY, WORD), dtype=np.float32)

    def execute(self, requests):
        return [self.tokenize(request) for request in requests]

    def tokenize(self, request):
        values = pb_utils.get_input_tensor_by_name(request, "sentence_bytes").as_numpy()
        words = bytes(values.astype(np.uint8)).decode("utf-8", "replace").split() or [""]
        rows = [sum(word.encode()) % VOCABULARY for word in words]
        vectors = self.table[rows][np.newaxis]
        lengths = np.array([len(words)], dtype=np.int64)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("sorted_lengths", lengths), pb_utils.Tensor("sentence_tensor", vectors)]
        )
