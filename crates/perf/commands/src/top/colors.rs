//! The colours of the view.

use ratatui::style::Color;

/// The thing is as it should be.
pub(crate) const GOOD: Color = Color::Green;
/// The thing is not ready yet, or idle.
pub(crate) const WARNING: Color = Color::Yellow;
/// The thing has failed.
pub(crate) const BAD: Color = Color::Red;
