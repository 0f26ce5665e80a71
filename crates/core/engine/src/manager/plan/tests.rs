//! Planning as a table of cases: what the repositories hold, what is loaded, the request, and the plan.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::*;
use crate::{model_id::ModelId, overrides::LoadOverrides, repository::FolderSnapshot};

/// Models by id, each with the models of its steps: `x::e: m n`. Several lines of one id are several repositories.
struct Models<'a>(&'a [&'a str]);

fn id(text: &str) -> ModelId {
    match text.split_once("::") {
        Some((namespace, name)) => ModelId::new(namespace, name),
        None => ModelId::global(text),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
}

impl Models<'_> {
    fn lines(&self) -> impl Iterator<Item = (ModelId, &str)> {
        self.0
            .iter()
            .map(|line| line.rsplit_once(": ").unwrap_or((line, "")))
            .map(|(m, steps)| (id(m), steps))
    }
}

impl RepositoryView for Models<'_> {
    fn named(&self, name: &str) -> Vec<ModelId> {
        let found: BTreeSet<_> =
            self.lines().filter(|(id, _)| &*id.name == name).map(|(id, _)| id).collect();
        found.into_iter().collect()
    }

    fn holds(&self, id: &ModelId) -> bool {
        self.lines().filter(|(known, _)| known == id).count() == 1
    }

    fn steps(&self, id: &ModelId, overrides: &LoadOverrides) -> BTreeSet<Arc<str>> {
        let own = self.lines().find(|(known, _)| known == id).map(|(_, steps)| steps);
        let steps = overrides.config.as_deref().or(own).unwrap_or_default();
        words(steps).map(Arc::from).collect()
    }
}

/// The plan in words: `a b | e*`: first `a` and `b`, then `e`, which was named; `!e`: rejected as a cycle.
fn told(steps: Vec<Step>) -> String {
    let load = |request: &LoadRequest| {
        format!("{}{}", request.id, if request.is_explicit { "*" } else { "" })
    };
    let step = |step: &Step| match step {
        Step::Load(wave) => wave.iter().map(load).collect::<Vec<_>>().join(" "),
        Step::Reject(request, cycle) => format!("!{} ({} {})", request.id, cycle.first, cycle.last),
    };
    steps.iter().map(step).collect::<Vec<_>>().join(" | ")
}

struct Case<'a> {
    repository: &'a [&'a str],
    /// Models that clients may mean already.
    known: &'a str,
    named: &'a str,
    /// Steps that come with the request, in the place of those of the configuration.
    overrides: Option<&'a str>,
    plan: &'a str,
}

const ENSEMBLES: &[&str] = &["a", "b", "inner: a b", "outer: inner a", "alone"];

#[rustfmt::skip]
const CASES: &[Case<'_>] = &[
    Case { repository: ENSEMBLES, known: "", named: "", overrides: None, plan: "" },
    Case { repository: ENSEMBLES, known: "", named: "alone", overrides: None, plan: "alone*" },
    Case { repository: ENSEMBLES, known: "", named: "none", overrides: None, plan: "none*" },
    Case { repository: ENSEMBLES, known: "", named: "outer", overrides: None, plan: "a b | inner | outer*" },
    Case { repository: ENSEMBLES, known: "", named: "outer a alone", overrides: None, plan: "a* alone* b | inner | outer*" },
    // The steps of the request count, and are those of the named model alone.
    Case { repository: ENSEMBLES, known: "", named: "outer", overrides: Some("alone"), plan: "alone | outer*" },
    Case { repository: ENSEMBLES, known: "", named: "a", overrides: Some("inner"), plan: "b | !a (inner inner) | !inner (a a)" },
    // A step that no repository has, or several: loading the ensemble says so.
    Case { repository: &["e: none"], known: "", named: "e", overrides: None, plan: "e*" },
    Case { repository: &["e: m", "m", "m"], known: "", named: "e", overrides: None, plan: "e*" },
    // Cycles, and what waits for them.
    Case { repository: &["e: e"], known: "", named: "e", overrides: None, plan: "!e (e e)" },
    Case { repository: &["e: f m", "f: e", "m", "g: e"], known: "", named: "g", overrides: None, plan: "m | !e (f f) | !f (e e) | g*" },
    // A step means the model of its own namespace, and any other of its name where that is not there.
    Case { repository: &["x::e: m", "x::m", "y::m"], known: "", named: "x::e", overrides: None, plan: "x::m y::m | x::e*" },
    Case { repository: &["x::m: n", "y::n: m", "x::n"], known: "", named: "x::m", overrides: None, plan: "x::n | x::m* | y::n" },
    Case { repository: &["x::m: n", "y::n: m"], known: "", named: "x::m", overrides: None, plan: "!x::m (y::n y::n) | !y::n (x::m x::m)" },
    Case { repository: &["x::m: n", "y::n: m"], known: "y::m", named: "x::m", overrides: None, plan: "y::n | x::m*" },
];

