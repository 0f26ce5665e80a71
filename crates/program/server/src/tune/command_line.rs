//! The command line of `galatea tune`.

use std::path::PathBuf;

use galatea_command_line::{
    Group, Kind, Occurrence, OptionRow, OptionSet, options, read as read_options,
};

use crate::flags::FlagError;

pub(super) const USAGE: &str = "\
Usage: galatea tune <model> --engines [options]

Measures which engine serves an ONNX model fastest on this machine: ONNX Runtime, and OpenVINO. <model> is the folder of
the model: its config.pbtxt, if there is one, and its version folders. Each engine gets a server of its own, the model's
configuration with another backend in it, and the same requests; answers are compared with those of ONNX Runtime. Prints
a table, and the lines of config.pbtxt that choose the fastest.

";

#[derive(Debug, Default)]
pub struct TuneFlags {
    pub model: PathBuf,
    pub compares_engines: bool,
    pub allows_bf16: bool,
    pub writes: bool,
    pub tolerance: f64,
    pub bf16_tolerance: f64,
    pub max_concurrency: u64,
    pub batch_size: u64,
    /// Length of a measurement, in milliseconds.
    pub interval: u64,
    /// Further options of the load tool.
    pub load_words: Vec<String>,
    /// Further options of each server.
    pub serve_words: Vec<String>,
}

/// Reads the words after `tune`; `None`: the user asks for the help.
pub(super) fn read(words: Vec<String>) -> Result<Option<TuneFlags>, FlagError> {
    let Some(flags) = read_options::<TuneFlags>(words)? else { return Ok(None) };
    let missing = |text: &str| Err(FlagError::Rule(text.to_owned()));
    match &flags {
        _ if flags.model.as_os_str().is_empty() => {
            missing("a model is missing: its folder is expected")
        }
        _ if !flags.compares_engines => {
            missing("the option --engines is missing: it measures which engine is fastest")
        }
        _ => Ok(Some(flags)),
    }
}

type Row = OptionRow<TuneFlags>;

/// Passes an option to the load tool, which has it under the same name.
fn pass_to_load(flags: &mut TuneFlags, given: &Occurrence) -> Result<(), FlagError> {
    flags.load_words.extend([given.spelled(), given.text.clone()]);
    Ok(())
}

/// Passes an option to `serve`, which has it under the same name.
fn pass_to_serve(flags: &mut TuneFlags, given: &Occurrence) -> Result<(), FlagError> {
    flags.serve_words.push(format!("{}={}", given.spelled(), given.text));
    Ok(())
}

const ENGINES: &[Row] = options! {
    /// Measure which engine is fastest.
    "engines" => Row::of(Kind::Switch).fills(|o| &mut o.compares_engines),
    /// Measure OpenVINO in bfloat16 too, whose answers are less exact.
    "allow-bf16" => Row::of(Kind::Switch).fills(|o| &mut o.allows_bf16),
    /// Largest difference allowed between an engine's answers and those of ONNX Runtime, as a share of the largest
    /// number of an output. An engine that differs more is not recommended.
    "tolerance" => Row::of(Kind::Number).default("0.001").fills(|o| &mut o.tolerance),
    /// The same for bfloat16.
    "tolerance-bf16" => Row::of(Kind::Number).default("0.05").fills(|o| &mut o.bf16_tolerance),
    /// Write the lines of the fastest into the model's config.pbtxt; the old one stays beside it as config.pbtxt.bak.
    "write" => Row::of(Kind::Switch).fills(|o| &mut o.writes),
};

const LOAD: &[Row] = options! {
    /// Shape of an input without its batch dimension, as in perf. Needed for dimensions of any size. May be repeated.
    "shape" => Row::of(Kind::Form("<name>:<n>,<n>...")).stores(pass_to_load),
    /// Data to send, as in perf: a JSON file or a folder. Default: numbers from 0 to 1, and 1 for whole numbers. May be
    /// repeated.
    "input-data" => Row::of(Kind::Text).stores(pass_to_load),
    /// Items of each request.
    "batch-size" => Row::of(Kind::Integer { min: 1, max: 1 << 20 })
        .short('b').default("1").fills(|o| &mut o.batch_size),
    /// Milliseconds of a measurement; three that agree make a figure.
    "measurement-interval" => Row::of(Kind::Integer { min: 1, max: 3_600_000 })
        .default("2000").fills(|o| &mut o.interval),
    /// Most requests in flight. Their number is doubled until the throughput grows by less than 5 %.
    "max-concurrency" => Row::of(Kind::Integer { min: 1, max: 1024 })
        .default("32").fills(|o| &mut o.max_concurrency),
};

const SERVERS: &[Row] = options! {
    /// ONNX Runtime library, as an option of serve.
    "onnxruntime-lib" => Row::of(Kind::Text).stores(pass_to_serve),
    /// OpenVINO library, as an option of serve.
    "openvino-lib" => Row::of(Kind::Text).stores(pass_to_serve),
    /// Fetch libraries that are not installed, as an option of serve.
    "runtime-downloads" => Row::of(Kind::Choice(&["auto", "never"])).stores(pass_to_serve),
    /// Setting of a backend, as an option of serve. May be repeated.
    "backend-config" => Row::of(Kind::Form("<string>,<string>=<string>")).stores(pass_to_serve),
    /// Print this text.
    "help" => Row::help(""),
};

impl OptionSet for TuneFlags {
    type Error = FlagError;

    fn groups() -> &'static [Group<Self>] {
        &[
            Group { title: "", rows: ENGINES, is_own: false },
            Group { title: "Requests", rows: LOAD, is_own: false },
            Group { title: "Servers", rows: SERVERS, is_own: false },
        ]
    }

    fn word(&mut self, word: String) -> Result<(), FlagError> {
        if !self.model.as_os_str().is_empty() {
            return Err(FlagError::Rule(format!(
                "one model is expected, and there is also '{word}'"
            )));
        }
        self.model = PathBuf::from(word);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(line: &str) -> Result<Option<TuneFlags>, String> {
        read(line.split_whitespace().map(str::to_owned).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_model_and_a_question_are_required() {
        assert!(given("--help").expect("help").is_none());
        assert!(given("").expect_err("nothing").contains("a model is missing"));
        assert!(given("m").expect_err("no question").contains("--engines"));
        assert!(given("m n --engines").expect_err("two").contains("'n'"));
        assert!(given("m --engines --max-concurrency 0").is_err());
    }

    #[test]
    fn options_of_other_commands_are_passed_on() {
        let flags =
            given("m --engines --shape x:1,2 -b 4 --openvino-lib=/l --runtime-downloads never");
        let flags = flags.expect("good").expect("no help");
        assert_eq!(flags.load_words, ["--shape", "x:1,2"]);
        assert_eq!(flags.serve_words, ["--openvino-lib=/l", "--runtime-downloads=never"]);
        assert_eq!((flags.max_concurrency, flags.batch_size, flags.interval), (32, 4, 2000));
    }
}
