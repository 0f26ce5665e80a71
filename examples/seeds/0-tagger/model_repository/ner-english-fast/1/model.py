import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils

from embeddings import sentence_vectors, words_of
from tagger import Tagger
from viterbi_decoder import tagged


class TritonPythonModel:
    """The later form: all three steps in one model, strings in and out, several sentences at once."""

    def initialize(self, args):
        folder = os.path.join(os.path.abspath(args["model_repository"]), args["model_version"])
        config = json.loads(args["model_config"])
        output = pb_utils.get_output_config_by_name(config, "OUTPUT_0")
        self.type = pb_utils.triton_string_to_numpy(output["data_type"])
        self.tagger = Tagger(os.path.join(folder, "model.npz"))

    def execute(self, requests):
        asked = [
            [text.decode("utf-8", "replace") for text in pb_utils.get_input_tensor_by_name(request, "INPUT_0").as_numpy().flat]
            for request in requests
        ]
        found = iter(self.tag([sentence for sentences in asked for sentence in sentences]))
        return [self.response([next(found) for _ in sentences]) for sentences in asked]

    def tag(self, sentences):
        """{words: entities} of each sentence, of all requests in one go."""
        words = [words_of(sentence) for sentence in sentences]
        features = iter(self.tagger([sentence_vectors([text for text, _, _ in found]) for found in words if found]))
        return [
            tagged(sentence, found, next(features), self.tagger.stop) if found else {"": []}
            for sentence, found in zip(sentences, words)
        ]

    def response(self, found):
        """One dictionary for the whole request, as the document has it: its text is what the client gets."""
        merged = {text: entities for one in found for text, entities in one.items()}
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT_0", np.array(merged, dtype=self.type))])

    def finalize(self):
        print("ner-english-fast cleaning up...")
