//! Finds the digest of a file in the headers of a response.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::HeaderMap;

use crate::{address::Service, hex, remote_files::Checksum};

/// Returns the digest. `is_whole`: the response contains the whole file.
pub fn of(service: Service, headers: &HeaderMap, is_whole: bool) -> Option<Checksum> {
    let text = |name| headers.get(name)?.to_str().ok();
    match service {
        Service::S3 => {
            let encryption = text("x-amz-server-side-encryption").unwrap_or("AES256");
            let has_own_key =
                headers.contains_key("x-amz-server-side-encryption-customer-algorithm");
            // For files encrypted with other keys, and those uploaded in parts, the ETag is not the MD5.
            (encryption == "AES256" && !has_own_key)
                .then(|| hex::decoded(text("etag")?.trim_matches('"')).map(Checksum::Md5))
                .flatten()
        }
        Service::Gcs => {
            let is_stored_so =
                text("x-goog-stored-content-encoding").is_none_or(|kind| kind == "identity");
            let digests =
                headers.get_all("x-goog-hash").iter().filter_map(|value| value.to_str().ok());
            let mut digests = digests.flat_map(|value| value.split(',')).map(str::trim);
            let md5 = digests.find_map(|digest| digest.strip_prefix("md5="));
            md5.filter(|_| is_stored_so).and_then(md5_of_base64)
        }
        Service::Azure => match is_whole {
            true => text("content-md5").and_then(md5_of_base64),
            false => text("x-ms-blob-content-md5").and_then(md5_of_base64),
        },
    }
}

fn md5_of_base64(text: &str) -> Option<Checksum> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok().map(Checksum::Md5)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_digests_of_the_content_count() {
        let empty =
            [0xd4, 0x1d, 0x8c, 0xd9, 0x8f, 0, 0xb2, 4, 0xe9, 0x80, 9, 0x98, 0xec, 0xf8, 0x42, 0x7e];
        let md5 = Some(Checksum::Md5(empty));
        let etag = ("etag", "\"d41d8cd98f00b204e9800998ecf8427e\"");
        let base64 = "1B2M2Y8AsgTpgAmY7PhCfg==";
        for (service, given, is_whole, expected) in [
            (Service::S3, headers(&[etag]), true, md5),
            (Service::S3, headers(&[etag]), false, md5),
            (Service::S3, headers(&[etag, ("x-amz-server-side-encryption", "AES256")]), true, md5),
            (
                Service::S3,
                headers(&[etag, ("x-amz-server-side-encryption", "aws:kms")]),
                true,
                None,
            ),
            (
                Service::S3,
                headers(&[etag, ("x-amz-server-side-encryption-customer-algorithm", "AES256")]),
                true,
                None,
            ),
            (
                Service::S3,
                headers(&[("etag", "\"d41d8cd98f00b204e9800998ecf8427e-3\"")]),
                true,
                None,
            ),
            (Service::S3, headers(&[("etag", "\"zz1d8cd98f00b204e9800998ecf8427e\"")]), true, None),
            (
                Service::Gcs,
                headers(&[("x-goog-hash", "crc32c=AAAAAA==,md5=1B2M2Y8AsgTpgAmY7PhCfg==")]),
                false,
                md5,
            ),
            (Service::Gcs, headers(&[("x-goog-hash", "crc32c=AAAAAA==")]), true, None),
            (
                Service::Gcs,
                headers(&[
                    ("x-goog-hash", "md5=1B2M2Y8AsgTpgAmY7PhCfg=="),
                    ("x-goog-stored-content-encoding", "gzip"),
                ]),
                true,
                None,
            ),
            (Service::Azure, headers(&[("content-md5", base64)]), true, md5),
            (Service::Azure, headers(&[("content-md5", base64)]), false, None),
            (Service::Azure, headers(&[("x-ms-blob-content-md5", base64)]), false, md5),
        ] {
            assert_eq!(of(service, &given, is_whole), expected, "{given:?}");
        }
    }
}
