//! Recognizes errors of models that lack memory: SageMaker then unloads others and repeats the request.

/// Texts of libraries without memory, from the real server's list.
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

/// Returns `true` if an error text has one of these signs.
pub(super) fn is_meant(text: &str) -> bool {
    SIGNS.iter().any(|sign| text.contains(sign))
}
