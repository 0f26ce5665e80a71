//! What is executed of a sequence at once, and how that went.

/// Where a request is executed, and for which sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotTicket {
    /// The number of the slot among those of its instance.
    pub slot: u32,
    /// Of the sequence that the slot had: no two sequences of a slot have the same.
    pub generation: u64,
}

/// A request that is to be executed, with what its sequence left.
#[derive(Debug)]
pub(crate) struct Step<T, S> {
    pub ticket: SlotTicket,
    pub request: T,
    /// Of the sequence before this step; at its start what a sequence begins with, which is not known here.
    pub states: S,
    /// The sequence begins with this request.
    pub is_first: bool,
}

/// A request of a slot was executed.
#[derive(Debug)]
pub(crate) struct StepEnd<T, S> {
    pub ticket: SlotTicket,
    /// Of the sequence behind this step.
    pub states: S,
    /// It is to be executed again.
    pub again: Option<T>,
}
