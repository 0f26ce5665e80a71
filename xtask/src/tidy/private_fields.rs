//! A checked configuration cannot be changed: `ModelConfig` and its parts have no public fields, so that only the
//! checker builds them.

use syn::{Fields, Item, ItemStruct, Visibility};

use super::{
    allowed,
    source::{SourceFile, Workspace},
};

/// Files with the checked configuration and its parts.
const CHECKED: &str = "crates/config/src/model_config";

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let is_checked = |file: &&SourceFile| file.path.starts_with(CHECKED);
    let files = workspace.rust().filter(is_checked);
    let files = files.filter(|file| !allowed::PUBLIC_FIELDS.contains(&file.path.as_str()));
    files.flat_map(file_faults).collect()
}

fn file_faults(file: &SourceFile) -> Vec<String> {
    let items = syn::parse_file(&file.text).map(|parsed| parsed.items).unwrap_or_default();
    let structs = items.iter().filter_map(|item| match item {
        Item::Struct(item) => Some(item),
        _ => None,
    });
    structs
        .filter(|item| has_public_field(item))
        .map(|item| format!("{}: {} has public fields", file.path, item.ident))
        .collect()
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
    fn public_fields_are_named_in_these_files_alone() {
        let text = "pub struct Group { pub count: u32 }\npub struct Kept { pub(crate) a: u32, b: u32 }\n\
                    pub struct Tuple(pub u32);";
        let found = faults(&made_up(&[
            ("crates/config/src/model_config/groups.rs", text),
            ("crates/config/src/raw.rs", text),
        ]));
        let file = "crates/config/src/model_config/groups.rs";
        assert_eq!(
            found,
            [
                format!("{file}: Group has public fields"),
                format!("{file}: Tuple has public fields")
            ]
        );
    }
}
