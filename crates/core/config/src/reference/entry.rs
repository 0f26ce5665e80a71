//! The texts about fields, which stand in `fields.txt`.
//!
//! A section of that file is about one message of the schema: its name behind `#`, a line about it or none, and a line for each
//! field with its name, the value that holds where it is left out, its meaning, and what this server does with it.

use std::sync::LazyLock;

/// A message of the configuration, and its fields.
pub(super) struct Section {
    /// As the schema names it, without the package: `ModelInput`.
    pub message: &'static str,
    /// What it is for; may be empty.
    pub about: &'static str,
    pub fields: Vec<Field>,
}

pub(super) struct Field {
    pub name: &'static str,
    /// What holds where the field is left out; empty: nothing.
    pub default: &'static str,
    pub meaning: &'static str,
    pub here: FieldSupport,
}

/// What this server does with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldSupport {
    /// It acts on it as the meaning says; the text adds to that, or is empty.
    Works(&'static str),
    /// It loads without a word, and nothing depends on it, for this reason.
    NoEffect(&'static str),
    /// A model that sets it does not load, for this reason: the checker's, not that of the table of support.
    Refused(&'static str),
    /// What the table of support says of the field or of the section it is in.
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
    /// `None`: the line is no row.
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
