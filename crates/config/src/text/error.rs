//! What is wrong with a text, and where.

use std::{error, fmt};

use galatea_types::Error;

/// What is wrong with a configuration text, and where.
///
/// `line` and `column` count from 1, columns in characters, as editors show them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The line, from 1.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it, when that can be guessed.
    pub hint: Option<String>,
}

/// Longest piece of a source line that [`TextError::render`] shows, in characters.
const SHOWN_WIDTH: usize = 120;

impl TextError {
    pub(crate) fn new(position: Position, message: impl Into<String>) -> Self {
        let Position { line, column } = position;
        Self { line, column, message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Several lines for a log or a terminal: the message, the line of `source` it is about with a
    /// caret under the column, and the hint.
    pub fn render(&self, file: &str, source: &str) -> String {
        let mut text = format!("{file}:{}:{}: {}", self.line, self.column, self.message);
        if let Some(line) = source.split('\n').nth(self.line.saturating_sub(1)) {
            let (shown, caret) = excerpt(line, self.column.saturating_sub(1));
            let number = self.line.to_string();
            let margin = " ".repeat(number.len());
            text.push_str(&format!("\n{margin} |\n{number} | {shown}\n{margin} | {caret}^"));
        }
        if let Some(hint) = &self.hint {
            text.push_str("\nhint: ");
            text.push_str(hint);
        }
        text
    }
}

/// The part of `line` around character `at`, and the white space that puts a caret under it. Tabs stay
/// tabs in both, so that the caret is in the right column whatever their width.
fn excerpt(line: &str, at: usize) -> (String, String) {
    let start = at.saturating_sub(SHOWN_WIDTH * 2 / 3);
    let shown = line.chars().skip(start).take(SHOWN_WIDTH).collect::<String>();
    let caret = line
        .chars()
        .skip(start)
        .take(at - start)
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    (shown.trim_end().to_owned(), caret)
}

/// `L:C: message; hint`, on one line.
impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl error::Error for TextError {}

impl From<TextError> for Error {
    fn from(error: TextError) -> Self {
        Error::invalid_arg(error.to_string()).with_source(error)
    }
}

/// A place in a text, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_the_line_with_a_caret() {
        let error = TextError::new(Position { line: 2, column: 3 }, "no field `dim` in ModelInput")
            .with_hint("did you mean `dims`?");
        assert_eq!(
            error.render("config.pbtxt", "input {\n\t\tdim: 4\n}\n"),
            "config.pbtxt:2:3: no field `dim` in ModelInput\n  |\n2 | \t\tdim: 4\n  | \t\t^\n\
             hint: did you mean `dims`?"
        );
        assert_eq!(error.to_string(), "2:3: no field `dim` in ModelInput; did you mean `dims`?");
    }

    #[test]
    fn shows_a_window_of_a_long_line() {
        let source = format!("{}x{}", "a".repeat(5000), "b".repeat(5000));
        let error = TextError::new(Position { line: 1, column: 5001 }, "m");
        let rendered = error.render("f", &source);
        assert!(rendered.len() < 400, "{}", rendered.len());
        let lines = rendered.lines().collect::<Vec<_>>();
        assert_eq!(lines[2].find('x'), lines[3].find('^'));
    }

    #[test]
    fn renders_without_a_matching_line() {
        let error = TextError::new(Position { line: 9, column: 1 }, "m");
        assert_eq!(error.render("f", "one line"), "f:9:1: m");
    }
}
