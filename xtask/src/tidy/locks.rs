//! Locks are taken through `LockExt` and similar traits of `galatea-types`, which handle a holder's panic in one place.

use super::source::{SourceFile, Workspace};

/// The file with that decision.
const HOME: &str = "crates/shared/types/src/lock.rs";

pub fn faults(workspace: &Workspace) -> Vec<String> {
    let is_bound = |file: &&SourceFile| file.is_in_src() && file.path != HOME;
    let users = workspace.rust().filter(is_bound).filter(|file| file.has_tokens(&["PoisonError"]));
    users.map(|file| format!("{}: takes a lock without `LockExt`", file.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::source::made_up, *};

    #[test]
    fn locks_used_elsewhere_are_named() {
        let text = "fn f() { m.lock().unwrap_or_else(PoisonError::into_inner); }";
        let found = faults(&made_up(&[
            (HOME, text),
            ("crates/made_up/src/a.rs", text),
            ("crates/made_up/src/b.rs", "// PoisonError"),
        ]));
        assert_eq!(found, ["crates/made_up/src/a.rs: takes a lock without `LockExt`"]);
    }
}
