use std::sync::Arc;

/// How the client wants the outputs told: decided while the request is read, used when the answer is written.
#[derive(Clone, Debug)]
pub struct ResponsePlan {
    pub(super) default_is_binary: bool,
    pub(super) is_batched: bool,
    /// One JSON document per line, nothing between them.
    pub(super) is_in_lines: bool,
    pub(super) wants_empty_final: bool,
    pub(super) outputs: Vec<PlannedOutput>,
}

#[derive(Clone, Debug)]
pub(super) struct PlannedOutput {
    pub name: Arc<str>,
    pub is_binary: bool,
    pub classification: Option<u32>,
}

impl ResponsePlan {
    pub(super) fn new(is_batched: bool) -> Self {
        Self {
            default_is_binary: false,
            is_batched,
            is_in_lines: false,
            wants_empty_final: false,
            outputs: Vec::new(),
        }
    }

    pub(super) fn in_lines(is_batched: bool) -> Self {
        Self { is_in_lines: true, ..Self::new(is_batched) }
    }

    /// Whether the client wants to be told of an end that comes without outputs.
    pub fn wants_empty_final(&self) -> bool {
        self.wants_empty_final
    }

    pub(super) fn has_binary(&self) -> bool {
        self.default_is_binary || self.outputs.iter().any(|output| output.is_binary)
    }

    /// Whether the data of this output goes behind the JSON, and how many classes stand for it.
    ///
    /// The default holds only for outputs the client did not name, as in Triton.
    pub(super) fn form_of(&self, output: &str) -> (bool, Option<u32>) {
        match self.outputs.iter().find(|o| &*o.name == output) {
            Some(planned) => (planned.is_binary, planned.classification),
            None => (self.default_is_binary, None),
        }
    }
}
