//! Uses between the files of a crate, read from `use` lines and from paths in the code.
//!
//! A name counts for the file that defines it, and for every file that re-exports it, unless that file defines nothing of its
//! own. Tests do not count. Method calls are not seen; the type of the receiver usually comes from a name that is.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Attribute, ImplItemFn, Item, ItemFn, ItemMod, ItemUse, Macro, Path, UseTree,
    visit::{self, Visit},
};

use super::{super::source::SourceFile, Graph};

type Name = String;
/// Names from the root of the crate; the root has none.
type ModulePath = Vec<Name>;

/// The names in a module.
#[derive(Default)]
struct Module {
    file: String,
    defined: Vec<Name>,
    /// The path that each name of a `use` stands for.
    imported: BTreeMap<Name, Vec<Name>>,
    globs: Vec<Vec<Name>>,
    /// Every path in the module, with those of `use` lines.
    used: Vec<Vec<Name>>,
}

type Modules = BTreeMap<ModulePath, Module>;

pub fn graph(files: &[&SourceFile]) -> Graph {
    let mut modules = Modules::new();
    for file in files {
        let parsed = syn::parse_file(&file.text).ok();
        let items = parsed.map(|parsed| parsed.items).unwrap_or_default();
        if let Some(path) = module_path(file) {
            read_module(&mut modules, path, &file.path, &items);
        }
    }
    let mut graph = Graph::new();
    for (path, module) in &modules {
        let mut targets = BTreeSet::new();
        for used in &module.used {
            Search { modules: &modules, found: &mut targets }.target(path, used, 0);
        }
        let others = targets
            .into_iter()
            .filter(|target| *target != module.file && !is_root_of(target, &module.file));
        graph.entry(module.file.clone()).or_default().extend(others.map(str::to_owned));
    }
    graph
}

/// Returns true if `root` is the file of a module above `file`.
fn is_root_of(root: &str, file: &str) -> bool {
    let folder = ["/mod.rs", "/lib.rs", "/main.rs", ".rs"]
        .iter()
        .find_map(|ending| root.strip_suffix(ending));
    folder.and_then(|folder| file.strip_prefix(folder)).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the path of a file: `src/a/b.rs` and `src/a/b/mod.rs` are `a::b`. `None` for files of tests.
fn module_path(file: &SourceFile) -> Option<ModulePath> {
    let inside = file.path.strip_prefix(&file.krate)?.strip_prefix("/src/")?.strip_suffix(".rs")?;
    let mut path: ModulePath = inside.split('/').map(str::to_owned).collect();
    let last = path.last().map(String::as_str);
    if matches!(last, Some("mod")) || (path.len() == 1 && matches!(last, Some("lib" | "main"))) {
        path.pop();
    }
    (!path.iter().any(|name| name == "tests")).then_some(path)
}

fn read_module(modules: &mut Modules, path: ModulePath, file: &str, items: &[Item]) {
    let mut module = Module { file: file.to_owned(), ..Module::default() };
    for item in items.iter().filter(|item| !is_test(attributes(item))) {
        module.defined.extend(defined(item));
        if let Item::Mod(ItemMod { ident, content: Some((_, items)), .. }) = item {
            let path = path.iter().cloned().chain([ident.to_string()]).collect();
            read_module(modules, path, file, items);
        } else {
            Reader(&mut module).visit_item(item);
        }
    }
    modules.insert(path, module);
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => {
            list.path.is_ident("cfg") && list.tokens.to_string().starts_with("test")
        }
        syn::Meta::NameValue(_) => false,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        _ => &[],
    }
}

fn defined(item: &Item) -> Option<Name> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Collects the paths of a module, wherever they are in it.
struct Reader<'a>(&'a mut Module);

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.read_use(&mut Vec::new(), &item.tree);
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        self.0.used.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.read_tokens(call.tokens.clone());
    }
}

impl Reader<'_> {
    fn read_use(&mut self, before: &mut Vec<Name>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.read_use(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.read_use(before, tree))
            }
            UseTree::Glob(_) => {
                self.0.globs.push(before.clone());
                self.0.used.push(before.clone());
            }
            UseTree::Name(name) => self.import(before, &name.ident.to_string(), None),
            UseTree::Rename(name) => {
                self.import(before, &name.ident.to_string(), Some(name.rename.to_string()));
            }
        }
    }

    fn import(&mut self, before: &[Name], name: &str, renamed: Option<Name>) {
        let mut path = before.to_vec();
        if name != "self" {
            path.push(name.to_owned());
        }
        if let Some(bound) = renamed.or_else(|| path.last().cloned()) {
            self.0.imported.insert(bound, path.clone());
        }
        self.0.used.push(path);
    }

    /// Reads paths among the tokens of a macro call: names with `::` between them.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<Name> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.0.used.push(std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    colons = 0;
                    self.0.used.push(std::mem::take(&mut path));
                    if let TokenTree::Group(group) = other {
                        self.read_tokens(group.stream());
                    }
                }
            }
        }
        self.0.used.push(path);
    }
}

/// Most re-exports that are followed; they could form a circle themselves.
const MAX_DEPTH: usize = 8;

/// Collects the files that paths lead to. Paths to other crates, or only to a module, give nothing.
struct Search<'a, 'f> {
    modules: &'a Modules,
    found: &'f mut BTreeSet<&'a str>,
}

