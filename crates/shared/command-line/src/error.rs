//! What is wrong with a command line. The texts are getopt's and Triton's: scripts match on them.

/// Why a command line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandLineError {
    /// No option has that name.
    #[error("unrecognized option '{given}'{}", suggestion(hint.as_deref()))]
    Unknown {
        /// As typed, dashes included; an attached value only where there is no hint.
        given: String,
        /// The nearest known name, dashes included.
        hint: Option<String>,
    },
    /// No option has that letter.
    #[error("invalid option -- '{letter}'")]
    UnknownLetter {
        /// As typed.
        letter: char,
    },
    /// The beginning of several names.
    #[error("option '{given}' is ambiguous; possibilities:{}", listed(possible))]
    Ambiguous {
        /// As typed, dashes and attached value included.
        given: String,
        /// The names it may stand for, without dashes.
        possible: Vec<&'static str>,
    },
    /// The command line ends where the value should be.
    #[error("option '--{name}' requires an argument")]
    NeedsValue {
        /// Without the dashes.
        name: &'static str,
    },
    /// The same of a short option.
    #[error("option requires an argument -- '{letter}'")]
    LetterNeedsValue {
        /// As typed.
        letter: char,
    },
    /// A value where none is taken.
    #[error("option '--{name}' doesn't allow an argument")]
    TakesNoValue {
        /// Without the dashes.
        name: &'static str,
    },
    /// A value that its option cannot have.
    #[error(transparent)]
    BadValue(#[from] BadValue),
    /// It asks for something that is not offered at all.
    #[error("{option} is not supported: {why}")]
    Refused {
        /// With its dashes.
        option: String,
        /// The reason.
        why: &'static str,
    },
}

/// A value that its option cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Bad option: \"{option}\". {reason}")]
pub struct BadValue {
    /// With its dashes.
    pub option: String,
    /// What is wrong with the value.
    #[source]
    pub reason: ValueError,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Neither yes nor no.
    #[error("invalid value for bool option: {0} (use true or false)")]
    NotBool(String),
    /// Not a number, or not one of the kind asked for.
    #[error("Invalid option value. Got {0}, expected a number")]
    NotANumber(String),
    /// A whole number out of the option's range.
    #[error("Provided option value is out of bound. Got {got}, expected {min} to {max}")]
    OutOfBounds {
        /// As typed.
        got: String,
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// A whole number beyond what any option takes.
    #[error("Provided option value is out of bound. Got {0}")]
    TooLarge(String),
    /// Nothing, where something must stand. Holds the option with its dashes.
    #[error("Error: empty argument for {0}")]
    Empty(String),
    /// None of the words the option knows.
    #[error("invalid argument for {option}: got '{got}', expected one of {}", choices.join(", "))]
    NotAChoice {
        /// With its dashes.
        option: String,
        /// As typed.
        got: String,
        /// The words it knows.
        choices: &'static [&'static str],
    },
    /// What the option itself says of its value.
    #[error("{0}")]
    Rejected(String),
    /// A value with parts that are not put together as they should be.
    #[error("{option} option format is {form}. Got {got}")]
    Malformed {
        /// With its dashes.
        option: String,
        /// What is expected.
        form: &'static str,
        /// As typed.
        got: String,
    },
    /// A value that means something impossible, in the words of what it is meant for.
    #[error("{0}")]
    Meaning(String),
}

fn suggestion(hint: Option<&str>) -> String {
    hint.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default()
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!(" '--{name}'")).collect()
}
