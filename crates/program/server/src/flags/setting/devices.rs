//! Options with values per device: memory pools and limits, which are checked as in Triton and have no effect here; resources
//! and host policies; and a range of ports.

use std::sync::Arc;

use galatea_command_line::{BadValue, Occurrence, ValueError};
use galatea_engine::ResourceSupply;
use galatea_thread_placement::PolicyError;

use super::{
    super::{
        error::{FlagError, StoreResult},
        serve_flags::ServeFlags,
    },
    parts::{Setting, part},
};

/// Checks `<GPU>:<bytes>`.
pub(in super::super) fn gpu_bytes(_: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    let (gpu, bytes) = pair(given, "<GPU>:<bytes>")?;
    part::<i32>(given, gpu)?;
    part::<u64>(given, bytes)?;
    Ok(())
}

/// Checks `<GPU>:<fraction>`.
pub(in super::super) fn gpu_limit(_: &mut ServeFlags, given: &Occurrence) -> StoreResult {
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

/// Reads `<name>:<count>` or `<name>:<count>:<device>`. Device -1 means all of them; of two counts the smaller one applies.
pub(in super::super) fn rate_limit_resource(
    flags: &mut ServeFlags,
    given: &Occurrence,
) -> StoreResult {
    const FORM: &str = "'<resource_name>:<count>:<device>' or '<resource_name>:<count>'";
    let (name, amounts) = pair(given, FORM)?;
    let amounts: Vec<&str> = amounts.split(':').collect();
    let (count, device) = match amounts[..] {
        [count] => (count, "-1"),
        [count, device] => (count, device),
        _ => return Err(given.malformed(FORM).into()),
    };
    // As in Triton, whose counts are unsigned: a negative one is larger than any demand.
    let count = i64::from(part::<i32>(given, count)?).cast_unsigned();
    let device = Some(i64::from(part::<i32>(given, device)?)).filter(|&device| device != -1);
    let is_same = |s: &&mut ResourceSupply| s.name == name && s.device == device;
    match flags.rate_limit_resources.iter_mut().find(is_same) {
        Some(supply) => supply.count = supply.count.min(count),
        None => {
            let supply = ResourceSupply { name: name.to_owned(), count, device };
            flags.rate_limit_resources.push(supply);
        }
    }
    Ok(())
}

/// Reads `<policy>,<setting>=<value>`.
pub(in super::super) fn host_policy(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    const FORM: &str = "'<policy name>,<setting>=<value>'";
    let setting = Setting::parse(given, FORM)?;
    let name = setting.owner.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| given.malformed(FORM))?;
    let policies = Arc::make_mut(&mut flags.serve.engine.execution.host_policies);
    policies.set(name, setting.key, setting.value).map_err(|error| {
        let code = match error {
            PolicyError::Unknown(_) => "Unsupported",
            _ => "Invalid argument",
        };
        refused_setting(&format!("host policy: {code}"), &error.to_string())
    })
}

/// Reads `<first port>-<last port>`.
pub(in super::super) fn safe_port_range(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    let range = given.text.split_once('-');
    let (first, last) = range.ok_or_else(|| given.malformed("<first port>-<last port>"))?;
    flags.sagemaker_safe_ports = Some((part(given, first)?, part(given, last)?));
    Ok(())
}

fn pair<'a>(given: &'a Occurrence, form: &'static str) -> Result<(&'a str, &'a str), BadValue> {
    given.text.split_once(':').ok_or_else(|| given.malformed(form))
}

/// Makes the error in the words of Triton's library, with its error code.
fn refused_setting(what: &str, reason: &str) -> FlagError {
    FlagError::Rule(format!("setting {what} - {reason}"))
}
