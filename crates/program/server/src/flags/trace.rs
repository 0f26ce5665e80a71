//! Options of tracing: `--trace-config`, and the deprecated ones of the same effect.

use galatea_command_line::{BadValue, Notice, Occurrence, ValueError};
use galatea_otlp::{Attribute, ExportProtocol};
use galatea_trace::{Levels, TraceMode};

use super::{
    error::StoreResult,
    serve_flags::{ServeFlags, TraceFlags, TraceValues},
    setting::{Setting, part},
};

/// Settings of `--trace-config`, with the deprecated options of the same effect.
const SETTINGS: [(Option<&str>, &str); 5] = [
    (None, "rate"),
    (None, "level"),
    (None, "count"),
    (Some("triton"), "file"),
    (Some("triton"), "log-frequency"),
];

/// Reads `--trace-level`. As in Triton, OFF wins over all other levels, but only here.
pub(super) fn level(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    let level = named_level(&given.text).map_err(|reason| given.bad(reason))?;
    flags.trace.is_off |= !level.is_on();
    flags.trace.deprecated.levels = Some(level);
    Ok(())
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
    let owner = setting.owner.map(mode).transpose().map_err(|reason| given.bad(reason))?;
    let stored = store(flags, given, owner, &setting);
    stored.map_err(|reason| BadValue { option: spelled(&setting), reason })?;
    let known = SETTINGS.iter().find(|known| **known == (owner.map(TraceMode::name), setting.key));
    flags.trace.configured.extend(known.map(|(_, key)| *key));
    Ok(())
}

fn store(
    flags: &mut ServeFlags,
    given: &Occurrence,
    owner: Option<TraceMode>,
    setting: &Setting<'_>,
) -> Result<(), ValueError> {
    let Setting { key, value, .. } = *setting;
    let number = || part::<i32>(given, value).map_err(|error| error.reason);
    let trace = &mut flags.trace;
    match (owner, key) {
        (None, "rate") => trace.config.rate = Some(number()?),
        (None, "count") => trace.config.count = Some(number()?),
        (None, "mode") => trace.mode = mode(value)?,
        (None, "level") => {
            let level = named_level(value)?;
            trace.config.levels = Some(both(trace.config.levels, level));
        }
        (Some(TraceMode::Triton), "file") => trace.config.file = Some(value.to_owned()),
        (Some(TraceMode::Triton), "log-frequency") => trace.config.log_frequency = Some(number()?),
        (Some(TraceMode::Triton), other) => {
            trace.others.push((other.to_owned(), value.to_owned()));
            trace.unknown.push(spelled(setting));
        }
        (Some(TraceMode::OpenTelemetry), _) => {
            store_export(trace, given, setting)?;
            trace.export_shown.push((key.to_owned(), value.to_owned()));
        }
        (None, _) => trace.unknown.push(spelled(setting)),
    }
    Ok(())
}

/// Stores a setting of mode `opentelemetry`. As in Triton, an unknown one is only shown.
fn store_export(
    trace: &mut TraceFlags,
    given: &Occurrence,
    setting: &Setting<'_>,
) -> Result<(), ValueError> {
    let Setting { key, value, .. } = *setting;
    let number = || part::<u32>(given, value).map_err(|error| error.reason);
    let export = &mut trace.export;
    match key {
        "url" => export.url = Some(value.to_owned()),
        "protocol" => {
            let known = ExportProtocol::ALL.into_iter().find(|protocol| protocol.name() == value);
            export.protocol = Some(known.ok_or_else(|| {
                ValueError::Rejected(format!(
                    "invalid value for protocol option: {value} (use http/json, http/protobuf or grpc)"
                ))
            })?);
        }
        "resource" => export.resource.push(Attribute::parse(value).ok_or_else(|| {
            ValueError::Rejected(format!(
                "invalid value for resource option: {value} (use <name>=<value>)"
            ))
        })?),
        "bsp_max_queue_size" => export.batch.max_queue_size = Some(number()?),
        "bsp_max_export_batch_size" => export.batch.max_export_batch_size = Some(number()?),
        "bsp_schedule_delay" => export.batch.schedule_delay = Some(number()?),
        _ => trace.unknown.push(spelled(setting)),
    }
    Ok(())
}

