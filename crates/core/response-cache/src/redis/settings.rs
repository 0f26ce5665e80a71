//! The settings of a connection to a Redis server: `--cache-config=redis,...`.

use std::{fmt, path::PathBuf, time::Duration};

/// Default time-out for connecting, and for a command on a connection. Triton waits for ever there, and so would the requests.
const TIME_OUT: Duration = Duration::from_secs(1);

/// The longest time-out; a longer one is shortened to it.
const LONGEST: Duration = Duration::from_secs(60);

/// Default time that a request waits for its turn.
const WAIT: Duration = Duration::from_millis(1000);

/// Most connections.
const MOST_CONNECTIONS: usize = 64;

/// The variables for the name and the password of the user, if no setting gives them.
pub const USER_VARIABLE: &str = "TRITONCACHE_REDIS_USERNAME";
/// See [`USER_VARIABLE`].
pub const PASSWORD_VARIABLE: &str = "TRITONCACHE_REDIS_PASSWORD";

/// The settings of a connection to a Redis server, with its time limits.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisSettings {
    /// The host's name or address.
    pub host: String,
    /// The port; 0 when none could be read.
    pub port: u16,
    /// The user; empty for the default user.
    pub user: String,
    /// The password; empty for none.
    pub password: String,
    /// Number of the database.
    pub db: u32,
    /// Longest time to connect.
    pub connect_timeout: Duration,
    /// Longest time for a command, from its first byte to the last byte of the reply.
    pub socket_timeout: Duration,
    /// Connections, each with a thread.
    pub pool_size: usize,
    /// Longest time that a look-up waits for its turn before it is given up.
    pub wait_timeout: Duration,
    /// The time for which the server keeps a response; `None` to keep it as long as there is room.
    pub ttl: Option<Duration>,
    /// The encryption; `None` for none.
    pub tls: Option<TlsSettings>,
}

/// The encryption of the connection. An empty path is not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// Our certificate (PEM), with its key.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Authorities of the server; if none are given, those of the system.
    pub cacert: PathBuf,
    /// Folder of files with authorities.
    pub cacert_dir: PathBuf,
    /// The name that the server's certificate must have; empty: that of the host.
    pub sni: String,
}

/// A mistake in the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Triton's text.
    #[error(
        "Failed to initialize RedisCache, didn't specify address. Must at a minimum specify 'host' and 'port' in the \
         configuration - e.g. tritonserver --cache-config redis,host=redis --cache-config redis,port=6379 \
         --model-repository=/models ..."
    )]
    NoAddress,
    /// A value is invalid.
    #[error("Failed to initialize RedisCache: '{value}' is not a value of '{key}': {expected}")]
    Value {
        /// The setting.
        key: &'static str,
        /// The given value.
        value: String,
        /// The expected values.
        expected: &'static str,
    },
}

impl RedisSettings {
    /// All settings.
    pub const KEYS: [&str; 16] = [
        "host",
        "port",
        "user",
        "password",
        "db",
        "connect_timeout",
        "socket_timeout",
        "pool_size",
        "wait_timeout",
        "ttl",
        "tls_enabled",
        "cert",
        "key",
        "cacert",
        "cacert_dir",
        "sni",
    ];

    /// Reads the settings. In `given` the last value of a key counts; `variable` reads variables of the process.
    ///
    /// # Errors
    /// [`SettingsError`] without host and port, and for invalid values.
    pub fn parse(
        given: &[(String, String)],
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let find = |name: &str| given.iter().rev().find(|(key, _)| key == name).map(|(_, v)| &**v);
        let text = |name: &str| find(name).unwrap_or_default().to_owned();
        let (Some(host), Some(port)) = (find("host"), find("port")) else {
            return Err(SettingsError::NoAddress);
        };
        let or_variable = |key: &str, name| find(key).map(str::to_owned).or_else(|| variable(name));
        Ok(Self {
            host: host.to_owned(),
            // As in Triton, whose connection to port 0 is then refused.
            port: port.parse().unwrap_or(0),
            user: or_variable("user", USER_VARIABLE).unwrap_or_default(),
            password: or_variable("password", PASSWORD_VARIABLE).unwrap_or_default(),
            db: number("db", find("db"), 0)?,
            connect_timeout: time_out("connect_timeout", find("connect_timeout"), TIME_OUT)?,
            socket_timeout: time_out("socket_timeout", find("socket_timeout"), TIME_OUT)?,
            pool_size: number("pool_size", find("pool_size"), 1)?.clamp(1, MOST_CONNECTIONS),
            wait_timeout: time_out("wait_timeout", find("wait_timeout"), WAIT)?,
            ttl: match number("ttl", find("ttl"), 0)? {
                0 => None,
                seconds => Some(Duration::from_secs(seconds)),
            },
            tls: tls(find("tls_enabled"), text)?,
        })
    }
}

