//! How large an arena may be.

/// Bounds of an arena, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct ArenaLimits {
    /// At first.
    pub initial: usize,
    /// An arena that is too small grows by at least this much.
    pub growth: usize,
    /// `None`: no limit.
    pub max: Option<usize>,
}
