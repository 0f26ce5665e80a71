//! Writes HTML and SVG that is also well-formed XML. Whatever is not a tag is escaped here, and only here.

use std::fmt::{self, Display, Write};

pub type Attribute<'a> = (&'static str, &'a dyn Display);

#[derive(Default)]
pub struct Markup {
    text: String,
}

impl Markup {
    pub fn element(
        &mut self,
        tag: &'static str,
        attributes: &[Attribute<'_>],
        inside: impl FnOnce(&mut Self),
    ) {
        self.start(tag, attributes, ">");
        inside(self);
        self.text.push_str("</");
        self.text.push_str(tag);
        self.text.push('>');
    }

    pub fn leaf(&mut self, tag: &'static str, attributes: &[Attribute<'_>], text: impl Display) {
        self.element(tag, attributes, |m| m.text(text));
    }

    pub fn empty(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.start(tag, attributes, "/>");
    }

    pub fn text(&mut self, text: impl Display) {
        // Writing to a string does not fail.
        let _ = write!(Escape(&mut self.text), "{text}");
    }

    /// For texts of this crate only: the document type, the style sheet, the script.
    pub fn verbatim(&mut self, text: &'static str) {
        self.text.push_str(text);
    }

    pub fn line(&mut self) {
        self.text.push('\n');
    }

    pub fn finish(self) -> String {
        self.text
    }

    fn start(&mut self, tag: &'static str, attributes: &[Attribute<'_>], end: &str) {
        self.text.push('<');
        self.text.push_str(tag);
        for (name, value) in attributes {
            self.text.push(' ');
            self.text.push_str(name);
            self.text.push_str("=\"");
            let _ = write!(Escape(&mut self.text), "{value}");
            self.text.push('"');
        }
        self.text.push_str(end);
    }
}

struct Escape<'a>(&'a mut String);

impl Write for Escape<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                '\n' | '\t' => self.0.push(character),
                // No document may hold these, and overrides of the direction would reorder the page around a name.
                c if c.is_control() || is_direction(c) || is_noncharacter(c) => {
                    self.0.push('\u{fffd}');
                }
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

fn is_direction(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_noncharacter(character: char) -> bool {
    matches!(character, '\u{fffe}' | '\u{ffff}')
}

/// A coordinate or a length: a tenth of a pixel is enough.
#[derive(Clone, Copy, Debug)]
pub struct Px(pub f64);

impl Display for Px {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = if self.0.is_finite() { (self.0 * 10.0).round() } else { 0.0 };
        // Adding zero turns -0 into 0.
        write!(formatter, "{}", tenths / 10.0 + 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_escaped() {
        let mut markup = Markup::default();
        markup.leaf("p", &[("title", &"a\"b<'&")], "</p><script>\u{0}\u{202e}");
        assert_eq!(
            markup.finish(),
            "<p title=\"a&quot;b&lt;&#39;&amp;\">&lt;/p&gt;&lt;script&gt;\u{fffd}\u{fffd}</p>"
        );
    }

    #[test]
    fn coordinates_are_short_and_finite() {
        let texts = [1.25, 2.0, -0.01, f64::NAN, f64::INFINITY].map(|v| Px(v).to_string());
        assert_eq!(texts, ["1.3", "2", "0", "0", "0"]);
    }
}
