//! The command line of `galatea runtime`: its sub-commands and their options.

use std::{mem, path::PathBuf};

use galatea_command_line::{
    Group, Kind, OptionRow, OptionSet, help, options, read as read_options,
};
use galatea_runtimes::Runtime;
use galatea_serve::LibraryFolders;

use crate::{advice::did_you_mean, flags::FlagError, terminal::HELP_WIDTH};

/// The request of the command line.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    /// A text to print.
    Help(String),
    List(LibraryFolders),
    Install {
        name: String,
        options: InstallFlags,
    },
    Path {
        name: String,
    },
    /// Removes a library; without a version all of its versions.
    Remove {
        name: String,
        version: Option<String>,
    },
}

#[derive(Debug, Default, PartialEq)]
pub struct InstallFlags {
    pub wheel: Option<PathBuf>,
    /// Folder of a libtorch to use instead of a fetched one.
    pub libtorch: Option<PathBuf>,
    pub reinstalls: bool,
    words: Vec<String>,
}

const USAGE: &str = "Usage: galatea runtime <command>

  list [options]            List the native runtimes, and the libraries made for Triton, with their versions and files
  install <name> [options]  Fetch a native runtime library (onnxruntime, pytorch, tensorflow, openvino)
  path <name>               Print the path of its library
  remove <name> [version]   Remove all its installed versions, or one of them
  -h, --help                Print this text; `galatea runtime install --help` lists the options of one
";

const INSTALL_USAGE: &str = "\
Usage: galatea runtime install <name> [options]

Fetches a native runtime library (onnxruntime, pytorch, tensorflow, openvino).

";

const LIST_USAGE: &str = "\
Usage: galatea runtime list [options]

Lists the native runtimes with their versions and files, then the libraries made for Triton: backends, caches and repository
agents. A library is read, and not opened.

";

const COMMANDS: [&str; 4] = ["list", "install", "path", "remove"];

/// Reads the words after `runtime`.
pub(super) fn read(words: Vec<String>) -> Result<Request, FlagError> {
    let mut words = words.into_iter();
    let none = "a command is missing: list, install, path or remove is expected";
    let first = words.next().ok_or_else(|| FlagError::rule(none))?;
    let given = match first.as_str() {
        "install" => read_options::<InstallFlags>(words)?,
        "list" => {
            let given = read_options::<ListFlags>(words)?;
            return Ok(given.map_or_else(list_help, |flags| Request::List(flags.0)));
        }
        "path" | "remove" => {
            let given = read_options::<NoOptions>(words)?;
            given.map(|NoOptions { words }| InstallFlags { words, ..InstallFlags::default() })
        }
        "-h" | "--help" | "help" => None,
        _ => {
            let hint = did_you_mean(&first, COMMANDS);
            return Err(FlagError::rule(format!("unknown command '{first}'{hint}")));
        }
    };
    match given {
        Some(options) => request(&first, options),
        None if first == "install" => {
            Ok(Request::Help(help::<InstallFlags>(INSTALL_USAGE, HELP_WIDTH)))
        }
        None => Ok(Request::Help(USAGE.to_owned())),
    }
}

fn request(command: &str, mut options: InstallFlags) -> Result<Request, FlagError> {
    let refused = |text: String| Err(FlagError::Rule(text));
    let mut words = mem::take(&mut options.words).into_iter();
    let Some(name) = words.next() else {
        return refused(format!("the name of a runtime is missing behind '{command}'"));
    };
    let version = if command == "remove" { words.next() } else { None };
    if let Some(word) = words.next() {
        return refused(format!("Unexpected argument: {word}"));
    }
    match command {
        "path" => Ok(Request::Path { name }),
        "remove" => Ok(Request::Remove { name, version }),
        _ if options.libtorch.is_none() => Ok(Request::Install { name, options }),
        _ if options.wheel.is_some() => refused(
            "options '--wheel' and '--libtorch' exclude each other: name one place to take it from"
                .into(),
        ),
        _ if name != Runtime::PYTORCH.name => {
            refused(format!("option '--libtorch' is for pytorch, not for '{name}'"))
        }
        _ => Ok(Request::Install { name, options }),
    }
}

/// The options of `list`: where libraries made for Triton are.
#[derive(Debug, Default)]
pub struct ListFlags(LibraryFolders);

fn list_help() -> Request {
    Request::Help(help::<ListFlags>(LIST_USAGE, HELP_WIDTH))
}

impl OptionSet for ListFlags {
    type Error = FlagError;

    fn groups() -> &'static [Group<Self>] {
        type Row = OptionRow<ListFlags>;
        const ROWS: &[Row] = options! {
            /// Folder with backends, as an option of serve.
            "backend-directory" => Row::of(Kind::Text)
                .default("/opt/tritonserver/backends").fills(|o| &mut o.0.backends),
            /// Folder with caches, as an option of serve.
            "cache-directory" => Row::of(Kind::Text)
                .default("/opt/tritonserver/caches").fills(|o| &mut o.0.caches),
            /// Folder with repository agents, as an option of serve.
            "repoagent-directory" => Row::of(Kind::Text)
                .default("/opt/tritonserver/repoagents").fills(|o| &mut o.0.agents),
            /// Print this text.
            "help" => Row::help(""),
        };
        &[Group { title: "", rows: ROWS, is_own: false }]
    }

    fn word(&mut self, word: String) -> Result<(), FlagError> {
        Err(FlagError::Rule(format!("Unexpected argument: {word}")))
    }
}

