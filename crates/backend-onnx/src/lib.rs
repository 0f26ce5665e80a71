//! ONNX Runtime models, the library opened at run time.
