use crate::flags::FlagError;

/// `{owner},{key}={value}` or `{key}={value}`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting<'a> {
    pub owner: Option<&'a str>,
    pub key: &'a str,
    pub value: &'a str,
}

impl<'a> Setting<'a> {
    pub fn parse(flag: &'static str, text: &'a str) -> Result<Self, FlagError> {
        let (left, value) = text.split_once('=').ok_or_else(|| malformed(flag, text))?;
        let (owner, key) = match left.split_once(',') {
            Some((owner, key)) => (Some(owner), key),
            None => (None, left),
        };
        if key.is_empty() || value.is_empty() {
            return Err(malformed(flag, text));
        }
        Ok(Self { owner, key, value })
    }

    pub fn bool(&self) -> Option<bool> {
        match self.value.to_ascii_lowercase().as_str() {
            "true" | "on" | "1" => Some(true),
            "false" | "off" | "0" => Some(false),
            _ => None,
        }
    }
}

pub(super) fn malformed(flag: &'static str, text: &str) -> FlagError {
    let form = match flag {
        "backend-config" => "'<backend name>,<setting>=<value>'",
        "trace-config" => "'<mode>,<setting>=<value>' or '<setting>=<value>'",
        _ => "<setting>=<value>",
    };
    let reason = format!("--{flag} option format is {form}. Got {text}");
    FlagError::BadValue { name: flag, reason }
}
