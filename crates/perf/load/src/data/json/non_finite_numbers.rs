//! Numbers that data files have and JSON lacks: NaN and infinity.

/// Returns the text with quotes around each of them outside of strings; `None` if there is none.
///
/// Readers of floats take the quoted names.
pub(super) fn quoted(text: &str) -> Option<String> {
    let mut result = String::with_capacity(text.len());
    let mut copied = 0;
    let mut scan = Scan::default();
    for (position, byte) in text.bytes().enumerate() {
        if scan.is_outside(byte) && position >= copied {
            let Some(name) = name_at(text.get(position..).unwrap_or_default()) else { continue };
            result.push_str(text.get(copied..position)?);
            result.push('"');
            result.push_str(name);
            result.push('"');
            copied = position + name.len();
        }
    }
    (copied > 0).then(|| result + text.get(copied..).unwrap_or_default())
}

pub(super) fn value(name: &str) -> Option<f64> {
    match name {
        "NaN" => Some(f64::NAN),
        "Infinity" | "Inf" => Some(f64::INFINITY),
        "-Infinity" | "-Inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn name_at(text: &str) -> Option<&'static str> {
    // Longer names come first.
    ["NaN", "Infinity", "Inf", "-Infinity", "-Inf"].into_iter().find(|name| text.starts_with(name))
}

#[derive(Default)]
struct Scan {
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// Takes the next byte; returns true if it is outside of strings.
    fn is_outside(&mut self, byte: u8) -> bool {
        if !self.in_string {
            self.in_string = byte == b'"';
            return !self.in_string;
        }
        if self.escaped {
            self.escaped = false;
        } else {
            self.escaped = byte == b'\\';
            self.in_string = byte != b'"';
        }
        false
    }
}
