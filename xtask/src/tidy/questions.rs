//! A function whose name begins with `is_`, `has_` or `was_` changes nothing.

use super::source::Workspace;

const QUESTIONS: [&str; 4] = ["fn is_", "fn has_", "fn was_", "fn can_"];

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let product = workspace.rust().filter(|file| file.is_in_src());
    let found = product.flat_map(|file| {
        let names = functions(file.before_tests()).filter(|function| changes_and_tells_nothing(function));
        names.map(|function| {
            let name = function.trim_start_matches("fn ").split('(').next().unwrap_or_default();
            format!("{}: `{name}` takes `&mut self` and returns nothing: begin its name with the verb of the change", file.path)
        })
    });
    found.collect()
}

/// Returns the text of each such function, from `fn` to the start of its body.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    let starts = QUESTIONS.iter().flat_map(|question| text.match_indices(question));
    starts.map(|(at, _)| {
        let rest = &text[at..];
        &rest[..rest.find(['{', ';']).unwrap_or(rest.len())]
    })
}

fn changes_and_tells_nothing(function: &str) -> bool {
    function.contains("&mut self") && !function.contains("->")
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn a_question_named_method_that_changes_state_is_reported() {
        let text = "impl A {\n    fn is_routine(&mut self) {}\n    fn is_open(&mut self) -> bool {\n    }\n    \
            fn has_any(&self) {}\n    fn was_sent(\n        &mut self,\n        to: u8,\n    ) {\n    }\n}\n";
        let found = faults(&made_up(&[("crates/a/src/a.rs", text)]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`is_routine`") && found[1].contains("`was_sent`"));
    }
}
