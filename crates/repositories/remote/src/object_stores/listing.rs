//! Checks that a store's response to a request for a listing is one. The library reads any other document, such as a login
//! page or a page about maintenance, as a listing without objects.

use http::{HeaderMap, Uri, header::CONTENT_TYPE};
use object_store::client::HttpRequest;

use crate::{
    error::{FailureKind, RemoteError},
    web::printable,
};

/// The outermost elements of listings: of S3 and Google, of Azure.
const ELEMENTS: [&str; 2] = ["ListBucketResult", "EnumerationResults"];

/// Most characters of another document that are shown.
const MOST_CHARS: usize = 60;

/// Returns true if a request asks for a listing. Other requests have no such query.
pub fn is_wanted(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|part| part.starts_with("list-type=") || part == "comp=list")
}

/// # Errors
/// When the body of a successful response is not a listing.
pub fn check(asked: &Uri, headers: &HeaderMap, body: &[u8]) -> Result<(), RemoteError> {
    let start = String::from_utf8_lossy(body.get(..4096).unwrap_or(body));
    if root_element(&start).is_some_and(|name| ELEMENTS.contains(&name)) {
        return Ok(());
    }
    // Omits the query, which may contain a signature.
    let host = asked.authority().map(ToString::to_string).unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let address = format!("{}://{host}{}", asked.scheme_str().unwrap_or("http"), asked.path());
    let (address, found) = (printable(&address, 300), describe(headers, &start));
    let text = format!(
        "'{address}' answered with {found} instead of a listing of objects: check the host and port of the address, \
         and whether a proxy or login page answered"
    );
    Err(RemoteError::new(FailureKind::Unavailable, text))
}

/// Returns the name of the first element, after declarations and comments.
fn root_element(text: &str) -> Option<&str> {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    for (open, close) in [("<?", "?>"), ("<!--", "-->")].iter().cycle().take(16) {
        if let Some(inside) = rest.strip_prefix(open) {
            rest = inside.split_once(close)?.1.trim_start();
        }
    }
    let rest = rest.strip_prefix('<')?;
    rest.split(|c: char| c.is_whitespace() || matches!(c, '>' | '/')).next()
}

fn describe(headers: &HeaderMap, start: &str) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind =
        kind.map_or_else(|| "a body without a media type".to_owned(), |kind| printable(kind, 60));
    match printable(start, MOST_CHARS) {
        start if start.is_empty() => format!("{kind} (empty)"),
        start => format!("{kind} that begins with {start:?}"),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn problem(kind: &'static str, body: &str) -> String {
        let mut headers = HeaderMap::new();
        if !kind.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        let asked = Uri::from_static("http://user:pw@host:9001/models?list-type=2&sig=SECRET");
        let problem = check(&asked, &headers, body.as_bytes());
        problem.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn valid_listings_are_accepted() {
        for body in [
            "<ListBucketResult></ListBucketResult>",
            "<ListBucketResult/>",
            "\u{feff}<?xml version=\"1.0\"?>\n<!-- a -->\n<ListBucketResult xmlns=\"x\">",
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ServiceEndpoint=\"x\">",
        ] {
            // Stores differ in the type that they say.
            assert_eq!(problem("text/html", body), "", "{body}");
        }
    }

    #[test]
    fn invalid_listings_are_reported_without_secrets() {
        let text = problem("text/html; charset=utf-8", "\n<!DOCTYPE html>\n<html>");
        assert_eq!(
            text,
            "'http://host:9001/models' answered with text/html; charset=utf-8 that begins with \"<!DOCTYPE html> \
             <html>\" instead of a listing of objects: check the host and port of the address, and whether a proxy or \
             login page answered"
        );
        assert!(problem("", "").contains("a body without a media type (empty) instead"));
        for body in [
            "{\"items\": []}",
            "<ListBucketResults>",
            "<?xml",
            "<!-- <ListBucketResult>",
            "<Error>",
        ] {
            assert!(problem("application/xml", body).contains("instead of a listing"), "{body}");
        }
    }

    #[test]
    fn hostile_listings_are_read_within_bounds() {
        assert!(problem("a/b", &"<?a?>".repeat(100_000)).len() < 500);
        assert!(problem("a/b", &"\u{fffd}".repeat(100_000)).len() < 800);
        let asked = Uri::from_static("http://h/b");
        assert!(check(&asked, &HeaderMap::new(), &[0xff; 5000]).is_err());
    }
}
