//! Finds string literals in sources of several languages, each with the calls around it.

/// A string literal, or the help of an option.
pub struct Found {
    pub line: usize,
    pub text: String,
    /// Names in front of the open brackets around it, the outermost first: `["options!", "Error::new"]`. Empty for help.
    pub around: Vec<String>,
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
    /// The end of the file's name.
    language: &'a str,
    around: Vec<String>,
    /// Code so far, whose end names the next bracket.
    code: String,
    found: Vec<Found>,
}

/// Returns the string literals of a source, in their order. `language` is the end of a file's name.
pub fn strings(source: &str, language: &str) -> Vec<Found> {
    let (around, code, found) = (Vec::new(), String::new(), Vec::new());
    let mut scanner = Scanner { rest: source, line: 1, language, around, code, found };
    while let Some(next) = scanner.rest.chars().next() {
        scanner.step(next);
    }
    scanner.found
}

impl<'a> Scanner<'a> {
    fn step(&mut self, next: char) {
        let is_rust = self.language == "rs";
        let comment = if self.language == "py" { "#" } else { "//" };
        match next {
            _ if self.rest.starts_with(comment) => self.comment(),
            _ if self.rest.starts_with("/*") => self.skip("/*", "*/"),
            _ if self.rest.starts_with("\"\"\"") => self.skip("\"\"\"", "\"\"\""),
            '/' if self.is_pattern() => {
                self.take(1);
                self.take(end(self.rest, '/').map_or(0, |at| at + 1));
            }
            'r' if is_rust && self.hashes().is_some() => {
                let hashes = self.hashes().unwrap_or_default();
                let close = format!("\"{}", "#".repeat(hashes));
                self.literal(hashes + 2, |rest| rest.find(&close), close.len());
            }
            '\'' if is_rust => self.character(),
            '"' | '\'' | '`' => self.literal(1, |rest| end(rest, next), 1),
            _ => {
                match next {
                    '(' | '[' | '{' => self.around.push(name(&self.code)),
                    ')' | ']' | '}' => drop(self.around.pop()),
                    _ => {}
                }
                self.code.push(next);
                self.take(next.len_utf8());
            }
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn skip(&mut self, open: &str, close: &str) {
        self.take(open.len());
        self.take(self.rest.find(close).map_or(self.rest.len(), |at| at + close.len()));
    }

    /// Skips a comment, but keeps the help of an option, which is the doc comment above its name.
    fn comment(&mut self) {
        let line = self.line;
        let text = self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        let is_of_option = self.around.last().is_some_and(|name| name == "options!");
        let Some(help) = text.strip_prefix("///").filter(|_| is_of_option) else { return };
        match self.found.last_mut() {
            Some(last) if last.around.is_empty() => last.text += help,
            _ => self.found.push(Found { line, text: help.trim().to_owned(), around: vec![] }),
        }
    }

    /// Returns the number of `#` of a raw string that starts here.
    fn hashes(&self) -> Option<usize> {
        let marks = self.rest[1..].trim_start_matches('#');
        marks.starts_with('"').then_some(self.rest.len() - 1 - marks.len())
    }

    /// Takes a character, or the quote of a lifetime.
    fn character(&mut self) {
        let is_character = self.rest.starts_with("'\\") || self.rest.chars().nth(2) == Some('\'');
        let length = end(&self.rest[1..], '\'').filter(|_| is_character);
        self.take(length.map_or(1, |length| length + 2));
    }

    /// Returns true if a `/` begins a regular expression, and does not divide.
    fn is_pattern(&self) -> bool {
        let before = self.code.trim_end();
        self.language == "js" && before.ends_with(['(', '=', ',', ':', '?', '&', '|', '!'])
    }

    fn literal(&mut self, open: usize, end: impl FnOnce(&str) -> Option<usize>, close: usize) {
        let line = self.line;
        self.take(open);
        let text = self.take(end(self.rest).unwrap_or(self.rest.len()));
        self.take(close);
        let mut lines = text.split("\\\n");
        let first = lines.next().unwrap_or_default().to_owned();
        let text = lines.fold(first, |text, line| text + line.trim_start());
        let mut around = self.around.clone();
        around.push(name(&self.code));
        self.found.push(Found { line, text, around });
        self.code.push('"');
    }
}

/// Returns the position of the quote that ends a literal. Escapes and the braces in a template do not count.
fn end(rest: &str, quote: char) -> Option<usize> {
    let (mut is_escaped, mut depth, mut before) = (false, 0_usize, ' ');
    for (at, c) in rest.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '{' if quote == '`' && (before == '$' || depth > 0) => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if c == quote && depth == 0 => return Some(at),
            _ => {}
        }
        before = c;
    }
    None
}

/// Returns the path at the end of the code: `Error::new`, `warn!`, `#`.
fn name(code: &str) -> String {
    let code = code.trim_end();
    let is_part = |c: char| c.is_alphanumeric() || "_:!#.".contains(c);
    code.rfind(|c| !is_part(c))
        .map_or(code, |at| &code[at..])
        .trim_start_matches(|c| !is_part(c))
        .to_owned()
}
