//! What the outputs of a request must be.

use galatea_perf_types::{model::ModelInfo, requests::ExpectedOutput};

use super::{batch::join, dataset::Dataset};

/// Joined over the batch, as the server's response is; empty where nothing is expected.
pub(super) fn expected_outputs(
    data: &Dataset,
    model: &ModelInfo,
    batch_size: usize,
    (stream, step): (usize, usize),
) -> Vec<ExpectedOutput> {
    let output = |index: usize, name: &str| {
        let steps = data.batch(stream, step, batch_size);
        // Compared only where every step of the batch has an expectation.
        let pieces: Option<Vec<_>> =
            steps.map(|step| step.expected.get(index).and_then(Option::as_ref)).collect();
        Some(ExpectedOutput { name: name.to_owned(), data: join(pieces?.into_iter()) })
    };
    let outputs = model.outputs.iter().enumerate();
    outputs.filter_map(|(index, info)| output(index, &info.name)).collect()
}
