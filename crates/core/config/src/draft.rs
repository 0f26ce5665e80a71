//! A configuration before its check, which the backend of the model may complete.

use std::collections::{BTreeMap, BTreeSet};

use galatea_proto::inference::{
    self, ModelInput, ModelOutput, ModelTensorReshape, model_config::SchedulingChoice,
    model_instance_group::Kind, model_repository_agents::Agent,
};
use galatea_types::DataType;

use crate::{FieldPath, RawModelConfig, RepositoryAgent};

/// A configuration as written, without defaults and unchecked: any part may be missing or wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigDraft(RawModelConfig);

/// An input or output that a backend found in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorDraft {
    /// Its name in the model.
    pub name: String,
    /// The type of its elements.
    pub data_type: DataType,
    /// The dimensions without the batch dimension; -1 is any size.
    pub dims: Vec<i64>,
    /// The dimensions that the model needs, when `dims` cannot express them.
    pub reshape: Option<Vec<i64>>,
}

impl From<RawModelConfig> for ConfigDraft {
    fn from(raw: RawModelConfig) -> Self {
        Self(raw)
    }
}

impl ConfigDraft {
    /// Returns the message, with the parts that are completed so far.
    pub fn raw(&self) -> &RawModelConfig {
        &self.0
    }

    /// Returns the message, with the parts that are completed so far.
    pub fn into_raw(self) -> RawModelConfig {
        self.0
    }

    /// Returns the name of the model.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Sets the name that the model has in its repository.
    pub fn set_name(&mut self, name: &str) {
        name.clone_into(&mut self.0.name);
    }

    /// Returns the file or folder of the model inside a version folder.
    pub fn default_model_filename(&self) -> &str {
        &self.0.default_model_filename
    }

    /// Returns the settings for the backend.
    pub fn parameters(&self) -> BTreeMap<String, String> {
        parameters(&self.0)
    }

    /// Returns the most items of a batch; negative when the configuration is wrong.
    pub fn max_batch_size(&self) -> i32 {
        self.0.max_batch_size
    }

    /// Sets the most items of a batch.
    pub fn set_max_batch_size(&mut self, items: i32) {
        self.0.max_batch_size = items;
    }

    /// Returns whether it lists inputs.
    pub fn has_inputs(&self) -> bool {
        !self.0.input.is_empty() || !self.0.batch_input.is_empty()
    }

    /// Returns whether it lists outputs.
    pub fn has_outputs(&self) -> bool {
        !self.0.output.is_empty()
    }

    /// Returns the libraries of operators that the model needs beside those of its runtime.
    pub fn operator_libraries(&self) -> &[String] {
        self.0.model_operations.as_ref().map_or(&[], |o| &o.op_library_filename)
    }

    /// Adds an input after the existing ones.
    pub fn add_input(&mut self, tensor: TensorDraft) {
        let data_type = tensor.data_type();
        let TensorDraft { name, dims, reshape, .. } = tensor;
        let reshape = reshape.map(|shape| ModelTensorReshape { shape });
        self.0.input.push(ModelInput { name, data_type, dims, reshape, ..Default::default() });
    }

    /// Adds an output after the existing ones.
    pub fn add_output(&mut self, tensor: TensorDraft) {
        let data_type = tensor.data_type();
        let TensorDraft { name, dims, reshape, .. } = tensor;
        let reshape = reshape.map(|shape| ModelTensorReshape { shape });
        self.0.output.push(ModelOutput { name, data_type, dims, reshape, ..Default::default() });
    }

    /// Chooses the dynamic batcher with its defaults, unless a scheduler is chosen already.
    pub fn default_to_dynamic_batching(&mut self) {
        let choice = || SchedulingChoice::DynamicBatching(Default::default());
        self.0.scheduling_choice.get_or_insert_with(choice);
    }

    /// Takes from `completed` the parts that a model's own code may complete: batch size, tensors, decoupled mode, and the
    /// dynamic batcher if no scheduler is chosen. All other parts stay as written.
    pub fn complete_with(&mut self, completed: ConfigDraft) {
        let (this, completed) = (&mut self.0, completed.0);
        this.max_batch_size = completed.max_batch_size;
        this.input = completed.input;
        this.output = completed.output;
        if let Some(choice @ SchedulingChoice::DynamicBatching(_)) = completed.scheduling_choice {
            this.scheduling_choice.get_or_insert(choice);
        }
        if completed.model_transaction_policy.is_some() {
            this.model_transaction_policy = completed.model_transaction_policy;
        }
    }

    /// Names `gpus` in the instance groups that ask for GPUs and name none.
    pub fn list_gpus(&mut self, gpus: &[u32]) {
        for group in &mut self.0.instance_group {
            if group.kind() == Kind::Gpu && group.gpus.is_empty() {
                group.gpus = gpus.iter().filter_map(|&gpu| i32::try_from(gpu).ok()).collect();
            }
        }
    }

