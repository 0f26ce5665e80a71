//! The file of `--request-intervals`: one pause a line, in whole microseconds.

use std::{fs, path::Path, time::Duration};

/// Empty lines are skipped. Errors name the file and, where it is one line, its number.
pub fn read(path: &Path) -> Result<Vec<Duration>, String> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| format!("failed to open file '{shown}': {error}"))?;
    let mut intervals = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let microseconds = line.parse().map_err(|_| {
            format!("{shown}:{}: expected a whole number of microseconds, got '{line}'", index + 1)
        })?;
        intervals.push(Duration::from_micros(microseconds));
    }
    if intervals.is_empty() {
        return Err(format!("file '{shown}' is empty"));
    }
    if intervals.iter().all(Duration::is_zero) {
        return Err(format!("file '{shown}' has no interval over 0"));
    }
    Ok(intervals)
}
