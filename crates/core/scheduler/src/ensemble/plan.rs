//! Selects the steps that run for a request that wants only some of the outputs.

use std::sync::Arc;

use super::graph::{Graph, Step};

/// The steps of a graph that run for one set of wanted outputs. Nothing is computed that nobody reads.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Numbers of the ensemble outputs that are answered.
    pub outputs: Vec<usize>,
    /// The outputs requested of each step, empty for all outputs of its model; `None` if the step does not run.
    steps: Vec<Option<Vec<Arc<str>>>>,
    /// The number of readers of each tensor, by stage and slot; the ensemble's response counts as one.
    reads: Vec<Vec<usize>>,
}

impl Plan {
    /// Selects the steps that the wanted outputs need.
    pub fn of(graph: &Graph, is_wanted: impl Fn(&str) -> bool) -> Self {
        let numbered = graph.outputs.iter().enumerate();
        let outputs: Vec<usize> =
            numbered.filter(|(_, o)| is_wanted(&o.name)).map(|(number, _)| number).collect();
        let mut reads: Vec<Vec<usize>> =
            graph.readers.iter().map(|slots| vec![0; slots.len()]).collect();
        for output in outputs.iter().filter_map(|&number| graph.outputs.get(number)) {
            add_read(&mut reads, graph.output_stage, output.slot);
        }
        let mut runs = vec![false; graph.steps.len()];
        // Works backwards from the outputs until no more steps are added.
        while let Some(number) = next_step(graph, &runs, &reads) {
            let Some((step, runs)) = graph.steps.get(number).zip(runs.get_mut(number)) else {
                break;
            };
            *runs = true;
            for slot in sources(step) {
                add_read(&mut reads, step.stage, slot);
            }
        }
        let steps = graph.steps.iter().zip(runs);
        let steps = steps.map(|(step, runs)| runs.then(|| outputs_read(step, &reads))).collect();
        Self { outputs, steps, reads }
    }

    pub fn runs(&self, step: usize) -> bool {
        self.outputs_of(step).is_some()
    }

    /// Returns the outputs requested of a step, empty for all outputs of its model; `None` if it does not run.
    pub fn outputs_of(&self, step: usize) -> Option<&Vec<Arc<str>>> {
        self.steps.get(step)?.as_ref()
    }

    /// Returns the number of readers of a tensor.
    pub fn reads(&self, stage: usize, slot: usize) -> usize {
        read_count(&self.reads, stage, slot)
    }
}

fn next_step(graph: &Graph, runs: &[bool], reads: &[Vec<usize>]) -> Option<usize> {
    let is_needed =
        |step: &Step| step.outputs.iter().any(|o| read_count(reads, step.output_stage, o.slot) > 0);
    let mut open = graph.steps.iter().zip(runs).enumerate();
    open.find(|(_, (step, runs))| !**runs && is_needed(step)).map(|(number, _)| number)
}

/// Returns each tensor that the step reads once, even if it feeds several inputs.
fn sources(step: &Step) -> Vec<usize> {
    let mut slots: Vec<usize> = step.inputs.iter().map(|input| input.slot).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}

fn outputs_read(step: &Step, reads: &[Vec<usize>]) -> Vec<Arc<str>> {
    let read = step.outputs.iter().filter(|o| read_count(reads, step.output_stage, o.slot) > 0);
    let outputs: Vec<_> = read.map(|o| o.requested.clone()).collect();
    if outputs.len() == step.model_output_count { Vec::new() } else { outputs }
}

fn read_count(reads: &[Vec<usize>], stage: usize, slot: usize) -> usize {
    reads.get(stage).and_then(|slots| slots.get(slot)).copied().unwrap_or(0)
}

fn add_read(reads: &mut [Vec<usize>], stage: usize, slot: usize) {
    if let Some(count) = reads.get_mut(stage).and_then(|slots| slots.get_mut(slot)) {
        *count += 1;
    }
}
