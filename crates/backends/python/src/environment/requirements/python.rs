//! The version of Python that a file requires.

use std::path::Path;

use super::error::RequirementsError;
use crate::environment::version::VersionRange;

/// The range that `setting` of a file gives.
pub(super) fn range(
    file: &Path,
    setting: &'static str,
    text: &str,
) -> Result<VersionRange, RequirementsError> {
    VersionRange::parse(text).ok_or_else(|| RequirementsError::PythonVersion {
        file: file.to_owned(),
        setting,
        text: text.to_owned(),
    })
}

/// `# python: 3.12` in the first line.
pub(super) fn python_comment(text: &str) -> Option<&str> {
    let comment = text.lines().next()?.trim_start_matches('\u{feff}').trim().strip_prefix('#')?;
    Some(comment.trim().strip_prefix("python:")?.trim())
}
