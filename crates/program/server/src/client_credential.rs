//! The credential of the commands that ask a server. It comes from the environment, because everybody on the machine can see a
//! command line.

use galatea_types::Environment;

/// Environment variable with an API key or a token.
const VARIABLE: &str = "GALATEA_API_KEY";
/// Headers of a command line that replace the credential, or that a server refuses next to it.
const OTHERS: [&str; 2] = ["authorization", "x-api-key"];
/// Names of the option that adds a header.
const OPTIONS: [&str; 2] = ["-H", "--header"];

/// Returns the words of a command with the credential added, unless they have one. An error explains the fault of the
/// variable without its value.
pub fn add_to(words: Vec<String>, environment: &Environment) -> Result<Vec<String>, String> {
    let Some(secret) = environment.get(VARIABLE) else { return Ok(words) };
    if words.iter().enumerate().any(|(at, word)| is_credential(&words, at, word)) {
        return Ok(words);
    }
    let secret =
        secret.to_str().filter(|secret| secret.bytes().all(|byte| byte.is_ascii_graphic()));
    let secret = secret.ok_or_else(|| {
        format!("{VARIABLE} is not a key or token: it has white space or other characters that no header can have")
    })?;
    let header = ["-H".to_owned(), format!("Authorization:Bearer {secret}")];
    Ok(header.into_iter().chain(words).collect())
}

/// Returns true if a word is one of these headers: as the value after an option, or joined to it.
fn is_credential(words: &[String], at: usize, word: &str) -> bool {
    let is_behind_option = at.checked_sub(1).and_then(|before| words.get(before));
    let value = match is_behind_option {
        Some(before) if OPTIONS.contains(&before.as_str()) => word,
        _ => OPTIONS.iter().find_map(|option| word.strip_prefix(option)).unwrap_or_default(),
    };
    let name = value.trim_start_matches('=').split(':').next().unwrap_or_default().trim();
    OTHERS.iter().any(|other| name.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(words: &[&str], secret: &str) -> Result<Vec<String>, String> {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        add_to(words, &Environment::of([(VARIABLE, secret)]))
    }

    #[test]
    fn the_credential_of_the_environment_becomes_a_header() {
        let words = added(&["simple", "-H", "x:y"], "key").expect("added");
        assert_eq!(words, ["-H", "Authorization:Bearer key", "simple", "-H", "x:y"]);
        assert_eq!(added(&["simple"], "").expect("none"), ["simple"]);
        let none = add_to(vec!["simple".to_owned()], &Environment::default());
        assert_eq!(none.expect("none"), ["simple"]);
    }

    #[test]
    fn a_credential_on_the_command_line_takes_precedence() {
        for words in [
            &["m", "-H", "X-API-Key: k"][..],
            &["--header", "authorization:Bearer k"],
            &["--header=Authorization:Bearer k"],
            &["-HX-Api-Key:k"],
        ] {
            assert_eq!(added(words, "key").expect("unchanged"), words);
        }
        assert_ne!(added(&["authorization:x"], "key").expect("added").len(), 1);
    }

    #[test]
    fn credentials_that_fit_no_header_are_refused_without_being_shown() {
        for secret in ["two words", "line\nbreak", "é"] {
            let error = added(&[], secret).expect_err("refused");
            assert!(error.contains(VARIABLE) && !error.contains(secret), "{error}");
        }
    }
}
