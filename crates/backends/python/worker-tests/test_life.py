"""From HELLO to the end of the process: loading, completing, children, signals, endings."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

from server import ERROR, TIMEOUT, WORKER, Worker
from test_execute import HEAD, IDENTITY, answering, body


class Loading(unittest.TestCase):
    def test_hello_and_ready(self):
        with Worker(IDENTITY) as worker:
            python = ".".join(map(str, sys.version_info[:3]))
            self.assertEqual(worker.hello.json, {"python": python, "numpy": np.__version__, "pid": worker.process.pid})
            self.assertEqual(worker.ready.json, {"has_is_ready": False})

    def test_arguments_and_model_folder(self):
        source = HEAD + """
    def initialize(self, args):
        self.said = repr(sorted(args)) + str(pb_utils.get_model_dir())
    def execute(self, requests):
        raise RuntimeError(self.said)
"""
        with Worker(source) as worker:
            text, _ = worker.execute({"IN": [b"a"]}).failure
            self.assertIn("['model_config', 'model_instance_name', 'model_name']m/1", text)

    def test_the_interpreter_looks_as_if_it_ran_no_script(self):
        """What reads the command line must not find ours: there `argparse` would stop at descriptors it does not know."""
        source = body("""
import argparse, sys, unittest
parser = argparse.ArgumentParser()
parser.add_argument("--steps", default=3)
main = sys.modules["__main__"]
ran = unittest.main(exit=False).result.testsRun
said = [sys.argv, getattr(sys, "orig_argv", []), parser.parse_args().steps, ran, main.__spec__, hasattr(main, "__file__"), sys.path[-1]]
raise RuntimeError(repr(said))""")
        with Worker(source) as worker:
            text, _ = worker.execute({"IN": [b"a"]}).failure
            self.assertTrue(text.startswith("RuntimeError: [[''], [], 3, 0, None, False, '']"), text)

    def test_siblings_import_and_classes_pickle(self):
        source = """
import pickle
import viterbi_decoder
from .other import NAME
import numpy as np
import triton_python_backend_utils as pb_utils
import c_python_backend_utils as c_utils

class Kept:
    pass

