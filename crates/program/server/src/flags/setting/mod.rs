//! Options whose values have parts: settings (`--backend-config`, `--metrics-config`), amounts per device, and
//! `--memory-budget`.
//!
//! Values are split as in Triton, so that the same ones are refused.

mod devices;
mod metrics;
mod parts;

use galatea_command_line::{Notice, Occurrence, ValueError};
use galatea_config::MissingGpus;
use galatea_engine::BackendSettings;
use galatea_frontend::RequestRate;
use galatea_serve::MemorySize;

pub(super) use self::{
    devices::{gpu_bytes, gpu_limit, host_policy, rate_limit_resource, safe_port_range},
    metrics::metrics_config,
    parts::{Setting, part},
};
use super::{
    error::{FlagError, StoreResult},
    serve_flags::{CacheFlags, ServeFlags},
};

/// Stores a backend's setting. Commands without the other options of `serve` use it too.
pub fn backend_setting(settings: &mut BackendSettings, given: &Occurrence) -> StoreResult {
    if given.text.starts_with(',') {
        let form = "<backend name>,<setting>=<value> or <setting>=<value>";
        return Err(no_owner(given, "backend", form));
    }
    let setting = Setting::parse(given, "'<backend name>,<setting>=<value>'")?;
    let backend = setting.owner.unwrap_or_default();
    settings.set(backend, setting.key, setting.value);
    Ok(())
}

/// Reads `refuse` or `cpu`. Commands without the other options of `serve` use it too.
pub fn missing_gpus(given: &Occurrence) -> MissingGpus {
    if given.is("cpu") { MissingGpus::UseCpu } else { MissingGpus::Refuse }
}

/// Reads a setting of the response cache. Commands without the other options of `serve` use it too.
pub fn cache_setting(cache: &mut CacheFlags, given: &Occurrence) -> StoreResult {
    if !given.text.contains(',') || given.text.starts_with(',') {
        return Err(no_owner(given, "cache", "<cache name>,<setting>=<value>"));
    }
    let setting = Setting::parse(given, "'<cache name>,<setting>=<value>'")?;
    let own = cache.settings.entry(setting.owner.unwrap_or_default().to_owned()).or_default();
    own.push((setting.key.to_owned(), setting.value.to_owned()));
    Ok(())
}

pub(super) fn response_cache(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    let size: u64 = given.integer()?;
    flags.cache.local_size = Some(size);
    flags.notices.push(Notice::Warning(format!(
        "'--response-cache-byte-size' has been deprecated! This will default to the 'local' cache implementation with \
         the provided byte size for its config. Please use '--cache-config' instead. The equivalent --cache-config CLI \
         args would be: '--cache-config=local,size={size}'"
    )));
    Ok(())
}

/// Reads an amount of bytes, or a share. Commands without the other options of `serve` use it too.
pub fn memory_size(size: &mut MemorySize, given: &Occurrence) -> StoreResult {
    *size = MemorySize::parse(&given.text)
        .ok_or_else(|| given.malformed("<bytes>, <number>K|M|G|T or <percent>%"))?;
    Ok(())
}

/// Reads an amount of bytes; a share is refused.
pub(super) fn bytes(place: &mut usize, given: &Occurrence) -> StoreResult {
    match MemorySize::parse(&given.text) {
        Some(MemorySize::Bytes(bytes)) => *place = bytes,
        _ => return Err(given.malformed("<bytes> or <number>K|M|G|T").into()),
    }
    Ok(())
}

/// Reads an amount of memory that is enough for a process.
pub(super) fn process_memory(place: &mut Option<u64>, given: &Occurrence) -> StoreResult {
    const LEAST: usize = 64 << 20;
    let mut bytes = 0;
    self::bytes(&mut bytes, given)?;
    if bytes < LEAST {
        return Err(given.malformed("at least 64M").into());
    }
    *place = Some(bytes as u64);
    Ok(())
}

/// Reads `<number>[:<burst>]`.
pub(super) fn request_rate(flags: &mut ServeFlags, given: &Occurrence) -> StoreResult {
    let malformed = || given.malformed("<requests a second>[:<burst>], both above 0");
    let number = |text: &str| {
        let number: f64 = text.parse().ok()?;
        (number.is_finite() && number > 0.0).then_some(number)
    };
    let (per_second, burst) = match given.text.split_once(':') {
        Some((rate, burst)) => (number(rate), number(burst)),
        None => (number(&given.text), number(&given.text)),
    };
    let (per_second, burst) = per_second.zip(burst).ok_or_else(malformed)?;
    flags.serve.client_limits.rate = Some(RequestRate { per_second, burst: burst.max(1.0) });
    Ok(())
}

fn no_owner(given: &Occurrence, owner: &str, form: &str) -> FlagError {
    let (option, got) = (given.names.plain(), &given.text);
    let text = format!("No {owner} specified. {option} option format is {form}. Got {got}");
    given.bad(ValueError::Rejected(text)).into()
}
