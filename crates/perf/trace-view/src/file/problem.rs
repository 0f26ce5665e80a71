//! Faults of trace files that do not stop the reading.

use std::fmt;

/// Most faults that are kept.
const MOST: usize = 100;

/// A fault of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The file as people read it.
    pub file: String,
    /// The number of the object, from 1 on. `None` for a fault of the whole file.
    pub object: Option<u64>,
    /// Offset of the object in the file.
    pub byte: u64,
    pub text: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, object, byte, text } = self;
        match object {
            Some(object) => write!(f, "{file}: object {object} (at byte {byte}): {text}"),
            None => write!(f, "{file}: {text}"),
        }
    }
}

/// The faults of all files.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    /// The first ones.
    pub first: Vec<Problem>,
    /// Number of all.
    pub count: u64,
}

impl Problems {
    pub fn push(&mut self, problem: Problem) {
        self.count += 1;
        if self.first.len() < MOST {
            self.first.push(problem);
        }
    }
}