class TritonPythonModel:
    def execute(self, requests):
        assert type(pickle.loads(pickle.dumps(Kept()))) is Kept
        assert c_utils.Tensor is pb_utils.Tensor and __name__ == "1.model"
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([viterbi_decoder.NAME + NAME]))])]
"""
        files = {"viterbi_decoder.py": "NAME = 'sibling'", "other.py": "NAME = '!'", "types.py": "raise ValueError"}
        with Worker(source, files=files) as worker:
            self.assertEqual(worker.one({"IN": [b"a"]}).outputs["OUT"].texts, [b"sibling!"])

    def test_failures_are_reported(self):
        cases = {
            "import no_such_module_here": "ModuleNotFoundError: No module named 'no_such_module_here'\n\nAt:\n",
            "x = 1": "has no attribute 'TritonPythonModel'",
            "class TritonPythonModel(:": "SyntaxError",
            HEAD + "    def initialize(self, args): raise ValueError('nope')": "ValueError: nope\n\nAt:\n",
            "class TritonPythonModel:\n    def initialize(self):\n        pass": "were given\n\nAt:\n  m/1/model.py(2): initialize\n",
            HEAD + "    def initialize(self, args):\n        import sys\n        sys.exit('bye')": "SystemExit: bye",
        }
        for source, text in cases.items():
            with Worker(source) as worker:
                self.assertTrue(worker.ready.flags & ERROR)
                message, traceback = worker.ready.failure
                self.assertIn(text, message)
                self.assertNotIn("galatea_worker", message + traceback)

    def test_only_known_packages_are_named_for_a_missing_module(self):
        """The package of a module's name may be a stranger's."""
        cases = {
            "import google.protobuf": "write protobuf into",
            "from google.protobuf import message": "write protobuf into",
            "from google import protobuf": "write protobuf into",
            "import json, google.cloud.storage as s": "write google-cloud-storage into",
            "import azure.storage.blob": "write azure-storage-blob into",
            "import turbojpeg": "write PyTurboJPEG into",
            "import pytorch_lightning.callbacks": "write pytorch-lightning into",
            "import google": "The module 'google' is not in 'm/1', 'm', or the packages of the model's Python.",
            "import google.no_such_part": "The module 'google.no_such_part' is not in",
            "from google import (": "SyntaxError",
            "import preprocessing.steps": "The module 'preprocessing' is not in",
            "import numpy.nothing": "The 'numpy' that is installed has no 'numpy.nothing'",
        }
        for source, text in cases.items():
            # The Python of this test may have the modules that many packages share.
            absent = "import sys\nsys.modules['google'] = sys.modules['azure'] = None\n"
            with Worker(absent + source) as worker:
                self.assertIn(text, worker.ready.failure[0])
        with Worker("import sys, types\nsys.modules['google'] = types.ModuleType('google')\nimport google.protobuf") as worker:
            self.assertIn("write protobuf into", worker.ready.failure[0])

    def test_a_path_of_another_machine_is_told_apart(self):
        begin = "The model's folder in the repository is 'm': begin the path with args['model_repository']"
        cases = {
            "/models-elsewhere/m/1/weights.bin": "There is no folder '/models-elsewhere' here. " + begin + ", which initialize",
            "/models-elsewhere/m/1/model.py": begin + ", as in os.path.join(args['model_repository'], '1', 'model.py').",
            "/dev/no/such/folder/x": "There is no folder '/dev/no' here.",
            "/no-such-file": None,
            "weights.bin": "Relative paths begin in",
        }
        for path, text in cases.items():
            with Worker("open(%r)" % path) as worker:
                message = worker.ready.failure[0]
                self.assertTrue(message.startswith("FileNotFoundError: "), message)
                self.assertIn(text or "FileNotFoundError", message)
                self.assertEqual(text is None, "model_repository" not in message and "Relative" not in message)

    def test_no_numpy(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "numpy.py").write_text("raise ImportError('none here')")
            old = os.environ.get("PYTHONPATH")
            os.environ["PYTHONPATH"] = folder
            try:
                with Worker(IDENTITY, init=False) as worker:
                    self.assertTrue(worker.hello.flags & ERROR)
                    self.assertIn("cannot import numpy: ImportError: none here", worker.hello.text)
            finally:
                os.environ.pop("PYTHONPATH")
                if old is not None:
                    os.environ["PYTHONPATH"] = old

    def complete(self, source, config):
        with Worker(source, init=False) as worker:
            settings = dict(worker.settings, config=config)
            worker.send(worker.commands, 4, meta=json.dumps(settings).encode())
            message = worker.receive()
            self.assertFalse(worker.init().flags & ERROR)
            return message

    def test_auto_complete(self):
        source = HEAD + """
    @staticmethod
    def auto_complete_config(config):
        assert config.as_dict()["name"] == "m"
        config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [-1], "optional": True})
        config.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [4]})
        config.set_max_batch_size(8)
        config.set_dynamic_batching()
        config.set_model_transaction_policy({"decoupled": False})
        return config
