//! The command line of `galatea tune`.

use std::path::PathBuf;

use galatea_command_line::{
    Group, Kind, OptionOutline, OptionRow, OptionSet, help, outline, read as read_options, set,
};

use crate::flags::FlagError;

const USAGE: &str = "\
Usage: galatea tune <model> --engines [options]

Measures which engine serves an ONNX model fastest on this machine: ONNX Runtime, and OpenVINO. <model> is the folder of
the model: its config.pbtxt, if there is one, and its version folders. Each engine gets a server of its own, the model's
configuration with another backend in it, and the same requests; answers are compared with those of ONNX Runtime. Prints
a table, and the lines of config.pbtxt that choose the fastest.

";

const HELP_WIDTH: usize = 80;

/// What is asked for.
#[derive(Debug)]
pub struct TuneFlags {
    /// The folder of the model.
    pub model: PathBuf,
    /// `--engines`
    pub compares_engines: bool,
    /// `--allow-bf16`
    pub allows_bf16: bool,
    /// `--write`
    pub writes: bool,
    /// `--tolerance`
    pub tolerance: f64,
    /// `--tolerance-bf16`
    pub bf16_tolerance: f64,
    /// `--max-concurrency`
    pub max_concurrency: u64,
    /// `--batch-size`
    pub batch_size: u64,
    /// `--measurement-interval`, in milliseconds
    pub interval: u64,
    /// What the load tool is told too.
    pub load_words: Vec<String>,
    /// What each server is told too.
    pub serve_words: Vec<String>,
}

impl Default for TuneFlags {
    fn default() -> Self {
        Self {
            model: PathBuf::new(),
            compares_engines: false,
            allows_bf16: false,
            writes: false,
            tolerance: 1e-3,
            bf16_tolerance: 5e-2,
            max_concurrency: 32,
            batch_size: 1,
            interval: 2000,
            load_words: Vec::new(),
            serve_words: Vec::new(),
        }
    }
}

/// Reads the words behind `tune`; `None`: the help is asked for.
pub(super) fn read(words: Vec<String>) -> Result<Option<TuneFlags>, FlagError> {
    let Some(flags) = read_options::<TuneFlags>(words)? else { return Ok(None) };
    let missing = |text: &str| Err(FlagError::Rule(text.to_owned()));
    match &flags {
        _ if flags.model.as_os_str().is_empty() => missing("which model? Its folder is expected"),
        _ if !flags.compares_engines => {
            missing("what is to be found out? --engines measures which engine is fastest")
        }
        _ => Ok(Some(flags)),
    }
}

pub(super) fn help_text() -> String {
    help::<TuneFlags>(USAGE, HELP_WIDTH)
}

/// What the table says, for texts about all commands.
pub fn tune_outline() -> Vec<OptionOutline> {
    outline::<TuneFlags>()
}

/// An option that the load tool has under the same name.
const fn of_load(name: &'static str, kind: Kind, help: &'static str) -> OptionRow<TuneFlags> {
    OptionRow::new(name, kind, help).stores(|o, v| {
        o.load_words.push(v.spelled());
        o.load_words.push(v.text.clone());
        Ok(())
    })
}

/// An option that `serve` has under the same name.
const fn of_serve(name: &'static str, kind: Kind, help: &'static str) -> OptionRow<TuneFlags> {
    OptionRow::new(name, kind, help).stores(set!(|o, v| o.serve_words.push(format!(
        "{}={}",
        v.spelled(),
        v.text
    ))))
}

const ENGINES: &[OptionRow<TuneFlags>] = &[
    OptionRow::new("engines", Kind::Switch, "Measure which engine is fastest.")
        .stores(|o, v| v.put(&mut o.compares_engines)),
    OptionRow::new(
        "allow-bf16",
        Kind::Switch,
        "Measure OpenVINO in bfloat16 too, whose answers are less exact.",
    )
    .stores(|o, v| v.put(&mut o.allows_bf16)),
    OptionRow::new(
        "tolerance",
        Kind::Number,
        "How far answers may be from those of ONNX Runtime: the largest difference of an output's numbers, as a share of \
         the largest of them. An engine that is further off is not recommended.",
    )
    .default("0.001")
    .stores(|o, v| v.put(&mut o.tolerance)),
    OptionRow::new("tolerance-bf16", Kind::Number, "The same for bfloat16.")
        .default("0.05")
        .stores(|o, v| v.put(&mut o.bf16_tolerance)),
    OptionRow::new(
        "write",
        Kind::Switch,
        "Write the lines of the fastest into the model's config.pbtxt; the old one stays beside it as config.pbtxt.bak.",
    )
    .stores(|o, v| v.put(&mut o.writes)),
];

const LOAD: &[OptionRow<TuneFlags>] = &[
    of_load(
        "shape",
        Kind::Form("<name>:<n>,<n>..."),
        "Shape of an input without its batch dimension, as in perf. Needed for dimensions of any size. May be repeated.",
    ),
    of_load(
        "input-data",
        Kind::Text,
        "What is sent, as in perf: a JSON file or a folder. Without it numbers from 0 to 1, and 1 for whole numbers. May \
         be repeated.",
    ),
    OptionRow::new("batch-size", Kind::Integer { min: 1, max: 1 << 20 }, "Items of each request.")
        .short('b')
        .default("1")
        .stores(set!(|o, v| o.batch_size = v.integer()?)),
    OptionRow::new(
        "measurement-interval",
        Kind::Integer { min: 1, max: 3_600_000 },
        "Milliseconds of a measurement; three that agree make a figure.",
    )
    .default("2000")
    .stores(set!(|o, v| o.interval = v.integer()?)),
    OptionRow::new(
        "max-concurrency",
        Kind::Integer { min: 1, max: 1024 },
        "Most requests in flight. Their number is doubled until the throughput grows by less than 5 %.",
    )
    .default("32")
    .stores(set!(|o, v| o.max_concurrency = v.integer()?)),
];

const SERVERS: &[OptionRow<TuneFlags>] = &[
    of_serve("onnxruntime-lib", Kind::Text, "ONNX Runtime library, as an option of serve."),
    of_serve("openvino-lib", Kind::Text, "OpenVINO library, as an option of serve."),
    of_serve(
        "runtime-downloads",
        Kind::Choice(&["auto", "never"]),
        "Whether a library that is not installed is fetched, as an option of serve.",
    ),
    of_serve(
        "backend-config",
        Kind::Form("<string>,<string>=<string>"),
        "Setting of a backend, as an option of serve. May be repeated.",
    ),
    OptionRow::help("Print this text."),
];

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
    fn a_model_and_a_question_are_needed() {
        assert!(given("--help").expect("help").is_none());
        assert!(given("").expect_err("nothing").contains("which model?"));
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
