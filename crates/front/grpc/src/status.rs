//! Errors as gRPC statuses.

use std::{borrow::Cow, time::Duration};

use galatea_frontend::{AccessError, ClientLimitError};
use galatea_protocol::grpc_code;
use galatea_types::{Error, Overloaded};
use tonic::{Code, Status, metadata::MetadataMap};

/// The longest text of a status in its encoded form, in bytes. It is part of the trailers, and clients on the common
/// library may refuse trailers over 8 KiB and report that instead of our error.
const MAX_TEXT: usize = 6 << 10;
const CUT: &str = " ... (shortened)";

pub(crate) fn status_of(error: &Error) -> Status {
    let code = match AccessError::of(error) {
        Some(refused) => code_of_refusal(refused),
        None => Code::from_i32(grpc_code(error.code())),
    };
    let text = fitting(error.message());
    let wait = ClientLimitError::of(error).map(ClientLimitError::wait);
    match wait.or_else(|| Overloaded::of(error).map(Overloaded::wait)) {
        Some(wait) => Status::with_metadata(code, text, when_to_retry(wait)),
        None => Status::new(code, text),
    }
}

/// The trailer with the milliseconds that clients on the common library wait before another attempt.
const RETRY_PUSHBACK: &str = "grpc-retry-pushback-ms";

fn when_to_retry(wait: Duration) -> MetadataMap {
    let mut trailers = MetadataMap::new();
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    trailers.insert(RETRY_PUSHBACK, wait.min(i32::MAX as u64).into());
    trailers
}

fn code_of_refusal(error: &AccessError) -> Code {
    match error {
        AccessError::Unauthenticated(_) => Code::Unauthenticated,
        AccessError::Denied { .. } | AccessError::Closed { .. } => Code::PermissionDenied,
    }
}

/// Returns the text, truncated if it is too long.
fn fitting(text: &str) -> Cow<'_, str> {
    let mut length = 0;
    let mut room = None;
    for (at, character) in text.char_indices() {
        length += encoded_length(character);
        if length > MAX_TEXT - CUT.len() {
            room.get_or_insert(at);
        }
        if length > MAX_TEXT {
            let kept = room.and_then(|end| text.get(..end)).unwrap_or_default();
            return Cow::Owned(format!("{kept}{CUT}"));
        }
    }
    Cow::Borrowed(text)
}

/// Returns the bytes of a character in a trailer. The percent sign and anything but printable ASCII is `%XX` per byte.
fn encoded_length(character: char) -> usize {
    match character {
        '%' => 3,
        ' '..='~' => 1,
        other => 3 * other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_to_the_clients_limit() {
        for text in ["", "short", &"x".repeat(MAX_TEXT), &"é".repeat(MAX_TEXT / 6)] {
            assert_eq!(fitting(text), text);
        }
        for text in ["x".repeat(MAX_TEXT + 1), "\n".repeat(MAX_TEXT), "€".repeat(5000)] {
            let cut = fitting(&text);
            assert!(cut.ends_with(CUT) && cut.len() > MAX_TEXT / 4, "{}", cut.len());
            let encoded: usize = cut.chars().map(encoded_length).sum();
            assert!(encoded <= MAX_TEXT, "{encoded}");
        }
    }
}
