import numpy as np
import triton_python_backend_utils as pb_utils

TAGS = ["O"] + [f"{place}-{kind}" for kind in ("PER", "LOC", "ORG", "MISC") for place in "BIES"] + ["<unk>", "<s>", "</s>"]


def best_path(scores):
    """Indices of the best tags; `scores` FP32 [T, 20, 20]: tag i after tag j."""
    forward = np.full(len(TAGS), -10000.0, dtype=np.float32)
    forward[-2] = 0.0
    back = np.empty(scores.shape[:2], dtype=np.int64)
    for step, score in enumerate(scores):
        candidates = score + forward
        back[step] = candidates.argmax(axis=1)
        forward = candidates.max(axis=1)
    tag = int(forward.argmax())
    path = [tag]
    for pointers in back[:0:-1]:
        tag = int(pointers[tag])
        path.append(tag)
    return path[::-1]


class TritonPythonModel:
    def execute(self, requests):
        return [self.decode(request) for request in requests]

    def decode(self, request):
        values = pb_utils.get_input_tensor_by_name(request, "sentence_bytes").as_numpy()
        features = pb_utils.get_input_tensor_by_name(request, "features").as_numpy()
        length = int(pb_utils.get_input_tensor_by_name(request, "sorted_lengths").as_numpy()[0])
        words = bytes(values.astype(np.uint8)).decode("utf-8", "replace").split()
        path = best_path(features[0, :length])
        tagged = " ".join(f"{word} <{TAGS[tag]}>" for word, tag in zip(words, path))
        answer = np.frombuffer(tagged.encode(), dtype=np.uint8).astype(np.int64)
        return pb_utils.InferenceResponse([pb_utils.Tensor("tagged_sentences", answer)])
