//! Pages and messages use plain words: phrases that only this project used are refused in both.

use proc_macro2::{TokenStream, TokenTree};

use super::{
    pages,
    source::{SourceFile, Workspace},
};

/// Phrases that a stranger has to guess, and the plain words for each.
const REFUSED: &[(&str, &str)] = &[
    ("as many things", "requests"),
    ("at hand", "available"),
    ("at this moment", "now"),
    ("bear", "accept"),
    ("by and by", "later"),
    ("crowd", "callers"),
    ("elsewhere", "the name of the place"),
    ("farewell", "close"),
    ("for want of", "for lack of"),
    ("give way", "end, close or wait"),
    ("gives way", "ends, closes or waits"),
    ("go on with", "continue"),
    ("goes on", "continues"),
    ("handed over", "passed"),
    ("in hand", "in progress"),
    ("in the place of", "instead of"),
    ("of late", "recently"),
    ("of one's own", "your own"),
    ("patience", "time limit"),
    ("put right", "repaired"),
    ("seldom", "rarely"),
    ("so many", "the number"),
    ("stands in", "is in"),
    ("tells of", "reports"),
    ("to be had", "available"),
    ("told of", "informed of"),
    ("was to answer", "the part that failed"),
];

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let pages = pages::pages(workspace).map(|page| (page, page.text.clone()));
    let is_product = |file: &&SourceFile| {
        let is_test = file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
        let is_crate = file.krate.starts_with("crates/") && file.is_in_src();
        is_crate && !is_test && !workspace.is_test_module(file)
    };
    let messages = workspace.rust().filter(is_product).map(|file| (file, messages(file)));
    pages.chain(messages).flat_map(|(file, text)| faults_of(file, &text)).collect()
}

fn faults_of(file: &SourceFile, text: &str) -> Vec<String> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let text = words.join(" ");
    let found = REFUSED.iter().filter(|(phrase, _)| has_phrase(&text, phrase));
    found.map(|(phrase, plain)| format!("{}: '{phrase}': say {plain}", file.path)).collect()
}

/// Returns true if the phrase is there, and is no part of a longer word.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let is_in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(phrase).any(|(at, _)| {
        let after = text[at + phrase.len()..].chars().next();
        !text[..at].ends_with(is_in_word) && !after.is_some_and(is_in_word)
    })
}

/// Returns the texts of all string literals before the tests of a file, one per line; documentation is left out.
fn messages(file: &SourceFile) -> String {
    let mut found = String::new();
    if let Ok(tokens) = file.before_tests().parse() {
        collect(tokens, &mut found);
    }
    found
}

fn collect(tokens: TokenStream, found: &mut String) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if !is_documentation(&group.stream()) => {
                collect(group.stream(), found);
            }
            TokenTree::Literal(literal) => {
                if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                    found.push_str(&text.value());
                    found.push_str(" \n");
                }
            }
            _ => {}
        }
    }
}

/// Returns true for the inside of `#[doc = "..."]`, which is also what a comment with `///` becomes.
fn is_documentation(attribute: &TokenStream) -> bool {
    let first = attribute.clone().into_iter().next();
    matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn refused_phrases_are_found_in_pages_and_messages() {
        let page =
            "Requests in\nhand finish. `requests_in_hand` is a name, and a bearer token is none.\n";
        let code = "/// Whatever is in hand.\n// farewell\n#[error(\"x is not to be \\\n had\")]\nstruct A;\n\
            fn f() { g(\"Elsewhere\"); farewell(); }\n#[cfg(test)]\nmod tests {\n fn g() { h(\"farewell\"); }\n}\n";
        let files =
            [("docs/a.md", page), ("docs/adr/0001-a.md", page), ("crates/a/src/a.rs", code)];
        let found = faults(&made_up(&files));
        assert_eq!(
            found,
            [
                "docs/a.md: 'in hand': say in progress",
                "crates/a/src/a.rs: 'elsewhere': say the name of the place",
                "crates/a/src/a.rs: 'to be had': say available",
            ]
        );
    }

    #[test]
    fn tests_have_their_own_words() {
        let text = "fn f() { g(\"farewell\") }";
        let found =
            faults(&made_up(&[("crates/a/tests/a.rs", text), ("crates/a/src/tests.rs", text)]));
        assert_eq!(found, Vec::<String>::new());
    }
}
