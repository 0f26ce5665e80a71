//! One step of a sequence, and its result.

/// The slot and the sequence that a request is executed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotTicket {
    /// The number of the slot among those of its instance.
    pub slot: u32,
    /// The generation of the slot's sequence: no two sequences of a slot have the same.
    pub generation: u64,
}

/// A request to execute, with the states of its sequence.
#[derive(Debug)]
pub(crate) struct Step<T, S> {
    pub ticket: SlotTicket,
    pub request: T,
    /// The states before this step. For the first step the caller sets the initial ones, which are not known here.
    pub states: S,
    /// True if the sequence begins with this request.
    pub is_first: bool,
}

/// The result of an executed request of a slot.
#[derive(Debug)]
pub(crate) struct StepEnd<T, S> {
    pub ticket: SlotTicket,
    /// The states after this step.
    pub states: S,
    /// The request, if it must be executed again.
    pub again: Option<T>,
}
