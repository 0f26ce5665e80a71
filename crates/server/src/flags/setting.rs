//! Options that hold a setting of something (`--backend-config`, `--metrics-config`, `--trace-config`), and
//! `--memory-budget`.

use galatea_command_line::{BadValue, CommandLineError, Occurrence, ValueError, parse_bool};

use super::{error::FlagError, serve_flags::ServeFlags};
use crate::memory::MemorySize;

/// `{owner},{key}={value}` or `{key}={value}`.
struct Setting<'a> {
    owner: Option<&'a str>,
    key: &'a str,
    value: &'a str,
}

impl<'a> Setting<'a> {
    fn parse(given: &'a Occurrence, form: &'static str) -> Result<Self, BadValue> {
        let malformed = || given.malformed(form);
        let (left, value) = given.text.split_once('=').ok_or_else(malformed)?;
        let (owner, key) = match left.split_once(',') {
            Some((owner, key)) => (Some(owner), key),
            None => (None, left),
        };
        if key.is_empty() || value.is_empty() {
            return Err(malformed());
        }
        Ok(Self { owner, key, value })
    }
}

pub(super) fn backend_config(flags: &mut ServeFlags, given: &Occurrence) -> Result<(), FlagError> {
    const FORM: &str = "'<backend name>,<setting>=<value>'";
    let setting = Setting::parse(given, FORM)?;
    let backend = setting.owner.ok_or_else(|| given.malformed(FORM))?;
    flags.engine.backend_config.set(backend, setting.key, setting.value);
    Ok(())
}

pub(super) fn metrics_config(flags: &mut ServeFlags, given: &Occurrence) -> Result<(), FlagError> {
    let setting = Setting::parse(given, "<setting>=<value>")?;
    let not_bool = || given.bad(ValueError::NotBool(setting.value.to_owned()));
    match setting.key {
        "counter_latencies" => {
            let wanted = parse_bool(setting.value).ok_or_else(not_bool)?;
            flags.engine.metrics.has_counter_latencies = wanted;
            Ok(())
        }
        "summary_latencies" | "histogram_latencies" => {
            match parse_bool(setting.value).ok_or_else(not_bool)? {
                true => Err(only_counters(given)),
                false => Ok(()),
            }
        }
        _ => Err(only_counters(given)),
    }
}

fn only_counters(given: &Occurrence) -> FlagError {
    not_yet(given.names.plain(), "only counter_latencies can be set")
}

pub(super) fn trace_config(_: &mut ServeFlags, given: &Occurrence) -> Result<(), FlagError> {
    let form = "'<mode>,<setting>=<value>' or '<setting>=<value>'";
    let setting = Setting::parse(given, form)?;
    if setting.key == "level" && !setting.value.eq_ignore_ascii_case("off") {
        let what = "requests cannot be traced; level=OFF is the only level";
        return Err(not_yet(given.names.plain(), what));
    }
    Ok(())
}

pub(super) fn memory_budget(flags: &mut ServeFlags, given: &Occurrence) -> Result<(), FlagError> {
    let size = MemorySize::parse(&given.text);
    flags.memory_budget =
        size.ok_or_else(|| given.malformed("<bytes>, <number>K|M|G|T or <percent>%"))?;
    Ok(())
}

pub(super) fn not_yet(option: String, what: &'static str) -> FlagError {
    CommandLineError::NotYet { option, what }.into()
}
