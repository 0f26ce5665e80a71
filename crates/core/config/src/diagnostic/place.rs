//! Places in files.

use std::fmt;

/// Longest part of a line that is kept to be shown, in characters.
const SHOWN_WIDTH: usize = 120;

/// A place in a text. Both numbers count from 1, columns in characters, as editors show them.
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
    /// The file as people know it, e.g. its path inside the repository. Clients read it, so it is never the path on the server.
    /// For JSON it is `config#/input/0/dims`, with the JSON pointer of the field.
    pub file: String,
    /// The position in the file, if it is text and the position is known.
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
    /// Makes the place of a whole file.
    pub fn file(file: impl Into<String>) -> Self {
        Self { file: file.into(), position: None, excerpt: None }
    }

    /// Makes a place in a file with this text.
    pub fn in_text(file: impl Into<String>, source: &str, position: impl Into<Position>) -> Self {
        let position = position.into();
        let line = source.split('\n').nth(position.line.saturating_sub(1));
        let excerpt = line.map(|line| excerpt(line, position.column.saturating_sub(1)));
        Self { file: file.into(), position: Some(position), excerpt }
    }

    /// Returns the line of the file at the place, without control characters; a part of it when it is long.
    pub fn line_text(&self) -> Option<&str> {
        self.excerpt.as_ref().map(|excerpt| excerpt.shown.as_str())
    }

    /// Returns the white space that puts a caret under the place, in a line below [`Place::line_text`].
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

/// Returns the part of `line` around character `at`. Tabs stay in text and indent, so that the caret is in the right column
/// whatever their width. Other control characters are replaced: they could change the terminal.
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
