import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils

from embeddings import words_of
from viterbi_decoder import STOP, tagged


class TritonPythonModel:
    """Scores of the tagger to the bytes of a dictionary of named entities."""

    def initialize(self, args):
        config = json.loads(args["model_config"])
        output = pb_utils.get_output_config_by_name(config, "tagged_sentences")
        self.type = pb_utils.triton_string_to_numpy(output["data_type"])
        file = os.path.join(os.path.abspath(args["model_repository"]), args["model_version"], "crf_transitions.npy")
        self.stop = np.load(file)[STOP]

    def execute(self, requests):
        return [self.decode(request) for request in requests]

    def decode(self, request):
        values, features, lengths = (
            pb_utils.get_input_tensor_by_name(request, name).as_numpy()
            for name in ("sentence_bytes", "features", "sorted_lengths")
        )
        sentence = bytes(values.astype(np.uint8)).decode("utf-8", "replace")
        found = tagged(sentence, words_of(sentence), features[0, :lengths[0]], self.stop)
        answer = np.frombuffer(str(found).encode(), dtype=np.uint8).astype(self.type)
        return pb_utils.InferenceResponse([pb_utils.Tensor("tagged_sentences", answer)])

    def finalize(self):
        print("Viterbi decoder cleaning up...")
