//! The settings of the response cache. Refusals, and their words, are those of Triton and its caches.

use std::path::PathBuf;

use galatea_response_cache::RedisSettings;
use galatea_serve::{CacheSettings, LibraryCacheSettings, MemorySize, Note};
use galatea_types::Environment;

use crate::flags::{CacheFlags, FlagError};

/// The setting that takes the library of a cache that is built in too, and its value.
const LIBRARY: &str = "library";
const LIBRARY_OF_TRITON: &str = "triton";
/// Smallest size in bytes, as in Triton's cache.
const SMALLEST: usize = 160;

/// Returns the cache of the flags. `None`: there is none.
pub fn cache(
    flags: &CacheFlags,
    environment: &Environment,
    notes: &mut Vec<Note>,
) -> Result<Option<CacheSettings>, FlagError> {
    if let Some(size) = flags.local_size {
        return local(&size.to_string()).map(Some);
    }
    let mut caches = flags.settings.iter();
    let Some((name, settings)) = caches.next() else { return Ok(None) };
    if caches.next().is_some() {
        return Err(invalid(
            "found multiple cache configurations, but only a single cache is currently supported",
        ));
    }
    match name.as_str() {
        _ if is_library(name, settings)? => library(name, settings, flags).map(Some),
        "local" => {
            note_others(settings, &["size"], name, notes);
            local(last(settings, "size").unwrap_or_default()).map(Some)
        }
        "redis" => {
            note_others(settings, &RedisSettings::KEYS, name, notes);
            let settings = RedisSettings::parse(settings, |name| environment.text(name));
            settings.map(|redis| Some(CacheSettings::Redis(Box::new(redis)))).map_err(invalid)
        }
        other => library(other, settings, flags).map(Some),
    }
}

/// Returns true if the user wants the library of a cache that is built in as well.
fn is_library(name: &str, settings: &[(String, String)]) -> Result<bool, FlagError> {
    match last(settings, LIBRARY) {
        None => Ok(false),
        Some(LIBRARY_OF_TRITON) => Ok(true),
        Some(other) => Err(FlagError::Rule(format!(
            "--cache-config={name},{LIBRARY}={other}: the only value is '{LIBRARY_OF_TRITON}', which takes the library of \
             this cache in --cache-directory"
        ))),
    }
}

/// Returns the settings for a library, which reads them itself.
fn library(
    name: &str,
    settings: &[(String, String)],
    flags: &CacheFlags,
) -> Result<CacheSettings, FlagError> {
    let own = settings.iter().filter(|(key, _)| key != LIBRARY).cloned();
    let cache = LibraryCacheSettings {
        name: name.to_owned(),
        directory: PathBuf::from(&flags.directory),
        settings: own.collect(),
    };
    match cache.library() {
        Ok(_) => Ok(CacheSettings::Library(cache)),
        Err(error) => {
            Err(invalid(format_args!("{error}; built in are the caches 'local' and 'redis'")))
        }
    }
}

/// Returns the last value, which applies as in Triton.
fn last<'a>(settings: &'a [(String, String)], name: &str) -> Option<&'a str> {
    settings.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// Warns about unknown settings, which Triton accepts and ignores.
fn note_others(settings: &[(String, String)], known: &[&str], cache: &str, notes: &mut Vec<Note>) {
    for (key, value) in settings.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
        let known = known.join(", ");
        notes.push(Note::Warning(format!(
            "--cache-config={cache},{key}={value} has no effect: settings of this cache are {known}"
        )));
    }
}

fn local(size: &str) -> Result<CacheSettings, FlagError> {
    if size.is_empty() {
        return Err(invalid(
            "Failed to initialize LocalCache: config didn't contain a valid 'size' field.",
        ));
    }
    let bytes = match MemorySize::parse(size) {
        Some(MemorySize::Bytes(bytes)) => bytes,
        None if size.bytes().all(|digit| digit == b'0') => 0,
        _ => {
            let text = format!("'{size}' is not <bytes> or <number>K|M|G|T");
            return Err(internal(format!("Failed to initialize LocalCache: stoull: {text}")));
        }
    };
    if bytes < SMALLEST {
        return Err(internal(format!(
            "Failed to initialize LocalCache: Could not initialize buffer: size={size} is too small for any response"
        )));
    }
    let available = galatea_process_memory::available().unwrap_or(usize::MAX);
    if bytes > available {
        return Err(internal(format!(
            "Failed to initialize LocalCache: failed to allocate buffer: the machine and its control groups allow \
             {available} bytes, less than size={size}"
        )));
    }
    Ok(CacheSettings::Local(bytes))
}

