//! Command lines of a made-up command.

use super::*;
use crate::{Group, Kind, help};

/// A command with an option of each kind.
#[derive(Debug, Default)]
struct Kettle {
    litres: u16,
    name: Option<String>,
    is_loud: bool,
    lit: bool,
    spouts: Vec<String>,
    words: Vec<String>,
    notices: Vec<Notice>,
}

impl OptionSet for Kettle {
    type Error = CommandLineError;

    fn groups() -> &'static [Group<Self>] {
        GROUPS
    }

    fn word(&mut self, word: String) -> Result<(), CommandLineError> {
        self.words.push(word);
        Ok(())
    }

    fn notice(&mut self, notice: Notice) {
        self.notices.push(notice);
    }
}

type Row = OptionRow<Kettle>;

const GROUPS: &[Group<Kettle>] = &[
    Group {
        title: "",
        rows: &[Row::help("Print this text."), Row::version("Print the version.")],
        is_own: false,
    },
    Group {
        title: "Kettle",
        rows: &[
            Row::new("litres", Kind::Integer { min: 1, max: 100_000 }, "How much.")
                .short('l')
                .default("2")
                .stores(|o, v| v.put(&mut o.litres)),
            Row::new("name", Kind::Name, "What it is called.").stores(|o, v| v.put(&mut o.name)),
            Row::new("loud", Kind::Switch, "Whistle.")
                .short('q')
                .stores(|o, v| v.put(&mut o.is_loud)),
            Row::new("lit", Kind::OptionalBool, "Burn.").stores(|o, v| v.put(&mut o.lit)),
            Row::new("spout", Kind::Form("side:length"), "A spout.")
                .stores(|o, v| v.put(&mut o.spouts)),
            Row::new("steam", Kind::Bool, "Old.").default("false").deprecated("it is old"),
            Row::new("fuel", Kind::Choice(&["gas", "wood"]), "Fuel.")
                .default("gas")
                .no_effect("all is gas"),
            Row::new("valves", Kind::Integer { min: 0, max: 9 }, "Valves.")
                .default("0")
                .missing("there are none"),
            Row::new("fly", Kind::Switch, "Refused.").refused("it is heavy"),
        ],
        is_own: false,
    },
    Group { title: "Own", rows: &[Row::new("nametag", Kind::Text, "A tag.")], is_own: true },
];

fn parsed(line: &str) -> Result<Kettle, String> {
    let mut kettle = Kettle::default();
    let asked = parse(line.split_whitespace().map(str::to_owned), &mut kettle);
    assert_eq!(asked.map_err(|error| error.to_string())?, None, "{line}");
    Ok(kettle)
}

fn asked(line: &str) -> Option<Asked> {
    parse(line.split_whitespace().map(str::to_owned), &mut Kettle::default()).expect("good words")
}

#[track_caller]
fn refused(line: &str, expected: &str) {
    assert_eq!(parsed(line).map(|_| ()), Err(expected.to_owned()), "{line}");
}

#[test]
fn defaults_and_values_use_the_same_closure() {
    assert_eq!(parsed("").map(|kettle| kettle.litres), Ok(2));
    for line in ["--litres 5", "--litres=5", "--lit 0 --litr 5", "-l5", "-l 5", "-ql5", "-l4 -l5"] {
        assert_eq!(parsed(line).map(|kettle| kettle.litres), Ok(5), "{line}");
    }
    let kettle = parsed("--spout a --spout=b --name x -- --name y").expect("good words");
    assert_eq!(kettle.spouts, ["a", "b"]);
    assert_eq!(kettle.name.as_deref(), Some("x"));
    assert_eq!(kettle.words, ["--name", "y"]);
}

#[test]
fn an_optional_boolean_takes_the_next_word_only_if_it_is_a_boolean() {
    for (line, expected) in [("--lit", true), ("--lit off", false), ("--lit=0", false)] {
        assert_eq!(parsed(line).map(|kettle| kettle.lit), Ok(expected), "{line}");
    }
    let kettle = parsed("--lit word").expect("good words");
    assert!(kettle.lit && kettle.words == ["word"]);
}

#[test]
fn abbreviations_of_the_original_names_stay_unique() {
    assert_eq!(parsed("--nam x").map(|kettle| kettle.name), Ok(Some("x".to_owned())));
    refused("--l 3", "option '--l' is ambiguous; possibilities: '--litres' '--loud' '--lit'");
}

#[test]
fn unknown_options_are_reported_with_the_nearest_name() {
    refused("--litters=3", "unrecognized option '--litters'; did you mean '--litres'?");
    refused("--nonsense", "unrecognized option '--nonsense'");
    refused("--=3", "unrecognized option '--=3'");
    refused("-spout x", "unrecognized option '-spout'; did you mean '--spout'?");
    refused("-lit", "unrecognized option '-lit'; did you mean '--lit'?");
    refused("-x", "invalid option -- 'x'");
    refused("-qx", "invalid option -- 'x'");
    refused("-l", "option requires an argument -- 'l'");
    refused("--litres", "option '--litres' requires an argument");
    refused("--loud=1", "option '--loud' doesn't allow an argument");
}

#[test]
fn an_invalid_value_is_an_error_with_option_and_value() {
    refused(
        "--litres abc",
        "Bad option: \"--litres\". Invalid option value. Got abc, expected a number",
    );
    refused(
        "-l 70000",
        "Bad option: \"--litres\". Provided option value is out of bound. Got 70000",
    );
    refused("--name=", "Bad option: \"--name\". Error: empty argument for --name");
}

#[test]
fn unsupported_options_are_refused() {
    refused(
        "--steam=yes",
        "Bad option: \"--steam\". invalid value for bool option: yes (use true or false)",
    );
    refused("--fly", "--fly is not supported: it is heavy");
    let notices = parsed("--steam=off --fuel gas --fuel=wood --valves=00 --valves=2")
        .map(|kettle| kettle.notices);
    let no_effect = Notice::NoEffect {
        option: "--fuel".to_owned(),
        value: "wood".to_owned(),
        why: "all is gas",
    };
    let missing = Notice::Missing {
        option: "--valves".to_owned(),
        value: "2".to_owned(),
        what: "there are none",
    };
    let warning = Notice::Warning("it is old".to_owned());
    assert_eq!(notices, Ok(vec![warning, no_effect, missing]));
}

#[test]
fn help_and_version_end_the_parsing() {
    for line in ["-h", "-?", "--help", "--he", "-qh", "-l 3 -h --nonsense"] {
        assert_eq!(asked(line), Some(Asked::Help), "{line}");
    }
    assert_eq!(asked("--version"), Some(Asked::Version));
}

#[test]
fn the_help_lists_every_option() {
    let text = help::<Kettle>("Usage: kettle\n", 40);
    assert!(text.starts_with("Usage: kettle\n  -h, --help\n        Print this text.\n"), "{text}");
    for part in [
        "\n\nKettle:\n  -l, --litres <integer>\n        How much. Default is 2.\n",
        "\n  --lit [true|false]\n",
        "\n  --spout <side:length>\n",
        "\n        Fuel. Default is gas. [accepted\n        without effect: all is gas]\n",
        "\n        Valves. Default is 0. [accepted\n        with a warning: there are none]\n",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
}
