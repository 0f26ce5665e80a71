use super::super::spec::{Action, Spec, Takes};

pub const SPECS: &[Spec] = &[
    Spec::value(
        "json",
        "file",
        "Write a summary of everything measured as JSON; - is the standard output, and the report then \
         goes to the standard error.",
        |given, text| {
            given.json_file = Some(text.file_name()?);
            Ok(())
        },
    ),
    Spec::value(
        "html",
        "file",
        "Write a page with charts, one file that needs no network.",
        |given, text| {
            given.html_file = Some(text.file_name()?);
            Ok(())
        },
    ),
    Spec::value(
        "compare",
        "file",
        "A summary written by --json to lay over this run in the page. May be repeated. Needs --html.",
        |given, text| {
            given.compare.push(text.readable_file()?);
            Ok(())
        },
    ),
    Spec::value(
        "label",
        "name",
        "What to call this run in summaries and pages. Default: the server's name and version.",
        |given, text| {
            given.label = Some(text.text.clone());
            Ok(())
        },
    ),
    Spec::new("help", Takes::Nothing, "Print this help.", Action::Help).short('h'),
];
