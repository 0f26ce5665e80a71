/// What is wrong with the command line. The texts are getopt's and Triton's: scripts match on them.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    #[error("unrecognized option '{given}'{}", hint.as_ref().map(|name| format!("; did you mean '--{name}'?")).unwrap_or_default())]
    Unknown { given: String, hint: Option<&'static str> },
    #[error("option '{given}' is ambiguous; possibilities:{}", possible.iter().map(|name| format!(" '--{name}'")).collect::<String>())]
    Ambiguous { given: String, possible: Vec<&'static str> },
    #[error("option '--{name}' requires an argument")]
    NeedsValue { name: &'static str },
    #[error("option '--{name}' doesn't allow an argument")]
    TakesNoValue { name: &'static str },
    #[error("Unexpected argument: {0}")]
    Unexpected(String),
    #[error("Bad option: \"--{name}\". {reason}")]
    BadValue { name: &'static str, reason: String },
    #[error("--{name} is not supported yet: {what}")]
    Unsupported { name: &'static str, what: &'static str },
    /// A rule that concerns several flags.
    #[error("{0}")]
    Rule(String),
}