fn invalid(text: impl std::fmt::Display) -> FlagError {
    FlagError::Rule(format!("creating server: Invalid argument - {text}"))
}

fn internal(text: impl std::fmt::Display) -> FlagError {
    FlagError::Rule(format!("creating server: Internal - {text}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn of(settings: &[&str]) -> Result<(CacheSettings, usize), String> {
        let mut flags = CacheFlags { directory: "/caches".to_owned(), ..CacheFlags::default() };
        for setting in settings {
            let (cache, setting) = setting.split_once(',').expect("a cache");
            let (key, value) = setting.split_once('=').expect("a setting");
            let own = flags.settings.entry(cache.to_owned()).or_default();
            own.push((key.to_owned(), value.to_owned()));
        }
        let mut notes = Vec::new();
        match cache(&flags, &Environment::default(), &mut notes) {
            Ok(found) => Ok((found.expect("a cache"), notes.len())),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_local_cache_size_is_parsed() {
        for (size, bytes) in [("200", 200), ("1048576", 1 << 20), ("2M", 2 << 20)] {
            let setting = format!("local,size={size}");
            assert_eq!(of(&[&setting]), Ok((CacheSettings::Local(bytes), 0)));
        }
        let last = of(&["local,size=1000", "local,other=1", "local,size=2000"]);
        assert_eq!(last, Ok((CacheSettings::Local(2000), 1)));
    }

    #[test]
    fn a_cache_that_is_not_built_in_is_a_library() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir(folder.path().join("own")).expect("folder");
        std::fs::write(folder.path().join("own/libtritoncache_own.so"), "").expect("file");
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let settings = vec![pair("library", "triton"), pair("size", "1")];
        let settings = BTreeMap::from([("own".to_owned(), settings)]);
        let directory = folder.path().display().to_string();
        let flags = CacheFlags { directory, settings, ..CacheFlags::default() };
        let found = cache(&flags, &Environment::default(), &mut Vec::new()).expect("a library");
        let Some(CacheSettings::Library(found)) = found else { panic!("{found:?}") };
        assert_eq!(found.settings, [pair("size", "1")]);
        let other = of(&["local,library=mine"]).expect_err("no such value");
        assert!(other.starts_with("--cache-config=local,library=mine: the only value"), "{other}");
    }

    #[test]
    fn cache_settings_refused_by_triton_are_refused() {
        for (settings, text) in [
            (
                &["local,size=8192", "redis,key=value"][..],
                "Invalid argument - found multiple cache configurations, but only a single cache is currently supported",
            ),
            (
                &["foo,size=1"],
                "Invalid argument - unable to find 'libtritoncache_foo.so' for cache. Searched: /caches",
            ),
            (
                &["local,size=8192", "local,library=triton"],
                "Invalid argument - unable to find 'libtritoncache_local.so' for cache. Searched: /caches; built in",
            ),
            (
                &["redis,port=1"],
                "Invalid argument - Failed to initialize RedisCache, didn't specify address. Must at a minimum specify",
            ),
            (
                &["redis,host=a", "redis,port=1", "redis,db=x"],
                "Invalid argument - Failed to initialize RedisCache: 'x' is not a value of 'db'",
            ),
            (
                &["local,siz=1"],
                "Invalid argument - Failed to initialize LocalCache: config didn't contain a valid 'size' field.",
            ),
            (
                &["local,size=abc"],
                "Internal - Failed to initialize LocalCache: stoull: 'abc' is not",
            ),
            (&["local,size=-1"], "Internal - Failed to initialize LocalCache: stoull"),
            (&["local,size=50%"], "Internal - Failed to initialize LocalCache: stoull"),
            (
                &["local,size=0"],
                "Internal - Failed to initialize LocalCache: Could not initialize buffer",
            ),
            (
                &["local,size=1"],
                "Internal - Failed to initialize LocalCache: Could not initialize buffer",
            ),
            (
                &["local,size=99999999999999999"],
                "Internal - Failed to initialize LocalCache: failed to allocate buffer",
            ),
        ] {
            let error = of(settings).expect_err("refused");
            assert!(error.starts_with(&format!("creating server: {text}")), "{error}");
        }
    }
}
