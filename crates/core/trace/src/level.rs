//! The levels of tracing.

/// The levels of a setting: each adds a kind of entry to a trace. None of them: nothing is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// The instants of events.
    pub timestamps: bool,
    /// The content of inputs and outputs.
    pub tensors: bool,
}

impl Levels {
    /// No level: nothing is traced.
    pub const OFF: Self = Self { timestamps: false, tensors: false };

    /// Returns whether anything is traced.
    pub fn is_on(self) -> bool {
        self != Self::OFF
    }

    /// Adds the level of this name. Returns `false` for any other name.
    pub(crate) fn add(&mut self, name: &str) -> bool {
        match name {
            "TIMESTAMPS" => self.timestamps = true,
            "TENSORS" => self.tensors = true,
            _ => return false,
        }
        true
    }

    /// Returns the names of the levels, or `OFF`.
    pub fn names(self) -> Vec<&'static str> {
        let named =
            [(self.timestamps, "TIMESTAMPS"), (self.tensors, "TENSORS"), (!self.is_on(), "OFF")];
        named.into_iter().filter_map(|(is_set, name)| is_set.then_some(name)).collect()
    }
}
