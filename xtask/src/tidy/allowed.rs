//! What is not tidy yet. These lists only shrink.

/// Crates and folders in which codes of a list outside still stand.
pub const BARE_CODES: &[&str] = &[
    "crates/backend-builtin",
    "crates/backend-onnx",
    "crates/config",
    "crates/engine",
    "crates/grpc",
    "crates/http",
    "crates/proto",
    "crates/protocol",
    "crates/types",
];
/// Files of the checked configuration that still have public fields.
pub const PUBLIC_FIELDS: &[&str] = &["crates/config/src/model_config.rs"];
/// Crates and folders with files that open without a line that says why they exist.
pub const NO_MODULE_LINE: &[&str] = &[
    "crates/backend",
    "crates/backend-builtin",
    "crates/backend-onnx",
    "crates/backend-torch",
    "crates/config",
    "crates/engine",
    "crates/gpu",
    "crates/grpc",
    "crates/http",
    "crates/protocol",
    "crates/types",
];
/// Crates with a file beside its folder.
pub const FOLDERS: &[&str] = &[
    "crates/backend-onnx",
    "crates/backend-torch",
    "crates/config",
    "crates/engine",
    "crates/gpu",
    "crates/protocol",
    "crates/server",
];
/// Files that read the environment of the process although they are not in the program.
pub const ENVIRONMENT: &[&str] = &["crates/perf/tool/src/profiler/fake_run.rs"];
/// Crates and folders with files that use each other in a circle.
pub const CIRCLES: &[&str] = &[
    "crates/backend-onnx/",
    "crates/backend-torch/",
    "crates/backend/",
    "crates/config/",
    "crates/engine/",
    "crates/grpc/",
    "crates/http/",
];
