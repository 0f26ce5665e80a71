//! A line of the log as a JSON object: `time`, `level`, the known ones of `model`, `version`, `request_id` and others, `text`,
//! `file`, `line`, `pid`.

use log::{
    Level,
    kv::{Error, Key, Source, Value, VisitSource},
};

use super::{
    SHOWN,
    line::{Line, write_number},
    quoting::write_quoted,
    time,
};

/// Appends the line with its line break. A message of several lines is one string.
pub(super) fn write(out: &mut String, line: &Line<'_>, fields: &dyn Source) {
    out.push_str("{\"time\":\"");
    time::write_iso_micros(out, line.since_epoch);
    out.push_str("Z\",\"level\":\"");
    out.push_str(name(line.level));
    out.push('"');
    // Visiting fails for no field.
    let _ = fields.visit(&mut Fields(out));
    out.push_str(",\"text\":");
    write_quoted(out, line.message.trim_matches('\n'));
    if !line.file.is_empty() {
        out.push_str(",\"file\":");
        write_quoted(out, line.file);
        out.push_str(",\"line\":");
        write_number(out, line.line);
    }
    out.push_str(",\"pid\":");
    write_number(out, line.process);
    out.push_str("}\n");
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

/// Writes members of the object, each after a comma.
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
        if let Some(text) = value.to_borrowed_str() {
            write_quoted(out, text);
        } else if let Some(number) = value.to_u64() {
            write_number(out, number);
        } else if let Some(number) = value.to_i64() {
            write_number(out, number);
        } else if let Some(is) = value.to_bool() {
            out.push_str(if is { "true" } else { "false" });
        } else {
            write_quoted(out, &value.to_string());
        }
        Ok(())
    }
}
