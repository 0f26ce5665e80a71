"""Streams audio to the model `speech` and prints when somebody speaks: WAV files of 16 kHz, 16 bits, one channel.

Each file is a sequence of its own; several files are streamed at once, over one connection.
"""

import argparse
import queue
import wave

import numpy as np
import tritonclient.grpc as grpcclient

RATE, NEW, BEFORE = 16000, 512, 64


def frames(path):
    """Pieces of 512 samples, each behind the last 64 of the one before."""
    with wave.open(path) as file:
        if (file.getframerate(), file.getsampwidth(), file.getnchannels()) != (RATE, 2, 1):
            raise SystemExit(f"{path}: not 16 kHz, 16 bits, one channel; write such a file with `ffmpeg -i {path} -ac 1 -ar 16000 speech.wav`")
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    samples = np.concatenate([np.zeros(BEFORE, np.float32), samples, np.zeros(-len(samples) % NEW, np.float32)])
    return [samples[start:start + BEFORE + NEW][None] for start in range(0, len(samples) - BEFORE, NEW)]


def probabilities(address, streams):
    """The probability of speech in each piece of each stream."""
    answers = queue.Queue()
    with grpcclient.InferenceServerClient(address) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        for turn in range(max(map(len, streams))):
            for sequence, stream in enumerate(streams, start=1):
                if turn < len(stream):
                    piece = grpcclient.InferInput("input", list(stream[turn].shape), "FP32")
                    piece.set_data_from_numpy(stream[turn])
                    client.async_stream_infer(
                        "speech", [piece], request_id=f"{sequence}:{turn}", sequence_id=sequence,
                        sequence_start=turn == 0, sequence_end=turn + 1 == len(stream),
                    )
        found = [[0.0] * len(stream) for stream in streams]
        for _ in range(sum(map(len, streams))):
            result, error = answers.get(timeout=60)
            if error:
                raise SystemExit(f"the server says: {error}")
            sequence, turn = map(int, result.get_response().id.split(":"))
            found[sequence - 1][turn] = result.as_numpy("output").item()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE.wav")
    parser.add_argument("-u", "--url", default="localhost:8001", help="where the server speaks gRPC")
    parser.add_argument("--all", action="store_true", help="print the probability of each piece too")
    args = parser.parse_args()
    streams = [frames(path) for path in args.files]
    for path, found in zip(args.files, probabilities(args.url, streams)):
        spoken = [value > 0.5 for value in found]
        print(f"{path}: {len(found) * NEW / RATE:.2f} s, somebody speaks in {sum(spoken) * NEW / RATE:.2f} s of them")
        if args.all:
            for turn, value in enumerate(found):
                print(f"{turn * NEW / RATE:8.2f} s {value:6.3f} {'#' * round(value * 40)}")


if __name__ == "__main__":
    main()
