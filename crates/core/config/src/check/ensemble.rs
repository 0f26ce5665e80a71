//! Ensembles as far as their own configuration goes; whether the steps fit the models they name is checked
//! where these are known.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use galatea_proto::inference::{ModelEnsembling, model_config::SchedulingChoice, model_ensembling};

use super::at::{About, At};
use crate::{
    EnsembleStep, Ensembling, FieldPath, RawModelConfig, backend_table::ENSEMBLE_PLATFORM,
};

type Result<T> = std::result::Result<T, At<EnsembleError>>;

/// What is wrong with an ensemble.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnsembleError {
    /// A platform that is not for ensembles.
    #[error(
        "ensemble scheduling cannot be set for model '{ensemble}' whose platform is not ensemble"
    )]
    OtherPlatform {
        /// The ensemble.
        ensemble: String,
    },
    /// The platform of an ensemble, and no steps.
    #[error("ensemble scheduling must be set for ensemble {ensemble} whose platform is ensemble")]
    NoScheduling {
        /// The ensemble.
        ensemble: String,
    },
    /// An ensemble has no instances.
    #[error("instance group should not be specified for ensemble '{ensemble}'")]
    InstanceGroup {
        /// The ensemble.
        ensemble: String,
    },
    /// An ensemble has nothing to optimise.
    #[error("optimization should not be specified for ensemble '{ensemble}'")]
    Optimization {
        /// The ensemble.
        ensemble: String,
    },
    /// An ensemble has nothing to warm up.
    #[error("model_warmup can not be specified for ensemble '{ensemble}'")]
    Warmup {
        /// The ensemble.
        ensemble: String,
    },
    /// No steps.
    #[error("must specify 'step' for ensemble '{ensemble}'")]
    NoStep {
        /// The ensemble.
        ensemble: String,
    },
    /// A step without one of its parts.
    #[error("must specify '{field}' in step {step} of ensemble '{ensemble}'")]
    IncompleteStep {
        /// The part.
        field: &'static str,
        /// The number of the step, from 0.
        step: usize,
        /// The ensemble.
        ensemble: String,
    },
    /// A tensor that two steps write.
    #[error(
        "ensemble tensor '{tensor}' can appear in an output map only once for ensemble '{ensemble}' step {step}"
    )]
    WrittenTwice {
        /// The tensor.
        tensor: String,
        /// The ensemble.
        ensemble: String,
        /// The number of the second step, from 0.
        step: usize,
    },
    /// An input or output that no step has.
    #[error("ensemble {side} '{tensor}' for ensemble {ensemble}' is not used")]
    NotUsed {
        /// Input or output.
        side: &'static str,
        /// The tensor.
        tensor: String,
        /// The ensemble.
        ensemble: String,
    },
    /// An output that cannot be computed.
    #[error("output '{output}' for ensemble '{ensemble}' is not written{}", missing(.tensor))]
    NotWritten {
        /// The output.
        output: String,
        /// The ensemble.
        ensemble: String,
        /// The tensor on the path to it that nothing provides, when it is another.
        tensor: Option<String>,
    },
    /// A tensor that no step and no output reads.
    #[error("ensemble tensor '{tensor}' is unused in ensemble '{ensemble}'")]
    Unused {
        /// The tensor.
        tensor: String,
        /// The ensemble.
        ensemble: String,
    },
}

fn missing(tensor: &Option<String>) -> String {
    tensor.as_ref().map_or_else(String::new, |tensor| {
        format!(": at least one of its depending tensors, '{tensor}', is not connected")
    })
}

/// Ensemble tensors by name.
type Graph<'a> = BTreeMap<&'a str, Node<'a>>;

#[derive(Default)]
struct Node<'a> {
    is_written: bool,
    is_ready: bool,
    /// Tensors the step that writes this one reads.
    sources: Vec<&'a str>,
    is_read: bool,
}

pub(super) fn check(ensembling: &ModelEnsembling, raw: &RawModelConfig) -> Result<Ensembling> {
    match mistakes(ensembling, raw).into_iter().next() {
        Some(error) => Err(error),
        None => Ok(Ensembling {
            steps: ensembling.step.iter().map(step).collect(),
            max_inflight_requests: ensembling.max_inflight_requests,
        }),
    }
}

