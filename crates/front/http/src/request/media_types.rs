//! The media types that a client names in `Accept`.

use galatea_http1::{RequestHead, visible_text};

/// Returns `true` if the client names the media type; `*/*` does not.
pub(crate) fn is_named(head: &RequestHead, media_type: &str) -> bool {
    let values = head.get_all("accept").filter(|value| value.len() >= media_type.len());
    let values = values.filter_map(visible_text);
    values.flat_map(|value| value.split(',')).any(|range| is_of(range, media_type))
}

/// Matches an element of `Accept`. A weight of 0 excludes it.
fn is_of(range: &str, media_type: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(media_type));
    let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
    is_named && weight.and_then(|q| q.parse().ok()).is_none_or(|q: f32| q > 0.0)
}
