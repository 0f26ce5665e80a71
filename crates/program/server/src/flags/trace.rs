//! Options of tracing. They are read as in Triton, but nothing is traced yet: an option that enables traces gives a warning
//! at start.

use galatea_command_line::{BadValue, Notice, Occurrence, ValueError};

use super::{
    error::StoreResult,
    serve_flags::{ServeFlags, TraceFlags},
    setting::{Setting, missing, part},
};

/// Settings of `--trace-config`, with the deprecated options of the same effect.
const SETTINGS: [(Option<&str>, &str); 5] = [
    (None, "rate"),
    (None, "level"),
    (None, "count"),
    (Some("triton"), "file"),
    (Some("triton"), "log-frequency"),
];

/// Reads `--trace-level`.
pub(super) fn level(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    take_level(flags, given, &given.text).map_err(|reason| given.bad(reason).into())
}

/// Reads `--trace-config`.
pub(super) fn config(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    if given.text.starts_with(',') {
        let text = format!(
            "No trace mode specified. --trace-config option format is <trace mode>,<setting>=<value> or \
             <setting>=<value>. Got {}",
            given.text
        );
        return Err(given.bad(ValueError::Rejected(text)).into());
    }
    let setting = Setting::parse(given, "'<trace mode>,<setting>=<value>'")?;
    if let Some(mode) = setting.owner {
        check_mode(mode).map_err(|reason| given.bad(reason))?;
    }
    let checked = check(flags, given, &setting);
    checked.map_err(|reason| BadValue { option: spelled(&setting), reason })?;
    let known = SETTINGS.iter().find(|known| **known == (setting.owner, setting.key));
    flags.trace.configured.extend(known.map(|(_, key)| *key));
    Ok(())
}

fn check(
    flags: &mut ServeFlags,
    given: &Occurrence,
    setting: &Setting<'_>,
) -> Result<(), ValueError> {
    let Setting { owner, key, value } = *setting;
    let number = || part::<i32>(given, value).map(drop).map_err(|error| error.reason);
    match (owner.map(str::to_ascii_lowercase).as_deref(), key) {
        (None, "rate" | "count") | (Some("triton"), "log-frequency") => number(),
        (None, "mode") => check_mode(value),
        (None, "level") => take_level(flags, given, value),
        _ => Ok(()),
    }
}

/// Adds the warnings about tracing, once all options are known.
pub(super) fn finish(flags: &mut ServeFlags) {
    let TraceFlags { asked, is_off, configured } = std::mem::take(&mut flags.trace);
    for key in configured {
        let option = format!("'--trace-{key}'");
        let is_given =
            |notice: &Notice| matches!(notice, Notice::Warning(text) if text.starts_with(&option));
        if flags.notices.iter().any(is_given) {
            let provided = if key == "rate" { "rate value" } else { key };
            flags.notices.push(Notice::Warning(format!(
                "Overriding deprecated {option} in favor of provided {provided} in --trace-config!"
            )));
        }
    }
    flags.notices.extend(asked.filter(|_| !is_off));
}

fn take_level(flags: &mut ServeFlags, given: &Occurrence, level: &str) -> Result<(), ValueError> {
    match is_on(level).ok_or_else(|| bad_level(level))? {
        true => {
            flags.trace.asked.get_or_insert(missing(given, "requests cannot be traced"));
        }
        false => flags.trace.is_off = true,
    }
    Ok(())
}

/// Returns true if a level traces anything; `None`: it is not a level.
fn is_on(level: &str) -> Option<bool> {
    match level.to_ascii_lowercase().as_str() {
        "false" | "off" => Some(false),
        "true" | "on" | "min" | "max" | "timestamps" | "tensors" => Some(true),
        _ => None,
    }
}

fn bad_level(level: &str) -> ValueError {
    let level = level.to_ascii_lowercase();
    ValueError::Rejected(format!(
        "invalid value for trace level option: {level} (use OFF, TIMESTAMPS or TENSORS)"
    ))
}

fn check_mode(mode: &str) -> Result<(), ValueError> {
    let mode = mode.to_ascii_lowercase();
    match mode.as_str() {
        "triton" | "opentelemetry" => Ok(()),
        _ => Err(ValueError::Rejected(format!(
            "invalid value for trace mode option: {mode}. Available options are \"triton\" and \"opentelemetry\""
        ))),
    }
}

/// Returns the option with its setting, such as `--trace-config triton,log-frequency`.
fn spelled(setting: &Setting<'_>) -> String {
    let owner = setting.owner.map(|owner| format!("{owner},")).unwrap_or_default();
    format!("--trace-config {owner}{}", setting.key)
}
