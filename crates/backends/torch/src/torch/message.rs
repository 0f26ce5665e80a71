//! Makes the messages of C++ exceptions readable.
//!
//! An error inside a model contains the call stack in the serialised code, the same in the original code, and each time the
//! lines around. The message and the innermost place in the original code are kept.

const TRACEBACK: &str = "Traceback of TorchScript";
const BACKTRACE: &str = "Exception raised from ";

/// Returns the useful part of `text`, on one line if it was a traceback.
pub(super) fn readable(text: &str) -> String {
    let text = text.find(BACKTRACE).and_then(|at| text.get(..at)).unwrap_or(text).trim();
    let Some(from) = text.rfind(TRACEBACK) else { return text.to_owned() };
    let traceback = text.get(from..).unwrap_or_default();
    let place = traceback.lines().filter_map(place_in).next_back();
    match (what_happened(traceback), place) {
        (Some(what), Some(place)) => format!("{what} ({place})"),
        (Some(what), None) => what,
        // Not a known form of traceback: too much text is better than none.
        (None, _) => text.to_owned(),
    }
}

/// Returns the message behind the last marked line of source.
fn what_happened(traceback: &str) -> Option<String> {
    let lines: Vec<&str> = traceback.lines().collect();
    let marked = lines.iter().rposition(|line| line.trim_end().ends_with("<--- HERE"))?;
    let rest = lines.get(marked + 1..)?.iter().map(|line| line.trim()).filter(|l| !l.is_empty());
    let what = rest.collect::<Vec<_>>().join(" ");
    (!what.is_empty()).then_some(what)
}

/// Returns `File "a.py", line 3, in forward` without the text around it.
fn place_in(line: &str) -> Option<&str> {
    let line = line.trim();
    line.starts_with("File \"").then(|| line.trim_end_matches(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracebacks_are_reduced_to_error_and_location() {
        let text = "The following operation failed in the TorchScript interpreter.\n\
            Traceback of TorchScript, serialized code (most recent call last):\n  \
              File \"code/__torch__.py\", line 5, in forward\n    x: Tensor) -> Tensor:\n    \
                return torch.mm(x, x)\n           ~~~~~~~~ <--- HERE\n\n\
            Traceback of TorchScript, original code (most recent call last):\n  \
              File \"/train/model.py\", line 7, in forward\n    def forward(self, x):\n        \
                return torch.mm(x, x)\n               ~~~~~~~~ <--- HERE\n\
            RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)\n";
        assert_eq!(
            readable(text),
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3) \
             (File \"/train/model.py\", line 7, in forward)"
        );
    }

    #[test]
    fn other_messages_lose_only_their_backtrace() {
        let text = "expected Tensor\nException raised from check at x.cpp:3 (most recent call first):\nframe #0";
        assert_eq!(readable(text), "expected Tensor");
        assert_eq!(readable("Traceback of TorchScript: odd"), "Traceback of TorchScript: odd");
    }
}