    /// Returns the agents that process the model's files before the load.
    pub fn repository_agents(&self) -> Vec<RepositoryAgent> {
        let agents = self.0.model_repository_agents.iter().flat_map(|a| &a.agents);
        let agent =
            |a: &Agent| RepositoryAgent { name: a.name.clone(), parameters: a.parameters.clone() };
        agents.map(agent).collect()
    }

    /// Returns the models that the steps of an ensemble name; empty for every other model.
    pub fn step_models(&self) -> BTreeSet<String> {
        self.steps().map(str::to_owned).collect()
    }

    /// Returns the field of an ensemble's first step that names a model.
    pub fn step_field(&self, model: &str) -> Option<FieldPath> {
        let index = self.steps().position(|name| name == model)?;
        Some(FieldPath::from("ensemble_scheduling.step").index(index).field("model_name"))
    }

    fn steps(&self) -> impl Iterator<Item = &str> {
        let steps = match &self.0.scheduling_choice {
            Some(SchedulingChoice::EnsembleScheduling(ensembling)) => &ensembling.step[..],
            _ => &[],
        };
        steps.iter().map(|step| step.model_name.as_str())
    }
}

pub(crate) fn parameters(raw: &RawModelConfig) -> BTreeMap<String, String> {
    raw.parameters.iter().map(|(k, v)| (k.clone(), v.string_value.clone())).collect()
}

impl TensorDraft {
    /// Makes a tensor from the dimensions that a model declares. With `has_batching`, the first one is the batch.
    ///
    /// A configuration cannot express "no dimension". It states `[1]` instead, and with a batch dimension before it a reshape
    /// that removes the `[1]` again.
    pub fn of_model(name: &str, data_type: DataType, dims: &[i64], has_batching: bool) -> Self {
        let dims = dims.get(usize::from(has_batching)..).unwrap_or_default();
        let (dims, reshape) = match dims {
            [] => (vec![1], has_batching.then(Vec::new)),
            dims => (dims.to_vec(), None),
        };
        Self { name: name.to_owned(), data_type, dims, reshape }
    }

    fn data_type(&self) -> i32 {
        let data_type = inference::DataType::from_str_name(self.data_type.config_name());
        data_type.unwrap_or(inference::DataType::TypeInvalid) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_text;

    fn draft(text: &str) -> ConfigDraft {
        parse_text(text).expect("valid text").into()
    }

    #[test]
    fn tensors_are_written_like_in_a_configuration() {
        let mut config = draft("");
        assert!(!config.has_inputs() && !config.has_outputs());
        let scalar = TensorDraft {
            name: "x".to_owned(),
            data_type: DataType::Bytes,
            dims: vec![1],
            reshape: Some(Vec::new()),
        };
        config.add_output(scalar.clone());
        config.add_input(scalar);
        let tensor = "name: 'x' data_type: TYPE_STRING dims: 1 reshape {}";
        assert_eq!(config, draft(&format!("input {{ {tensor} }} output {{ {tensor} }}")));
        assert!(config.has_inputs() && config.has_outputs());
    }

    #[test]
    fn a_configured_scheduler_is_kept() {
        let mut config = draft("sequence_batching {}");
        config.default_to_dynamic_batching();
        config.complete_with(draft("dynamic_batching {}"));
        assert_eq!(config, draft("sequence_batching {}"));
        let mut config = draft("name: 'm' input { name: 'x' }");
        config.complete_with(draft(
            "max_batch_size: 4 model_transaction_policy {} ensemble_scheduling {}",
        ));
        assert_eq!(config, draft("name: 'm' max_batch_size: 4 model_transaction_policy {}"));
        config.default_to_dynamic_batching();
        assert!(config.raw().scheduling_choice.is_some());
    }

    #[test]
    fn gpu_groups_without_gpus_get_all_gpus() {
        let mut config = draft(
            "instance_group [ { kind: KIND_GPU }, { kind: KIND_GPU gpus: 7 }, { kind: KIND_CPU } ]",
        );
        config.list_gpus(&[0, 1]);
        let gpus: Vec<_> = config.raw().instance_group.iter().map(|g| &g.gpus[..]).collect();
        assert_eq!(gpus, [&[0, 1][..], &[7], &[]]);
    }

    #[test]
    fn an_ensemble_lists_each_model_once() {
        let step = |model: &str| format!("step {{ model_name: '{model}' }}");
        let text = [step("b"), step("a"), step("b")].concat();
        let config = draft(&format!("ensemble_scheduling {{ {text} }}"));
        assert_eq!(config.step_models().into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(draft("dynamic_batching {}").step_models().is_empty());
    }
}
