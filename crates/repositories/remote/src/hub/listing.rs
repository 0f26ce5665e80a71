//! A hub's listing of a repository.

use http::{HeaderMap, header::LINK};
use serde::Deserialize;

use crate::{
    error::{FailureKind, RemoteError},
    hex, web,
};

/// One file of a repository at one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubFile {
    pub path: String,
    pub size: u64,
    /// Version of the content: git's digest, or the SHA-256 of a large file that is kept apart.
    pub version: String,
    pub sha256: Option<[u8; 32]>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    oid: String,
    #[serde(default)]
    size: u64,
    lfs: Option<LfsFile>,
}

/// A large file that is kept apart (Git LFS).
#[derive(Deserialize)]
struct LfsFile {
    oid: String,
    size: u64,
}

#[derive(Deserialize)]
struct Revision {
    sha: String,
}

/// Reads the files of one page of a listing.
///
/// # Errors
/// When the text is not a page of a listing.
pub fn files(page: &[u8]) -> Result<Vec<HubFile>, RemoteError> {
    let entries: Vec<Entry> =
        serde_json::from_slice(page).map_err(|_| invalid("a list of files"))?;
    entries.into_iter().filter(|entry| entry.kind == "file").map(file).collect()
}

fn file(entry: Entry) -> Result<HubFile, RemoteError> {
    let odd = |what: &str| {
        let path = web::printable(&entry.path, 200);
        let text = format!("the hub's entry of the file '{path}' has no valid {what}");
        RemoteError::new(FailureKind::Invalid, text)
    };
    match &entry.lfs {
        Some(large) => {
            let sha256 = hex::decoded(&large.oid).ok_or_else(|| odd("SHA-256"))?;
            let version = large.oid.to_ascii_lowercase();
            Ok(HubFile { size: large.size, version, sha256: Some(sha256), path: entry.path })
        }
        None if is_digest(&entry.oid) => {
            Ok(HubFile { size: entry.size, version: entry.oid, sha256: None, path: entry.path })
        }
        None => Err(odd("version")),
    }
}

/// Reads the commit of a revision.
///
/// # Errors
/// When the response contains none.
pub fn commit(answer: &[u8]) -> Result<String, RemoteError> {
    let revision: Option<Revision> = serde_json::from_slice(answer).ok();
    let commit = revision.map(|revision| revision.sha).filter(|sha| is_digest(sha));
    commit.ok_or_else(|| invalid("a commit"))
}

/// Returns true for git's digests: SHA-1 or SHA-256.
pub fn is_digest(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn invalid(what: &str) -> RemoteError {
    let text = format!("the hub's answer is not {what}; is HF_ENDPOINT the address of a hub?");
    RemoteError::new(FailureKind::Invalid, text)
}

/// Returns the address of the next page, from `Link: <https://...>; rel="next"`.
pub fn next_page(headers: &HeaderMap) -> Option<String> {
    let links = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    let next =
        links.flat_map(|value| value.split(',')).find(|link| link.contains("rel=\"next\""))?;
    let address = next.trim().strip_prefix('<')?.split_once('>')?.0;
    Some(address.to_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const OID: &str = "0123456789abcdef0123456789abcdef01234567";
    const SHA: &str = "00112233445566778899AABBccddeeff00112233445566778899aabbccddeeff";

    #[test]
    fn files_and_their_versions_are_listed() {
        let page = format!(
            r#"[{{"type":"directory","oid":"x","size":0,"path":"onnx"}},
                {{"type":"file","oid":"{OID}","size":5,"path":"config.json","extra":1}},
                {{"type":"file","oid":"{OID}","size":130,"path":"onnx/m.onnx",
                  "lfs":{{"oid":"{SHA}","size":1000,"pointerSize":130}}}}]"#
        );
        let found = files(page.as_bytes()).expect("a page");
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].version.as_str(), found[0].size, found[0].sha256), (OID, 5, None));
        assert_eq!((found[1].size, found[1].version.clone()), (1000, SHA.to_lowercase()));
        let bytes = found[1].sha256.expect("large files have one");
        assert_eq!((bytes[1], bytes[10], bytes[31]), (0x11, 0xaa, 0xff));
    }

    #[test]
    fn invalid_listings_are_refused() {
        for page in ["", "{}", "<html>", r#"[{"path":"x"}]"#, r#"[{"type":"file","path":1}]"#] {
            let text = files(page.as_bytes()).expect_err(page).to_string();
            assert!(text.contains("HF_ENDPOINT"), "{text}");
        }
        let odd = r#"[{"type":"file","path":"a\nb","oid":"../..","size":1}]"#;
        let text = files(odd.as_bytes()).expect_err("no version").to_string();
        assert!(text.contains("'a b' has no valid version"), "{text}");
        let odd = r#"[{"type":"file","path":"a","lfs":{"oid":"abc","size":1}}]"#;
        assert!(files(odd.as_bytes()).expect_err("short").to_string().contains("SHA-256"));
        let signs = "+1".repeat(32);
        assert_eq!(hex::decoded::<32>(&signs), None);
        assert_eq!(hex::decoded::<32>(&"é".repeat(32)), None);
    }

    #[test]
    fn commits_are_parsed() {
        assert_eq!(commit(format!(r#"{{"sha":"{OID}"}}"#).as_bytes()).expect("one"), OID);
        for odd in ["", "{}", r#"{"sha":"main"}"#, r#"{"sha":"../../x"}"#] {
            assert!(commit(odd.as_bytes()).is_err(), "{odd}");
        }
    }

    #[test]
    fn next_page_links_are_parsed() {
        let next = |link: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(LINK, HeaderValue::from_static(link));
            next_page(&headers)
        };
        assert_eq!(
            next(r#"<https://h/a?cursor=x>; rel="next""#).as_deref(),
            Some("https://h/a?cursor=x")
        );
        assert_eq!(
            next(r#"<https://h/1>; rel="prev", <https://h/2>; rel="next""#).as_deref(),
            Some("https://h/2")
        );
        assert_eq!(next(r#"<https://h/1>; rel="prev""#), None);
        assert_eq!(next(r#"https://h/1; rel="next""#), None);
        assert_eq!(next_page(&HeaderMap::new()), None);
    }
}