/// All that is wrong with it, in Triton's order.
pub(super) fn mistakes(
    ensembling: &ModelEnsembling,
    raw: &RawModelConfig,
) -> Vec<At<EnsembleError>> {
    let mut found = fields(ensembling, raw);
    if found.is_empty() {
        match build_graph(ensembling, &raw.name) {
            Ok(mut graph) => found.extend(connections(&mut graph, raw)),
            Err(error) => found.push(error),
        }
    }
    found
}

/// Fields that an ensemble does not have.
fn fields(ensembling: &ModelEnsembling, raw: &RawModelConfig) -> Vec<At<EnsembleError>> {
    let ensemble = || raw.name.clone();
    let mut found = Vec::new();
    if raw.platform != ENSEMBLE_PLATFORM {
        found.push(EnsembleError::OtherPlatform { ensemble: ensemble() }.at("ensemble_scheduling"));
    }
    if !raw.instance_group.is_empty() {
        found.push(EnsembleError::InstanceGroup { ensemble: ensemble() }.at("instance_group"));
    }
    if raw.optimization.is_some() {
        found.push(EnsembleError::Optimization { ensemble: ensemble() }.at("optimization"));
    }
    if !raw.model_warmup.is_empty() {
        found.push(EnsembleError::Warmup { ensemble: ensemble() }.at("model_warmup"));
    }
    if ensembling.step.is_empty() {
        found.push(EnsembleError::NoStep { ensemble: ensemble() }.at("ensemble_scheduling"));
    }
    found
}

fn step(raw: &model_ensembling::Step) -> EnsembleStep {
    EnsembleStep {
        model_name: raw.model_name.as_str().into(),
        model_version: Some(raw.model_version).filter(|&v| v != -1),
        inputs: names(&raw.input_map),
        outputs: names(&raw.output_map),
    }
}

fn names(map: &BTreeMap<String, String>) -> BTreeMap<Arc<str>, Arc<str>> {
    map.iter().map(|(model, ensemble)| (model.as_str().into(), ensemble.as_str().into())).collect()
}

fn step_field(index: usize) -> FieldPath {
    FieldPath::from("ensemble_scheduling.step").index(index)
}

fn build_graph<'a>(ensembling: &'a ModelEnsembling, ensemble: &str) -> Result<Graph<'a>> {
    let mut graph = Graph::new();
    for (index, step) in ensembling.step.iter().enumerate() {
        let missing = [
            ("model_name", step.model_name.is_empty()),
            ("input_map", step.input_map.is_empty()),
            ("output_map", step.output_map.is_empty()),
        ];
        if let Some((field, _)) = missing.iter().find(|(_, is_missing)| *is_missing) {
            let ensemble = ensemble.to_owned();
            return Err(EnsembleError::IncompleteStep { field, step: index, ensemble }
                .at(step_field(index).join(FieldPath::from(*field))));
        }
        let sources = step.input_map.values().map(String::as_str).collect::<Vec<_>>();
        for (output, tensor) in &step.output_map {
            let node = graph.entry(tensor).or_default();
            if node.is_written {
                let (tensor, ensemble) = (tensor.clone(), ensemble.to_owned());
                let field = step_field(index).field("output_map").named(output.clone());
                return Err(EnsembleError::WrittenTwice { tensor, ensemble, step: index }
                    .at(field.field("value")));
            }
            node.is_written = true;
            node.sources.clone_from(&sources);
        }
        for tensor in sources {
            graph.entry(tensor).or_default().is_read = true;
        }
    }
    Ok(graph)
}

/// All that is not connected. What follows from a mistake is none of its own: an output cannot be written where an input
/// has another name.
fn connections(graph: &mut Graph<'_>, raw: &RawModelConfig) -> Vec<At<EnsembleError>> {
    let mut found = unused_inputs(graph, raw);
    propagate_readiness(graph);
    let is_connected = found.is_empty();
    let outputs = raw.output.iter().map(|output| output.name.as_str());
    found.extend(outputs.filter_map(|name| match graph.get(name) {
        None => Some(not_used("output", name, raw)),
        Some(node) if is_connected && !node.is_ready => Some(not_written(graph, name, &raw.name)),
        Some(_) => None,
    }));
    match found.is_empty() {
        true => unused_tensors(graph, raw),
        false => found,
    }
}

