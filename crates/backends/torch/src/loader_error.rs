//! Why a library could not be opened.

/// The loader's own text, which the error has in its source only.
pub(crate) fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
