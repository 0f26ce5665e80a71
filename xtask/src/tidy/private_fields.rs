//! Only its checker builds a checked configuration, and nothing can change it: `ModelConfig` has no public fields, and parts
//! with public fields cannot be built outside their crate (`#[non_exhaustive]`).

use syn::{Fields, Item, ItemStruct, Visibility};

use super::source::{SourceFile, Workspace};

/// Files with the checked configuration and its parts.
const CHECKED: &str = "crates/core/config/src/model/";
const WHOLE: &str = "ModelConfig";

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let is_checked = |file: &&SourceFile| file.path.starts_with(CHECKED);
    workspace.rust().filter(is_checked).flat_map(file_faults).collect()
}

fn file_faults(file: &SourceFile) -> Vec<String> {
    let items = syn::parse_file(&file.text).map(|parsed| parsed.items).unwrap_or_default();
    let structs = items.iter().filter_map(|item| match item {
        Item::Struct(item) => Some(item),
        _ => None,
    });
    structs
        .filter(|item| has_public_field(item) && (item.ident == WHOLE || !is_sealed(item)))
        .map(|item| format!("{}: anybody can build a {}", file.path, item.ident))
        .collect()
}

/// Returns true if only its own crate can build it.
fn is_sealed(item: &ItemStruct) -> bool {
    item.attrs.iter().any(|attribute| attribute.path().is_ident("non_exhaustive"))
}

fn has_public_field(item: &ItemStruct) -> bool {
    let is_public = |field: &syn::Field| matches!(field.vis, Visibility::Public(_));
    match &item.fields {
        Fields::Named(fields) => fields.named.iter().any(is_public),
        Fields::Unnamed(fields) => fields.unnamed.iter().any(is_public),
        Fields::Unit => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn public_fields_are_reported_in_the_listed_files_only() {
        let text = "pub struct Group { pub count: u32 }\npub struct Kept { pub(crate) a: u32, b: u32 }\n\
                    #[non_exhaustive] pub struct Sealed { pub a: u32 }\n\
                    #[non_exhaustive] pub struct ModelConfig { pub a: u32 }";
        let found = faults(&made_up(&[
            ("crates/core/config/src/model/groups.rs", text),
            ("crates/core/config/src/raw.rs", text),
        ]));
        let file = "crates/core/config/src/model/groups.rs";
        assert_eq!(
            found,
            [
                format!("{file}: anybody can build a Group"),
                format!("{file}: anybody can build a ModelConfig")
            ]
        );
    }
}
