use super::{Flag, FlagError, Support, all, find, value};

/// The command line as typed: every value fits its flag, nothing else is checked.
#[derive(Debug, Default)]
pub struct Parsed {
    given: Vec<(&'static Flag, String)>,
    pub asks_for_help: bool,
}

/// Reads the arguments after the program's and the sub-command's name, as GNU `getopt_long` does.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Parsed, FlagError> {
    let mut arguments = arguments.into_iter();
    let mut parsed = Parsed::default();
    let mut leftover = None;
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            leftover = leftover.or_else(|| arguments.next());
            break;
        }
        let Some(long) = argument.strip_prefix("--") else {
            if argument.starts_with('-') && argument.len() > 1 {
                return Err(FlagError::Unknown {
                    hint: nearest(argument.trim_start_matches('-')),
                    given: argument,
                });
            }
            leftover.get_or_insert(argument);
            continue;
        };
        let (name, attached) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        let flag = resolve(name)?;
        let value = value_of(flag, attached, &mut arguments)?;
        parsed.add(flag, value)?;
    }
    match leftover {
        Some(argument) if !parsed.asks_for_help => Err(FlagError::Unexpected(argument)),
        _ => Ok(parsed),
    }
}

fn value_of(
    flag: &'static Flag,
    attached: Option<String>,
    rest: &mut impl Iterator<Item = String>,
) -> Result<String, FlagError> {
    match (flag.takes_value(), attached) {
        (false, None) => Ok(String::new()),
        (false, Some(_)) => Err(FlagError::TakesNoValue { name: flag.name }),
        (true, Some(value)) => Ok(value),
        (true, None) => rest.next().ok_or(FlagError::NeedsValue { name: flag.name }),
    }
}

/// The flag of that name, or the only one whose name begins so.
fn resolve(name: &str) -> Result<&'static Flag, FlagError> {
    if let Some(flag) = find(name) {
        return Ok(flag);
    }
    let possible: Vec<&'static Flag> =
        all().filter(|flag| !name.is_empty() && flag.name.starts_with(name)).collect();
    match possible.as_slice() {
        [] => Err(FlagError::Unknown { given: format!("--{name}"), hint: nearest(name) }),
        [flag] => Ok(flag),
        several => Err(FlagError::Ambiguous {
            given: format!("--{name}"),
            possible: several.iter().map(|flag| flag.name).collect(),
        }),
    }
}

/// The flag most like a mistyped one, if any is like it at all.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.split('=').next().unwrap_or(name).replace('_', "-");
    all()
        .map(|flag| (edit_distance(&name, flag.name), flag.name))
        .min()
        .filter(|&(distance, _)| distance <= 1 + name.len() / 5)
        .map(|(_, name)| name)
}

/// Fewest insertions, deletions and replacements that make `b` of `a` (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut next = vec![i + 1];
        for ((y, above), above_right) in b.bytes().zip(&row).zip(row.iter().skip(1)) {
            let left = next.last().copied().unwrap_or_default();
            next.push((above + usize::from(x != y)).min(left + 1).min(above_right + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

impl Parsed {
    fn add(&mut self, flag: &'static Flag, value: String) -> Result<(), FlagError> {
        if flag.name == "help" {
            self.asks_for_help = true;
            return Ok(());
        }
        value::check(flag, &value)
            .map_err(|reason| FlagError::BadValue { name: flag.name, reason })?;
        match flag.support {
            Support::NotYet(what) if !value::same(flag, &value, flag.default) => {
                return Err(FlagError::Unsupported { name: flag.name, what });
            }
            _ => self.given.push((flag, value)),
        }
        Ok(())
    }

    /// Flags in the order given.
    pub fn given(&self) -> impl Iterator<Item = (&'static Flag, &str)> {
        self.given.iter().map(|(flag, value)| (*flag, value.as_str()))
    }

    pub fn is_given(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// The value given last, aliases included.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    /// Every value given, aliases included.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.given()
            .filter(move |(flag, _)| flag.name == name || flag.stands_for == Some(name))
            .map(|(_, value)| value)
    }

    /// The value given last, or the default.
    pub fn text(&self, name: &str) -> &str {
        let default = || find(name).map_or("", |flag| flag.default);
        self.last(name).unwrap_or_else(default)
    }

    /// Whether a switch was given, or a deprecated flag in its place said yes.
    pub fn switch(&self, name: &str) -> bool {
        self.all(name).any(|value| value.is_empty() || value::parse_bool(value) == Some(true))
    }

    pub fn bool(&self, name: &str) -> bool {
        value::parse_bool(self.text(name)).unwrap_or_default()
    }

    /// A whole number of the type wanted; the table's bounds keep it within.
    pub fn integer<N: TryFrom<i64> + Default>(&self, name: &str) -> N {
        let number = self.text(name).parse::<i64>().unwrap_or_default();
        N::try_from(number).unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or_default()
    }
}
