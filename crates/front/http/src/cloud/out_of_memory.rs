//! Which errors mean that a model did not find room: SageMaker unloads others then, and asks again.

/// What libraries write when there is no memory left, as the real server knows them.
const SIGNS: [&str; 17] = [
    "CUDA out of memory",
    "CUDA_OUT_OF_MEMORY",
    "Out of memory",
    "Out Of Memory",
    "out of memory",
    "MemoryError",
    "OutOfMemory",
    "OOM",
    "Dst tensor is not initialized",
    "Src tensor is not initialized",
    "CNMEM_STATUS_OUT_OF_MEMORY",
    "CUDNN_STATUS_NOT_INITIALIZED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "Failed to allocate memory",
    "failed to allocate memory",
    "No space left on device",
];

/// Whether the text of an error says so.
pub(super) fn is_meant(text: &str) -> bool {
    SIGNS.iter().any(|sign| text.contains(sign))
}