/// Stores the settings, once all options are known, and warns about those that are given in both forms.
pub(super) fn finish(flags: &mut ServeFlags) {
    let trace = std::mem::take(&mut flags.trace);
    for key in trace.configured {
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
    let TraceValues { levels, rate, count, log_frequency, file } = trace.config;
    let unknown = trace.unknown.iter();
    let mut warnings: Vec<String> = unknown
        .map(|setting| format!("{setting} has no effect: there is no such setting"))
        .collect();
    let (old, options) = (trace.deprecated, &mut flags.serve.trace);
    let settings = &mut options.settings;
    let levels = both(levels, old.levels.unwrap_or_default());
    settings.levels = if trace.is_off { Levels::OFF } else { levels };
    // Negative numbers count as large ones, as in Triton.
    let unsigned = |number: i32| number.cast_unsigned();
    settings.rate = rate.or(old.rate).map_or(settings.rate, unsigned);
    settings.count = count.or(old.count).unwrap_or(settings.count);
    let log_frequency = log_frequency.or(old.log_frequency);
    settings.log_frequency = log_frequency.map_or(settings.log_frequency, unsigned);
    options.file = file.or(old.file).unwrap_or_default().into();
    options.mode = trace.mode;
    if trace.mode == TraceMode::Triton {
        if settings.levels.is_on() && options.file.as_os_str().is_empty() {
            warnings.push(
                "no request is traced: give a file with --trace-config triton,file=<path>, or a collector with --trace-config \
                 mode=opentelemetry"
                    .to_owned(),
            );
        }
        if !trace.export_shown.is_empty() {
            warnings.push(
                "--trace-config opentelemetry,... has no effect without --trace-config mode=opentelemetry"
                    .to_owned(),
            );
        }
    }
    flags.notices.extend(warnings.into_iter().map(Notice::Warning));
    options.others = match trace.mode {
        TraceMode::Triton => trace.others,
        TraceMode::OpenTelemetry => trace.export_shown,
    };
    flags.serve.trace_export = trace.export;
}

fn both(one: Option<Levels>, other: Levels) -> Levels {
    let one = one.unwrap_or_default();
    Levels { timestamps: one.timestamps || other.timestamps, tensors: one.tensors || other.tensors }
}

fn named_level(level: &str) -> Result<Levels, ValueError> {
    let level = level.to_ascii_lowercase();
    match level.as_str() {
        "false" | "off" => Ok(Levels::OFF),
        "true" | "on" | "min" | "max" | "timestamps" => {
            Ok(Levels { timestamps: true, ..Levels::OFF })
        }
        "tensors" => Ok(Levels { tensors: true, ..Levels::OFF }),
        _ => Err(ValueError::Rejected(format!(
            "invalid value for trace level option: {level} (use OFF, TIMESTAMPS or TENSORS)"
        ))),
    }
}

fn mode(name: &str) -> Result<TraceMode, ValueError> {
    let name = name.to_ascii_lowercase();
    let known = TraceMode::ALL.into_iter().find(|mode| mode.name() == name);
    known.ok_or_else(|| {
        ValueError::Rejected(format!(
            "invalid value for trace mode option: {name}. Available options are \"triton\" and \"opentelemetry\""
        ))
    })
}

/// Returns the option with its setting, such as `--trace-config triton,log-frequency`.
fn spelled(setting: &Setting<'_>) -> String {
    let owner = setting.owner.map(|owner| format!("{owner},")).unwrap_or_default();
    format!("--trace-config {owner}{}", setting.key)
}
