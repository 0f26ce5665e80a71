//! The command line of `galatea runtime`: its sub-commands and their options.

use std::path::PathBuf;

use galatea_command_line::{
    BadValue, CommandLineError, Group, Kind, OptionOutline, OptionRow, OptionSet, help, outline,
    read as read_options,
};
use galatea_runtimes::{InstallOptions, Runtime};
use galatea_types::{Environment, suggest};

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    /// A text to print.
    Help(String),
    List,
    Install {
        name: String,
        options: InstallFlags,
    },
    Path {
        name: String,
    },
    /// Without a version all of them.
    Remove {
        name: String,
        version: Option<String>,
    },
}

/// The options of `install`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct InstallFlags {
    pub wheel: Option<PathBuf>,
    /// Folder of a libtorch to use in place of a fetched one.
    pub libtorch: Option<PathBuf>,
    pub reinstalls: bool,
    words: Vec<String>,
}

/// What is wrong with it.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum RuntimeError {
    #[error(transparent)]
    CommandLine(#[from] CommandLineError),
    #[error("unknown command '{given}'{}", hint.map(|name| format!("; did you mean '{name}'?")).unwrap_or_default())]
    UnknownCommand { given: String, hint: Option<&'static str> },
    #[error("Unexpected argument: {0}")]
    Unexpected(String),
    #[error("which one? One of the commands list, install, path and remove is expected")]
    NoCommand,
    #[error("which runtime? Its name is expected behind '{0}'")]
    NoName(&'static str),
    #[error(
        "options '--wheel' and '--libtorch' exclude each other: name one place to take it from"
    )]
    TwoSources,
    #[error("option '--libtorch' is for pytorch, not for '{0}'")]
    LibtorchForOther(String),
}

impl From<BadValue> for RuntimeError {
    fn from(error: BadValue) -> Self {
        Self::CommandLine(error.into())
    }
}

const USAGE: &str = "\
Usage: galatea runtime <command>

  list                      List the native runtimes: their versions, and where they are installed
  install <name> [options]  Fetch a native runtime library (onnxruntime, pytorch, tensorflow, openvino)
  path <name>               Print where its library is
  remove <name> [version]   Remove what was installed of it, all versions or one
  -h, --help                Print this text; `galatea runtime install --help` lists the options
";

const INSTALL_USAGE: &str = "\
Usage: galatea runtime install <name> [options]

Fetches a native runtime library (onnxruntime, pytorch, tensorflow, openvino).

";

const HELP_WIDTH: usize = 80;

const COMMANDS: [&str; 4] = ["list", "install", "path", "remove"];

/// Reads the words behind `runtime`.
pub(super) fn read(words: Vec<String>) -> Result<Request, RuntimeError> {
    let mut words = words.into_iter();
    let first = words.next().ok_or(RuntimeError::NoCommand)?;
    match first.as_str() {
        "list" => read_words(words, |words| no_more(words).map(|()| Request::List)),
        "path" => read_words(words, |words| Ok(Request::Path { name: only_name("path", words)? })),
        "remove" => read_words(words, read_remove),
        "install" => read_install(words),
        "-h" | "--help" | "help" => Ok(Request::Help(USAGE.to_owned())),
        _ => {
            let hint = suggest::nearest(&first, COMMANDS).first().copied();
            Err(RuntimeError::UnknownCommand { given: first, hint })
        }
    }
}

/// What the table of `install` says, for texts about all commands.
pub fn install_outline() -> Vec<OptionOutline> {
    outline::<InstallFlags>()
}

fn read_install(words: impl Iterator<Item = String>) -> Result<Request, RuntimeError> {
    let Some(mut options) = read_options::<InstallFlags>(words)? else {
        return Ok(Request::Help(help::<InstallFlags>(INSTALL_USAGE, HELP_WIDTH)));
    };
    let name = only_name("install", std::mem::take(&mut options.words))?;
    match &options.libtorch {
        Some(_) if options.wheel.is_some() => Err(RuntimeError::TwoSources),
        Some(_) if name != Runtime::PYTORCH.name => Err(RuntimeError::LibtorchForOther(name)),
        _ => Ok(Request::Install { name, options }),
    }
}

