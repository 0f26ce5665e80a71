//! Small backends built into the server: for tests, and to be read as examples of the backend trait. None needs a model
//! file. `identity`, `repeat` and `square` do what Triton's backends of these names do.
//!
//! | name | what its models do |
//! |---|---|
//! | `identity` | answer `INPUTn` as `OUTPUTn`, after a delay if wanted |
//! | `add_sub` | answer the sum and the difference of `INPUT0` and `INPUT1` |
//! | `failing` | like `identity`, but fails or panics when a parameter asks for it |
//! | `repeat` | decoupled or not: answer each element of `IN` by itself, each after a delay |
//! | `square` | decoupled: answer with the number in `IN`, that many times |

#![warn(missing_docs)]

mod add_sub;
mod arithmetic;
mod content;
mod expected_config;
mod failing;
mod identity;
mod parameter;
mod repeat;
mod square;
mod stream;
mod wiring;

use std::sync::Arc;

use galatea_backend::Backend;

pub use add_sub::AddSubBackend;
pub use failing::FailingBackend;
pub use identity::IdentityBackend;
pub use repeat::RepeatBackend;
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
    ]
}
