//! Values as they are typed.

use super::{Flag, Kind};

pub fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Why `text` is no value for `flag`.
pub fn check(flag: &Flag, text: &str) -> Result<(), String> {
    match flag.kind {
        Kind::Switch | Kind::Text | Kind::List | Kind::Setting(_) => Ok(()),
        Kind::Name if text.is_empty() => Err(format!("Error: empty argument for --{}", flag.name)),
        Kind::Name => Ok(()),
        Kind::Bool => parse_bool(text)
            .map(drop)
            .ok_or_else(|| format!("invalid value for bool option: {text} (use true or false)")),
        Kind::Integer { min, max } => check_integer(text, min, max),
        Kind::Number => match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(()),
            _ => Err(format!("Invalid option value. Got {text}")),
        },
        Kind::Choice(choices) if choices.iter().any(|c| c.eq_ignore_ascii_case(text)) => Ok(()),
        Kind::Choice(choices) => Err(format!(
            "invalid argument for --{}: got '{text}', expected one of {}",
            flag.name,
            choices.join(", ")
        )),
    }
}

/// Also without a minus, so that a typing error like `80O0` does not become port 80.
fn check_integer(text: &str, min: i64, max: i64) -> Result<(), String> {
    match text.parse::<i64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(()),
        Ok(_) => Err(format!(
            "Provided option value is out of bound. Got {text}, expected {min} to {max}"
        )),
        Err(_) if is_whole_number(text) => {
            Err(format!("Provided option value is out of bound. Got {text}"))
        }
        Err(_) => Err(format!("Invalid option value. Got {text}")),
    }
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Whether both mean the same, e.g. `False` and `0`.
pub fn same(flag: &Flag, a: &str, b: &str) -> bool {
    match flag.kind {
        Kind::Bool => parse_bool(a) == parse_bool(b),
        Kind::Integer { .. } => a.parse::<i64>().ok() == b.parse::<i64>().ok(),
        Kind::Number => a.parse::<f64>().ok() == b.parse::<f64>().ok(),
        Kind::Choice(_) => a.eq_ignore_ascii_case(b),
        Kind::Switch | Kind::Text | Kind::Name | Kind::Setting(_) | Kind::List => a == b,
    }
}
