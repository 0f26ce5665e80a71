use std::sync::Arc;

use galatea_types::{InferRequest, RequestedOutput};

use super::graph::{Graph, Step};

/// What of a graph runs for one set of wanted outputs: nothing is computed that nobody reads.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Numbers of the ensemble outputs that are answered.
    pub outputs: Vec<usize>,
    /// By step; `None` does not run.
    pub steps: Vec<Option<Asked>>,
    /// How often each tensor is read, by stage and slot; the answer counts as one reader.
    pub reads: Vec<Vec<usize>>,
}

/// The outputs a step is asked for; empty asks for all its model has.
pub(super) type Asked = Vec<RequestedOutput>;

impl Plan {
    /// The plan for what this request wants.
    pub fn for_request(graph: &Graph, request: &InferRequest) -> Arc<Self> {
        if graph.outputs.iter().all(|output| request.wants_output(&output.name)) {
            return graph.whole.clone();
        }
        Arc::new(Self::of(graph, |name| request.wants_output(name)))
    }

    pub fn of(graph: &Graph, is_wanted: impl Fn(&str) -> bool) -> Self {
        let numbered = graph.outputs.iter().enumerate();
        let outputs: Vec<usize> =
            numbered.filter(|(_, o)| is_wanted(&o.name)).map(|(number, _)| number).collect();
        let mut reads: Vec<Vec<usize>> =
            graph.stages.iter().map(|stage| vec![0; stage.readers.len()]).collect();
        for output in outputs.iter().filter_map(|&number| graph.outputs.get(number)) {
            read(&mut reads, graph.output_stage, output.slot);
        }
        let mut runs = vec![false; graph.steps.len()];
        // Backwards from the outputs, until nothing is added any more.
        while let Some(number) = next_step(graph, &runs, &reads) {
            let Some((step, runs)) = graph.steps.get(number).zip(runs.get_mut(number)) else {
                break;
            };
            *runs = true;
            for slot in sources(step) {
                read(&mut reads, step.stage, slot);
            }
        }
        let steps = graph.steps.iter().zip(runs);
        let steps = steps.map(|(step, runs)| runs.then(|| asked(step, &reads))).collect();
        Self { outputs, steps, reads }
    }

    pub fn asked(&self, step: usize) -> Option<&Asked> {
        self.steps.get(step)?.as_ref()
    }

    pub fn reads(&self, stage: usize, slot: usize) -> usize {
        is_read(&self.reads, stage, slot)
    }
}

fn next_step(graph: &Graph, runs: &[bool], reads: &[Vec<usize>]) -> Option<usize> {
    let is_needed =
        |step: &Step| step.outputs.iter().any(|o| is_read(reads, step.output_stage, o.slot) > 0);
    let mut open = graph.steps.iter().zip(runs).enumerate();
    open.find(|(_, (step, runs))| !**runs && is_needed(step)).map(|(number, _)| number)
}

/// Each tensor once, however many inputs it feeds.
fn sources(step: &Step) -> Vec<usize> {
    let mut slots: Vec<usize> = step.inputs.iter().map(|input| input.slot).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}

fn asked(step: &Step, reads: &[Vec<usize>]) -> Asked {
    let read = step.outputs.iter().filter(|o| is_read(reads, step.output_stage, o.slot) > 0);
    let asked: Asked = read.map(|o| o.asked.clone()).collect();
    if asked.len() == step.model.config.outputs().len() { Asked::new() } else { asked }
}

fn is_read(reads: &[Vec<usize>], stage: usize, slot: usize) -> usize {
    reads.get(stage).and_then(|slots| slots.get(slot)).copied().unwrap_or(0)
}

fn read(reads: &mut [Vec<usize>], stage: usize, slot: usize) {
    if let Some(count) = reads.get_mut(stage).and_then(|slots| slots.get_mut(slot)) {
        *count += 1;
    }
}
