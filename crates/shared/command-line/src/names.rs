//! The names of an option, on the command line and in messages.

/// The names of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// The long name without dashes; empty for an option that has only a letter.
    pub long: &'static str,
    /// The letter behind a single dash.
    pub short: Option<char>,
    /// The name in messages of an option without a long name, e.g. `batch size`.
    pub meaning: &'static str,
}

impl Names {
    /// Returns the name in errors: `--max-trials (-r)`, `-b (batch size)`.
    pub fn label(&self) -> String {
        match (self.long, self.short, self.meaning) {
            ("", Some(short), "") => format!("-{short}"),
            ("", Some(short), meaning) => format!("-{short} ({meaning})"),
            (long, Some(short), _) => format!("--{long} (-{short})"),
            (long, None, _) => format!("--{long}"),
        }
    }

    /// Returns `--measurement-interval`, or `-p` if there is no long name.
    pub fn plain(&self) -> String {
        match self.short {
            Some(short) if self.long.is_empty() => format!("-{short}"),
            _ => format!("--{}", self.long),
        }
    }

    /// Returns all names, with dashes.
    pub(crate) fn spellings(&self) -> Vec<String> {
        let short = self.short.map(|short| format!("-{short}"));
        let long = (!self.long.is_empty()).then(|| format!("--{}", self.long));
        short.into_iter().chain(long).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_formatted() {
        let names = |long, short, meaning| Names { long, short, meaning };
        assert_eq!(names("max-trials", Some('r'), "").label(), "--max-trials (-r)");
        assert_eq!(names("shape", None, "").label(), "--shape");
        assert_eq!(names("", Some('b'), "batch size").label(), "-b (batch size)");
        assert_eq!(names("", Some('t'), "").label(), "-t");
        assert_eq!(names("", Some('t'), "").plain(), "-t");
        assert_eq!(names("max-trials", Some('r'), "").plain(), "--max-trials");
    }
}
