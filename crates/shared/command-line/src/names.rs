//! What an option is called: on the command line and in messages.

/// The names of one option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// Without the dashes; empty: there is only the short form.
    pub long: &'static str,
    /// The letter behind a single dash.
    pub short: Option<char>,
    /// What messages call an option that has no long name, e.g. `batch size`.
    pub meaning: &'static str,
}

impl Names {
    /// What errors call the option: `--max-trials (-r)`, `-b (batch size)`.
    pub fn label(&self) -> String {
        match (self.long, self.short, self.meaning) {
            ("", Some(short), "") => format!("-{short}"),
            ("", Some(short), meaning) => format!("-{short} ({meaning})"),
            (long, Some(short), _) => format!("--{long} (-{short})"),
            (long, None, _) => format!("--{long}"),
        }
    }

    /// `--measurement-interval`, or `-p` where there is no long name.
    pub fn plain(&self) -> String {
        match self.short {
            Some(short) if self.long.is_empty() => format!("-{short}"),
            _ => format!("--{}", self.long),
        }
    }

    /// All of them, dashes included.
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
    fn labels() {
        let names = |long, short, meaning| Names { long, short, meaning };
        assert_eq!(names("max-trials", Some('r'), "").label(), "--max-trials (-r)");
        assert_eq!(names("shape", None, "").label(), "--shape");
        assert_eq!(names("", Some('b'), "batch size").label(), "-b (batch size)");
        assert_eq!(names("", Some('t'), "").label(), "-t");
        assert_eq!(names("", Some('t'), "").plain(), "-t");
        assert_eq!(names("max-trials", Some('r'), "").plain(), "--max-trials");
    }
}
