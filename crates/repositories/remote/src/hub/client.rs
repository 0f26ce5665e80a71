//! The requests to a hub.

use galatea_types::Environment;
use galatea_web_client::{Answer, Get, HttpClient, checked_uri, is_same};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header::ETAG};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    address::HubAddress,
    listing::{self, HubFile},
    token,
};
use crate::{
    error::{FailureKind, RemoteError},
    remote_files::ByteStream,
    web,
};

/// The public hub, and the variable that names another one.
const PUBLIC: &str = "https://huggingface.co";
const ENDPOINT: &str = "HF_ENDPOINT";

/// Most bytes of a response about a revision, and of a page of a listing: both have a line for each file.
const MAX_ANSWER: u64 = 64 << 20;

/// Most bytes of an error's text.
const MAX_ERROR: u64 = 64 << 10;

/// A client of one hub for one repository.
#[derive(Clone, Debug)]
pub struct HubClient {
    http: HttpClient,
    /// Address without a slash at its end.
    pub endpoint: String,
    authorization: Option<HeaderValue>,
    repository: String,
}

impl HubClient {
    /// # Errors
    /// When the address of the hub or the token cannot be used.
    pub fn new(
        http: HttpClient,
        environment: &Environment,
        address: &HubAddress,
    ) -> Result<Self, RemoteError> {
        let endpoint = environment.text(ENDPOINT).unwrap_or_else(|| PUBLIC.to_owned());
        let endpoint = endpoint.trim().trim_end_matches('/').to_owned();
        checked_uri(&endpoint).map_err(|error| error.within(ENDPOINT))?;
        let authorization = token::authorization(environment)?;
        Ok(Self { http, endpoint, authorization, repository: address.repository.clone() })
    }

    /// Returns the current commit of a revision.
    pub async fn commit(&self, revision: &str) -> Result<String, RemoteError> {
        let path = format!("/api/models/{}/revision/{}", self.repository, encoded(revision));
        let answer = self.get(&(self.endpoint.clone() + &path), 0, MAX_ANSWER).await?;
        listing::commit(&answer.response.into_body().all().await?)
    }

    /// Returns all files at a commit. Fails if there are more than `most`.
    pub async fn files(&self, commit: &str, most: usize) -> Result<Vec<HubFile>, RemoteError> {
        let mut files = Vec::new();
        let path = format!("/api/models/{}/tree/{commit}?recursive=true", self.repository);
        let mut next = Some(self.endpoint.clone() + &path);
        while let Some(address) = next {
            let answer = self.get(&address, 0, MAX_ANSWER).await?;
            next = listing::next_page(answer.response.headers());
            let page = listing::files(&answer.response.into_body().all().await?)?;
            if files.len() + page.len() > most || (page.is_empty() && next.is_some()) {
                let text = format!("there are more than {most} files in it");
                return Err(RemoteError::new(FailureKind::Invalid, text));
            }
            files.extend(page);
        }
        Ok(files)
    }

    /// Requests the bytes of a file at a commit, beginning at a given byte.
    pub async fn open(
        &self,
        commit: &str,
        file: &HubFile,
        from: u64,
    ) -> Result<ByteStream, RemoteError> {
        let path = encoded_path(&file.path);
        let address = format!("{}/{}/resolve/{commit}/{path}", self.endpoint, self.repository);
        let answer = self.get(&address, from, file.size.saturating_add(1)).await?;
        let said = version(&answer.first).filter(|said| listing::is_digest(said));
        if said.is_some_and(|said| !said.eq_ignore_ascii_case(&file.version)) {
            let text = format!(
                "the hub sent another version of '{}' than it listed",
                web::printable(&file.path, 200)
            );
            return Err(RemoteError::new(FailureKind::Changed, text));
        }
        web::bytes_from(answer, from)
    }

