//! Ensembles as far as their own configuration tells (C-68); whether the steps fit the models they name
//! is checked where these are known.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use galatea_proto::inference::{ModelEnsembling, model_ensembling};
use galatea_types::Result;

use super::refuse;
use crate::{EnsembleStep, Ensembling, RawModelConfig, backend_table::ENSEMBLE_PLATFORM};

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
    let name = &raw.name;
    if raw.platform != ENSEMBLE_PLATFORM {
        return refuse(format!(
            "ensemble scheduling cannot be set for model '{name}' whose platform is not ensemble"
        ));
    }
    if !raw.instance_group.is_empty() {
        return refuse(format!("instance group should not be specified for ensemble '{name}'"));
    }
    if raw.optimization.is_some() {
        return refuse(format!("optimization should not be specified for ensemble '{name}'"));
    }
    if !raw.model_warmup.is_empty() {
        return refuse(format!("model_warmup can not be specified for ensemble '{name}'"));
    }
    if ensembling.step.is_empty() {
        return refuse(format!("must specify 'step' for ensemble '{name}'"));
    }
    let mut graph = build_graph(ensembling, name)?;
    check_inputs(&mut graph, raw)?;
    spread_readiness(&mut graph);
    check_outputs(&graph, raw)?;
    check_unused(&graph, raw)?;
    Ok(Ensembling {
        steps: ensembling.step.iter().map(step).collect(),
        max_inflight_requests: ensembling.max_inflight_requests,
    })
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

fn build_graph<'a>(ensembling: &'a ModelEnsembling, ensemble: &str) -> Result<Graph<'a>> {
    let mut graph = Graph::new();
    for (index, step) in ensembling.step.iter().enumerate() {
        let missing = [
            ("model_name", step.model_name.is_empty()),
            ("input_map", step.input_map.is_empty()),
            ("output_map", step.output_map.is_empty()),
        ];
        if let Some((field, _)) = missing.iter().find(|(_, is_missing)| *is_missing) {
            return refuse(format!(
                "must specify '{field}' in step {index} of ensemble '{ensemble}'"
            ));
        }
        let sources = step.input_map.values().map(String::as_str).collect::<Vec<_>>();
        for tensor in step.output_map.values() {
            let node = graph.entry(tensor).or_default();
            if node.is_written {
                return refuse(format!(
                    "ensemble tensor '{tensor}' can appear in an output map only once for ensemble \
                     '{ensemble}' step {index}"
                ));
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

fn check_inputs(graph: &mut Graph<'_>, raw: &RawModelConfig) -> Result<()> {
    for input in &raw.input {
        match graph.get_mut(input.name.as_str()) {
            Some(node) => node.is_ready = true,
            None => {
                return refuse(format!(
                    "ensemble input '{}' for ensemble {}' is not used",
                    input.name, raw.name
                ));
            }
        }
    }
    Ok(())
}

/// A tensor is ready when everything its step reads is.
fn spread_readiness(graph: &mut Graph<'_>) {
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

fn check_outputs(graph: &Graph<'_>, raw: &RawModelConfig) -> Result<()> {
    for output in &raw.output {
        let name = output.name.as_str();
        match graph.get(name) {
            None => {
                return refuse(format!(
                    "ensemble output '{name}' for ensemble {}' is not used",
                    raw.name
                ));
            }
            Some(node) if !node.is_ready => return refuse(unwritten(graph, name, &raw.name)),
            Some(_) => {}
        }
    }
    Ok(())
}

/// Names the first tensor on the way to `output` that nothing provides.
fn unwritten(graph: &Graph<'_>, output: &str, ensemble: &str) -> String {
    let mut message = format!("output '{output}' for ensemble '{ensemble}' is not written");
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
    if last != output {
        message.push_str(&format!(
            ": at least one of its depending tensors, '{last}', is not connected"
        ));
    }
    message
}

fn check_unused(graph: &Graph<'_>, raw: &RawModelConfig) -> Result<()> {
    let is_output = |name: &str| raw.output.iter().any(|o| o.name == name);
    let is_used = |n: &Node<'_>| n.is_ready && n.is_read;
    let unused = graph.iter().find(|(name, n)| !is_output(name) && !is_used(n));
    match unused {
        Some((name, _)) => {
            refuse(format!("ensemble tensor '{name}' is unused in ensemble '{}'", raw.name))
        }
        None => Ok(()),
    }
}
