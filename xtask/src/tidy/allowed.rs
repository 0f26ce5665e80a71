//! What is not tidy yet. These lists only shrink.

/// Crates and folders in which codes of a list outside still stand.
pub const BARE_CODES: &[&str] = &["crates/backend-builtin", "crates/backend-onnx"];
/// Crates and folders with files that open without a line that says why they exist.
pub const NO_MODULE_LINE: &[&str] = &[
    "crates/backend",
    "crates/backend-builtin",
    "crates/backend-onnx",
    "crates/backend-torch",
    "crates/types",
];
/// Libraries whose public items are not all documented.
pub const UNDOCUMENTED: &[&str] = &[
    "crates/backend",
    "crates/backend-builtin",
    "crates/backend-onnx",
    "crates/backend-torch",
    "crates/types",
];
/// Crates with a file beside its folder.
pub const FOLDERS: &[&str] = &["crates/backend-onnx", "crates/backend-torch"];
/// Crates that take locks in their own way.
pub const LOCKS: &[&str] =
    &["crates/backend-builtin", "crates/backend-onnx", "crates/backend-torch", "crates/types"];
/// Crates and folders with files that use each other in a circle.
pub const CIRCLES: &[&str] = &["crates/backend-onnx/", "crates/backend-torch/", "crates/backend/"];
