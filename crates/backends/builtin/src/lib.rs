//! Small backends in the server, for tests and as examples of the backend trait. None needs a model file. `identity`,
//! `repeat`, `square` and those about sequences do the same as Triton's backends of these names.
//!
//! | name | what its models do |
//! |---|---|
//! | `identity` | answer `INPUTn` as `OUTPUTn`, after a delay if wanted |
//! | `add_sub` | answer the sum and the difference of `INPUT0` and `INPUT1` |
//! | `failing` | like `identity`, but fails or panics when a parameter asks for it |
//! | `repeat` | decoupled or not: return each element of `IN` in its own response, each after a delay |
//! | `square` | decoupled: answer with the number in `IN`, that many times |
//! | `sequence` | return the current sum of a sequence, kept by the row of the batch |
//! | `dyna_sequence` | the same, kept by correlation id |
//! | `iterative_sequence` | count down from the number in `INPUT`, each time with another execution |
//! | `implicit_state` | use the states that the server keeps, as each request selects |

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
mod model;
mod parameter;
mod repeat;
mod sequence;
mod square;
mod stream;
mod wiring;

use std::sync::Arc;

use galatea_backend::{Backend, LoadContext, Model};
use galatea_types::Result;

/// A backend of this crate. It needs no settings.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinBackend {
    name: &'static str,
    load: fn(&LoadContext) -> Result<Box<dyn Model>>,
}

/// Every backend of this crate.
pub const ALL: [BuiltinBackend; 9] = [
    BuiltinBackend { name: "identity", load: identity::load },
    BuiltinBackend { name: "add_sub", load: add_sub::load },
    BuiltinBackend { name: "failing", load: failing::load },
    BuiltinBackend { name: "repeat", load: repeat::load },
    BuiltinBackend { name: "square", load: square::load },
    BuiltinBackend { name: "sequence", load: sequence::load },
    BuiltinBackend { name: "dyna_sequence", load: dyna_sequence::load },
    BuiltinBackend { name: "iterative_sequence", load: iterative_sequence::load },
    BuiltinBackend { name: "implicit_state", load: implicit_state::load },
];

/// Returns the backend called `name`.
pub fn find(name: &str) -> Option<Arc<dyn Backend>> {
    ALL.into_iter().find(|backend| backend.name == name).map(BuiltinBackend::open)
}

impl BuiltinBackend {
    /// Returns the name that configurations use.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns the backend in the form that the server holds.
    pub fn open(self) -> Arc<dyn Backend> {
        Arc::new(self)
    }
}

impl Backend for BuiltinBackend {
    fn name(&self) -> &str {
        self.name
    }

    fn load(&self, context: LoadContext) -> Result<Box<dyn Model>> {
        (self.load)(&context)
    }
}
