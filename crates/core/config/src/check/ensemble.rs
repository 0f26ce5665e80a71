//! Checks an ensemble by its own configuration. `step_models` checks its steps against the models they name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use galatea_proto::inference::{ModelEnsembling, model_config::SchedulingChoice, model_ensembling};
use galatea_types::suggest;

use super::mistake::{Mistake, Result, mistake, refuse};
use crate::{
    EnsembleStep, Ensembling, FieldPath, RawModelConfig, backend_table::ENSEMBLE_PLATFORM,
};

/// Ensemble tensors by name.
type Graph<'a> = BTreeMap<&'a str, Node<'a>>;

#[derive(Default)]
struct Node<'a> {
    is_written: bool,
    is_ready: bool,
    /// Tensors that the step that writes this one reads.
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

/// Returns all mistakes, in Triton's order.
pub(super) fn mistakes(ensembling: &ModelEnsembling, raw: &RawModelConfig) -> Vec<Mistake> {
    let mut found = fields(ensembling, raw);
    if found.is_empty() {
        match build_graph(ensembling, &raw.name) {
            Ok(mut graph) => found.extend(connections(&mut graph, raw)),
            Err(error) => found.push(error),
        }
    }
    found
}

/// Finds fields that an ensemble cannot have, and missing steps.
fn fields(ensembling: &ModelEnsembling, raw: &RawModelConfig) -> Vec<Mistake> {
    let ensemble = &raw.name;
    let mut found = Vec::new();
    if raw.platform != ENSEMBLE_PLATFORM {
        found.push(mistake(
            "ensemble_scheduling",
            format!(
                "ensemble scheduling cannot be set for model '{ensemble}' whose platform is not ensemble"
            ),
            "write `platform: \"ensemble\"` and no `backend`, or remove `ensemble_scheduling`",
        ));
    }
    for (field, is_set, refusal) in [
        ("instance_group", !raw.instance_group.is_empty(), "instance group should not"),
        ("optimization", raw.optimization.is_some(), "optimization should not"),
        ("model_warmup", !raw.model_warmup.is_empty(), "model_warmup can not"),
    ] {
        if is_set {
            let text = format!("{refusal} be specified for ensemble '{ensemble}'");
            let advice = format!("remove `{field}`: the models of the steps have their own");
            found.push(mistake(field, text, advice));
        }
    }
    if ensembling.step.is_empty() {
        found.push(mistake(
            "ensemble_scheduling",
            format!("must specify 'step' for ensemble '{ensemble}'"),
            "write a `step [ { ... } ]` for each model that the ensemble runs",
        ));
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
            let text = format!("must specify '{field}' in step {index} of ensemble '{ensemble}'");
            let advice = match *field {
                "model_name" => {
                    "write `model_name: \"...\"`: the folder of the model in the repository"
                }
                _ => {
                    "write an entry per tensor: `key` is the name in the step's model, `value` the one in the ensemble"
                }
            };
            return refuse(step_field(index).field(field), text, advice);
        }
        let sources = step.input_map.values().map(String::as_str).collect::<Vec<_>>();
        for (output, tensor) in &step.output_map {
            let node = graph.entry(tensor).or_default();
            if node.is_written {
                let field = step_field(index).field("output_map").named(output.clone());
                let text = format!(
                    "ensemble tensor '{tensor}' can appear in an output map only once for ensemble '{ensemble}' step {index}"
                );
                let advice = "give one of the two another name in its `output_map`";
                return refuse(field.field("value"), text, advice);
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

/// Finds all tensors that are not connected. It leaves out consequences of a mistake: an output is not written when an input has
/// the wrong name.
fn connections(graph: &mut Graph<'_>, raw: &RawModelConfig) -> Vec<Mistake> {
    let mut found = unused_inputs(graph, raw);
    propagate_readiness(graph);
    let is_connected = found.is_empty();
    let outputs = raw.output.iter().map(|output| output.name.as_str());
    found.extend(outputs.filter_map(|name| match graph.get(name) {
        None => Some(not_used("output", name, raw)),
        Some(node) if is_connected && !node.is_ready => Some(not_written(graph, name, raw)),
        Some(_) => None,
    }));
    match found.is_empty() {
        true => unused_tensors(graph, raw),
        false => found,
    }
}

fn unused_inputs(graph: &mut Graph<'_>, raw: &RawModelConfig) -> Vec<Mistake> {
    let mut found = Vec::new();
    for input in &raw.input {
        match graph.get_mut(input.name.as_str()) {
            Some(node) => node.is_ready = true,
            None => found.push(not_used("input", &input.name, raw)),
        }
    }
    found
}

fn not_used(side: &'static str, tensor: &str, raw: &RawModelConfig) -> Mistake {
    let map = if side == "input" { "input_map" } else { "output_map" };
    let fix = format!("name it as a `value` in the `{map}` of a step");
    mistake(
        FieldPath::from(side).named(tensor).field("name"),
        format!("ensemble {side} '{tensor}' for ensemble {}' is not used", raw.name),
        with_nearest(tensor, mapped(raw, map), &fix),
    )
}

/// Marks tensors as ready. A tensor is ready when everything its step reads is ready.
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
fn not_written(graph: &Graph<'_>, output: &str, raw: &RawModelConfig) -> Mistake {
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
    let missing = match last == output {
        true => String::new(),
        false => {
            format!(": at least one of its depending tensors, '{last}', is not connected")
        }
    };
    mistake(
        FieldPath::from("output").named(output).field("name"),
        format!("output '{output}' for ensemble '{}' is not written{missing}", raw.name),
        nothing_writes(last, raw),
    )
}

fn nothing_writes(tensor: &str, raw: &RawModelConfig) -> String {
    let written = mapped(raw, "output_map");
    let inputs = raw.input.iter().map(|input| input.name.as_str());
    let others = written.into_iter().chain(inputs).filter(|name| *name != tensor).collect();
    let fix = format!(
        "`{tensor}` must be an input of the ensemble or a `value` in the `output_map` of a step that can run"
    );
    with_nearest(tensor, others, &fix)
}

fn advice_of_unused(tensor: &str, raw: &RawModelConfig) -> String {
    if mapped(raw, "output_map").contains(&tensor) {
        let read = mapped(raw, "input_map").into_iter();
        let others = read.chain(raw.output.iter().map(|output| output.name.as_str())).collect();
        let fix = "remove the entry from the step's `output_map`, or use the tensor in another step or as an output";
        return with_nearest(tensor, others, fix);
    }
    nothing_writes(tensor, raw)
}

fn with_nearest(name: &str, known: Vec<&str>, fix: &str) -> String {
    let near = suggest::nearest(name, known.into_iter().filter(|known| *known != name));
    match near.first() {
        Some(near) => format!("did you mean `{near}`? Otherwise {fix}"),
        None => fix.to_owned(),
    }
}

fn unused_tensors(graph: &Graph<'_>, raw: &RawModelConfig) -> Vec<Mistake> {
    let is_output = |name: &str| raw.output.iter().any(|o| o.name == name);
    let is_used = |n: &Node<'_>| n.is_ready && n.is_read;
    let unused = graph.iter().filter(|(name, n)| !is_output(name) && !is_used(n));
    let found = unused.map(|(tensor, _)| {
        let text = format!("ensemble tensor '{tensor}' is unused in ensemble '{}'", raw.name);
        mistake(map_entry(raw, tensor), text, advice_of_unused(tensor, raw))
    });
    found.collect()
}

/// Returns the first entry of a step's maps that names the tensor.
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

/// Returns the ensemble's names of the tensors in all `input_map`s or `output_map`s.
fn mapped<'a>(raw: &'a RawModelConfig, map: &str) -> Vec<&'a str> {
    let steps = match &raw.scheduling_choice {
        Some(SchedulingChoice::EnsembleScheduling(ensembling)) => &ensembling.step[..],
        _ => &[],
    };
    let maps = steps
        .iter()
        .map(|step| if map == "input_map" { &step.input_map } else { &step.output_map });
    maps.flat_map(BTreeMap::values).map(String::as_str).collect()
}
