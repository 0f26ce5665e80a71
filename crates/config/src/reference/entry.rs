//! What the reference says of one field.

/// A message of the configuration, and its fields.
pub(super) struct Section {
    /// As the schema names it, without the package: `ModelInput`.
    pub message: &'static str,
    /// What it is for; may be empty.
    pub about: &'static str,
    pub fields: &'static [Field],
}

pub(super) struct Field {
    pub name: &'static str,
    pub meaning: &'static str,
    /// What holds where the field is left out; empty: nothing.
    pub default: &'static str,
    pub here: Here,
}

/// What this server does with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Here {
    /// It acts on it as the meaning says; the text adds to that, or is empty.
    Works(&'static str),
    /// It loads without a word, and nothing depends on it, for this reason.
    NoEffect(&'static str),
    /// A model that sets it does not load, for this reason: the checker's, not that of the table of support.
    Refused(&'static str),
    /// What the table of support says of the field or of the section it is in.
    ByTable,
}

pub(super) const fn works(
    name: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Field {
    Field { name, meaning, default, here: Here::Works("") }
}

/// Of a field, or section, that the table of support has a row for.
pub(super) const fn by_table(
    name: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Field {
    Field { name, meaning, default, here: Here::ByTable }
}

impl Field {
    pub(super) const fn with(self, note: &'static str) -> Self {
        Self { here: Here::Works(note), ..self }
    }

    pub(super) const fn without_effect(self, why: &'static str) -> Self {
        Self { here: Here::NoEffect(why), ..self }
    }

    pub(super) const fn refused(self, why: &'static str) -> Self {
        Self { here: Here::Refused(why), ..self }
    }
}
