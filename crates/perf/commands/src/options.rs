//! The command lines of `galatea models` and `galatea infer`, and the options that all commands have.

use std::path::PathBuf;

use galatea_client::read_header;
use galatea_command_line::{Group, Kind, Occurrence, OptionRow, OptionSet, set};

use galatea_types::ParameterValue;

use crate::{
    error::CommandError,
    picture::{Layout, PictureOptions, Scale},
};

pub(crate) const PROTOCOLS: &[&str] = &["http", "grpc"];

/// The address of the server, and its credentials.
#[derive(Debug, Default)]
pub(crate) struct ServerOptions {
    pub url: Option<String>,
    pub protocol: Option<String>,
    /// Time limit of the whole command or of one look, in seconds.
    pub timeout: Option<f64>,
    /// HTTP headers or gRPC metadata.
    pub headers: Vec<(String, String)>,
    /// Certificate authorities to trust over TLS; `None`: those of the system.
    pub authorities: Option<PathBuf>,
    /// Client certificate for TLS.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

#[derive(Debug, Default)]
pub(crate) struct ModelsOptions {
    pub server: ServerOptions,
    /// A model, or an action and its model.
    pub words: Vec<String>,
    /// Unloading an ensemble unloads its models too.
    pub has_dependents: bool,
    pub is_json: bool,
}

#[derive(Debug, Default)]
pub(crate) struct InferOptions {
    pub server: ServerOptions,
    pub model: Option<String>,
    /// The version; empty: the server chooses.
    pub version: String,
    /// `NAME=VALUE` or `VALUE`, as typed.
    pub inputs: Vec<String>,
    /// Names of outputs; empty: all.
    pub outputs: Vec<String>,
    /// Number of classes to return; zero: outputs are returned as they are.
    pub classes: u32,
    /// Responses are read one by one, for any model.
    pub is_stream: bool,
    pub request_id: Option<String>,
    pub parameters: Vec<(String, ParameterValue)>,
    /// Names of outputs and files.
    pub files: Vec<(String, String)>,
    pub picture: PictureOptions,
    pub is_json: bool,
}

pub(crate) const MODELS: &str = "\
Usage: galatea models [model] [options]
       galatea models load|unload|reload <model> [options]

Lists the models of a running server: versions, states and why, platforms, inputs and outputs. With a model's name:
that model in detail, what it has done, and a command that asks it. `load`, `unload` and `reload` (unload, then load)
change what a server has that is started with --model-control-mode=explicit. The exit code is 0, 1 where the server
refuses or cannot be reached, 2 where the command line is wrong.

";

pub(crate) const INFER: &str = "\
Usage: galatea infer <model> [[--input] <name>=<value>]... [options]

Sends one request to a running server and prints the answer. A value is numbers (1,2,3 or JSON), a text for a BYTES
input, a file (@x.json, @x.txt, @x.bin, @x.npy, @x.png, @x.jpg, @x.wav, @- for stdin; for a BYTES or UINT8 input any
file), `zeros` or `random`. The name may be left out where the model has one input, --input before NAME=VALUE and @FILE.
Shapes are completed from what the server says about the model. The exit code is 0, 1 where the server refuses or cannot
be reached, 2 where the command line is wrong or does not fit the model.

";

/// The rows that all commands have: address and credentials of the server. The timeout's help differs.
macro_rules! server_rows {
    ($timeout:literal, $json:literal) => {
        [
            OptionRow::new("url", Kind::Name, "The server: host:port, also with http://, https:// (and a path), grpc:// or grpcs:// before it, or unix:PATH; localhost with the protocol's usual port if it is not given.")
                .short('u')
                .stores(|o, v| v.put(&mut o.server.url)),
            OptionRow::new("protocol", Kind::Choice($crate::options::PROTOCOLS), "The protocol: http or grpc. Without it, what the URL says, or http.")
                .short('i')
                .stores(|o, v| v.put(&mut o.server.protocol)),
            OptionRow::new("timeout", Kind::Number, $timeout)
                .stores(|o, v| $crate::options::timeout(&mut o.server, v)),
            OptionRow::new("header", Kind::Form("<name>:<value>"), "A header of every request, over gRPC metadata: a token, or the key of a restricted API. May be repeated.")
                .short('H')
                .stores(|o, v| $crate::options::header(&mut o.server, v)),
            OptionRow::new("cacert", Kind::Name, "Over TLS: file with the authorities to trust (PEM). Without it, those of the system.")
                .stores(|o, v| v.put(&mut o.server.authorities)),
            OptionRow::new("cert", Kind::Name, "Over TLS: file with a certificate to show (PEM), for servers that ask for one.")
                .stores(|o, v| v.put(&mut o.server.certificate)),
            OptionRow::new("key", Kind::Name, "File with the key of that certificate (PEM).")
                .stores(|o, v| v.put(&mut o.server.key)),
            OptionRow::new("json", Kind::Switch, $json)
                .stores(|o, v| v.put(&mut o.is_json)),
            OptionRow::help("Print this text."),
        ]
    };
}

pub(crate) use server_rows;

/// Stores the timeout. A day is long enough for any use, and can be added to any clock.
pub(crate) fn timeout(server: &mut ServerOptions, value: &Occurrence) -> Result<(), CommandError> {
    const LONGEST: f64 = 86_400.0;
    server.timeout = Some(value.number()?.clamp(0.001, LONGEST));
    Ok(())
}

pub(crate) fn header(server: &mut ServerOptions, value: &Occurrence) -> Result<(), CommandError> {
    let header = read_header(&value.text).ok_or_else(|| value.malformed("<name>:<value>"))?;
    server.headers.push(header);
    Ok(())
}

impl OptionSet for ModelsOptions {
    type Error = CommandError;

