//! The words after `galatea up`: an example or a path, and the options of `serve` with other defaults.

use std::path::Path;

use super::{
    examples::{EXAMPLES, Example},
    ports::NOT_NAMED,
};
use crate::{
    advice::did_you_mean,
    flags::{self, FlagError, ServeFlags, Words},
};

/// The request of the command line.
#[derive(Debug)]
pub enum Request {
    Help,
    List,
    /// An example, true if it was named, and the flags.
    Example(&'static Example, bool, ServeFlags),
    /// Models of the user, as paths or repositories.
    Own(ServeFlags),
}

/// Defaults for a first look on a laptop: only this machine can reach it, and the log has only warnings and errors. The user's
/// options follow them, and have priority.
const DEFAULTS: [&str; 3] =
    ["--http-address=127.0.0.1", "--grpc-address=127.0.0.1", "--log-info=false"];

/// Reads the words after `up`.
pub fn read(words: Vec<String>, default: &'static Example) -> Result<Request, FlagError> {
    if words.iter().any(|word| word == "--list") {
        return Ok(Request::List);
    }
    let ports = ["http", "grpc", "metrics"].map(|name| format!("--{name}-port={NOT_NAMED}"));
    let defaults = DEFAULTS.iter().map(|&word| word.to_owned()).chain(ports);
    let Some(mut flags) = flags::parse(defaults.chain(words), Words::Paths)? else {
        return Ok(Request::Help);
    };
    let word = match flags.serve.paths.as_slice() {
        [] if flags.serve.repositories.is_empty() => {
            return Ok(Request::Example(default, false, flags));
        }
        [path] if !path.exists() && is_word(path) => path.display().to_string(),
        _ => return Ok(Request::Own(flags)),
    };
    let example = Example::named(&word).ok_or_else(|| {
        let near = did_you_mean(&word, EXAMPLES.map(|example| example.name));
        FlagError::rule(format!(
            "there is no file or folder '{word}', and no example of that name{near}; `galatea up --list` lists the \
             examples"
        ))
    })?;
    flags.serve.paths.clear();
    Ok(Request::Example(example, true, flags))
}

/// Returns true for the form of an example's name: paths of models have a slash or an ending.
fn is_word(path: &Path) -> bool {
    let text = path.to_string_lossy();
    !text.contains(['/', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::up::examples::BUILT_IN;

    fn read_line(line: &str) -> Result<Request, FlagError> {
        read(line.split_whitespace().map(str::to_owned).collect(), EXAMPLES[0])
    }

    #[test]
    fn examples_and_own_models_are_told_apart() {
        let example = |line: &str| match read_line(line).expect(line) {
            Request::Example(example, is_named, _) => (example.name, is_named),
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(example(""), ("magika", false));
        assert_eq!(example("--http-port=9000"), ("magika", false));
        assert_eq!(example("simple --http-port 9000"), (BUILT_IN.name, true));
        for line in ["/dev/null", "a/b", "my.onnx", "magika simple", "--model-repository=/m"] {
            assert!(matches!(read_line(line).expect(line), Request::Own(_)), "{line}");
        }
        assert!(matches!(read_line("--list"), Ok(Request::List)));
        assert!(matches!(read_line("--help"), Ok(Request::Help)));
        let error = read_line("magica").expect_err("unknown").to_string();
        assert!(error.contains("did you mean 'magika'?"), "{error}");
        assert!(read_line("nothing-like-it").is_err() && read_line("--what").is_err());
    }

    #[test]
    fn given_flags_override_the_defaults_of_up() {
        let flags = |line: &str| match read_line(line).expect(line) {
            Request::Example(_, _, flags) => flags,
            other => panic!("{other:?}"),
        };
        let plain = flags("");
        assert_eq!((&*plain.http.address, &*plain.grpc.address), ("127.0.0.1", "127.0.0.1"));
        assert_eq!((plain.http.port, plain.grpc.port, plain.metrics.port), (-1, -1, -1));
        let given = flags("--http-address=0.0.0.0 --grpc-port=1 --log-info=true");
        assert_eq!((&*given.http.address, given.grpc.port), ("0.0.0.0", 1));
        assert_eq!(given.http.port, NOT_NAMED);
    }
}
