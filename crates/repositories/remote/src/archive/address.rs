//! Parses `https://HOST/PATH.tar.gz#sha256=DIGEST`.

use http::Uri;

use crate::{
    error::{FailureKind, RemoteError},
    hex,
};

/// Endings of archives.
const ENDINGS: [&str; 2] = [".tar.gz", ".tgz"];

/// Text before the digest.
const DIGEST: &str = "sha256=";

/// An archive on a web server.
#[derive(Clone, Debug)]
pub struct ArchiveAddress {
    pub uri: Uri,
    /// Address for messages, without parts that may be secret.
    pub place: String,
    /// Name of the archive, without its ending. It names the model if the archive does not name one itself.
    pub name: String,
    pub sha256: [u8; 32],
    /// Digest in hexadecimal digits.
    pub digest: String,
}

impl ArchiveAddress {
    /// # Errors
    /// The fault of the address, and how to make the digest.
    pub fn parse(given: &str) -> Result<Self, RemoteError> {
        let (address, fragment) = given.split_once('#').unwrap_or((given, ""));
        let place = galatea_web_client::shown(given).to_owned();
        let uri = galatea_web_client::checked_uri(address)?;
        let file = uri.path().rsplit('/').next().unwrap_or_default();
        let name = ENDINGS.iter().find_map(|ending| file.strip_suffix(ending));
        let Some(name) = name.filter(|name| !name.is_empty() && !name.starts_with('.')) else {
            let text = format!(
                "'{place}' is not an archive that can be served: its name must end in .tar.gz"
            );
            return Err(RemoteError::new(FailureKind::Invalid, text));
        };
        let digest = fragment.strip_prefix(DIGEST).unwrap_or_default().to_ascii_lowercase();
        let Some(sha256) = hex::decoded(&digest) else { return Err(no_digest(&place, fragment)) };
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let name = name.chars().take(200).map(plain).collect();
        Ok(Self { place, name, sha256, digest, uri })
    }
}

fn no_digest(place: &str, fragment: &str) -> RemoteError {
    let file = place.rsplit('/').next().unwrap_or_default();
    let problem = match fragment.is_empty() {
        true => "the address has no checksum",
        false => "the part behind '#' is not a SHA-256 digest of 64 digits",
    };
    let text = format!(
        "'{place}': {problem}, and models are programs; add '#sha256=DIGEST', the digest that its maker publishes, \
         or that 'sha256sum {file}' prints for a copy that you trust"
    );
    RemoteError::new(FailureKind::Invalid, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA: &str = "00112233445566778899AABBccddeeff00112233445566778899aabbccddeeff";

    #[test]
    fn archive_addresses_and_digests_are_parsed() {
        let given = format!("https://h/a/my%20models.tar.gz?token=secret#sha256={SHA}");
        let found = ArchiveAddress::parse(&given).expect("an archive");
        assert_eq!((found.name.as_str(), found.digest), ("my_20models", SHA.to_lowercase()));
        assert_eq!(found.place, "https://h/a/my%20models.tar.gz");
        assert_eq!((found.uri.query(), found.sha256[1]), (Some("token=secret"), 0x11));
    }

    #[test]
    fn invalid_addresses_are_reported() {
        let sha = format!("#sha256={SHA}");
        for (address, fragment, problem) in [
            ("https://h/models.tar.gz", "", "add '#sha256=DIGEST'"),
            ("https://h/models.tar.gz", "#sha256=12", "not a SHA-256 digest"),
            ("https://h/models.tar.gz", "#md5=12", "'sha256sum models.tar.gz'"),
            ("https://h/models.zip", &sha, "must end in .tar.gz"),
            ("https://h/.tar.gz", &sha, "must end in .tar.gz"),
            ("https://h/..tar.gz", &sha, "must end in .tar.gz"),
            ("http://h/models.tar.gz", &sha, "is not encrypted"),
            ("https://u:p@h/models.tar.gz", &sha, "user or password"),
        ] {
            let text = ArchiveAddress::parse(&format!("{address}{fragment}")).expect_err(address);
            assert!(text.to_string().contains(problem), "{text}");
        }
        let text = ArchiveAddress::parse("https://h/m.tar.gz?k=secret").expect_err("no digest");
        assert!(!text.to_string().contains("secret"), "{text}");
    }
}
