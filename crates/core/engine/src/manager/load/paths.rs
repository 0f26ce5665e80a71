//! Checks the files that a configuration names.

use galatea_backend::{PathRules, relative_inside};
use galatea_config::{ConfigDraft, Diagnostic, FieldPath, RawModelConfig};
use galatea_types::{Code, Error};

use crate::{manager::plan::LoadRequest, repository::Repository};

/// Returns the first place of the field in a configuration.
fn field_of(field: &'static str) -> FieldPath {
    match field {
        "label_filename" => "output.label_filename".into(),
        "input_data_file" => "model_warmup.inputs.value.input_data_file".into(),
        "data_file" => "sequence_batching.state.initial_state.data_file".into(),
        field => field.into(),
    }
}

/// Refuses files outside of the model's folder, whoever wrote the configuration: as labels, their text would be
/// shown to clients.
pub(super) fn check_files(raw: RawModelConfig, model: &str) -> Result<RawModelConfig, Error> {
    let draft = ConfigDraft::from(raw);
    let outside = draft.files().into_iter().find(|(_, path)| relative_inside(path).is_none());
    if let Some((field, path)) = outside {
        let found = Diagnostic::error(format!(
            "{field} '{path}' of model '{model}' must be a relative path that stays inside of the model's folder. To use \
             a file outside of it, put a link to it into the folder"
        ));
        let found = found.about(field_of(field));
        return Err(found.into_unplaced_error(Code::InvalidArg));
    }
    Ok(draft.into_raw())
}

/// Returns the rules for other paths. All are allowed in the repository's configuration, or if requests are trusted.
pub(super) fn rules(
    request: &LoadRequest,
    repository: &Repository,
    trusts_requests: bool,
) -> PathRules {
    if request.overrides.config.is_none() || trusts_requests {
        return PathRules::anywhere();
    }
    let text = repository.read_config(&request.id).ok();
    let of_repository = text.and_then(|text| galatea_config::parse_text(&text).ok());
    let trusted = of_repository.map(|raw| ConfigDraft::from(raw).host_paths());
    PathRules::inside_model(trusted.unwrap_or_default())
}
