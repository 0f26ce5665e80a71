//! What an instance is warmed up with.

use galatea_types::{PreparedRequest, Tensor};

/// What every instance of a model executes before it is ready, and again when it was restarted.
#[derive(Clone, Debug)]
pub struct WarmupSample {
    /// Its name in error messages.
    pub name: String,
    /// What is asked for, with a batch size of 1: the first request of a sequence where the model has them.
    pub request: PreparedRequest,
    /// What the model is told of the sequence, where it is not what it is told of the first request of one.
    pub added: Vec<Tensor>,
    /// How many such requests are executed together; one by one where the model does not batch.
    pub batch_size: u32,
    /// How often that is done.
    pub count: u32,
}
