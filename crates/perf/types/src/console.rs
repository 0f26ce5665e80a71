//! Where the report and the warnings go. A trait, so that golden tests read both in the order they came.

/// Output of a run.
pub trait Console {
    /// The report. Lines end with their newline.
    fn out(&mut self, text: &str);

    /// Warnings and errors.
    fn err(&mut self, text: &str);

    /// What is going on right now, shown only on a terminal and overwritten by what comes next.
    fn progress(&mut self, _text: &str) {}
}
