//! Where something is.

use std::fmt;

/// Longest piece of a line that is kept to be shown, in characters.
const SHOWN_WIDTH: usize = 120;

/// A place in a text. Both count from 1, columns in characters, as editors show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl From<(usize, usize)> for Position {
    fn from((line, column): (usize, usize)) -> Self {
        Self { line, column }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A file, or a place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file as people know it, e.g. its path inside of the repository. Never the path on the server where clients
    /// read it. What came as JSON is `config#/input/0/dims`, with the JSON pointer of the field.
    pub file: String,
    /// Where in the file, if it is text and the place is known.
    pub position: Option<Position>,
    excerpt: Option<Excerpt>,
}

/// A line of a file, or the part of it around the place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    shown: String,
    /// White space that puts a caret under the place.
    indent: String,
}

impl Place {
    /// A file as a whole.
    pub fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), position: None, excerpt: None }
    }

    /// A place in a file with this text.
    pub fn in_text(file: impl Into<String>, source: &str, position: impl Into<Position>) -> Self {
        let position = position.into();
        let line = source.split('\n').nth(position.line.saturating_sub(1));
        let excerpt = line.map(|line| excerpt(line, position.column.saturating_sub(1)));
        Self { file: file.into(), position: Some(position), excerpt }
    }

    /// The line of the file that it is in, without what could do something to a terminal; of a long one a part.
    pub fn line_text(&self) -> Option<&str> {
        self.excerpt.as_ref().map(|excerpt| excerpt.shown.as_str())
    }

    /// The white space that, written under [`Place::line_text`], puts a caret under the place.
    pub fn caret_indent(&self) -> Option<&str> {
        self.excerpt.as_ref().map(|excerpt| excerpt.indent.as_str())
    }
}

/// `m/config.pbtxt:12:3`
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.position.map_or(Ok(()), |position| write!(f, ":{position}"))
    }
}

/// The part of `line` around character `at`. Tabs stay tabs in text and indent, so that the caret is in the right
/// column whatever their width; other control characters could do anything to a terminal.
fn excerpt(line: &str, at: usize) -> Excerpt {
    let start = at.saturating_sub(SHOWN_WIDTH * 2 / 3);
    let visible =
        |c: char| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
    let shown: String =
        line.trim_end().chars().skip(start).take(SHOWN_WIDTH).map(visible).collect();
    let before = line.chars().skip(start).take(at - start);
    let indent = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    Excerpt { shown: shown.trim_end().to_owned(), indent }
}
