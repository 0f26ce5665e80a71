//! The help text, made from the table.

use std::fmt::Write;

use super::{
    spec::{Spec, Takes},
    table,
};

const WIDTH: usize = 100;
const INDENT: &str = "        ";

pub fn help(program: &str) -> String {
    let mut out = format!(
        "Usage: {program} -m <model> [options]\n\n\
         Puts load on a model behind a KServe v2 server and reports throughput and latency. Takes the\n\
         command lines of perf_analyzer. Long names may be cut short as long as they are unique.\n"
    );
    for group in table::groups() {
        let _ = write!(out, "\n{}:\n", group.title);
        for spec in group.specs {
            let _ = writeln!(out, "  {}", names(spec));
            write_wrapped(&mut out, spec.help);
        }
    }
    out
}

fn names(spec: &Spec) -> String {
    let short = spec.short.map(|short| format!("-{short}"));
    let long = (!spec.long.is_empty()).then(|| format!("--{}", spec.long));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let value = match spec.takes {
        Takes::Nothing => String::new(),
        Takes::Value(name) => format!(" <{name}>"),
        Takes::Truth => " [true|false]".to_owned(),
    };
    names.join(", ") + &value
}

fn write_wrapped(out: &mut String, text: &str) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && INDENT.len() + line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(out, "{INDENT}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(out, "{INDENT}{line}");
}
