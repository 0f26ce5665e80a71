//! The report for a terminal.

mod bars;
mod models;

use galatea_terminal_text as printing;

use crate::{Terminal, duration::duration, report::Report};

/// Columns where the output is not a terminal.
const PLAIN_WIDTH: usize = 100;
/// No line is made for a narrower terminal.
const LEAST_WIDTH: usize = 40;
/// Most faults that are listed.
const MOST_NOTES: usize = 5;
/// Most files that are named.
const MOST_FILES: usize = 3;

/// Returns the report in lines that fit into the terminal.
pub(crate) fn report(report: &Report, terminal: Terminal) -> String {
    let width = terminal.width.unwrap_or(PLAIN_WIDTH).max(LEAST_WIDTH);
    let colors = Colors { is_on: terminal.has_color && terminal.width.is_some() };
    let mut text = heading(report, width);
    text.push_str(&notes(report, terminal.width));
    models::write(&mut text, report, width);
    bars::write(&mut text, report, width, colors);
    text
}

fn heading(report: &Report, width: usize) -> String {
    let mut files: Vec<String> =
        report.files.iter().take(MOST_FILES).map(|file| printing::line(file)).collect();
    if report.files.len() > MOST_FILES {
        files.push(format!("{} more", report.files.len() - MOST_FILES));
    }
    let steps = match report.step_count {
        0 => String::new(),
        count => format!(" with {}", counted(count, "step or call")),
    };
    let heading = format!(
        "{}: {}{steps} in {}",
        files.join(", "),
        counted(report.request_count, "request"),
        duration(report.covered_ns as f64)
    );
    folded(&heading, width)
}

/// Returns the faults of the files, in lines of at most `width` columns.
pub(crate) fn notes(report: &Report, width: Option<usize>) -> String {
    let mut text = String::new();
    let mut note = |note: &str| {
        let note = format!("note: {}", printing::line(note));
        text.push_str(&folded(&note, width.map_or(usize::MAX, |width| width.max(LEAST_WIDTH))));
    };
    report.problems.iter().take(MOST_NOTES).for_each(|problem| note(problem));
    let more = report.problem_count.saturating_sub(MOST_NOTES as u64);
    if more > 0 {
        note(&format!("{} more faults; --json has the first 100", grouped(more)));
    }
    text
}

fn folded(text: &str, width: usize) -> String {
    printing::folded(text, width).into_iter().flat_map(|line| [line, "\n"]).collect()
}

/// Returns a number of things: `1 request`, `2,400 requests`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    let number = grouped(count as u64);
    match (count, thing.split_once(" or ")) {
        (1, _) => format!("{number} {thing}"),
        (_, Some((one, other))) => format!("{number} {one}s or {other}s"),
        (_, None) => format!("{number} {thing}s"),
    }
}

/// Writes a number with a comma before each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Pads a text to a width, in front of it or behind it.
fn padded(text: &str, width: usize, is_number: bool) -> String {
    let blanks = " ".repeat(width.saturating_sub(printing::columns(text)));
    if is_number { format!("{blanks}{text}") } else { format!("{text}{blanks}") }
}

/// The colours of a terminal, if it has any.
#[derive(Clone, Copy)]
struct Colors {
    is_on: bool,
}

impl Colors {
    fn bold(self, text: &str) -> String {
        if self.is_on { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Paints a text in a colour of the terminal's palette.
    fn paint(self, text: &str, color: u8) -> String {
        if self.is_on { format!("\x1b[{color}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests;
