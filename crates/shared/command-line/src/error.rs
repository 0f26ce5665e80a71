//! Errors of command lines. The texts are getopt's and Triton's: scripts match on them.

/// The reason why a command line is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandLineError {
    /// No option has that name.
    #[error("unrecognized option '{given}'{}", suggestion(hint.as_deref()))]
    Unknown {
        /// The option as typed, with dashes; with its attached value only if there is no hint.
        given: String,
        /// The nearest known name, with dashes.
        hint: Option<String>,
    },
    /// No option has that letter.
    #[error("invalid option -- '{letter}'")]
    UnknownLetter {
        /// The letter as typed.
        letter: char,
    },
    /// The text begins several names.
    #[error("option '{given}' is ambiguous; possibilities:{}", listed(possible))]
    Ambiguous {
        /// The option as typed, with dashes and attached value.
        given: String,
        /// The possible names, without dashes.
        possible: Vec<&'static str>,
    },
    /// The command line ends where the value should be.
    #[error("option '--{name}' requires an argument")]
    NeedsValue {
        /// The name without the dashes.
        name: &'static str,
    },
    /// The command line ends where the value of a short option should be.
    #[error("option requires an argument -- '{letter}'")]
    LetterNeedsValue {
        /// The letter as typed.
        letter: char,
    },
    /// The option takes no value, but has one.
    #[error("option '--{name}' doesn't allow an argument")]
    TakesNoValue {
        /// The name without the dashes.
        name: &'static str,
    },
    /// The option cannot have this value.
    #[error(transparent)]
    BadValue(#[from] BadValue),
    /// The option is not supported at all.
    #[error("{option} is not supported: {why}")]
    Refused {
        /// The option with its dashes.
        option: String,
        /// The reason.
        why: &'static str,
    },
}

/// A value that its option cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Bad option: \"{option}\". {reason}")]
pub struct BadValue {
    /// The option with its dashes.
    pub option: String,
    /// The reason why the value is wrong.
    #[source]
    pub reason: ValueError,
}

/// The reason why a value is wrong.
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
        /// The value as typed.
        got: String,
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// A whole number beyond what any option takes.
    #[error("Provided option value is out of bound. Got {0}")]
    TooLarge(String),
    /// The value is missing. Holds the option with its dashes.
    #[error("Error: empty argument for {0}")]
    Empty(String),
    /// The value is none of the option's words.
    #[error("invalid argument for {option}: got '{got}', expected one of {}", choices.join(", "))]
    NotAChoice {
        /// The option with its dashes.
        option: String,
        /// The value as typed.
        got: String,
        /// The option's words.
        choices: &'static [&'static str],
    },
    /// The option's own reason.
    #[error("{0}")]
    Rejected(String),
    /// The parts of the value do not have the expected form.
    #[error("{option} option format is {form}. Got {got}")]
    Malformed {
        /// The option with its dashes.
        option: String,
        /// The expected form.
        form: &'static str,
        /// The value as typed.
        got: String,
    },
    /// The value has the right form, but an impossible meaning. The text is that of the code that uses it.
    #[error("{0}")]
    Meaning(String),
}

fn suggestion(hint: Option<&str>) -> String {
    hint.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default()
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!(" '--{name}'")).collect()
}
