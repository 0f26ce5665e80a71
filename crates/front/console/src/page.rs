//! The files of the page, embedded in the program, and their headers.

use std::{io::Read, sync::LazyLock};

use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};

/// One file of the page.
#[derive(Debug)]
pub struct PageFile {
    /// The name in the path.
    pub name: &'static str,
    /// The media type.
    pub content_type: &'static str,
    /// The content, decompressed.
    pub content: Vec<u8>,
    /// The content as it is embedded, compressed.
    pub gzip: &'static [u8],
    /// A strong validator, with its quotes, that differs for different content.
    pub etag: String,
}

/// The files of the folder `page`, listed by `build.rs`.
static FILES: LazyLock<Vec<PageFile>> = LazyLock::new(|| {
    let files = include!(concat!(env!("OUT_DIR"), "/files.rs"));
    let file = |(name, content_type, gzip): (_, _, &'static [u8])| {
        let mut content = Vec::new();
        if let Err(error) = GzDecoder::new(gzip).read_to_end(&mut content) {
            log::error!("console: {name} is damaged in this program: {error}");
        }
        let etag = etag(&content);
        PageFile { name, content_type, content, gzip, etag }
    };
    files.into_iter().map(file).collect()
});

/// The page itself. Its own path tells it which view to show.
pub const INDEX: &str = "index.html";

/// The headers of every file, besides its type and validator. The page loads nothing from elsewhere and runs nothing in
/// its text, and no other site can embed it.
pub const HEADERS: [(&str, &str); 5] = [
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-cache"),
];

/// Returns the file with this name.
pub fn file(name: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|file| file.name == name)
}

/// Returns `true` if a client with these validators (`If-None-Match`) has this file.
pub fn is_known(file: &PageFile, if_none_match: &str) -> bool {
    let known = |given: &str| given == "*" || given.trim_start_matches("W/") == file.etag;
    if_none_match.split(',').map(str::trim).any(known)
}

fn etag(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    let digits = hash.iter().take(12).map(|byte| format!("{byte:02x}"));
    format!("\"{}\"", digits.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_page_are_small_together() {
        let embedded: usize = FILES.iter().map(|file| file.gzip.len()).sum();
        assert!(embedded < 75_000, "{embedded} bytes");
        let content: usize = FILES.iter().map(|file| file.content.len()).sum();
        // The charts are those of the reports of load tests and of traces too.
        assert!(content < 210_000, "{content} bytes");
    }

    #[test]
    fn the_page_loads_nothing_from_other_hosts_and_has_no_inline_code() {
        for file in FILES.iter().filter(|file| file.content_type != "image/svg+xml") {
            let text = std::str::from_utf8(&file.content).expect("text");
            for scheme in ["//cdn", "src=\"http", "href=\"http", "@import", "url(http"] {
                assert!(!text.contains(scheme), "{}: {scheme}", file.name);
            }
            if file.content_type.starts_with("text/html") {
                for inline in ["<style", " style=", " onclick=", " onload=", "javascript:"] {
                    assert!(!text.contains(inline), "{}: {inline}", file.name);
                }
            }
        }
    }

    #[test]
    fn an_etag_matches_one_content_only() {
        let index = file(INDEX).expect("the page");
        assert!(is_known(index, &index.etag) && is_known(index, "*"));
        assert!(is_known(index, &format!("\"x\", W/{}", index.etag)));
        assert!(!is_known(index, "") && !is_known(index, &etag(b"other")));
        assert!(file("Cargo.toml").is_none() && file("../Cargo.toml").is_none());
    }
}
