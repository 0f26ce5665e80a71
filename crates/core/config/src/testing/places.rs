//! Removes the places from texts of errors.

/// Returns a text for clients without the places and the advice that this server adds to Triton's sentences: `
/// (m/config.pbtxt:1:2: advice)`, ` (m/1/model.onnx: advice)`.
///
/// ```
/// use galatea_config::testing::without_places;
///
/// let text = "no dims for m (m/config.pbtxt:1:2: write `dims` (or not)); and a (remark)";
/// assert_eq!(without_places(text), "no dims for m; and a (remark)");
/// ```
pub fn without_places(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(" (") {
        let (before, bracket) = rest.split_at(start);
        kept.push_str(before);
        let end = closing(bracket);
        let (inside, after) = bracket.split_at(end);
        let first = inside.split(' ').nth(1).unwrap_or_default();
        let is_place = first.ends_with(':') || first.contains("config.pbtxt");
        if !is_place && !first.starts_with("(config#") {
            kept.push_str(inside);
        }
        rest = after;
    }
    kept + rest
}

/// Returns the position behind the bracket that closes the first one.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return at + 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}
