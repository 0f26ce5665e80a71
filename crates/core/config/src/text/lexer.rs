//! Divides characters into tokens.

use crate::Position;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Letters, digits, `_`, and (a peculiarity of the format) `+` and `-`; starts with a letter or `_`.
    Word,
    /// Starts with a digit, a sign, or a point before a digit.
    Number,
    /// A string with its quotes; the closing one may be missing, and escapes are still as written.
    Quoted,
    /// Any other single character.
    Symbol,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
    pub position: Position,
}

impl Token<'_> {
    pub fn is(&self, symbol: &str) -> bool {
        self.kind == TokenKind::Symbol && self.text == symbol
    }

    /// Returns the name of this token in messages.
    pub fn describe(&self) -> String {
        const SHOWN: usize = 40;
        if self.kind == TokenKind::End {
            return "the end of the file".to_owned();
        }
        match self.text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("`{}...`", &self.text[..end]),
            None => format!("`{}`", self.text),
        }
    }
}

/// Divides a text into tokens, skipping white space and `#` comments.
#[derive(Clone)]
pub(crate) struct Lexer<'a> {
    rest: &'a str,
    position: Position,
}

impl<'a> Lexer<'a> {
    pub fn new(source: &'a str) -> Self {
        Self { rest: source, position: Position { line: 1, column: 1 } }
    }

    pub fn next(&mut self) -> Token<'a> {
        self.skip_blank();
        let position = self.position;
        let (kind, length) = scan(self.rest);
        Token { kind, text: self.take(length), position }
    }

    fn skip_blank(&mut self) {
        loop {
            let blank = span(self.rest, is_space);
            self.take(blank);
            if !self.rest.starts_with('#') {
                return;
            }
            let comment = span(self.rest, |c| c != '\n');
            self.take(comment);
        }
    }

    /// Takes `length` bytes, which must end between characters.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        for c in taken.chars() {
            match c {
                '\n' => self.position = Position { line: self.position.line + 1, column: 1 },
                _ => self.position.column += 1,
            }
        }
        taken
    }
}

/// Returns kind and length in bytes of the token at the start of `text`.
fn scan(text: &str) -> (TokenKind, usize) {
    let mut chars = text.chars();
    let Some(first) = chars.next() else {
        return (TokenKind::End, 0);
    };
    let second_is_digit = chars.next().is_some_and(|c| c.is_ascii_digit());
    match first {
        'a'..='z' | 'A'..='Z' | '_' => (TokenKind::Word, span(text, is_word)),
        '0'..='9' | '+' | '-' => (TokenKind::Number, span(text, is_number)),
        '.' if second_is_digit => (TokenKind::Number, span(text, is_number)),
        '"' | '\'' => (TokenKind::Quoted, scan_quoted(text, first)),
        _ => (TokenKind::Symbol, first.len_utf8()),
    }
}

/// Returns the length of the quoted string at the start of `text`; of one that is not closed, the rest of the line.
fn scan_quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return at,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn span(text: &str, is_in: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_in(c)).unwrap_or(text.len())
}

/// Matches what Python's `\s` matches: it has four separator controls that Unicode's white space lacks.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-')
}

fn is_number(c: char) -> bool {
    is_word(c) || c == '.'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let mut lexer = Lexer::new(source);
        let mut found = Vec::new();
        loop {
            let token = lexer.next();
            if token.kind == TokenKind::End {
                break;
            }
            found.push(token.text);
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn splits_a_text_into_tokens() {
        check(
            "name:\"a\" # no\n dims :[1,-1 ]",
            &["name", ":", "\"a\"", "dims", ":", "[", "1", ",", "-1", "]"],
        );
        check("a.5 .5 . 5", &["a", ".5", ".5", ".", "5"]);
        check(r#"'a\'b' "a'b""#, &[r"'a\'b'", r#""a'b""#]);
        check("\"open\nnext", &["\"open", "next"]);
        check("\"open\\", &["\"open\\"]);
        check("{}<>é\u{1c}x", &["{", "}", "<", ">", "é", "x"]);
        check("#only a comment", &[]);
    }

    #[test]
    fn counts_lines_and_characters() {
        let mut lexer = Lexer::new("é x\r\n\t y");
        let positions = [(1, 1), (1, 3), (2, 3)];
        for (line, column) in positions {
            assert_eq!(lexer.next().position, Position { line, column });
        }
    }
}