impl Search<'_, '_> {
    /// Follows a path in the module `at`. Returns true if it leads to an item of this crate.
    fn target(&mut self, at: &[Name], path: &[Name], depth: usize) -> bool {
        let Some((first, rest)) = path.split_first().filter(|_| depth <= MAX_DEPTH) else {
            return false;
        };
        let child = || at.iter().cloned().chain([first.clone()]).collect::<ModulePath>();
        let start = match first.as_str() {
            "crate" => Vec::new(),
            "self" => at.to_vec(),
            "super" => at.split_last().map(|(_, above)| above.to_vec()).unwrap_or_default(),
            _ if self.modules.contains_key(&child()) => child(),
            // A single name is either defined here or was counted at its import.
            _ if rest.is_empty() => return false,
            _ => {
                let imported = self.modules.get(at).and_then(|module| module.imported.get(first));
                // `use a;` of another crate and `a::b` would follow each other for ever.
                let followed = |path: &&Vec<Name>| path.first() != Some(first) || path.len() > 1;
                return imported
                    .filter(followed)
                    .is_some_and(|before| self.target(at, &[before, rest].concat(), depth + 1));
            }
        };
        self.descend(start, rest, depth)
    }

    fn descend(&mut self, mut at: ModulePath, path: &[Name], depth: usize) -> bool {
        for (index, name) in path.iter().enumerate() {
            if name == "super" {
                at.pop();
                continue;
            }
            at.push(name.clone());
            if !self.modules.contains_key(&at) {
                at.pop();
                return self.item(&at, &path[index..], depth);
            }
        }
        false
    }

    /// Finds the item with which `path` begins in the module `at`, which defines or re-exports it.
    fn item(&mut self, at: &[Name], path: &[Name], depth: usize) -> bool {
        let (Some(module), [name, rest @ ..]) = (self.modules.get(at), path) else { return false };
        let is_found = module.defined.contains(name)
            || match module.imported.get(name) {
                Some(before) => self.target(at, &[before, rest].concat(), depth + 1),
                None => {
                    let mut globs = module.globs.iter();
                    globs.any(|glob| self.target(at, &[glob, path].concat(), depth + 1))
                }
            };
        if is_found && !module.defined.is_empty() {
            self.found.insert(&module.file);
        }
        is_found
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::source::made_up, *};

    /// What the file takes from, without folder and ending.
    fn used_by(files: &[(&str, &str)], file: &str) -> Vec<String> {
        let files: Vec<(String, &str)> =
            files.iter().map(|(path, text)| (format!("crates/a/src/{path}"), *text)).collect();
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let workspace = made_up(&files);
        let graph = graph(&workspace.files.iter().collect::<Vec<_>>());
        let name = |path: &String| path["crates/a/src/".len()..].trim_end_matches(".rs").to_owned();
        graph[&format!("crates/a/src/{file}.rs")].iter().map(name).collect()
    }

    const ROOT: (&str, &str) =
        ("lib.rs", "mod deep; mod one; mod user; pub use deep::leaf::Leaf; pub struct Rooted;");
    const ONE: (&str, &str) = ("one.rs", "pub struct One; pub fn make() {}");
    const DEEP: (&str, &str) = (
        "deep/mod.rs",
        "pub mod leaf; pub use leaf::*; pub use leaf::Leaf as Renamed; pub const D: u8 = 0;",
    );
    const LEAF: (&str, &str) = ("deep/leaf.rs", "pub struct Leaf; pub struct Other;");

    #[track_caller]
    fn assert_uses(text: &str, expected: &[&str]) {
        assert_eq!(
            used_by(&[ROOT, ONE, DEEP, LEAF, ("user.rs", text)], "user"),
            expected,
            "{text}"
        );
    }

    #[test]
    fn names_count_for_the_file_that_defines_them() {
        assert_uses("use crate::one::One;", &["one"]);
        assert_uses("use crate::{Leaf, Rooted};", &["deep/leaf"]);
        assert_uses("use crate::deep::Renamed;", &["deep/leaf", "deep/mod"]);
        assert_uses("use crate::deep::Other;", &["deep/leaf", "deep/mod"]);
        assert_uses("use super::deep::{D, leaf::Leaf};", &["deep/leaf", "deep/mod"]);
    }

    #[test]
    fn paths_in_code_and_macros_count() {
        assert_uses("fn f() { crate::one::make() }", &["one"]);
        assert_uses("use crate::one; fn f() { one::make() }", &["one"]);
        assert_uses(
            "use crate::deep as d; fn f() -> d::Leaf { todo() }",
            &["deep/leaf", "deep/mod"],
        );
        assert_uses("fn f() { assert!(matches!(x, crate::one::One)) }", &["one"]);
        assert_uses("use crate::one; fn f() { vec![a::b, one::make()] }", &["one"]);
    }

    #[test]
    fn module_names_other_crates_and_tests_do_not_count() {
        assert_uses("use crate::one;", &[]);
        assert_uses("use std::fs; use log; fn f() { fs::read(); log::info!(\"x\") }", &[]);
        assert_uses("#[cfg(test)] mod tests { use crate::one::One; }", &[]);
        assert_uses(
            "#[cfg(test)] use crate::one::One; #[cfg(test)] fn f() { crate::one::make() }",
            &[],
        );
        assert_uses("// crate::one::make()\nconst A: &str = \"crate::one::make()\";", &[]);
    }

    #[test]
    fn items_a_child_module_takes_from_its_parents_do_not_count() {
        let child =
            ("deep/leaf.rs", "use super::D; use crate::{Rooted, one::One}; pub struct Leaf;");
        let files = [ROOT, ONE, DEEP, child, ("user.rs", "")];
        assert_eq!(used_by(&files, "deep/leaf"), ["one"]);
        assert_eq!(used_by(&files, "deep/mod"), ["deep/leaf"]);
    }
}
