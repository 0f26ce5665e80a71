//! The files that a configuration names.

use galatea_proto::inference::{
    ModelOptimizationPolicy, ModelSequenceBatching, model_config::SchedulingChoice,
    model_sequence_batching::initial_state::StateData, model_warmup::input::InputDataType,
};

use crate::{ConfigDraft, RawModelConfig};

impl ConfigDraft {
    /// Returns the model's files that the configuration names, each with its field: labels, data, the model itself. Paths are
    /// relative to the model's folder or a folder inside it.
    pub fn files(&self) -> Vec<(&'static str, &str)> {
        let raw = self.raw();
        let mut files = vec![("default_model_filename", raw.default_model_filename.as_str())];
        files.extend(raw.cc_model_filenames.values().map(|f| ("cc_model_filenames", f.as_str())));
        files.extend(raw.output.iter().map(|o| ("label_filename", o.label_filename.as_str())));
        files.extend(warm_up_files(raw).map(|f| ("input_data_file", f)));
        files.extend(state_files(raw).map(|f| ("data_file", f)));
        files.retain(|(_, file)| !file.is_empty());
        files
    }

    /// Returns values that may be paths anywhere on the machine: libraries of operators, and settings of the backend. Only the
    /// backend knows which settings are paths.
    pub fn host_paths(&self) -> Vec<String> {
        let raw = self.raw();
        let libraries = raw.model_operations.iter().flat_map(|o| o.op_library_filename.clone());
        let parameters = raw.parameters.values().map(|p| p.string_value.clone());
        let accelerators = raw.optimization.iter().flat_map(accelerator_settings);
        libraries.chain(parameters).chain(accelerators).filter(|path| !path.is_empty()).collect()
    }
}

fn warm_up_files(raw: &RawModelConfig) -> impl Iterator<Item = &str> {
    let inputs = raw.model_warmup.iter().flat_map(|warmup| warmup.inputs.values());
    inputs.filter_map(|input| match &input.input_data_type {
        Some(InputDataType::InputDataFile(file)) => Some(file.as_str()),
        _ => None,
    })
}

fn state_files(raw: &RawModelConfig) -> impl Iterator<Item = &str> {
    let states: &[_] = match &raw.scheduling_choice {
        Some(SchedulingChoice::SequenceBatching(ModelSequenceBatching { state, .. })) => state,
        _ => &[],
    };
    let initial = states.iter().flat_map(|state| &state.initial_state);
    initial.filter_map(|state| match &state.state_data {
        Some(StateData::DataFile(file)) => Some(file.as_str()),
        _ => None,
    })
}

fn accelerator_settings(optimization: &ModelOptimizationPolicy) -> Vec<String> {
    let accelerators = optimization.execution_accelerators.iter();
    let all = accelerators
        .flat_map(|a| a.gpu_execution_accelerator.iter().chain(&a.cpu_execution_accelerator));
    all.flat_map(|accelerator| accelerator.parameters.values().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost_reflect::{Kind, MessageDescriptor};

    use super::*;
    use crate::{parse_text, schema};

    fn draft() -> ConfigDraft {
        let text = "default_model_filename: 'a' cc_model_filenames { key: '7.5' value: 'b' } \
                    output { label_filename: 'c' } output {} \
                    model_warmup { inputs { key: 'x' value { input_data_file: 'd' } } } \
                    sequence_batching { state { initial_state { data_file: 'e' } } } \
                    model_operations { op_library_filename: 'f' } \
                    parameters { key: 'EXECUTION_ENV_PATH' value { string_value: 'g' } } \
                    optimization { execution_accelerators { gpu_execution_accelerator { \
                    name: 'tensorrt' parameters { key: 'trt_engine_cache_path' value: 'h' } } } }";
        parse_text(text).expect("valid text").into()
    }

    #[test]
    fn files_and_paths_are_listed_with_their_fields() {
        let draft = draft();
        let expected = [
            ("default_model_filename", "a"),
            ("cc_model_filenames", "b"),
            ("label_filename", "c"),
            ("input_data_file", "d"),
            ("data_file", "e"),
        ];
        assert_eq!(draft.files(), expected);
        assert_eq!(draft.host_paths(), ["f", "g", "h"]);
        assert_eq!(ConfigDraft::default().files(), []);
    }

    /// A field of the message that is new and named like a file must be added to one of the two.
    #[test]
    fn every_file_field_of_the_schema_is_listed() {
        let mut found = BTreeSet::new();
        let root = schema::model_config().expect("descriptors");
        collect(&root, &mut BTreeSet::new(), &mut found);
        let draft = draft();
        let mut listed: BTreeSet<String> =
            draft.files().iter().map(|(field, _)| (*field).to_owned()).collect();
        listed.insert("op_library_filename".to_owned());
        assert_eq!(found, listed);
    }

    fn collect(
        message: &MessageDescriptor,
        seen: &mut BTreeSet<String>,
        found: &mut BTreeSet<String>,
    ) {
        if !seen.insert(message.full_name().to_owned()) {
            return;
        }
        for field in message.fields() {
            let is_file = |word: &str| word.starts_with("file") || word.starts_with("path");
            if field.name().split('_').any(is_file) {
                found.insert(field.name().to_owned());
            }
            if let Kind::Message(inner) = field.kind() {
                collect(&inner, seen, found);
            }
        }
    }
}
