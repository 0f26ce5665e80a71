//! Rows of the table of options, and the trait by which a command has a table.

use crate::{
    error::{BadValue, CommandLineError},
    kind::Kind,
    names::Names,
    occurrence::Occurrence,
    store::Store,
};

/// The options of a command: a struct that a table of rows fills.
pub trait OptionSet: Sized + 'static {
    /// What closures of the table refuse values with.
    type Error: From<CommandLineError> + From<BadValue>;

    /// Whether long names may be typed with `_` for `-`.
    const TAKES_UNDERSCORES: bool = false;

    /// The table, in the order of the help.
    fn groups() -> &'static [Group<Self>];

    /// A word that is no option.
    fn word(&mut self, word: String) -> Result<(), Self::Error>;

    /// Something to mention about an option that was accepted.
    fn notice(&mut self, _notice: Notice) {}
}

/// Something to mention about an option that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A warning, of the row itself or of the closure that stores its value.
    Warning(String),
    /// It asks for something that has no effect here.
    NoEffect {
        /// With its dashes.
        option: String,
        /// As typed.
        value: String,
        /// The reason.
        why: &'static str,
    },
    /// It asks for something that is not built yet, and that the command goes on without.
    Missing {
        /// With its dashes.
        option: String,
        /// As typed.
        value: String,
        /// What is missing.
        what: &'static str,
    },
}

/// Options of one topic, in the order of the help.
pub struct Group<O: OptionSet> {
    /// The heading; empty: none.
    pub title: &'static str,
    /// The options.
    pub rows: &'static [OptionRow<O>],
    /// Not the original program's: such names never make an abbreviation of one of its names ambiguous.
    pub is_own: bool,
}

/// One option.
pub struct OptionRow<O: OptionSet> {
    /// What it is called.
    pub names: Names,
    /// What values it takes.
    pub kind: Kind,
    /// As one would type it; empty when there is none, or when the struct has it.
    pub default: &'static str,
    /// One sentence or more.
    pub help: &'static str,
    /// What becomes of it here.
    pub support: Support,
    /// Mentioned when it is given.
    pub deprecation: Option<&'static str>,
    /// What it does.
    pub(crate) action: Action<O>,
}

/// What becomes of an option here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It works.
    Works,
    /// Accepted without effect, and why.
    NoEffect(&'static str),
    /// Accepted with a warning unless its value is the default, and what is missing: nothing that makes results wrong
    /// or the command less safe.
    Missing(&'static str),
    /// Refused whatever its value, and why.
    Refused(&'static str),
}

/// Stores a value of the right kind.
pub(crate) type StoreFn<O> = fn(&mut O, &Occurrence) -> Result<(), <O as OptionSet>::Error>;

/// What an option does.
pub(crate) enum Action<O: OptionSet> {
    /// Nothing: only its value is checked.
    Check,
    Field(fn(&mut O) -> &mut dyn Store),
    Store(StoreFn<O>),
    Help,
    Version,
}

impl<O: OptionSet> OptionRow<O> {
    /// An option that takes values of that kind, and so far does nothing with them.
    pub const fn new(long: &'static str, kind: Kind, help: &'static str) -> Self {
        Self::of(kind).named(long, help)
    }

    /// The same, to be named by a table of [`options!`](crate::options).
    pub const fn of(kind: Kind) -> Self {
        let names = Names { long: "", short: None, meaning: "" };
        let (support, action) = (Support::Works, Action::Check);
        Self { names, kind, default: "", help: "", support, deprecation: None, action }
    }

    /// Its name, and what it does.
    pub const fn named(mut self, long: &'static str, help: &'static str) -> Self {
        (self.names.long, self.help) = (long, help);
        self
    }

    /// The option that asks for the help text: `--help` and `-h`.
    pub const fn help(help: &'static str) -> Self {
        let mut row = Self::new("help", Kind::Switch, help).short('h');
        row.action = Action::Help;
        row
    }

    /// The option that asks for the version.
    pub const fn version(help: &'static str) -> Self {
        let mut row = Self::new("version", Kind::Switch, help);
        row.action = Action::Version;
        row
    }

    /// Its letter.
    pub const fn short(mut self, short: char) -> Self {
        self.names.short = Some(short);
        self
    }

    /// What messages call it when it has no long name.
    pub const fn meaning(mut self, meaning: &'static str) -> Self {
        self.names.meaning = meaning;
        self
    }

    /// The value it has when it is not given; it goes through the closure like one that is.
    pub const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    /// The field that takes its value.
    pub const fn fills(mut self, field: fn(&mut O) -> &mut dyn Store) -> Self {
        self.action = Action::Field(field);
        self
    }

    /// What is done with its value.
    pub const fn stores(
        mut self,
        store: fn(&mut O, &Occurrence) -> Result<(), <O as OptionSet>::Error>,
    ) -> Self {
        self.action = Action::Store(store);
        self
    }

    /// Accepted without effect.
    pub const fn no_effect(mut self, why: &'static str) -> Self {
        self.support = Support::NoEffect(why);
        self
    }

    /// Accepted, with a warning unless its value is the default.
    pub const fn missing(mut self, what: &'static str) -> Self {
        self.support = Support::Missing(what);
        self
    }

    /// Refused whatever its value.
    pub const fn refused(mut self, why: &'static str) -> Self {
        self.support = Support::Refused(why);
        self
    }

    /// Mentioned when it is given.
    pub const fn deprecated(mut self, warning: &'static str) -> Self {
        self.deprecation = Some(warning);
        self
    }
}

/// A table in which each option stands below its help: `/// The name of the server.` and `"id" => OptionRow::of(Kind::Text),`.
#[macro_export]
macro_rules! options {
    ($($(#[doc = $help:literal])+ $name:literal => $row:expr,)+) => {
        &[$($row.named($name, concat!($($help),+).trim_ascii_start())),+]
    };
}

/// Every option of every group.
pub fn rows<O: OptionSet>() -> impl Iterator<Item = &'static OptionRow<O>> {
    O::groups().iter().flat_map(|group| group.rows)
}
