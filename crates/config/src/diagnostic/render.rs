//! Several lines for a terminal.

use std::fmt::Write;

use super::Diagnostic;

/// The parts of a rendering, which a terminal may show in colours of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// File, line and column.
    Place,
    /// `error`, `warning` or `note`, with the colon.
    Severity,
    /// What is wrong.
    Text,
    /// Line numbers and the bar beside the line of the file.
    Margin,
    /// The line of the file.
    Line,
    /// The caret under it.
    Caret,
    /// What to do.
    Advice,
}

/// Every part as it is.
pub fn plain(_: Part, text: &str) -> String {
    text.to_owned()
}

/// In the colours of a terminal that has them.
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
    /// Several lines without an end of line behind the last: the text, the line of the file with a caret under the
    /// place, and the advice.
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
        let mut lines = String::new();
        if let Some(place) = &self.place {
            lines += &paint(Part::Place, &safe(&format!("{place}:")));
            lines.push(' ');
        }
        lines += &paint(Part::Severity, &format!("{}:", self.severity));
        lines.push(' ');
        lines += &paint(Part::Text, &safe(&self.text));
        let margin = self.write_excerpt(&mut lines, &paint);
        if let Some(advice) = &self.advice {
            let sign = paint(Part::Margin, &format!("{margin} ="));
            let advice = paint(Part::Advice, &safe(&format!("help: {advice}")));
            let _ = write!(lines, "\n{sign} {advice}");
        }
        lines
    }

    /// Returns the white space before the bar.
    fn write_excerpt(&self, lines: &mut String, paint: impl Fn(Part, &str) -> String) -> String {
        let place = self.place.as_ref();
        let excerpt = place.and_then(|p| Some((p.position?, p.line_text()?, p.caret_indent()?)));
        let Some((position, line, indent)) = excerpt else { return " ".to_owned() };
        let number = position.line.to_string();
        let margin = " ".repeat(number.len());
        let bar = paint(Part::Margin, &format!("{margin} |"));
        let numbered = paint(Part::Margin, &format!("{number} |"));
        let (line, caret) = (paint(Part::Line, line), paint(Part::Caret, "^"));
        let _ = write!(lines, "\n{bar}\n{numbered} {line}\n{bar} {indent}{caret}");
        margin
    }
}

/// Without what could do something to a terminal, or look like a line of its own.
fn safe(text: &str) -> String {
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    text.trim_end().chars().map(visible).collect()
}
