import json

import numpy as np
import triton_python_backend_utils as pb_utils

from embeddings import sentence_vectors, words_of


class TritonPythonModel:
    """The bytes of a sentence to the vectors of its words."""

    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.types = [
            pb_utils.triton_string_to_numpy(pb_utils.get_output_config_by_name(config, name)["data_type"])
            for name in ("sorted_lengths", "sentence_tensor")
        ]

    def execute(self, requests):
        return [self.tokenize(request) for request in requests]

    def tokenize(self, request):
        values = pb_utils.get_input_tensor_by_name(request, "sentence_bytes").as_numpy()
        sentence = bytes(values.astype(np.uint8)).decode("utf-8", "replace")
        words = [text for text, _, _ in words_of(sentence)]
        if not words:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("the sentence has no words"))
        lengths = np.array([len(words)], dtype=self.types[0])
        vectors = sentence_vectors(words)[np.newaxis].astype(self.types[1], copy=False)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("sorted_lengths", lengths), pb_utils.Tensor("sentence_tensor", vectors)]
        )

    def finalize(self):
        print("Tokenization cleaning up...")
