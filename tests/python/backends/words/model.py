"""A backend written in Python, made like that of vLLM: every model of it runs this file and brings a `model.json`.

Answers are generated on the event loop of a thread and sent by another thread. The text of a request is what is to be done.
"""

import asyncio
import json
import os
import queue
import sys
import threading

import numpy as np
import triton_python_backend_utils as pb

from parts.counted import Counted

FINAL = pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL
ARGUMENTS = ("text_input", "TYPE_STRING", False), ("stream", "TYPE_BOOL", True), ("sampling_parameters", "TYPE_STRING", True)


class TritonPythonModel:
    @classmethod
    def auto_complete_config(cls, config):
        named = {given["name"] for given in config.as_dict()["input"]}
        for name, data_type, optional in ARGUMENTS:
            if name not in named:
                config.add_input({"name": name, "data_type": data_type, "dims": [1], "optional": optional})
        if not config.as_dict()["output"]:
            config.add_output({"name": "text_output", "data_type": "TYPE_STRING", "dims": [-1]})
        config.set_model_transaction_policy({"decoupled": True})
        config.set_max_batch_size(0)
        return config

    def initialize(self, args):
        self.args, self.config = args, json.loads(args["model_config"])
        assert pb.using_decoupled_model_transaction_policy(self.config)
        with open(os.path.join(pb.get_model_dir(), "model.json"), encoding="utf-8") as file:
            self.engine = json.load(file)
        self.counted = Counted({"model": args["model_name"], "version": args["model_version"]})
        self.cancelled = 0
        self.answers = queue.Queue()
        self.loop = asyncio.new_event_loop()
        self.threads = [threading.Thread(target=self.loop.run_forever), threading.Thread(target=self.send_answers)]
        for thread in self.threads:
            thread.start()
        pb.Logger.log_info("[words] the engine is ready: " + self.engine["greeting"])

    def execute(self, requests):
        for request in requests:
            asyncio.run_coroutine_threadsafe(self.serve(request), self.loop)
        return None

    async def serve(self, request):
        sender = request.get_response_sender()
        streams = pb.get_input_tensor_by_name(request, "stream")
        streams = streams is not None and bool(streams.as_numpy()[0])
        words = []
        try:
            async for word in self.generated(request):
                if sender.is_cancelled():
                    self.cancelled += 1
                    error = pb.TritonError("Request was cancelled", pb.TritonError.CANCELLED)
                    self.answers.put((sender, pb.InferenceResponse(error=error), FINAL))
                    return
                self.counted.word()
                if streams:
                    self.answers.put((sender, answer([word]), 0))
                words.append(word)
        except Exception as error:
            failed = pb.InferenceResponse(answer(["N/A"]).output_tensors(), pb.TritonError(f"Error generating stream: {error}"))
            self.answers.put((sender, failed, FINAL))
            return
        self.answers.put((sender, None if streams else answer([" ".join(words)]), FINAL))

    async def generated(self, request):
        """The words of the answer, one after another."""
        text = pb.get_input_tensor_by_name(request, "text_input").as_numpy()[0].decode()
        sampling = pb.get_input_tensor_by_name(request, "sampling_parameters")
        sampling = json.loads(request.parameters() if sampling is None else sampling.as_numpy()[0])
        does, _, rest = text.partition(" ")
        if does == "about":
            yield json.dumps(self.about())
        elif does == "cancelled":
            yield str(self.cancelled)
        elif does == "call":
            yield (await self.called(rest)).decode()
        elif does == "raise":
            raise ValueError(rest)
        elif does == "endless":
            while True:
                yield self.engine["greeting"]
                await asyncio.sleep(0.01)
        else:
            for number in range(int(sampling.get("max_tokens", 3))):
                yield "%s-%d" % (text, number)

    async def called(self, model):
        """What another model makes of a text."""
        request = pb.InferenceRequest(
            model_name=model, requested_output_names=["OUTPUT0"], inputs=[pb.Tensor("INPUT0", np.array([b"passed on"], object))]
        )
        response = await request.async_exec()
        if response.has_error():
            raise RuntimeError(response.error().message())
        return pb.get_output_tensor_by_name(response, "OUTPUT0").as_numpy()[0]

    def about(self):
        """What this code is told, and where it runs."""
        home, places = os.path.dirname(os.path.abspath(__file__)), [os.path.realpath(path) for path in sys.path]
        told = {**self.args, "model_config": None}
        shown = ("name", "backend", "runtime", "default_model_filename", "parameters", "instance_group")
        return {
            "args": told, "config": {key: self.config.get(key) for key in shown}, "module": __name__, "file": __file__, "folder": pb.get_model_dir(),
            "engine": self.engine, "its own folder is on the path": os.path.realpath(home) in places,
        }

    def send_answers(self):
        for sender, response, flags in iter(self.answers.get, None):
            sender.send(flags=flags) if response is None else sender.send(response, flags=flags)

    def finalize(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.answers.put(None)
        for thread in self.threads:
            thread.join()
        pb.Logger.log_info("[words] the engine has ended")


def answer(words):
    return pb.InferenceResponse([pb.Tensor("text_output", np.array([word.encode() for word in words], object))])