#[test]
fn models_are_loaded_after_their_dependencies() {
    for (index, case) in CASES.iter().enumerate() {
        let named: Vec<_> = words(case.named).map(id).collect();
        let config = case.overrides.map(str::to_owned);
        let overrides = LoadOverrides { config, ..LoadOverrides::default() };
        let requests = with_needs(&named, &overrides, &Models(case.repository));
        let known: Vec<_> = words(case.known).map(id).collect();
        let steps = in_order(requests.into_values().collect(), &|id| known.contains(id));
        assert_eq!(told(steps), case.plan, "case {index}: {} of {:?}", case.named, case.repository);
    }
}

fn folder(content: Option<u8>) -> Option<FolderSnapshot> {
    content.map(|content| FolderSnapshot::of_listing([("config.pbtxt", content)]))
}

#[test]
fn a_ready_model_is_kept_if_the_load_would_change_nothing() {
    let named = |is_explicit, is_dependent, has_config: bool| {
        let config = has_config.then(String::new);
        let overrides = LoadOverrides { config, ..LoadOverrides::default() };
        LoadRequest { id: id("m"), steps: BTreeSet::new(), is_explicit, overrides, is_dependent }
    };
    let [plain, needed] = [named(true, false, false), named(false, false, false)];
    for (request, works, loaded, now, stays) in [
        (&plain, true, Some(1), Some(1), true),
        (&plain, true, Some(1), Some(2), false),
        (&plain, true, Some(1), None, false),
        (&plain, false, Some(1), Some(1), false),
        // Loaded from files of a request: who names it wants those of the repository.
        (&plain, true, None, Some(1), false),
        (&needed, true, None, Some(1), true),
        (&needed, true, Some(1), Some(2), false),
        (&named(true, true, false), true, Some(1), Some(1), false),
        (&named(true, false, true), true, Some(1), Some(1), false),
    ] {
        let is = is_current(request, works, folder(loaded).as_ref(), folder(now).as_ref());
        assert_eq!(is, stays, "{request:?} {works} {loaded:?} {now:?}");
    }
}

#[test]
fn a_poll_finds_new_changed_and_removed_models() {
    let mut loaded = Dependencies::default();
    for (name, content) in
        [("same", Some(1)), ("changed", Some(1)), ("gone", Some(1)), ("sent", None)]
    {
        let requests = with_needs(&[id(name)], &LoadOverrides::default(), &Models(&[]));
        requests.values().for_each(|request| drop(loaded.record(request, folder(content))));
    }
    let seen = |is_complete| {
        let now = [("same", 1), ("changed", 2), ("new", 1), ("sent", 1)];
        let folders: BTreeMap<_, _> = now
            .iter()
            .map(|&(name, content)| (id(name), folder(Some(content)).expect("one")))
            .collect();
        // That of one cannot be read.
        let models = folders.keys().cloned().chain([id("unread")]).collect();
        PolledFolders { models, folders, is_complete }
    };
    assert_eq!(seen(true).gone(&loaded), BTreeSet::from([id("gone")]));
    assert_eq!(seen(false).gone(&loaded), BTreeSet::new(), "a repository cannot be read");
    let found: Vec<_> =
        seen(true).not_loaded(&loaded).into_keys().map(|id| id.to_string()).collect();
    assert_eq!(found, ["changed", "new", "sent"]);
}
