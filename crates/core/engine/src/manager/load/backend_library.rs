//! Decides if a model runs by a library that was made for Triton, or by the server's own backend of the same name.

use std::collections::BTreeMap;

use crate::repository::ModelFolder;

/// The setting of a backend on the command line.
const SETTING: &str = "library";
/// The parameter of a model, which comes before the setting.
const PARAMETER: &str = "BACKEND_LIBRARY";
/// The value of both that chooses the library.
const OF_TRITON: &str = "triton";

/// Returns the name of a backend's library.
pub(super) fn library_name(backend: &str) -> String {
    format!("libtriton_{backend}.so")
}

/// Returns true if the owner wants the library of a backend that this server has itself.
pub(super) fn wants_library(
    parameters: &BTreeMap<String, String>,
    settings: &BTreeMap<String, String>,
) -> bool {
    let chosen = parameters.get(PARAMETER).or_else(|| settings.get(SETTING));
    chosen.is_some_and(|chosen| chosen.trim() == OF_TRITON)
}

/// Returns true if a model brings the library of its backend, in its folder or in that of a version.
pub(super) fn is_library_of_model(backend: &str, folder: &ModelFolder) -> bool {
    let name = library_name(backend);
    let of_version = |&version: &i64| folder.version_dir(version).join(&name).is_file();
    folder.path().join(&name).is_file() || folder.versions.iter().any(of_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_of_a_model_comes_before_the_setting() {
        let map = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let (none, setting) = (BTreeMap::new(), map("library", "triton"));
        assert!(wants_library(&none, &setting));
        assert!(wants_library(&map("BACKEND_LIBRARY", "triton"), &none));
        assert!(!wants_library(&map("BACKEND_LIBRARY", "own"), &setting));
        assert!(!wants_library(&none, &none));
    }
}
