//! Finds an installed runtime, and the folder of all runtimes.

use std::path::PathBuf;

use galatea_types::{Environment, Error, Result};

use crate::Runtime;

/// The places to search for a runtime.
#[derive(Clone, Debug)]
pub struct FindOptions {
    /// A library named on the command line. It is used even if it does not exist, so that an error names it.
    pub library: Option<PathBuf>,
    /// Variables that name libraries and folders.
    pub environment: Environment,
}

impl FindOptions {
    /// Makes options for the usual places, as these variables name them.
    pub fn new(environment: &Environment) -> Self {
        Self { library: None, environment: environment.clone() }
    }
}

/// Returns the library to open: the one named by option, by environment variable, or an installed one.
pub fn find(runtime: &Runtime, options: &FindOptions) -> Option<PathBuf> {
    if let Some(path) = &options.library {
        return Some(path.clone());
    }
    if let Some(path) = options.environment.path(runtime.variable) {
        return Some(path);
    }
    let folder = data_folder(&options.environment).ok()?;
    let library = installed_folder(runtime, &folder).join(runtime.library());
    library.is_file().then_some(library)
}

/// Returns `$GALATEA_HOME`, else `$XDG_DATA_HOME/galatea`, else `~/.local/share/galatea`.
pub fn data_folder(environment: &Environment) -> Result<PathBuf> {
    if let Some(home) = environment.path("GALATEA_HOME") {
        return Ok(home);
    }
    // The XDG specification says that a relative path is ignored.
    if let Some(data) = environment.path("XDG_DATA_HOME").filter(|p| p.is_absolute()) {
        return Ok(data.join("galatea"));
    }
    let home = environment.path("HOME").map(|home| home.join(".local/share/galatea"));
    home.ok_or_else(|| {
        Error::unavailable("no folder for runtimes: set GALATEA_HOME, XDG_DATA_HOME or HOME")
    })
}

/// Returns the folder of all versions of a runtime, below the user's data folder.
pub(crate) fn place_of(runtime: &Runtime) -> String {
    format!("runtimes/{}", runtime.name)
}

pub(crate) fn installed_folder(runtime: &Runtime, data_folder: &std::path::Path) -> PathBuf {
    data_folder.join(place_of(runtime)).join(runtime.version)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const RUNTIME: &Runtime = &Runtime::ONNXRUNTIME;

    fn place(folder: &std::path::Path) -> PathBuf {
        let installed = installed_folder(RUNTIME, folder);
        fs::create_dir_all(&installed).expect("created");
        let library = installed.join(RUNTIME.library());
        fs::write(&library, "").expect("written");
        library
    }

    #[test]
    fn an_option_wins_over_a_variable_which_wins_over_an_installed_runtime() {
        let home = tempfile::tempdir().expect("folder");
        let installed = place(home.path());
        let of = |variables: &[(&str, &str)]| {
            FindOptions::new(&Environment::of(variables.iter().copied()))
        };
        let home = home.path().to_str().expect("text");
        let mut options =
            of(&[("GALATEA_HOME", home), ("GALATEA_ONNXRUNTIME_LIB", "/by/variable.so")]);
        assert_eq!(find(RUNTIME, &options), Some("/by/variable.so".into()));
        options.library = Some("/by/option.so".into());
        assert_eq!(find(RUNTIME, &options), Some("/by/option.so".into()));
        assert_eq!(find(RUNTIME, &of(&[("GALATEA_HOME", home)])), Some(installed));
        assert_eq!(find(RUNTIME, &of(&[("GALATEA_HOME", "/nowhere")])), None);
    }

    #[test]
    fn data_folders_are_searched_in_order() {
        let folder =
            |variables: &[(&str, &str)]| data_folder(&Environment::of(variables.iter().copied()));
        let home = ("HOME", "/users/a");
        assert_eq!(folder(&[home]).expect("found"), PathBuf::from("/users/a/.local/share/galatea"));
        let xdg = ("XDG_DATA_HOME", "/data");
        assert_eq!(folder(&[home, xdg]).expect("found"), PathBuf::from("/data/galatea"));
        let own = ("GALATEA_HOME", "/own");
        assert_eq!(folder(&[home, xdg, own]).expect("found"), PathBuf::from("/own"));
        assert!(folder(&[]).expect_err("none").message().contains("GALATEA_HOME"));
    }
}
