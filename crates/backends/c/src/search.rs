//! Finds the library of a backend.

use std::path::{Path, PathBuf};

use galatea_triton_c::{LibraryKind, Requirements, abi, objects::OBJECTS};

use crate::{hooks::EXECUTE, offer::BACKEND};

/// The libraries of backends.
pub static LIBRARIES: LibraryKind = LibraryKind {
    prefix: "libtriton_",
    interface: "TRITONBACKEND",
    offered: abi::BACKEND_VERSION,
    requirements: Requirements { kind: "Triton backend", must_define: &[EXECUTE] },
    offers: &[&OBJECTS, &BACKEND],
};

/// Returns the library of a backend in the first of these folders that has it. Triton looks into the folder of the version, that
/// of the model, and the backend's own.
pub fn find_library<'a>(
    backend: &str,
    folders: impl IntoIterator<Item = &'a Path>,
) -> Option<PathBuf> {
    let name = LIBRARIES.file_name(backend);
    folders.into_iter().map(|folder| folder.join(&name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_a_version_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let [version, model, backends] = ["v", "m", "b"].map(|name| folder.path().join(name));
        let all = [&*version, &*model, &*backends];
        all.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        assert_eq!(find_library("x", all), None);
        std::fs::write(backends.join("libtriton_x.so"), "").unwrap();
        assert_eq!(find_library("x", all), Some(backends.join("libtriton_x.so")));
        std::fs::write(version.join("libtriton_x.so"), "").unwrap();
        assert_eq!(find_library("x", all), Some(version.join("libtriton_x.so")));
        assert_eq!(find_library("y", all), None);
    }
}
