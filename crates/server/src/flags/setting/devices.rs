//! Options with amounts and places per device (memory pools, limits, resources, host policies), which are checked as
//! Triton checks them and have no effect here yet, and a range of ports.

use galatea_command_line::{BadValue, Occurrence, ValueError};

use super::{
    super::{error::FlagError, serve_flags::ServeFlags},
    parts::{Setting, part},
};

/// `<GPU>:<bytes>`
pub(in super::super) fn gpu_bytes(_: &mut ServeFlags, given: &Occurrence) -> Result<(), FlagError> {
    let (gpu, bytes) = pair(given, "<GPU>:<bytes>")?;
    part::<i32>(given, gpu)?;
    part::<u64>(given, bytes)?;
    Ok(())
}

/// `<GPU>:<fraction>`
pub(in super::super) fn gpu_limit(_: &mut ServeFlags, given: &Occurrence) -> Result<(), FlagError> {
    let (gpu, fraction) = pair(given, "<GPU>:<fraction>")?;
    let gpu: i64 = part(given, gpu)?;
    let not_a_number = || given.bad(ValueError::NotANumber(fraction.to_owned()));
    let fraction: f64 = fraction.parse().map_err(|_| not_a_number())?;
    let reason = match gpu {
        ..0 => format!("expects device ID >= 0, got {gpu}"),
        _ if !(0.0..=1.0).contains(&fraction) => {
            format!("expects limit fraction to be in range [0.0, 1.0], got {fraction:.6}")
        }
        _ => return Ok(()),
    };
    Err(refused_setting("model load GPU limit: Invalid argument", &reason))
}

/// `<name>:<count>` or `<name>:<count>:<device>`
pub(in super::super) fn rate_limit_resource(
    _: &mut ServeFlags,
    given: &Occurrence,
) -> Result<(), FlagError> {
    const FORM: &str = "'<resource_name>:<count>:<device>' or '<resource_name>:<count>'";
    let (_, amounts) = pair(given, FORM)?;
    let amounts: Vec<&str> = amounts.split(':').collect();
    if amounts.len() > 2 {
        return Err(given.malformed(FORM).into());
    }
    amounts.iter().try_for_each(|amount| part::<i32>(given, amount).map(drop))?;
    Ok(())
}

/// `<policy>,<setting>=<value>`
pub(in super::super) fn host_policy(
    _: &mut ServeFlags,
    given: &Occurrence,
) -> Result<(), FlagError> {
    const FORM: &str = "'<policy name>,<setting>=<value>'";
    let setting = Setting::parse(given, FORM)?;
    if setting.owner.is_none_or(str::is_empty) {
        return Err(given.malformed(FORM).into());
    }
    match setting.key {
        "numa-node" | "cpu-cores" => Ok(()),
        key => {
            let reason = format!(
                "Unsupported host policy setting '{key}' is specified, supported settings are 'numa-node', 'cpu-cores'"
            );
            Err(refused_setting("host policy: Unsupported", &reason))
        }
    }
}

/// `<first port>-<last port>`
pub(in super::super) fn safe_port_range(
    flags: &mut ServeFlags,
    given: &Occurrence,
) -> Result<(), FlagError> {
    let range = given.text.split_once('-');
    let (first, last) = range.ok_or_else(|| given.malformed("<first port>-<last port>"))?;
    flags.sagemaker_safe_ports = Some((part(given, first)?, part(given, last)?));
    Ok(())
}

fn pair<'a>(given: &'a Occurrence, form: &'static str) -> Result<(&'a str, &'a str), BadValue> {
    given.text.split_once(':').ok_or_else(|| given.malformed(form))
}

/// As the library behind Triton's program says it, with the code of its error.
fn refused_setting(what: &str, reason: &str) -> FlagError {
    FlagError::Rule(format!("setting {what} - {reason}"))
}
