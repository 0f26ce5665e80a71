#!/bin/bash
# Proves ONNX models on this machine's GPU. See README.md.
#   run.sh PROGRAM [--accelerator tensorrt] [--batches 1,8,32] [--concurrencies 1,4]
# ONNX Runtime: $GALATEA_ONNXRUNTIME_LIB, else the one inside Python's package onnxruntime (onnxruntime-gpu).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$1
shift
python=${PYTHON:-python3}

library=${GALATEA_ONNXRUNTIME_LIB:-$("$python" - <<'FIND'
import importlib.util, pathlib
package = importlib.util.find_spec("onnxruntime")
found = sorted(pathlib.Path(package.origin).parent.glob("capi/libonnxruntime.so.*")) if package else []
print(found[0] if found else "")
FIND
)}
[ -n "$library" ] || { echo "no ONNX Runtime: install onnxruntime-gpu or set GALATEA_ONNXRUNTIME_LIB" >&2; exit 1; }

# The CUDA libraries that Python packages bring along (nvidia-cublas, nvidia-cudnn-cu13, ...; PyTorch needs them too).
cuda=$("$python" - <<'FIND'
import pathlib, sys
found = {str(p.parent) for entry in sys.path if entry for p in pathlib.Path(entry).glob("nvidia/**/lib/lib*.so.*")}
found |= {str(p.parent) for entry in sys.path if entry for p in pathlib.Path(entry).glob("tensorrt*_libs/lib*.so.*")}
print(":".join(sorted(found)))
FIND
)
export LD_LIBRARY_PATH="$cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
nvidia-smi --query-gpu=index,name,uuid,driver_version,memory.total --format=csv
exec "$python" "$here/prove_onnx.py" --galatea "$program" --onnxruntime-lib "$library" "$@"
