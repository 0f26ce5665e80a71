//! Rows of the table of options, and the trait that gives a command its table.

use crate::{
    error::{BadValue, CommandLineError},
    kind::Kind,
    names::Names,
    occurrence::Occurrence,
    store::Store,
};

/// The options of a command: a struct that a table of rows fills.
pub trait OptionSet: Sized + 'static {
    /// The error with which closures of the table refuse values.
    type Error: From<CommandLineError> + From<BadValue>;

    /// Long names may be typed with `_` for `-`.
    const TAKES_UNDERSCORES: bool = false;

    /// Returns the table, in the order of the help.
    fn groups() -> &'static [Group<Self>];

    /// Takes a word that is no option.
    fn word(&mut self, word: String) -> Result<(), Self::Error>;

    /// Takes a notice about an option that was accepted.
    fn notice(&mut self, _notice: Notice) {}
}

/// A notice about an option that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A warning, of the row itself or of the closure that stores its value.
    Warning(String),
    /// The option has no effect here.
    NoEffect {
        /// The option with its dashes.
        option: String,
        /// The value as typed.
        value: String,
        /// The reason.
        why: &'static str,
    },
    /// The option asks for something that is not built yet. The command continues without it.
    Missing {
        /// The option with its dashes.
        option: String,
        /// The value as typed.
        value: String,
        /// The missing feature.
        what: &'static str,
    },
}

/// Options of one topic, in the order of the help.
pub struct Group<O: OptionSet> {
    /// The heading; empty for none.
    pub title: &'static str,
    /// The options.
    pub rows: &'static [OptionRow<O>],
    /// The options are not the original program's: their names never make an abbreviation of one of its names ambiguous.
    pub is_own: bool,
}

/// An option.
pub struct OptionRow<O: OptionSet> {
    /// The names of the option.
    pub names: Names,
    /// The kind of its values.
    pub kind: Kind,
    /// The default as one would type it; empty when there is none, or when the struct has it.
    pub default: &'static str,
    /// The help, of one sentence or more.
    pub help: &'static str,
    /// The support of the option in this program.
    pub support: Support,
    /// A warning for users of the option.
    pub deprecation: Option<&'static str>,
    /// The action of the option.
    pub(crate) action: Action<O>,
}

/// The support of an option in this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// The option works.
    Works,
    /// The option is accepted without effect, for this reason.
    NoEffect(&'static str),
    /// The option is accepted with a warning unless its value is the default; the text names the missing feature. This is only
    /// for features whose absence makes no result wrong and the command no less safe.
    Missing(&'static str),
    /// The option is refused with any value, for this reason.
    Refused(&'static str),
}

/// Stores a value of the right kind.
pub(crate) type StoreFn<O> = fn(&mut O, &Occurrence) -> Result<(), <O as OptionSet>::Error>;

/// The action of an option.
pub(crate) enum Action<O: OptionSet> {
    /// Only checks the value.
    Check,
    Field(fn(&mut O) -> &mut dyn Store),
    Store(StoreFn<O>),
    Help,
    Version,
}

impl<O: OptionSet> OptionRow<O> {
    /// Makes an option for values of that kind, so far without an action.
    pub const fn new(long: &'static str, kind: Kind, help: &'static str) -> Self {
        Self::of(kind).named(long, help)
    }

    /// Makes an option that a table of [`options!`](crate::options) will name.
    pub const fn of(kind: Kind) -> Self {
        let names = Names { long: "", short: None, meaning: "" };
        let (support, action) = (Support::Works, Action::Check);
        Self { names, kind, default: "", help: "", support, deprecation: None, action }
    }

    /// Sets its name and its help.
    pub const fn named(mut self, long: &'static str, help: &'static str) -> Self {
        (self.names.long, self.help) = (long, help);
        self
    }

    /// Makes the option that asks for the help text: `--help` and `-h`.
    pub const fn help(help: &'static str) -> Self {
        let mut row = Self::new("help", Kind::Switch, help).short('h');
        row.action = Action::Help;
        row
    }

    /// Makes the option that asks for the version.
    pub const fn version(help: &'static str) -> Self {
        let mut row = Self::new("version", Kind::Switch, help);
        row.action = Action::Version;
        row
    }

    /// Sets its letter.
    pub const fn short(mut self, short: char) -> Self {
        self.names.short = Some(short);
        self
    }

    /// Sets the name in messages of an option without a long name.
    pub const fn meaning(mut self, meaning: &'static str) -> Self {
        self.names.meaning = meaning;
        self
    }

    /// Sets the default value, which goes through the closure like a given one.
    pub const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    /// Sets the field that takes its value.
    pub const fn fills(mut self, field: fn(&mut O) -> &mut dyn Store) -> Self {
        self.action = Action::Field(field);
        self
    }

    /// Sets the closure that takes its value.
    pub const fn stores(
        mut self,
        store: fn(&mut O, &Occurrence) -> Result<(), <O as OptionSet>::Error>,
    ) -> Self {
        self.action = Action::Store(store);
        self
    }

    /// Marks the option as accepted without effect.
    pub const fn no_effect(mut self, why: &'static str) -> Self {
        self.support = Support::NoEffect(why);
        self
    }

    /// Marks the option as accepted, with a warning unless its value is the default.
    pub const fn missing(mut self, what: &'static str) -> Self {
        self.support = Support::Missing(what);
        self
    }

    /// Marks the option as refused with any value.
    pub const fn refused(mut self, why: &'static str) -> Self {
        self.support = Support::Refused(why);
        self
    }

    /// Sets a warning for users of the option.
    pub const fn deprecated(mut self, warning: &'static str) -> Self {
        self.deprecation = Some(warning);
        self
    }
}

/// Makes a table in which each option follows its help: `/// The name of the server.` and `"id" => OptionRow::of(Kind::Text),`.
#[macro_export]
macro_rules! options {
    ($($(#[doc = $help:literal])+ $name:literal => $row:expr,)+) => {
        &[$($row.named($name, concat!($($help),+).trim_ascii_start())),+]
    };
}

/// Returns every option of every group.
pub fn rows<O: OptionSet>() -> impl Iterator<Item = &'static OptionRow<O>> {
    O::groups().iter().flat_map(|group| group.rows)
}
