//! A line of the log as a JSON object: `time`, `level`, what is known of `model`, `version`, `request_id` and others, `text`,
//! `file`, `line`, `pid`.

use std::fmt::Write;

use log::{
    Level,
    kv::{Error, Key, Source, Value, VisitSource},
};

use super::{SHOWN, line::Line, quoting::write_quoted, time};

/// The line with its line break. A message of several lines is one string.
pub(super) fn text(line: &Line<'_>, fields: &dyn Source) -> String {
    let mut out = String::with_capacity(line.message.len() + 160);
    out.push_str("{\"time\":\"");
    time::write_iso(&mut out, line.since_epoch);
    // Writing to a String cannot fail.
    let _ = write!(out, ".{:06}Z\"", line.since_epoch.subsec_micros());
    let _ = write!(out, ",\"level\":\"{}\"", name(line.level));
    let _ = fields.visit(&mut Fields(&mut out));
    out.push_str(",\"text\":");
    write_quoted(&mut out, line.message.trim_matches('\n'));
    if !line.file.is_empty() {
        out.push_str(",\"file\":");
        write_quoted(&mut out, line.file);
        let _ = write!(out, ",\"line\":{}", line.line);
    }
    let _ = writeln!(out, ",\"pid\":{}}}", line.process);
    out
}

fn name(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warning",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    }
}

/// Members of the object, each after a comma.
struct Fields<'o>(&'o mut String);

impl<'kvs> VisitSource<'kvs> for Fields<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        if key.as_str() == SHOWN {
            return Ok(());
        }
        let out = &mut *self.0;
        out.push(',');
        write_quoted(out, key.as_str());
        out.push(':');
        let number = value.to_u64().map(|n| n.to_string());
        let number = number.or_else(|| Some(value.to_i64()?.to_string()));
        let number = number.or_else(|| Some(value.to_bool()?.to_string()));
        match number {
            Some(number) => out.push_str(&number),
            None => write_quoted(out, &value.to_string()),
        }
        Ok(())
    }
}
