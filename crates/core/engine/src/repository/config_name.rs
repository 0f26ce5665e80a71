//! Selects the configuration that a model is loaded with, if it has several.

use std::{ffi::OsStr, io};

/// The name of the configuration in a model's folder.
pub(super) const CONFIG_FILE: &str = "config.pbtxt";

/// The folder for other configurations in a model's folder.
pub(super) const CONFIG_FOLDER: &str = "configs";

/// The configuration that a model is loaded with: `configs/<name>.pbtxt` if the model has that, else `config.pbtxt`.
#[derive(Clone, Debug)]
pub(crate) struct ConfigName {
    /// Paths in a model's folder, of which the first existing one counts. Never empty.
    files: Vec<String>,
}

impl ConfigName {
    /// Creates the choice. `name` is empty for none.
    pub fn new(name: &str) -> Self {
        let custom = (!name.is_empty()).then(|| format!("{CONFIG_FOLDER}/{name}.pbtxt"));
        Self { files: custom.into_iter().chain([CONFIG_FILE.to_owned()]).collect() }
    }

    /// Reads the file that counts, and returns its name. An error names it too, and names `config.pbtxt` if none exists.
    pub fn read(
        &self,
        read: impl Fn(&str) -> io::Result<String>,
    ) -> Result<(&str, String), (&str, io::Error)> {
        let mut missing = None;
        for file in &self.files {
            match read(file) {
                Ok(text) => return Ok((file, text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    missing = Some((file.as_str(), error));
                }
                Err(error) => return Err((file, error)),
            }
        }
        Err(missing.unwrap_or((CONFIG_FILE, io::ErrorKind::NotFound.into())))
    }
}

/// Returns true if an entry of a model's folder is a configuration, or the folder of them.
pub(super) fn is_configuration(entry: &OsStr) -> bool {
    entry == CONFIG_FILE || entry == CONFIG_FOLDER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, present: &[&str]) -> Result<String, String> {
        let open = |file: &str| match present.contains(&file) {
            true => Ok(file.to_owned()),
            false => Err(io::ErrorKind::NotFound.into()),
        };
        let found = ConfigName::new(name);
        let found = found.read(open);
        found.map(|(_, text)| text).map_err(|(file, _)| file.to_owned())
    }

    #[test]
    fn a_named_custom_configuration_takes_precedence() {
        let (plain, custom) = ("config.pbtxt", "configs/h100.pbtxt");
        assert_eq!(read("h100", &[plain, custom]), Ok(custom.to_owned()));
        assert_eq!(read("h100", &[custom]), Ok(custom.to_owned()));
        assert_eq!(read("h100", &[plain]), Ok(plain.to_owned()));
        assert_eq!(read("", &[plain, custom]), Ok(plain.to_owned()));
        assert_eq!(read("h100", &[]), Err(plain.to_owned()));
        assert_eq!(
            read("config", &["configs/config.pbtxt", plain]),
            Ok("configs/config.pbtxt".to_owned())
        );
    }
}
