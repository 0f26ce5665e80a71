//! The error type of all public interfaces.

use std::{borrow::Cow, error, fmt, sync::Arc};

/// A result with the error type of all public interfaces.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The class of an error. Every front end maps it to its own status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The class is not known; also the class of a model's error without a class.
    Unknown,
    /// The server or a model has a fault.
    Internal,
    /// The named thing does not exist.
    NotFound,
    /// The request or the configuration is wrong.
    InvalidArg,
    /// Not possible now: stopping, overloaded, not loaded, or timed out.
    Unavailable,
    /// Understood, but not supported here.
    Unsupported,
    /// The thing to create exists already.
    AlreadyExists,
    /// Cancelled by the caller.
    Cancelled,
    /// Not possible now: others use the resources that the request needs. Triton has no such class.
    Exhausted,
}

impl Code {
    /// Returns the name in logs and load reasons, e.g. `Invalid argument`.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Unknown => "Unknown",
            Code::Internal => "Internal",
            Code::NotFound => "Not found",
            Code::InvalidArg => "Invalid argument",
            Code::Unavailable => "Unavailable",
            Code::Unsupported => "Unsupported",
            Code::AlreadyExists => "Already exists",
            Code::Cancelled => "Cancelled",
            Code::Exhausted => "Exhausted",
        }
    }
}

/// The error type of all public interfaces. Clients read `message`; `source` stays in the log.
///
/// Cloning is cheap enough to give one failure to every request of a batch.
#[derive(Clone, Debug)]
pub struct Error {
    code: Code,
    message: Arc<str>,
    source: Option<Arc<dyn error::Error + Send + Sync>>,
}

impl Error {
    /// Makes an error without a cause.
    pub fn new(code: Code, message: impl Into<Arc<str>>) -> Self {
        Self { code, message: message.into(), source: None }
    }

    /// Makes an error of [`Code::Unknown`].
    pub fn unknown(message: impl Into<Arc<str>>) -> Self {
        Self::new(Code::Unknown, message)
    }

    /// Makes an error of [`Code::Internal`].
    pub fn internal(message: impl Into<Arc<str>>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// Makes an error of [`Code::Internal`] for a request whose responder was dropped before the last response.
    pub fn unanswered() -> Self {
        Self::internal("the request was dropped without a response")
    }

    /// Makes an error of [`Code::NotFound`].
    pub fn not_found(message: impl Into<Arc<str>>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// Makes an error of [`Code::InvalidArg`].
    pub fn invalid_arg(message: impl Into<Arc<str>>) -> Self {
        Self::new(Code::InvalidArg, message)
    }

    /// Makes an error of [`Code::Unavailable`].
    pub fn unavailable(message: impl Into<Arc<str>>) -> Self {
        Self::new(Code::Unavailable, message)
    }

    /// Makes an error of [`Code::Unsupported`].
    pub fn unsupported(message: impl Into<Arc<str>>) -> Self {
        Self::new(Code::Unsupported, message)
    }

    /// Makes an error of [`Code::Cancelled`].
    pub fn cancelled(message: impl Into<Arc<str>>) -> Self {
        Self::new(Code::Cancelled, message)
    }

    /// Adds the cause, which is logged and never sent.
    pub fn with_source(mut self, source: impl error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Puts `prefix` before the message.
    pub fn prefixed(mut self, prefix: impl fmt::Display) -> Self {
        self.message = format!("{prefix}{}", self.message).into();
        self
    }

    /// Shortens the message to the longest that a client may receive: a model can write any text into it.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        if let Cow::Owned(text) = shortened(&self.message) {
            self.message = text.into();
        }
        self
    }

    /// Returns the message and its causes for a log. It leaves out causes that the text already contains, because many texts end
    /// in their cause. A cause of several lines, such as a traceback, begins on a new line.
    pub fn with_causes(&self) -> String {
        let mut text = self.message.to_string();
        let mut cause = error::Error::source(self);
        while let Some(source) = cause {
            let more = source.to_string();
            if !text.contains(&more) {
                let is_long = more.contains('\n');
                if is_long {
                    drop_places(&mut text);
                }
                text.truncate(text.trim_end().len());
                text.push_str(if is_long { "\n" } else { ": " });
                text.push_str(&more);
            }
            cause = source.source();
        }
        text
    }

    /// Returns its class.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns the message for clients.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.source.as_deref().map(|s| s as &(dyn error::Error + 'static))
    }
}

/// Longest text of an error from a model, in bytes. A page of text has some 3 KB.
pub const MAX_ERROR_TEXT: usize = 64 << 10;
const CUT: &str = " ... (shortened)";

/// Returns the text, cut to [`MAX_ERROR_TEXT`].
pub fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_ERROR_TEXT {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(MAX_ERROR_TEXT - CUT.len());
    Cow::Owned(format!("{}{CUT}", text.get(..end).unwrap_or_default()))
}

/// Removes the lines with the places of a Python exception, which are for clients: the traceback that follows has them too.
fn drop_places(text: &mut String) {
    const HEAD: &str = "\n\nAt:\n";
    let Some(start) = text.find(HEAD) else { return };
    let lines = text[start + HEAD.len()..].split_inclusive('\n');
    let places: usize = lines.take_while(|line| line.starts_with("  ")).map(str::len).sum();
    text.replace_range(start + 1..start + HEAD.len() + places, "");
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn causes_follow_the_message_once() {
        let cause =
            Error::internal("worker gave up").with_source(io::Error::other("Traceback ..."));
        let error = Error::internal("no output\n").with_source(cause);
        assert_eq!(error.with_causes(), "no output: worker gave up: Traceback ...");
        let named = Error::internal("cannot read x: odd").with_source(io::Error::other("odd"));
        assert_eq!(named.with_causes(), "cannot read x: odd");
        assert_eq!(Error::unknown("odd").with_causes(), "odd");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let exact = "é".repeat(MAX_ERROR_TEXT / 2);
        assert_eq!(Error::internal(exact.clone()).shortened().message(), exact);
        let cut = Error::internal(format!("a{exact}")).shortened();
        assert!(
            cut.message().len() <= MAX_ERROR_TEXT && cut.message().ends_with("é ... (shortened)")
        );
    }

    #[test]
    fn a_traceback_is_logged_instead_of_the_locations_sent_to_clients() {
        let traceback = || io::Error::other("Traceback:\n  File x\nOSError: no");
        for (message, told) in [
            ("OSError: no\n\nAt:\n  m.py(5): f\n  m.py(3): g\n", "OSError: no\n"),
            ("OSError: no\n\nAt:\n  m.py(5): f\nLook there.", "OSError: no\nLook there.\n"),
            ("OSError: no\n\nAt:\n", "OSError: no\n"),
            ("OSError: no", "OSError: no\n"),
        ] {
            let error = Error::internal(message).with_source(traceback());
            assert_eq!(error.with_causes(), format!("{told}{}", traceback()));
            assert_eq!(Error::internal(message).with_causes(), message);
        }
    }
}