    fn groups() -> &'static [Group<Self>] {
        const ROWS: &[OptionRow<ModelsOptions>] = &server_rows!(
            "Seconds that the whole command may take; 60 if it is not given.",
            "Print one JSON object, with everything in it."
        );
        const CONTROL: &[OptionRow<ModelsOptions>] = &[OptionRow::new(
            "dependents",
            Kind::Switch,
            "For `unload` of an ensemble: unload the models of its steps too.",
        )
        .stores(|o, v| v.put(&mut o.has_dependents))];
        &[
            Group { title: "Control", rows: CONTROL, is_own: false },
            Group { title: "Server", rows: ROWS, is_own: false },
        ]
    }

    fn word(&mut self, word: String) -> Result<(), CommandError> {
        self.words.push(word);
        Ok(())
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
                "Number of classes to print instead of the numbers, the most likely first.",
            )
            .stores(|o, v| v.put(&mut o.classes)),
            OptionRow::new(
                "model-version",
                Kind::Name,
                "The model's version; else the server chooses.",
            )
            .stores(|o, v| v.put(&mut o.version)),
            OptionRow::new("stream", Kind::Switch, "Print each response as it comes, as is always done for decoupled models.")
                .stores(|o, v| v.put(&mut o.is_stream)),
            OptionRow::new("parameter", Kind::Form("<key>=<value>"), "A parameter of the request: true, false, a number, or else a text. May be repeated.")
                .stores(parameter),
            OptionRow::new("request-id", Kind::Name, "The request's id, for the server's log and traces.")
                .stores(|o, v| v.put(&mut o.request_id)),
        ];
        const FILES: &[OptionRow<InferOptions>] = &[
            OptionRow::new("output-file", Kind::Form("<output>=<file>"), "Save an output: .npy, .bin (as it lies in memory), .json or .png. May be repeated.")
                .stores(output_file),
            OptionRow::new("layout", Kind::Choice(&["nchw", "nhwc"]), "Layout of pictures in tensors: a plane for each colour (nchw), or the colours of each pixel together (nhwc). Default: as the model's configuration or its shape says.")
                .stores(set!(|o, v| o.picture.layout = if v.is("nhwc") { Layout::Nhwc } else { Layout::Nchw })),
            OptionRow::new("scale", Kind::Choice(&["0-1", "0-255", "-1-1", "imagenet"]), "Range of the numbers that pixels become; imagenet subtracts its mean and divides by its deviation. Default: 0-1 for floating point, else 0-255.")
                .stores(set!(|o, v| o.picture.scale = match v.text.to_ascii_lowercase().as_str() {
                        "0-1" => Scale::ToOne,
                        "0-255" => Scale::To255,
                        "-1-1" => Scale::AroundZero,
                        _ => Scale::ImageNet,
                    })),
            OptionRow::new("bgr", Kind::Switch, "Pictures are blue, green, red instead of red, green, blue.")
                .stores(|o, v| v.put(&mut o.picture.is_bgr)),
        ];
        const SERVER: &[OptionRow<InferOptions>] = &server_rows!(
            "Seconds that the whole command may take; 60 if it is not given.",
            "Print one JSON object, with everything in it."
        );
        &[
            Group { title: "Request", rows: REQUEST, is_own: false },
            Group { title: "Files", rows: FILES, is_own: false },
            Group { title: "Server", rows: SERVER, is_own: false },
        ]
    }

    fn word(&mut self, word: String) -> Result<(), CommandError> {
        match &self.model {
            Some(_) if word.contains('=') || word.starts_with('@') => self.inputs.push(word),
            Some(model) => {
                return Err(CommandError::Words(format!(
                    "one model is expected, there are '{model}' and '{word}'; an input is written NAME=VALUE or @FILE"
                )));
            }
            None => self.model = Some(word),
        }
        Ok(())
    }
}

fn parameter(options: &mut InferOptions, value: &Occurrence) -> Result<(), CommandError> {
    let parts = value.text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, text) = parts.ok_or_else(|| value.malformed("<key>=<value>"))?;
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    let read = match (text, text.parse(), number) {
        ("true", ..) => ParameterValue::Bool(true),
        ("false", ..) => ParameterValue::Bool(false),
        (_, Ok(number), _) => ParameterValue::Int(number),
        (_, _, Some(number)) => ParameterValue::Double(number),
        _ => ParameterValue::String(text.to_owned()),
    };
    options.parameters.retain(|(known, _)| known != key);
    options.parameters.push((key.to_owned(), read));
    Ok(())
}

fn output_file(options: &mut InferOptions, value: &Occurrence) -> Result<(), CommandError> {
    let parts = value.text.split_once('=');
    let parts = parts.filter(|(name, file)| !name.is_empty() && !file.is_empty());
    let (name, file) = parts.ok_or_else(|| value.malformed("<output>=<file>"))?;
    options.files.push((name.to_owned(), file.to_owned()));
    Ok(())
}
