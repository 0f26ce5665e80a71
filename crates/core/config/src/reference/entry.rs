//! Texts about fields, read from `fields.txt`.
//!
//! A section of that file describes a message of the schema: its name behind `#`, a line about it or none, and a line for each
//! field. That line has the name of the field, its default, its meaning, and its support in this server.

use std::sync::LazyLock;

/// A message of the configuration, and its fields.
pub(super) struct Section {
    /// The name in the schema without the package: `ModelInput`.
    pub message: &'static str,
    /// The purpose of the message; may be empty.
    pub about: &'static str,
    pub fields: Vec<Field>,
}

pub(super) struct Field {
    pub name: &'static str,
    /// The value of a missing field; empty for none.
    pub default: &'static str,
    pub meaning: &'static str,
    pub here: FieldSupport,
}

/// The support of a field in this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldSupport {
    /// The field works as the meaning says; the text adds to that, or is empty.
    Works(&'static str),
    /// The field is accepted silently and has no effect, for this reason.
    NoEffect(&'static str),
    /// A model that sets it does not load, for this reason. The reason is the checker's, not the support table's.
    Refused(&'static str),
    /// The support table describes the field or its section.
    ByTable,
}

/// The sections in the order of the page.
pub(super) static SECTIONS: LazyLock<Vec<Section>> =
    LazyLock::new(|| include_str!("fields.txt").split("\n\n").map(Section::read).collect());

impl Section {
    fn read(text: &'static str) -> Self {
        let (head, rest) = text.split_once('\n').unwrap_or((text, ""));
        let message = head.trim_start_matches("# ");
        let about = rest.lines().next().filter(|line| !line.contains(" | ")).unwrap_or_default();
        Self { message, about, fields: rest.lines().filter_map(Field::read).collect() }
    }
}

impl Field {
    /// Returns `None` when the line is no row.
    fn read(line: &'static str) -> Option<Self> {
        let mut cells = line.split(" | ");
        let [name, default, meaning, here] = std::array::from_fn(|_| cells.next());
        let here = match here?.split_once(": ").unwrap_or((here?, "")) {
            ("by table", _) => FieldSupport::ByTable,
            ("no effect", why) => FieldSupport::NoEffect(why),
            ("refused", why) => FieldSupport::Refused(why),
            (_, note) => FieldSupport::Works(note),
        };
        Some(Self { name: name?, default: default?, meaning: meaning?, here })
    }
}
