//! The environment variables that a child gets.

use std::ffi::OsString;

use galatea_worker::is_secret_variable;

/// Names of variables by which native libraries find their files, the user and the time zone.
const NAMES: &str = "HOME LANG LD_LIBRARY_PATH LD_PRELOAD LOGNAME PATH TMPDIR TZ USER";
/// Beginnings of names: the settings of the libraries themselves.
const PREFIXES: &str = "\
    ATEN_ BLIS_ CUBLAS_ CUDA_ CUDNN_ GLIBC_ GOMP_ KMP_ LC_ MALLOC_ MKL_ NCCL_ NVIDIA_ OMP_ ONNX OPENBLAS_ ORT_ PYTORCH_ \
    RUST_ TENSORRT_ TORCH TRT_ TRITON_ XDG_";

/// Selects the server's variables that a native library may need. No others are passed, for they may hold secrets.
pub(crate) fn for_child(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let is_passed = |name: &str| {
        let is_needed = NAMES.split_whitespace().any(|known| known == name)
            || PREFIXES.split_whitespace().any(|prefix| name.starts_with(prefix));
        is_needed && !is_secret_variable(name)
    };
    let variables = variables.into_iter();
    variables.filter(|(name, _)| name.to_str().is_some_and(is_passed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_variables_are_not_passed_to_child_processes() {
        let given = [
            "PATH",
            "AWS_SECRET_ACCESS_KEY",
            "CUDA_VISIBLE_DEVICES",
            "DATABASE_URL",
            "TRITON_CLOUD_CREDENTIAL_PATH",
        ];
        let passed = for_child(given.map(|name| (name.into(), "value".into())));
        let names: Vec<_> = passed.iter().map(|(name, _)| name.to_str()).collect();
        assert_eq!(names, [Some("PATH"), Some("CUDA_VISIBLE_DEVICES")]);
    }
}
