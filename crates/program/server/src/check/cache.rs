//! The findings about the response cache of the options.

use galatea_config::{Diagnostic, Place};
use galatea_engine::Finding;
use galatea_serve::{CacheSettings, describe_cache};
use galatea_types::Environment;

use crate::{
    flags::{CacheFlags, FlagError},
    options::response_cache,
};

/// Returns a note that names the library of the response cache, or the reason why it could not be opened.
///
/// # Errors
/// `serve` would refuse the settings.
pub(super) fn findings(
    flags: &CacheFlags,
    environment: &Environment,
) -> Result<Option<Finding>, FlagError> {
    let settings = match response_cache(flags, environment, &mut Vec::new())? {
        Some(CacheSettings::Library(settings)) => settings,
        _ => return Ok(None),
    };
    let path = settings.library().map_err(|error| FlagError::Rule(error.to_string()))?;
    let found = match describe_cache(&settings.name, &path) {
        Ok(text) => Diagnostic::note(text),
        Err(error) => Diagnostic::error(error.message()),
    };
    let file = path.display().to_string();
    Ok(Some(Finding::of_file(found.at(Place::file(file)))))
}