fn unused_inputs(graph: &mut Graph<'_>, raw: &RawModelConfig) -> Vec<At<EnsembleError>> {
    let mut found = Vec::new();
    for input in &raw.input {
        match graph.get_mut(input.name.as_str()) {
            Some(node) => node.is_ready = true,
            None => found.push(not_used("input", &input.name, raw)),
        }
    }
    found
}

fn not_used(side: &'static str, tensor: &str, raw: &RawModelConfig) -> At<EnsembleError> {
    let error =
        EnsembleError::NotUsed { side, tensor: tensor.to_owned(), ensemble: raw.name.clone() };
    error.at(FieldPath::from(side).named(tensor).field("name"))
}

/// A tensor is ready when everything its step reads is.
fn propagate_readiness(graph: &mut Graph<'_>) {
    loop {
        let is_ready = |name: &&str| graph.get(name).is_some_and(|n| n.is_ready);
        let newly = graph
            .iter()
            .filter(|(_, n)| n.is_written && !n.is_ready && n.sources.iter().all(is_ready))
            .map(|(&name, _)| name)
            .collect::<Vec<_>>();
        if newly.is_empty() {
            return;
        }
        for name in newly {
            if let Some(node) = graph.get_mut(name) {
                node.is_ready = true;
            }
        }
    }
}

/// Names the first tensor on the path to `output` that nothing provides.
fn not_written(graph: &Graph<'_>, output: &str, ensemble: &str) -> At<EnsembleError> {
    let mut seen = BTreeSet::new();
    let mut last = output;
    let mut next = Some(output);
    while let Some(node) = next.and_then(|name| graph.get(name)) {
        let is_open =
            |name: &&&str| graph.get(**name).is_some_and(|n| !n.is_ready) && !seen.contains(*name);
        next = node.sources.iter().find(is_open).copied();
        if let Some(name) = next {
            seen.insert(name);
            last = name;
        }
    }
    EnsembleError::NotWritten {
        output: output.to_owned(),
        ensemble: ensemble.to_owned(),
        tensor: (last != output).then(|| last.to_owned()),
    }
    .at(FieldPath::from("output").named(output).field("name"))
}

fn unused_tensors(graph: &Graph<'_>, raw: &RawModelConfig) -> Vec<At<EnsembleError>> {
    let is_output = |name: &str| raw.output.iter().any(|o| o.name == name);
    let is_used = |n: &Node<'_>| n.is_ready && n.is_read;
    let unused = graph.iter().filter(|(name, n)| !is_output(name) && !is_used(n));
    let found = unused.map(|(tensor, _)| {
        let field = map_entry(raw, tensor);
        let (tensor, ensemble) = ((*tensor).to_owned(), raw.name.clone());
        EnsembleError::Unused { tensor, ensemble }.at(field)
    });
    found.collect()
}

/// The first entry of a step's maps that names the tensor.
fn map_entry(raw: &RawModelConfig, tensor: &str) -> FieldPath {
    let Some(SchedulingChoice::EnsembleScheduling(ensembling)) = &raw.scheduling_choice else {
        return FieldPath::default();
    };
    let entries = ensembling.step.iter().enumerate().flat_map(|(index, step)| {
        let inputs = step.input_map.iter().map(|entry| ("input_map", entry));
        let outputs = step.output_map.iter().map(|entry| ("output_map", entry));
        inputs.chain(outputs).map(move |(map, (key, value))| (index, map, key, value))
    });
    let mut named = entries.filter(|(.., value)| *value == tensor);
    named.next().map_or_else(FieldPath::default, |(index, map, key, _)| {
        step_field(index).field(map).named(key.clone()).field("value")
    })
}

/// The ensemble's names of the tensors in all `input_map`s or `output_map`s.
pub(super) fn mapped<'a>(raw: &'a RawModelConfig, map: &str) -> Vec<&'a str> {
    let steps = match &raw.scheduling_choice {
        Some(SchedulingChoice::EnsembleScheduling(ensembling)) => &ensembling.step[..],
        _ => &[],
    };
    let maps = steps
        .iter()
        .map(|step| if map == "input_map" { &step.input_map } else { &step.output_map });
    maps.flat_map(BTreeMap::values).map(String::as_str).collect()
}
