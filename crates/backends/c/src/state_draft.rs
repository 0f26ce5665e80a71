//! A new state of a sequence while a library fills it.

use std::sync::Arc;

use galatea_types::{AlignedBlock, DataType, Shape};

/// A new state of a sequence while the library fills it. It is empty after the update.
pub(crate) struct StateDraft {
    pub name: Arc<str>,
    pub data_type: DataType,
    pub shape: Shape,
    pub memory: Option<AlignedBlock>,
    pub is_updated: bool,
}
