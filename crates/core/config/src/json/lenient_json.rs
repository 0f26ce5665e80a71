//! Converts lenient JSON to JSON. Protobuf's JSON reader, which Triton uses, takes names without quotes, single quotes, and a
//! comma behind the last element.

use std::borrow::Cow;

/// Returns the text as JSON. Other mistakes stay in it, at about the same places in the line.
pub(super) fn to_json(text: &str) -> Cow<'_, str> {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let taken = match next {
            '"' => copy_string(rest, &mut made),
            '\'' => copy_single_quoted(rest, &mut made),
            ',' if is_before_end(&rest[1..]) => 1,
            c if is_of_name(c) => copy_word(rest, &mut made),
            c => {
                made.push(c);
                c.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    if made == text { Cow::Borrowed(text) } else { Cow::Owned(made) }
}

/// Copies the string at the start of `text` unchanged. Returns its length in bytes.
fn copy_string(text: &str, made: &mut String) -> usize {
    let taken = string_length(text, '"').unwrap_or(text.len());
    made.push_str(text.get(..taken).unwrap_or(text));
    taken
}

/// Copies the string with double quotes.
fn copy_single_quoted(text: &str, made: &mut String) -> usize {
    let string = string_length(text, '\'').and_then(|taken| Some((taken, text.get(1..taken - 1)?)));
    let Some((taken, inside)) = string else {
        made.push_str(text);
        return text.len();
    };
    made.push('"');
    let mut characters = inside.chars();
    while let Some(c) = characters.next() {
        match (c, c == '\\') {
            ('"', _) => made.push_str("\\\""),
            (_, false) => made.push(c),
            (_, true) => match characters.next() {
                Some('\'') => made.push('\''),
                Some(escaped) => made.extend(['\\', escaped]),
                None => made.push('\\'),
            },
        }
    }
    made.push('"');
    taken
}

/// Returns the bytes of the string at the start of `text`, with its quotes; `None` when it has no end.
fn string_length(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-' | '+' | '.')
}

/// Copies a word or a number, with quotes if it is the name of a member.
fn copy_word(text: &str, made: &mut String) -> usize {
    let taken = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
    let (word, rest) = text.split_at(taken);
    let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$');
    if is_name && rest.trim_start().starts_with(':') {
        made.extend(["\"", word, "\""]);
    } else {
        made.push_str(word);
    }
    taken
}

/// Returns whether the list or object ends here.
fn is_before_end(text: &str) -> bool {
    text.trim_start().starts_with(['}', ']'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protobuf_text_is_converted_to_json() {
        for (text, json) in [
            (r#"{max_batch_size: 4}"#, r#"{"max_batch_size": 4}"#),
            (r#"{'name': 'a "b" \'c\' \n'}"#, r#"{"name": "a \"b\" 'c' \n"}"#),
            (r#"{"a": [1, 2, ], "b": -1.5e+3 , }"#, r#"{"a": [1, 2 ], "b": -1.5e+3  }"#),
            (r#"{"a,}": "it's: ", b: true}"#, r#"{"a,}": "it's: ", "b": true}"#),
        ] {
            assert_eq!(to_json(text), json);
        }
        for same in
            [r#"{"a":[1,true,null],"b":{"c":"\"x\\"}}"#, "", "'", "{'a", "\"a\\", "{\"ä\":1}"]
        {
            assert_eq!(to_json(same), same);
        }
    }
}
