//! What backends that join requests along the first dimension have in common: from the requests of a batch to
//! the model's inputs, and from its outputs to answers. No runtime library is known here.
//!
//! ```text
//! for part in parts(batch, config.has_batching(), |request| check(specs, request)) {
//!     let input = join(spec, is_scalar, has_batching, &tensors_of(batch, &part, &spec.name))?;
//!     // ... run the model ...
//!     let share = Share::divide(config, spec, &shape, data, &sizes(batch, &part))?;
//!     respond(batch, &part, &shares);
//! }
//! ```

mod join;
mod reshape;
mod share;

pub use join::{Content, Joined, check, join, missing, tensors_of};
pub use share::{Share, fail, respond};

use galatea_types::{InferRequest, Result};

use crate::Batch;

/// Positions of the requests that run together: all that pass `check`, or each by itself where there is no
/// batch dimension to join them along. The others are answered with their error.
pub fn parts(
    batch: &mut Batch,
    has_batching: bool,
    check: impl Fn(&InferRequest) -> Result<()>,
) -> Vec<Vec<usize>> {
    let mut sound = Vec::with_capacity(batch.len());
    for index in 0..batch.len() {
        let Some(request) = batch.request(index) else { continue };
        match check(request) {
            Ok(()) => sound.push(index),
            Err(error) => batch.respond(index, Err(error)),
        }
    }
    if has_batching && !sound.is_empty() {
        return vec![sound];
    }
    sound.into_iter().map(|index| vec![index]).collect()
}

/// Whether some request of `part` asks for this output.
pub fn is_wanted(batch: &Batch, part: &[usize], output: &str) -> bool {
    part.iter().filter_map(|&i| batch.request(i)).any(|r| r.wants_output(output))
}

/// Batch size of each request of `part`.
pub fn sizes(batch: &Batch, part: &[usize]) -> Vec<u32> {
    part.iter().filter_map(|&i| Some(batch.request(i)?.batch_size())).collect()
}
