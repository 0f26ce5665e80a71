//! Options that perf_analyzer does not have.

use super::{
    super::reading::{file_name, readable_file},
    row::{Row, value},
};
use galatea_command_line::set;

pub const ROWS: &[Row] = &[
    value(
        "json",
        "file",
        "Write a summary of everything measured as JSON; - is the standard output, and the report then \
         goes to the standard error.",
        set!(|given, text| given.settings.json_file = Some(file_name(text)?)),
    ),
    value(
        "html",
        "file",
        "Write a page with charts, one file that needs no network.",
        set!(|given, text| given.settings.html_file = Some(file_name(text)?)),
    ),
    value(
        "compare",
        "file",
        "A summary written by --json to lay over this run in the page. May be repeated. Needs --html.",
        set!(|given, text| given.settings.compare.push(readable_file(text)?)),
    ),
    value(
        "label",
        "name",
        "What to call this run in summaries and pages. Default: the server's name and version.",
        |given, v| v.put(&mut given.settings.label),
    ),
    Row::help("Print this help."),
];
