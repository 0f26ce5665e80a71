#!/bin/sh
# The helper threads of a new session of ONNX Runtime look for work for about 25 ms of a core before they sleep, although nothing
# has run yet: they count tries, and no run ends that would stop them (session.force_spinning_stop does not help). A thousand
# small models take half a minute of CPU to load for that alone. session.intra_op.spin_duration_us, which bounds the time, has
# the same models loaded with a small part of it.
#
# onnxruntime 1.32.0, onnx 1.23.2, CPython 3.11 or later, two cores or more. Seen on two cores: 26 ms against 0.5 ms of CPU for
# each session.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import time

import onnxruntime
from onnx import TensorProto, helper

sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 3]) for name in ("X", "Y")]
graph = helper.make_graph([helper.make_node("Neg", ["X"], ["Y"])], "neg", sides[:1], sides[1:])
model = helper.make_model(graph).SerializeToString()


def cpu_ms(entries, count=40):
    """CPU of the whole process for each session that is made, with one helper thread each."""
    kept, begin = [], time.process_time()
    for _ in range(count):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        options.add_session_config_entry("session.force_spinning_stop", "1")
        for key, value in entries.items():
            options.add_session_config_entry(key, value)
        kept.append(onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]))
    time.sleep(0.5)
    return (time.process_time() - begin) * 1000 / count


cpu_ms({})
default, bounded = cpu_ms({}), cpu_ms({"session.intra_op.spin_duration_us": "100"})
print(f"CPU for each session: {default:.1f} ms, with spin_duration_us=100 {bounded:.1f} ms")
assert default > 5 * bounded
PYTHON