/// Reads the encryption. It is on when it is asked for, or when any of its settings is given.
fn tls(
    enabled: Option<&str>,
    text: impl Fn(&str) -> String,
) -> Result<Option<TlsSettings>, SettingsError> {
    let is_enabled = match enabled.map(str::to_ascii_lowercase).as_deref() {
        None | Some("false" | "0" | "off" | "no") => false,
        Some("true" | "1" | "on" | "yes") => true,
        Some(value) => {
            let (key, value, expected) = ("tls_enabled", value.to_owned(), "true or false");
            return Err(SettingsError::Value { key, value, expected });
        }
    };
    let settings = TlsSettings {
        cert: text("cert").into(),
        key: text("key").into(),
        cacert: text("cacert").into(),
        cacert_dir: text("cacert_dir").into(),
        sni: text("sni"),
    };
    Ok((is_enabled || settings != TlsSettings::default()).then_some(settings))
}

fn number<T: std::str::FromStr>(
    key: &'static str,
    text: Option<&str>,
    default: T,
) -> Result<T, SettingsError> {
    let Some(text) = text else { return Ok(default) };
    let wrong = || SettingsError::Value { key, value: text.to_owned(), expected: "a whole number" };
    text.parse().map_err(|_| wrong())
}

/// Reads milliseconds. 0, which means no limit in Triton, is the default here.
fn time_out(
    key: &'static str,
    text: Option<&str>,
    default: Duration,
) -> Result<Duration, SettingsError> {
    match number(key, text, 0)? {
        0 => Ok(default),
        millis => Ok(Duration::from_millis(millis).min(LONGEST)),
    }
}

/// Leaves out the password.
impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, user, db, pool_size, .. } = self;
        write!(f, "RedisSettings({user}@{host}:{port}/{db}, {pool_size} connections)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(given: &[(&str, &str)]) -> Result<RedisSettings, SettingsError> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let given: Vec<_> = given.iter().map(owned).collect();
        let variable = |name: &str| (name == PASSWORD_VARIABLE).then(|| "secret".to_owned());
        RedisSettings::parse(&given, variable)
    }

    #[test]
    fn omitted_settings_have_defaults() {
        let settings = parse(&[("host", "a"), ("port", "1"), ("port", "6379")]).expect("good");
        assert_eq!((&*settings.host, settings.port, settings.db), ("a", 6379, 0));
        assert_eq!((&*settings.user, &*settings.password), ("", "secret"));
        assert_eq!((settings.pool_size, settings.ttl, settings.tls), (1, None, None));
        let times = [settings.connect_timeout, settings.socket_timeout, settings.wait_timeout];
        assert_eq!(times, [TIME_OUT, TIME_OUT, WAIT]);
    }

    #[test]
    fn every_setting_is_read() {
        let address = [("host", "a"), ("port", "nonexistent")];
        let more = [
            ("user", "u"),
            ("password", "p"),
            ("db", "2"),
            ("connect_timeout", "5"),
            ("socket_timeout", "0"),
            ("pool_size", "1000"),
            ("wait_timeout", "999999999"),
            ("ttl", "60"),
            ("sni", "name"),
        ];
        let settings = parse(&[&address[..], &more].concat()).expect("good");
        assert_eq!(
            (settings.port, settings.db, &*settings.user, &*settings.password),
            (0, 2, "u", "p")
        );
        assert_eq!(settings.connect_timeout, Duration::from_millis(5));
        assert_eq!((settings.socket_timeout, settings.wait_timeout), (TIME_OUT, LONGEST));
        assert_eq!((settings.pool_size, settings.ttl), (64, Some(Duration::from_secs(60))));
        assert!(!format!("{settings:?}").contains("\"p\""));
        assert_eq!(settings.tls.expect("encrypted").sni, "name");
    }

    #[test]
    fn wrong_settings_are_named() {
        assert_eq!(parse(&[("port", "1")]), Err(SettingsError::NoAddress));
        for (key, value) in
            [("db", "x"), ("pool_size", "-1"), ("ttl", ""), ("tls_enabled", "maybe")]
        {
            let error = parse(&[("host", "a"), ("port", "1"), (key, value)]).expect_err("refused");
            assert!(error.to_string().contains(&format!("is not a value of '{key}'")), "{error}");
        }
    }
}