"""
        given = {"name": "m", "input": [], "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": []}]}
        completed = self.complete(source, given).json
        self.assertEqual(completed["output"], [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [4]}])
        self.assertEqual((completed["max_batch_size"], completed["dynamic_batching"]), (8, {}))
        given["output"][0]["data_type"] = "TYPE_INT8"
        text = "ValueError: unable to load model 'm', configuration expects datatype TYPE_INT8 for output 'OUT', model provides TYPE_FP32"
        self.assertIn(text, self.complete(source, given).failure[0])
        self.assertIsNone(self.complete(IDENTITY, given).json)
        wrong = HEAD + "    def auto_complete_config(config):\n        return 1\n"
        text = "auto_complete_config function in model 'm' must return a valid pb.ModelConfig object."
        self.assertEqual(self.complete(wrong, given).failure, (text, ""))


class Ending(unittest.TestCase):
    def test_finalize(self):
        source = IDENTITY + "    def finalize(self):\n        print('finalized', flush=False)\n"
        source += "    def __del__(self):\n        print('deleted')\nimport atexit\natexit.register(print, 'left')\n"
        with Worker(source) as worker:
            worker.send(worker.commands, 8)
            self.assertEqual(worker.receive().kind, 9)
            self.assertEqual(worker.process.wait(TIMEOUT), 0)
            self.assertEqual(worker.close().split(), ["finalized", "deleted", "left"])

    def test_closed_socket_ends_the_process(self):
        with Worker(IDENTITY) as worker:
            worker.commands.close()
            self.assertEqual(worker.process.wait(TIMEOUT), 1)

    def test_closed_events_end_a_waiting_model(self):
        source = body("requests[0].is_cancelled()")
        with Worker(source) as worker:
            worker.start({"IN": [b"a"]})
            worker.receive(worker.events)
            worker.events.close()
            self.assertEqual(worker.process.wait(TIMEOUT), 1)

    def test_signals_of_the_terminal_are_ignored(self):
        with Worker(IDENTITY) as worker:
            for number in (signal.SIGINT, signal.SIGTERM):
                os.kill(worker.process.pid, number)
            self.assertEqual(worker.one({"IN": np.ones(2)}).code, 0)

    def test_print_reaches_the_server_line_by_line(self):
        with Worker(body("print('from the model')\nreturn [pb_utils.InferenceResponse([])]")) as worker:
            worker.one({"IN": [b"a"]})
            self.assertTrue(select.select([worker.process.stdout], [], [], TIMEOUT)[0])
            self.assertEqual(worker.process.stdout.readline(), "from the model\n")


class Children(unittest.TestCase):
    FORK = """
import os, time
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(w, b"alive")
    %s
said = os.read(r, 100)
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([said, str(pid).encode()], dtype=object))])]"""

    def test_children_of_children_live(self):
        """They were ended because their parent is not the worker."""
        inner = "if os.fork() == 0:\n        os.write(w, b' and again')\n        os._exit(0)\n    os.wait()\n    os._exit(0)"
        source = body(self.FORK % inner).replace("said = os.read(r, 100)", "os.close(w); said = b''.join(iter(lambda: os.read(r, 100), b''))")
        with Worker(source) as worker:
            said, _ = worker.one({"IN": [b"a"]}).outputs["OUT"].texts
            self.assertEqual(said, b"alive and again")

    def test_children_end_with_the_worker(self):
        with Worker(body(self.FORK % "time.sleep(600)")) as worker:
            _, pid = worker.one({"IN": [b"a"]}).outputs["OUT"].texts
            child = os.pidfd_open(int(pid))
            worker.process.kill()
            self.assertTrue(select.select([child], [], [], TIMEOUT)[0])
            os.close(child)

    def test_multiprocessing(self):
        source = body("""
import multiprocessing
with multiprocessing.get_context(requests[0].request_id()).Pool(2) as pool:
    got = pool.map(abs, [-1, -2, 3])
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(got))])]""")
        with Worker(source) as worker:
            for method in ("fork", "spawn"):
                got = worker.one({"IN": [b"a"]}, id=method).outputs["OUT"].array
                np.testing.assert_array_equal(got, [1, 2, 3])

    def test_programs_can_be_terminated(self):
        source = answering(
            'np.array([(lambda p: (p.terminate(), p.wait())[1])(__import__("subprocess").Popen(["sleep", "60"]))])'
        )
        with Worker(source) as worker:
            self.assertEqual(worker.one({"IN": [b"a"]}).outputs["OUT"].array[0], -signal.SIGTERM)


class Footprint(unittest.TestCase):
    def test_idle_memory(self):
        with Worker(IDENTITY) as worker:
            worker.one({"IN": np.ones(16, np.float32)})
            self.assertLess(worker.rss_kb(), 40 * 1024)

    def test_files_are_short(self):
        for path in WORKER.rglob("*.py"):
            self.assertLess(len(path.read_text().splitlines()), 500, path)

    def test_nothing_but_numpy_is_imported(self):
        script = "import sys; sys.path.insert(0, %r)\nimport galatea_worker.main, galatea_worker.connection, galatea_worker.executor\n"
        script += "print([m for m in ('asyncio', 'traceback_', 'torch', 'socket') if m in sys.modules and m not in before])"
        script = "import sys, numpy; before = set(sys.modules)\n" + script % str(WORKER)
        done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(done.stdout, "[]\n")


if __name__ == "__main__":
    unittest.main()
