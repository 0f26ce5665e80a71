//! What becomes of versions, and what is told of them.

use std::time::Duration;

use super::*;

fn state(lifecycle: &Lifecycle, version: i64) -> String {
    let versions = lifecycle.versions(&"m".into());
    let (_, state) = versions.iter().find(|(v, _)| *v == version).expect("known version");
    format!("{} {}", state.name(), state.reason())
}

#[test]
fn a_version_passes_through_its_states() {
    let lifecycle = Lifecycle::default();
    let first = lifecycle.begin_loading(&"m".into(), 1, false);
    assert_eq!(state(&lifecycle, 1), "LOADING ");
    assert!(!lifecycle.is_all_ready());
    lifecycle.loaded(&"m".into(), 1, first);
    assert_eq!(state(&lifecycle, 1), "READY ");
    lifecycle.unloading(&"m".into(), 1, first);
    assert!(!lifecycle.wait_until_idle(Instant::now()));
    lifecycle.unloaded(&"m".into(), 1, first);
    assert_eq!(state(&lifecycle, 1), "UNAVAILABLE unloaded");
    assert!(lifecycle.is_all_ready());
    assert!(lifecycle.wait_until_idle(Instant::now() + Duration::from_secs(1)));
}

#[test]
fn an_unload_after_a_reload_keeps_the_new_record() {
    let lifecycle = Lifecycle::default();
    let old = lifecycle.begin_loading(&"m".into(), 1, false);
    lifecycle.loaded(&"m".into(), 1, old);
    let new = lifecycle.begin_loading(&"m".into(), 1, false);
    assert_eq!(state(&lifecycle, 1), "READY ");
    lifecycle.loaded(&"m".into(), 1, new);
    lifecycle.unloading(&"m".into(), 1, old);
    lifecycle.unloaded(&"m".into(), 1, old);
    assert_eq!(state(&lifecycle, 1), "READY ");
}

#[test]
fn the_excerpt_of_a_failure_is_removed_with_the_failure() {
    let (lifecycle, model) = (Lifecycle::default(), "m".into());
    lifecycle.set_excerpt(&model, "unknown".to_owned());
    assert_eq!(lifecycle.excerpt(&model), "");
    let before = lifecycle.revision();
    lifecycle.set_poll_failure(&model, false, "wrong");
    lifecycle.set_excerpt(&model, "1 | x".to_owned());
    assert_eq!(lifecycle.excerpt(&model), "1 | x");
    assert_ne!(lifecycle.revision(), before);
    let first = lifecycle.begin_loading(&model, 1, true);
    assert_eq!(lifecycle.excerpt(&model), "");
    lifecycle.failed(&model, 1, first, "wrong".to_owned());
    lifecycle.set_excerpt(&model, "2 | y".to_owned());
    assert_eq!(lifecycle.excerpt(&model), "", "no repository holds it: it is forgotten");
}

#[test]
fn a_failed_reload_keeps_the_old_version_ready() {
    let lifecycle = Lifecycle::default();
    let old = lifecycle.begin_loading(&"m".into(), 1, false);
    lifecycle.loaded(&"m".into(), 1, old);
    let new = lifecycle.begin_loading(&"m".into(), 1, false);
    lifecycle.failed(&"m".into(), 1, new, "no such file".to_owned());
    assert_eq!(state(&lifecycle, 1), "READY ");
    lifecycle.failed(&"m".into(), 1, old, "gone".to_owned());
    assert_eq!(state(&lifecycle, 1), "UNAVAILABLE gone");
}

#[test]
fn a_model_missing_from_every_repository_is_known_only_if_it_was_ready() {
    let lifecycle = Lifecycle::default();
    let failing = lifecycle.begin_loading(&"m".into(), 1, true);
    lifecycle.failed(&"m".into(), 1, failing, "no such file".to_owned());
    let other = lifecycle.begin_loading(&"m".into(), 2, true);
    lifecycle.loaded(&"m".into(), 2, other);
    assert_eq!(state(&lifecycle, 2), "READY ");
    lifecycle.unloading(&"m".into(), 2, other);
    lifecycle.unloaded(&"m".into(), 2, other);
    let known: Vec<_> = lifecycle.versions(&"m".into()).iter().map(|(v, _)| *v).collect();
    assert_eq!(known, [2]);
    assert_eq!(lifecycle.models(), []);
    assert!(lifecycle.is_all_ready());
}

#[test]
fn a_removed_model_is_known_but_not_listed() {
    let lifecycle = Lifecycle::default();
    let first = lifecycle.begin_loading(&"m".into(), 1, false);
    lifecycle.loaded(&"m".into(), 1, first);
    let failing = lifecycle.begin_loading(&"m".into(), 2, false);
    lifecycle.failed(&"m".into(), 2, failing, "no such file".to_owned());
    lifecycle.removed(&"m".into());
    assert_eq!(lifecycle.models(), ["m".into()]);
    lifecycle.unloading(&"m".into(), 1, first);
    lifecycle.unloaded(&"m".into(), 1, first);
    assert_eq!(lifecycle.models(), []);
    assert_eq!(lifecycle.versions(&"m".into()).len(), 2);
    assert!(lifecycle.is_all_ready());
    let again = lifecycle.begin_loading(&"m".into(), 1, false);
    lifecycle.loaded(&"m".into(), 1, again);
    assert_eq!(lifecycle.models(), ["m".into()]);
}

#[test]
fn the_number_of_removed_models_is_bounded() {
    let lifecycle = Lifecycle::default();
    for number in 0..=MAX_REMOVED_MODELS {
        let name = format!("m{number}");
        let generation = lifecycle.begin_loading(&name.as_str().into(), 1, false);
        lifecycle.failed(&name.as_str().into(), 1, generation, "no such file".to_owned());
        lifecycle.removed(&name.as_str().into());
    }
    assert_eq!(lifecycle.versions(&"m0".into()), []);
    assert_eq!(lifecycle.versions(&"m1".into()).len(), 1);
}

#[test]
fn past_versions_and_reasons_are_bounded() {
    let lifecycle = Lifecycle::default();
    for version in 1..=1000 {
        let generation = lifecycle.begin_loading(&"m".into(), version, false);
        lifecycle.failed(&"m".into(), version, generation, "ö".repeat(1 << 20));
    }
    let versions = lifecycle.versions(&"m".into());
    assert_eq!((versions.len(), versions[0].0), (MAX_PAST_VERSIONS, 745));
    let reason = versions[0].1.reason();
    assert!(reason.len() < MAX_REASON + 50 && reason.ends_with("(2088960 bytes more)"));
}
