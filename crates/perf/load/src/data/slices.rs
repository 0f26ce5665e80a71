//! Where tensors lie in shared memory.

use std::collections::HashMap;

use galatea_client::RegionSlice;

/// Where each tensor lies.
#[derive(Clone, Default)]
pub(super) struct Slices {
    /// By input, stream and step.
    inputs: HashMap<(usize, usize, usize), RegionSlice>,
    outputs: HashMap<String, RegionSlice>,
}

impl Slices {
    pub fn add_input(&mut self, place: (usize, usize, usize), slice: RegionSlice) {
        self.inputs.insert(place, slice);
    }

    pub fn add_output(&mut self, name: &str, slice: RegionSlice) {
        self.outputs.insert(name.to_owned(), slice);
    }

    pub fn input(&self, index: usize, stream: usize, step: usize) -> Option<&RegionSlice> {
        self.inputs.get(&(index, stream, step))
    }

    pub fn output(&self, name: &str) -> Option<&RegionSlice> {
        self.outputs.get(name)
    }
}
