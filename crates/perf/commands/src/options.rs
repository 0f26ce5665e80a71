//! The command lines of both commands.

use galatea_command_line::{Asked, Group, Kind, Occurrence, OptionRow, OptionSet, help, parse};

use crate::error::CommandError;

const HELP_WIDTH: usize = 80;
/// Seconds.
const DEFAULT_TIMEOUT: f64 = 60.0;
const PROTOCOLS: &[&str] = &["http", "grpc"];

/// Where the server is.
#[derive(Debug)]
pub(crate) struct ServerOptions {
    pub url: Option<String>,
    pub protocol: Option<String>,
    /// For the whole command, in seconds.
    pub timeout: f64,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { url: None, protocol: None, timeout: DEFAULT_TIMEOUT }
    }
}

#[derive(Debug, Default)]
pub(crate) struct ModelsOptions {
    pub server: ServerOptions,
    pub model: Option<String>,
    pub is_json: bool,
}

#[derive(Debug, Default)]
pub(crate) struct InferOptions {
    pub server: ServerOptions,
    pub model: Option<String>,
    /// Empty: the server chooses.
    pub version: String,
    /// `NAME=VALUE` or `VALUE`, as typed.
    pub inputs: Vec<String>,
    /// Empty: all.
    pub outputs: Vec<String>,
    /// Zero: outputs as they are.
    pub classes: u32,
    pub is_json: bool,
}

const MODELS: &str = "\
Usage: galatea models [model] [options]

Lists the models of a running server: versions, states and why, platforms, inputs and outputs. With a model's name:
that model in detail, and a command that asks it. The exit code is 0, 1 where the server refuses or cannot be reached,
2 where the command line is wrong.

";

const INFER: &str = "\
Usage: galatea infer <model> [--input <name>=<value>]... [options]

Sends one request to a running server and prints the answer. A value is numbers (1,2,3 or JSON), a text for a BYTES
input, @file.json, @file.txt, @file.bin, `zeros` or `random`; the name may be left out where the model has one input.
Shapes are completed from what the server says about the model. The exit code is 0, 1 where the server refuses or cannot
be reached, 2 where the command line is wrong or does not fit the model.

";

/// Reads the words behind a command's name; `None`: the help is asked for.
pub(crate) fn read<O: OptionSet<Error = CommandError> + Default>(
    words: impl Iterator<Item = String>,
) -> Result<Option<O>, CommandError> {
    let mut options = O::default();
    match parse(words, &mut options)? {
        Some(Asked::Help | Asked::Version) => Ok(None),
        None => Ok(Some(options)),
    }
}

pub(crate) fn models_help() -> String {
    help::<ModelsOptions>(MODELS, HELP_WIDTH)
}

pub(crate) fn infer_help() -> String {
    help::<InferOptions>(INFER, HELP_WIDTH)
}

/// The rows that both commands have: where the server is, and how it is asked.
macro_rules! server_rows {
    () => {
        [
            OptionRow::new("url", Kind::Name, "The server: host:port, also with http://, https:// (and a path), grpc:// or grpcs:// before it; localhost with the protocol's usual port if it is not given.")
                .short('u')
                .stores(|o, v| v.put(&mut o.server.url)),
            OptionRow::new("protocol", Kind::Choice(PROTOCOLS), "The protocol: http or grpc. Without it, what the URL says, or http.")
                .short('i')
                .stores(|o, v| v.put(&mut o.server.protocol)),
            OptionRow::new("timeout", Kind::Number, "Seconds that the whole command may take; 60 if it is not given.")
                .stores(|o, v| timeout(&mut o.server, v)),
            OptionRow::new("json", Kind::Switch, "Print one JSON object, with everything in it.")
                .stores(|o, v| v.put(&mut o.is_json)),
            OptionRow::help("Print this text."),
        ]
    };
}

/// A day is as good as for ever, and can be added to any clock.
fn timeout(server: &mut ServerOptions, value: &Occurrence) -> Result<(), CommandError> {
    const LONGEST: f64 = 86_400.0;
    server.timeout = value.number()?.clamp(0.001, LONGEST);
    Ok(())
}

impl OptionSet for ModelsOptions {
    type Error = CommandError;

    fn groups() -> &'static [Group<Self>] {
        const ROWS: &[OptionRow<ModelsOptions>] = &server_rows!();
        &[Group { title: "", rows: ROWS, is_own: false }]
    }

    fn word(&mut self, word: String) -> Result<(), CommandError> {
        only(&mut self.model, word)
    }
}

impl OptionSet for InferOptions {
    type Error = CommandError;

    fn groups() -> &'static [Group<Self>] {
        const REQUEST: &[OptionRow<InferOptions>] = &[
            OptionRow::new(
                "input",
                Kind::Form("[<name>=]<value>"),
                "An input's value. May be repeated.",
            )
            .stores(|o, v| v.put(&mut o.inputs)),
            OptionRow::new("output", Kind::Name, "Ask for this output only. May be repeated.")
                .stores(|o, v| v.put(&mut o.outputs)),
            OptionRow::new(
                "classes",
                Kind::Integer { min: 1, max: 1_000_000 },
                "Ask for so many classes, the most likely first, instead of the numbers.",
            )
            .stores(|o, v| v.put(&mut o.classes)),
            OptionRow::new(
                "model-version",
                Kind::Name,
                "The model's version; else the server chooses.",
            )
            .stores(|o, v| v.put(&mut o.version)),
        ];
        const SERVER: &[OptionRow<InferOptions>] = &server_rows!();
        &[
            Group { title: "Request", rows: REQUEST, is_own: false },
            Group { title: "Server", rows: SERVER, is_own: false },
        ]
    }

    fn word(&mut self, word: String) -> Result<(), CommandError> {
        only(&mut self.model, word)
    }
}

fn only(model: &mut Option<String>, word: String) -> Result<(), CommandError> {
    match model {
        Some(model) if word.contains('=') => Err(CommandError::Words(format!(
            "'{word}' stands behind the model '{model}'; is it an input? --input '{word}'"
        ))),
        Some(model) => Err(CommandError::Words(format!(
            "one model is expected, there are '{model}' and '{word}'"
        ))),
        None => {
            *model = Some(word);
            Ok(())
        }
    }
}
