//! Renders findings in several lines for a terminal.

use std::fmt::Write;

use super::Diagnostic;

/// The parts of a rendering, which a terminal may show in different colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// File, line and column.
    Place,
    /// `error`, `warning` or `note`, with the colon.
    Severity,
    /// The problem.
    Text,
    /// Line numbers and the bar beside the line of the file.
    Margin,
    /// The line of the file.
    Line,
    /// The caret under it.
    Caret,
    /// The advice.
    Advice,
}

/// Returns every part unchanged.
pub fn plain(_: Part, text: &str) -> String {
    text.to_owned()
}

/// Returns a part in the colours of a terminal.
pub fn coloured(part: Part, text: &str) -> String {
    let style = match part {
        Part::Place | Part::Text => "1",
        Part::Severity if text.starts_with("error") => "1;31",
        Part::Severity if text.starts_with("warning") => "1;33",
        Part::Severity => "1;36",
        Part::Caret => "1;31",
        Part::Margin => "34",
        Part::Advice => "32",
        Part::Line => return text.to_owned(),
    };
    format!("\u{1b}[{style}m{text}\u{1b}[0m")
}

impl Diagnostic {
    /// Returns several lines without a final line break: the text, the line of the file with a caret under the place, and the
    /// advice.
    ///
    /// ```text
    /// m/config.pbtxt:2:9: error: model input 'x' dimension must be integer >= 1
    ///   |
    /// 2 |   dims: [ 0 ]
    ///   |           ^
    ///   = help: write -1 for a dimension of any size
    /// ```
    ///
    /// `paint` gives each part its colours; [`plain`] gives none.
    pub fn render(&self, paint: impl Fn(Part, &str) -> String) -> String {
        self.render_within(usize::MAX, paint)
    }

    /// Renders it as [`Diagnostic::render`] does, for a terminal of `width` columns. Sentences are wrapped, and a long line of
    /// the file is cut to the part around the caret. Places and other long words stay whole.
    pub fn render_within(&self, width: usize, paint: impl Fn(Part, &str) -> String) -> String {
        const HANGING: usize = 4;
        let width = if width < NARROWEST { usize::MAX } else { width };
        let mut lines = String::new();
        let mut head = 0;
        if let Some(place) = &self.place {
            let place = safe(&format!("{place}:"));
            head += place.chars().count() + 1;
            lines += &paint(Part::Place, &place);
            lines.push(' ');
        }
        let severity = format!("{}:", self.severity);
        head += severity.len() + 1;
        lines += &paint(Part::Severity, &severity);
        lines.push(' ');
        lines += &paint(Part::Text, &folded(&safe(&self.text), head, HANGING, width));
        let margin = self.write_excerpt(&mut lines, width, &paint);
        if let Some(advice) = &self.advice {
            let sign = paint(Part::Margin, &format!("{margin} ="));
            let indent = margin.len() + " = ".len();
            let advice = folded(&safe(&format!("help: {advice}")), indent, indent, width);
            let _ = write!(lines, "\n{sign} {}", paint(Part::Advice, &advice));
        }
        lines
    }

    /// Writes the line of the file. Returns the white space before the bar.
    fn write_excerpt(
        &self,
        lines: &mut String,
        width: usize,
        paint: impl Fn(Part, &str) -> String,
    ) -> String {
        let place = self.place.as_ref();
        let excerpt = place.and_then(|p| Some((p.position?, p.line_text()?, p.caret_indent()?)));
        let Some((position, line, indent)) = excerpt else { return " ".to_owned() };
        let number = position.line.to_string();
        let margin = " ".repeat(number.len());
        let (line, indent) = around(line, indent, width.saturating_sub(margin.len() + " | ".len()));
        let bar = paint(Part::Margin, &format!("{margin} |"));
        let numbered = paint(Part::Margin, &format!("{number} |"));
        let (line, caret) = (paint(Part::Line, &line), paint(Part::Caret, "^"));
        let _ = write!(lines, "\n{bar}\n{numbered} {line}\n{bar} {indent}{caret}");
        margin
    }
}

/// A narrower terminal breaks the lines itself.
const NARROWEST: usize = 30;

/// Wraps the text at blanks, so that lines fit into `width` if their words do. The first line begins at column `head`, the others
/// at `indent`.
fn folded(text: &str, head: usize, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut at = head;
    for (index, word) in text.split(' ').enumerate() {
        let length = word.chars().count();
        match index {
            0 => {}
            _ if at.saturating_add(1 + length) <= width => {
                out.push(' ');
                at += 1;
            }
            _ => {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                at = indent;
            }
        }
        out.push_str(word);
        at += length;
    }
    out
}

/// Returns at most `room` characters of a line around its caret, and the white space before the caret.
fn around(line: &str, indent: &str, room: usize) -> (String, String) {
    let (length, caret) = (line.chars().count(), indent.chars().count());
    if length.max(caret + 1) <= room {
        return (line.to_owned(), indent.to_owned());
    }
    let start = caret.saturating_sub(room * 2 / 3).min(length.saturating_sub(room));
    let cut = |text: &str| text.chars().skip(start).take(room).collect();
    (cut(line), cut(indent))
}

/// Replaces characters that could change the terminal or begin a new line.
fn safe(text: &str) -> String {
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.trim_end().chars().map(visible).collect()
}
