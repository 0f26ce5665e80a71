//! How large an arena may be.

/// Bounds of an arena, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArenaLimits {
    pub initial: usize,
    /// An arena that is too small grows by at least this much.
    pub growth: usize,
    pub max: Option<usize>,
}
