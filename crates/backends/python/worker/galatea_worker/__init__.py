"""The Python side of the server's Python backend: one process per model instance.

Runs on CPython 3.9 and newer with numpy as the only dependency. PROTOCOL.md describes what travels between
the server and this package; `triton_python_backend_utils` is what model code sees of it.
"""