fn read_words(
    words: impl Iterator<Item = String>,
    make: impl Fn(Vec<String>) -> Result<Request, RuntimeError>,
) -> Result<Request, RuntimeError> {
    match read_options::<NoOptions>(words)? {
        None => Ok(Request::Help(USAGE.to_owned())),
        Some(options) => make(options.words),
    }
}

fn only_name(command: &'static str, words: Vec<String>) -> Result<String, RuntimeError> {
    let mut words = words.into_iter();
    let name = words.next().ok_or(RuntimeError::NoName(command))?;
    no_more(words)?;
    Ok(name)
}

fn read_remove(words: Vec<String>) -> Result<Request, RuntimeError> {
    let mut words = words.into_iter();
    let name = words.next().ok_or(RuntimeError::NoName("remove"))?;
    let version = words.next();
    no_more(words)?;
    Ok(Request::Remove { name, version })
}

fn no_more(words: impl IntoIterator<Item = String>) -> Result<(), RuntimeError> {
    words.into_iter().next().map_or(Ok(()), |word| Err(RuntimeError::Unexpected(word)))
}

impl InstallFlags {
    /// As the installer takes them.
    pub(super) fn install_options(&self, environment: &Environment) -> InstallOptions {
        InstallOptions {
            wheel: self.wheel.clone(),
            reinstalls: self.reinstalls,
            ..InstallOptions::new(environment)
        }
    }
}

impl OptionSet for InstallFlags {
    type Error = RuntimeError;

    fn groups() -> &'static [Group<Self>] {
        const ROWS: &[OptionRow<InstallFlags>] = &[
            OptionRow::new("wheel", Kind::Name, "Take it from a wheel on this machine.")
                .stores(|o, v| v.put(&mut o.wheel)),
            OptionRow::new(
                "libtorch",
                Kind::Name,
                "Folder of a libtorch on this machine to prepare, for pytorch.",
            )
            .stores(|o, v| v.put(&mut o.libtorch)),
            OptionRow::new("reinstall", Kind::Switch, "Replace what is installed.")
                .stores(|o, v| v.put(&mut o.reinstalls)),
            OptionRow::help("Print this text."),
        ];
        &[Group { title: "", rows: ROWS, is_own: false }]
    }

    fn word(&mut self, word: String) -> Result<(), RuntimeError> {
        self.words.push(word);
        Ok(())
    }
}

/// The options of commands that have none but the help.
#[derive(Default)]
struct NoOptions {
    words: Vec<String>,
}

impl OptionSet for NoOptions {
    type Error = RuntimeError;

    fn groups() -> &'static [Group<Self>] {
        const ROWS: &[OptionRow<NoOptions>] = &[OptionRow::help("Print this text.")];
        &[Group { title: "", rows: ROWS, is_own: false }]
    }

    fn word(&mut self, word: String) -> Result<(), RuntimeError> {
        self.words.push(word);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_line(line: &str) -> Result<Request, RuntimeError> {
        read(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn one_place_to_install_from() {
        let both = read_line("install pytorch --libtorch /opt/torch --wheel a.whl");
        assert_eq!(both, Err(RuntimeError::TwoSources));
        let other = read_line("install onnxruntime --libtorch /opt/torch");
        assert_eq!(other, Err(RuntimeError::LibtorchForOther("onnxruntime".to_owned())));
    }

    #[test]
    fn options_of_install() {
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
    fn the_other_commands() {
        assert_eq!(read_line("list"), Ok(Request::List));
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
            ("", "which one? One of the commands list, install, path and remove is expected"),
            ("instal x", "unknown command 'instal'; did you mean 'install'?"),
            ("bench", "unknown command 'bench'"),
            ("install x --whel y", "unrecognized option '--whel'; did you mean '--wheel'?"),
            ("install x --reinstall=1", "option '--reinstall' doesn't allow an argument"),
            ("install x --wheel", "option '--wheel' requires an argument"),
            ("install x --wheel=", "Bad option: \"--wheel\". Error: empty argument for --wheel"),
            ("install", "which runtime? Its name is expected behind 'install'"),
            ("remove", "which runtime? Its name is expected behind 'remove'"),
            ("remove x 1 2", "Unexpected argument: 2"),
            ("path x y", "Unexpected argument: y"),
            ("list x", "Unexpected argument: x"),
        ] {
            let error = read_line(line).map_err(|error| error.to_string());
            assert_eq!(error, Err(expected.to_owned()), "{line}");
        }
    }
}
