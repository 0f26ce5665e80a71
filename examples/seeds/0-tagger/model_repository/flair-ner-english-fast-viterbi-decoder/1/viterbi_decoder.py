"""From the scores of a conditional random field to named entities, in plain numpy."""

import numpy as np

TAGS = ["<unk>", "O"] + [f"{place}-{kind}" for kind in ("ORG", "MISC", "PER", "LOC") for place in "SBIE"] + ["<START>", "<STOP>"]
START, STOP = TAGS.index("<START>"), TAGS.index("<STOP>")


def best_path(scores, stop):
    """Indices of the best tags, and how likely each of them is among the tags of its word.

    `scores` FP32 [T, 20, 20]: word t has tag i after tag j. `stop` FP32 [20]: the sentence ends after tag j.
    """
    best, summed = scores[0, :, START], np.empty(scores.shape[:2], dtype=np.float32)
    summed[0] = best
    back = np.empty(scores.shape[:2], dtype=np.int64)
    for step in range(1, len(scores)):
        candidates = scores[step] + best
        back[step] = candidates.argmax(axis=1)
        best = candidates.max(axis=1)
        summed[step] = log_sum(scores[step] + summed[step - 1], axis=1)
    path = [int((best + stop).argmax())]
    for pointers in back[:0:-1]:
        path.append(int(pointers[path[-1]]))
    path.reverse()
    return path, likelihoods(scores, stop, summed, path)


def likelihoods(scores, stop, forward, path):
    """Probability of each tag of the path, all paths of the sentence considered."""
    behind, found = stop, np.empty(len(scores), dtype=np.float32)
    whole = log_sum(forward[-1] + stop, axis=0)
    for step in range(len(scores) - 1, -1, -1):
        found[step] = np.exp(forward[step, path[step]] + behind[path[step]] - whole)
        behind = log_sum(scores[step] + behind[:, np.newaxis], axis=0)
    return found


def log_sum(values, axis):
    top = values.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis=axis) + np.log(np.exp(values - top).sum(axis=axis))


def entities(sentence, words, path, likely):
    """Named entities as Flair's users know them: kind, characters from and to, text, score in percent."""
    found, open_at = [], None
    for place, tag in enumerate(path):
        position, _, kind = TAGS[tag].partition("-")
        if position in ("B", "S") or open_at is None or TAGS[path[open_at]][2:] != kind:
            open_at = place if kind else None
        if position in ("E", "S") and open_at is not None:
            begin, end = words[open_at][1], words[place][2]
            score = int(likely[open_at:place + 1].mean() * 100)
            found.append({"entity_group": kind, "start": begin, "word": sentence[begin:end], "end": end, "score": score})
            open_at = None
    return found


def tagged(sentence, words, scores, stop):
    """{the words with a blank between: entities}."""
    path, likely = best_path(scores, stop)
    return {" ".join(text for text, _, _ in words): entities(sentence, words, path, likely)}
