//! Options that perf_analyzer does not have.

use super::{
    super::readers::{file_name, readable_file},
    row::{Row, value},
};
use galatea_command_line::{options, set};

pub const ROWS: &[Row] = options! {
    /// Write a summary of everything measured as JSON; - is the standard output, and the report then goes to the
    /// standard error.
    "json" => value("file", set!(|given, text| given.settings.json_file = Some(file_name(text)?))),
    /// Write a page with charts, one file that needs no network.
    "html" => value("file", set!(|given, text| given.settings.html_file = Some(file_name(text)?))),
    /// A summary written by --json to lay over this run in the page. May be repeated. Needs --html.
    "compare" => value("file",
        set!(|given, text| given.settings.compare.push(readable_file(text)?))),
    /// Name of this run in summaries and pages. Default: the server's name and version.
    "label" => value("name", |given, v| v.put(&mut given.settings.label)),
    /// The server's Unix socket for HTTP, through which --shared-memory=memfd registers memory. Default: the address -u,
    /// where that is such a socket.
    "shared-memory-url" => value("unix:path",
        |given, v| v.put(&mut given.settings.shared_memory_url)),
    /// Print this help.
    "help" => Row::help(""),
};