    async fn get(&self, address: &str, from: u64, most: u64) -> Result<Answer, RemoteError> {
        let uri = checked_uri(address)?;
        let own: Uri = checked_uri(&self.endpoint)?;
        if !is_same(&uri, &own) {
            let text = "the hub names another server for the rest of its answer";
            return Err(RemoteError::new(FailureKind::Invalid, text));
        }
        let mut asked = Get::new(uri, most);
        asked.authorization.clone_from(&self.authorization);
        asked.from = from;
        let answer = self.http.get(&asked).await?;
        match answer.status.is_success() {
            true => Ok(answer),
            false => Err(self.refusal(answer).await),
        }
    }

    /// Explains an unsuccessful response, with a remedy.
    async fn refusal(&self, answer: Answer) -> RemoteError {
        let status = answer.status;
        let header = |name: &str| {
            let value = answer.response.headers().get(name).or_else(|| answer.first.get(name));
            value
                .and_then(|value| value.to_str().ok())
                .map(|text| web::printable(text, 200))
                .unwrap_or_default()
        };
        let (code, said) = (header("x-error-code"), header("x-error-message"));
        let text = self.words(status, &code, &said);
        let headers = answer.response.headers().clone();
        // Read so that the connection can be used again. The text is not needed.
        if answer.length().is_some_and(|length| length < MAX_ERROR) {
            let _ = answer.response.into_body().all().await;
        }
        web::of_status(status, &headers, text)
    }

    fn words(&self, status: StatusCode, code: &str, said: &str) -> String {
        let (repository, endpoint) = (&self.repository, &self.endpoint);
        let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
        let has_token = self.authorization.is_some();
        match (status.as_u16(), code) {
            (404, "RevisionNotFound") => format!("'{repository}' has no such revision{said}"),
            (404, "EntryNotFound") => format!("the file is not there any more{said}"),
            (_, "GatedRepo") | (403, _) => format!(
                "{endpoint} refuses '{repository}' to {}: accept its conditions on its page there, and give the \
                 token of that account in HF_TOKEN{said}",
                if has_token { "the account of this token" } else { "strangers" }
            ),
            (401, _) if has_token => {
                format!(
                    "{endpoint} does not accept the token: it is wrong or has expired; give another one in HF_TOKEN{said}"
                )
            }
            (401 | 404, _) => format!(
                "{endpoint} has no '{repository}', or hides it from this account: check the name{}{said}",
                if has_token {
                    ", and that the token's account may read it"
                } else {
                    "; for a private one give a token in HF_TOKEN"
                }
            ),
            (429, _) => format!(
                "{endpoint} limits the number of requests: with a token in HF_TOKEN it allows more{said}"
            ),
            (status, _) => format!("{endpoint} answered with status {status}{said}"),
        }
    }
}

/// Returns the version of the content from the hub's own server. A store that it redirects to has another version.
fn version(headers: &HeaderMap) -> Option<String> {
    let named = headers.get("x-linked-etag").or_else(|| headers.get(ETAG))?.to_str().ok()?;
    Some(named.trim_start_matches("W/").trim_matches('"').to_owned())
}

/// Characters that stay unchanged in a part of an address.
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Encodes a text as one part of an address.
fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &UNRESERVED).to_string()
}

/// Encodes the path of a file as parts of an address.
fn encoded_path(text: &str) -> String {
    const WITH_SLASHES: AsciiSet = UNRESERVED.remove(b'/');
    utf8_percent_encode(text, &WITH_SLASHES).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_addresses() {
        assert_eq!(encoded_path("a b/ä#?.onnx"), "a%20b/%C3%A4%23%3F.onnx");
        assert_eq!(encoded("refs/pr/1"), "refs%2Fpr%2F1");
    }

    #[test]
    fn versions_are_parsed() {
        let mut headers = HeaderMap::new();
        assert_eq!(version(&headers), None);
        headers.insert(ETAG, HeaderValue::from_static("W/\"abc\""));
        assert_eq!(version(&headers).as_deref(), Some("abc"));
        headers.insert("x-linked-etag", HeaderValue::from_static("\"def\""));
        assert_eq!(version(&headers).as_deref(), Some("def"));
    }
}