impl OptionSet for InstallFlags {
    type Error = FlagError;

    fn groups() -> &'static [Group<Self>] {
        type Row = OptionRow<InstallFlags>;
        const ROWS: &[Row] = options! {
            /// Take it from a wheel on this machine.
            "wheel" => Row::of(Kind::Name).fills(|o| &mut o.wheel),
            /// Folder of a libtorch on this machine to prepare, for pytorch.
            "libtorch" => Row::of(Kind::Name).fills(|o| &mut o.libtorch),
            /// Replace what is installed.
            "reinstall" => Row::of(Kind::Switch).fills(|o| &mut o.reinstalls),
            /// Print this text.
            "help" => Row::help(""),
        };
        &[Group { title: "", rows: ROWS, is_own: false }]
    }

    fn word(&mut self, word: String) -> Result<(), FlagError> {
        self.words.push(word);
        Ok(())
    }
}

/// The options of commands that have only the help.
#[derive(Default)]
struct NoOptions {
    words: Vec<String>,
}

impl OptionSet for NoOptions {
    type Error = FlagError;

    fn groups() -> &'static [Group<Self>] {
        const ROWS: &[OptionRow<NoOptions>] = &[OptionRow::help("Print this text.")];
        &[Group { title: "", rows: ROWS, is_own: false }]
    }

    fn word(&mut self, word: String) -> Result<(), FlagError> {
        self.words.push(word);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> Result<Request, FlagError> {
        read(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn an_install_has_one_source() {
        let both = read_line("install pytorch --libtorch /opt/torch --wheel a.whl");
        let text =
            "options '--wheel' and '--libtorch' exclude each other: name one place to take it from";
        assert_eq!(both, Err(FlagError::rule(text)));
        let other = read_line("install onnxruntime --libtorch /opt/torch");
        let text = "option '--libtorch' is for pytorch, not for 'onnxruntime'";
        assert_eq!(other, Err(FlagError::rule(text)));
    }

    #[test]
    fn install_options_are_parsed() {
        for line in ["install x --wheel a.whl --reinstall", "install --reinstall --wheel=a.whl x"] {
            let wheel = Some(PathBuf::from("a.whl"));
            let options = InstallFlags { wheel, reinstalls: true, ..InstallFlags::default() };
            assert_eq!(read_line(line), Ok(Request::Install { name: "x".to_owned(), options }));
        }
        let libtorch = Some(PathBuf::from("/opt/torch"));
        let options = InstallFlags { libtorch, ..InstallFlags::default() };
        assert_eq!(
            read_line("install pytorch --libtorch /opt/torch"),
            Ok(Request::Install { name: "pytorch".to_owned(), options })
        );
    }

    #[test]
    fn other_commands_are_parsed() {
        let folders = LibraryFolders { caches: PathBuf::from("c"), ..LibraryFolders::default() };
        assert_eq!(read_line("list --cache-directory=c"), Ok(Request::List(folders)));
        assert_eq!(read_line("list"), Ok(Request::List(LibraryFolders::default())));
        assert_eq!(read_line("path x"), Ok(Request::Path { name: "x".to_owned() }));
        let remove = |version: Option<&str>| {
            Ok(Request::Remove { name: "x".to_owned(), version: version.map(str::to_owned) })
        };
        assert_eq!(read_line("remove x"), remove(None));
        assert_eq!(read_line("remove x 1.2"), remove(Some("1.2")));
        for line in ["-h", "--help", "list -h", "path --help", "install --help", "install x -h"] {
            assert!(matches!(read_line(line), Ok(Request::Help(_))), "{line}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (line, expected) in [
            ("", "a command is missing: list, install, path or remove is expected"),
            ("instal x", "unknown command 'instal'; did you mean 'install'?"),
            ("bench", "unknown command 'bench'"),
            ("install x --whel y", "unrecognized option '--whel'; did you mean '--wheel'?"),
            ("install x --reinstall=1", "option '--reinstall' doesn't allow an argument"),
            ("install x --wheel", "option '--wheel' requires an argument"),
            ("install x --wheel=", "Bad option: \"--wheel\". Error: empty argument for --wheel"),
            ("install", "the name of a runtime is missing behind 'install'"),
            ("remove", "the name of a runtime is missing behind 'remove'"),
            ("remove x 1 2", "Unexpected argument: 2"),
            ("path x y", "Unexpected argument: y"),
            ("list x", "Unexpected argument: x"),
        ] {
            let error = read_line(line).map_err(|error| error.to_string());
            assert_eq!(error, Err(expected.to_owned()), "{line}");
        }
    }
}
