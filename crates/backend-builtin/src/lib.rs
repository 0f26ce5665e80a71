//! Small backends built into the server: for tests, and to be read as examples of the backend trait. None needs a model
//! file. `identity`, `repeat`, `square` and those about sequences do what Triton's backends of these names do.
//!
//! | name | what its models do |
//! |---|---|
//! | `identity` | answer `INPUTn` as `OUTPUTn`, after a delay if wanted |
//! | `add_sub` | answer the sum and the difference of `INPUT0` and `INPUT1` |
//! | `failing` | like `identity`, but fails or panics when a parameter asks for it |
//! | `repeat` | decoupled or not: answer each element of `IN` by itself, each after a delay |
//! | `square` | decoupled: answer with the number in `IN`, that many times |
//! | `sequence` | answer the sum of a sequence so far, kept by the row of the batch |
//! | `dyna_sequence` | the same, kept by correlation id |
//! | `iterative_sequence` | count down from the number in `INPUT`, each time with another execution |
//! | `implicit_state` | do with states that the server keeps what each request asks for |

#![warn(missing_docs)]

mod accumulate;
mod add_sub;
mod arithmetic;
mod content;
mod dyna_sequence;
mod expected_config;
mod failing;
mod identity;
mod implicit_state;
mod iterative_sequence;
mod parameter;
mod repeat;
mod sequence;
mod square;
mod stream;
mod wiring;

use std::sync::Arc;

use galatea_backend::Backend;

pub use add_sub::AddSubBackend;
pub use dyna_sequence::DynaSequenceBackend;
pub use failing::FailingBackend;
pub use identity::IdentityBackend;
pub use implicit_state::ImplicitStateBackend;
pub use iterative_sequence::IterativeSequenceBackend;
pub use repeat::RepeatBackend;
pub use sequence::SequenceBackend;
pub use square::SquareBackend;

/// Makes a backend.
pub type Constructor = fn() -> Arc<dyn Backend>;

/// Every backend here, under the name that configurations use.
pub fn all() -> Vec<(&'static str, Constructor)> {
    vec![
        ("identity", || Arc::new(IdentityBackend::new())),
        ("add_sub", || Arc::new(AddSubBackend::new())),
        ("failing", || Arc::new(FailingBackend::new())),
        ("repeat", || Arc::new(RepeatBackend::new())),
        ("square", || Arc::new(SquareBackend::new())),
        ("sequence", || Arc::new(SequenceBackend::new())),
        ("dyna_sequence", || Arc::new(DynaSequenceBackend::new())),
        ("iterative_sequence", || Arc::new(IterativeSequenceBackend::new())),
        ("implicit_state", || Arc::new(ImplicitStateBackend::new())),
    ]
}
