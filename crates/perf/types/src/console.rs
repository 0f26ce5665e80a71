//! The destination of the report and the warnings. It is a trait, so that golden tests see both in order.

/// Output of a run.
pub trait Console {
    /// The report. Lines end with their newline.
    fn out(&mut self, text: &str);

    /// Warnings and errors.
    fn err(&mut self, text: &str);

    /// The present state of the run. It is shown only on a terminal, and the next output overwrites it.
    fn progress(&mut self, _text: &str) {}
}
