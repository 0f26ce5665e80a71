//! Google Cloud Storage.

use std::{path::Path, sync::Arc};

use galatea_types::Environment;
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use serde_json::Value;

use super::{
    connector::Connector,
    credential_file::Credential,
    no_retries, plain,
    store::{self, Store},
};
use crate::{
    address::Address,
    error::{FailureKind, RemoteError},
};

/// Most bytes of a file of credentials.
const MOST_BYTES: u64 = 1 << 20;

/// Variables with the address of an emulator, which needs no credentials.
const EMULATORS: [&str; 2] = ["CLOUD_STORAGE_EMULATOR_ENDPOINT", "STORAGE_EMULATOR_HOST"];

pub fn open(
    address: &Address,
    credential: &Credential,
    environment: &Environment,
    connector: Connector,
) -> Result<Store, RemoteError> {
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name(&address.bucket)
        .with_retry(no_retries())
        .with_http_connector(connector);
    if let Some(host) = EMULATORS.iter().find_map(|name| environment.text(name)) {
        let url = if host.contains("://") { host } else { format!("http://{host}") };
        builder = builder.with_base_url(url.trim_end_matches('/')).with_skip_signature(true);
        return Ok(plain(build(builder, None)?));
    }
    if let Some(file) = credential.get("file", environment, "GOOGLE_APPLICATION_CREDENTIALS") {
        let builder = match is_of_user(&file)? {
            true => builder.with_application_credentials(&file),
            false => builder.with_service_account_path(&file),
        };
        return Ok(plain(build(builder, Some(&file))?));
    }
    // This also finds the credentials of `gcloud auth application-default login`.
    let signed = build(builder.clone(), None)?;
    let unsigned = build(builder.with_skip_signature(true), None)?;
    let probe = store::probe(signed.credentials().clone());
    Ok(Store::new(Arc::new(signed), Some((Arc::new(unsigned), probe))))
}

fn build(
    builder: GoogleCloudStorageBuilder,
    file: Option<&str>,
) -> Result<GoogleCloudStorage, RemoteError> {
    builder.build().map_err(|error| match file {
        Some(file) => unusable(file, &super::failure::describe(&error)),
        None => super::not_opened(&error),
    })
}

/// Returns true if credentials are a user's, false if they are of a service account.
fn is_of_user(file: &str) -> Result<bool, RemoteError> {
    let text = galatea_regular_files::read_text(Path::new(file), MOST_BYTES)
        .map_err(|error| unusable(file, &error.to_string()))?;
    // The text omits the content, which may be a secret.
    let content: Value =
        serde_json::from_str(&text).map_err(|_| unusable(file, "it is not JSON"))?;
    match content.get("type").and_then(Value::as_str) {
        Some("service_account") | None => Ok(false),
        Some("authorized_user") => Ok(true),
        Some(other) => {
            let problem = format!(
                "credentials of type '{other}' are not supported: use a service account, a user's, or those of the machine"
            );
            Err(unusable(file, &problem))
        }
    }
}

fn unusable(file: &str, problem: &str) -> RemoteError {
    let text = format!(
        "the credentials in '{file}' (GOOGLE_APPLICATION_CREDENTIALS) cannot be used: {problem}"
    );
    RemoteError::new(FailureKind::Denied, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), text).expect("written");
        let shown = is_of_user(&file.path().to_string_lossy()).err().map(|error| error.to_string());
        shown.unwrap_or_default()
    }

    #[test]
    fn an_unusable_key_file_is_reported_without_its_content() {
        assert_eq!(refusal(r#"{"type": "service_account"}"#), "");
        assert_eq!(refusal(r#"{"type": "authorized_user"}"#), "");
        assert!(
            refusal(r#"{"type": "external_account"}"#)
                .contains("'external_account' are not supported")
        );
        let text = refusal("SECRET");
        assert!(
            text.ends_with("cannot be used: it is not JSON") && !text.contains("SECRET"),
            "{text}"
        );
        let missing = is_of_user("/nonexistent/key.json").expect_err("refused").to_string();
        assert!(missing.contains("/nonexistent/key.json"), "{missing}");
    }
}
