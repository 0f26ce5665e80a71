//! The token for requests to the hub, which its other clients use as well.

use std::path::PathBuf;

use galatea_types::Environment;
use http::HeaderValue;

use crate::error::{FailureKind, RemoteError};

/// The variables with a token. The first that is set counts.
const VARIABLES: [&str; 2] = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"];

/// Most bytes of a file with a token.
const MAX_BYTES: u64 = 4096;

/// Returns the header with the token, if there is one.
///
/// # Errors
/// When the token is invalid. The text does not contain it.
pub fn authorization(environment: &Environment) -> Result<Option<HeaderValue>, RemoteError> {
    let named =
        VARIABLES.iter().find_map(|name| Some((environment.text(name)?, (*name).to_owned())));
    let Some((token, source)) = named.or_else(|| stored(environment)) else { return Ok(None) };
    let header = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
    let Ok(mut header) = header else {
        let text =
            format!("the token of {source} has characters that no token has, so it is not sent");
        return Err(RemoteError::new(FailureKind::Denied, text));
    };
    header.set_sensitive(true);
    Ok(Some(header))
}

/// Returns the token that the hub's command line has stored, and its file.
fn stored(environment: &Environment) -> Option<(String, String)> {
    let path = token_file(environment)?;
    let token = galatea_regular_files::read_text(&path, MAX_BYTES).ok()?;
    (!token.trim().is_empty()).then(|| (token, format!("'{}'", path.display())))
}

fn token_file(environment: &Environment) -> Option<PathBuf> {
    if let Some(path) = environment.path("HF_TOKEN_PATH") {
        return Some(path);
    }
    let home = || environment.path("HF_HOME");
    let cache = || Some(environment.path("XDG_CACHE_HOME")?.join("huggingface"));
    let user = || Some(environment.path("HOME")?.join(".cache/huggingface"));
    Some(home().or_else(cache).or_else(user)?.join("token"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn shown(variables: &[(&str, &str)]) -> Option<String> {
        let environment = Environment::of(variables.iter().copied());
        let header = authorization(&environment).expect("fine")?;
        assert!(header.is_sensitive());
        Some(header.to_str().expect("text").to_owned())
    }

    #[test]
    fn the_first_place_with_a_token_counts() {
        let home = tempfile::tempdir().expect("folder");
        let at = |path: &str| home.path().join(path).to_string_lossy().into_owned();
        let write = |path: &str, token: &str| {
            fs::create_dir_all(home.path().join(path).parent().expect("folder")).expect("folder");
            fs::write(home.path().join(path), token).expect("file");
        };
        write("user/.cache/huggingface/token", "of-user\n");
        write("hf/token", "of-home");
        write("cache/huggingface/token", "of-cache");
        write("named", "of-path");
        write("empty/token", " \n");
        let (user, hf, cache, named) = (at("user"), at("hf"), at("cache"), at("named"));
        assert_eq!(shown(&[]), None);
        let mut variables = vec![("HOME", &*user)];
        for (name, value, expected) in [
            ("HOME", &*user, "Bearer of-user"),
            ("XDG_CACHE_HOME", &cache, "Bearer of-cache"),
            ("HF_HOME", &hf, "Bearer of-home"),
            ("HF_TOKEN_PATH", &named, "Bearer of-path"),
            ("HUGGING_FACE_HUB_TOKEN", "old", "Bearer old"),
            ("HF_TOKEN", "new", "Bearer new"),
        ] {
            variables.push((name, value));
            assert_eq!(shown(&variables).as_deref(), Some(expected));
        }
        assert_eq!(shown(&[("HF_HOME", &at("empty"))]), None);
        assert_eq!(shown(&[("HF_HOME", &at("nothing"))]), None);
    }

    #[test]
    fn an_invalid_token_is_not_shown() {
        let environment = Environment::of([("HF_TOKEN", "secret\nvalue")]);
        let text = authorization(&environment).expect_err("refused").to_string();
        assert!(text.contains("HF_TOKEN") && !text.contains("secret"), "{text}");
    }
}
