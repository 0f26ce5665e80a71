//! Instance groups that change while a model is ready.

use std::{fs, sync::atomic::Ordering, thread};

use galatea_engine::LoadOverrides;

use crate::fixture::{CONFIG, Fixture, add_model, ask, eventually, explicit, index, start};

fn with(groups: &str) -> String {
    format!("{CONFIG} {groups}")
}

fn cpu(count: u32) -> String {
    with(&format!("instance_group {{ count: {count} kind: KIND_CPU }}"))
}

fn ready(config: &str) -> Fixture {
    let f = explicit(|root| add_model(root, "m", &[1], config));
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    f
}

impl Fixture {
    fn load(&self, config: &str) -> Result<(), String> {
        add_model(self.root.path(), "m", &[], config);
        let loaded = self.engine.load_model("m", LoadOverrides::default());
        loaded.map_err(|error| error.message().to_owned())
    }

    fn instances(&self) -> Vec<String> {
        self.backend.live_instances.lock().expect("no panic").iter().cloned().collect()
    }

    /// Loads of versions, and instances ever made.
    fn made(&self) -> (u64, u64) {
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::SeqCst);
        (count(&self.backend.loads_begun), count(&self.backend.instances_made))
    }

    fn inferences(&self) -> u64 {
        let rows = self.engine.statistics(Some("m"), Some(1)).expect("statistics");
        rows[0].statistics.inference_count
    }

    fn groups(&self) -> Vec<(String, u32)> {
        let config = self.engine.model("m", None).expect("ready").current_config();
        config.instance_groups().iter().map(|g| (g.name.clone(), g.count)).collect()
    }
}

#[test]
fn instances_are_added_and_removed_without_a_reload() {
    let f = ready(&cpu(3));
    ask(&f.engine, 1).expect("answered");
    for (count, made) in [(4, 4), (3, 4), (4, 5), (1, 5)] {
        f.load(&cpu(count)).expect("changes");
        let names: Vec<_> = (0..count).map(|i| format!("m_0_{i}")).collect();
        assert_eq!((f.instances(), f.made()), (names, (1, made)));
        assert_eq!(f.groups(), [("m_0".to_owned(), count)]);
        ask(&f.engine, 1).expect("answered");
    }
    assert_eq!(f.inferences(), 5, "counts go on");
    assert_eq!(index(&f.engine), ["m:1:READY:"]);
    f.engine.unload_model("m", false).expect("unloads");
    eventually("all are gone", || f.instances().is_empty());
    eventually("unloaded", || index(&f.engine) == ["m:1:UNAVAILABLE:unloaded"]);
}

#[test]
fn changing_instances_fails_no_request() {
    let f = ready(&cpu(2));
    thread::scope(|scope| {
        let asker = || (0..300).for_each(|value| drop(ask(&f.engine, value).expect("answered")));
        let askers = [(); 2].map(|()| scope.spawn(asker));
        for turn in 0..20 {
            f.load(&cpu(1 + turn % 3)).expect("changes");
        }
        askers.into_iter().for_each(|asker| asker.join().expect("no request fails"));
    });
    assert_eq!((f.inferences(), f.made().0), (600, 1));
}

#[test]
fn an_executing_request_delays_only_the_removal_of_its_instance() {
    let f = ready(&cpu(1));
    let model = f.engine.model("m", None).expect("ready");
    f.backend.gate.set(true);
    let first = start(&model, 1);
    f.load(&cpu(2)).expect("an instance more while one executes");
    let second = start(&model, 2);
    thread::scope(|scope| {
        let change = scope.spawn(|| f.load(&cpu(1)));
        eventually("the change is under way", || {
            model.current_config().instance_groups()[0].count == 2
        });
        assert_eq!(f.instances().len(), 2);
        f.backend.gate.set(false);
        change.join().expect("no panic").expect("changes");
    });
    assert_eq!(f.instances(), ["m_0_0"]);
    for answer in [first, second] {
        answer.blocking_recv().expect("answered").expect("no failure");
    }
}

#[test]
fn instances_that_fail_to_start_change_nothing() {
    let f = ready(&cpu(2));
    let marker = f.root.path().join("m_0_3.fails_to_start");
    fs::write(&marker, "").expect("file");
    let reason = "Internal: ";
    for _ in 0..2 {
        let error = f.load(&cpu(4)).expect_err("one fails");
        let start = format!("load failed for model 'm': version 1 is at READY state: {reason}");
        assert!(error.starts_with(&start) && error.ends_with(";\n"), "{error}");
        assert_eq!((f.instances(), f.groups()[0].1), (vec!["m_0_0".into(), "m_0_1".into()], 2));
        let rows = index(&f.engine);
        assert!(rows[0].starts_with(&format!("m:1:READY:{reason}")), "{rows:?}");
        ask(&f.engine, 1).expect("answered");
    }
    assert!(f.engine.is_ready());
    fs::remove_file(marker).expect("removed");
    f.engine.load_model("m", LoadOverrides::default()).expect("it is tried again");
    assert_eq!((f.groups()[0].1, index(&f.engine)), (4, vec!["m:1:READY:".to_owned()]));
    assert_eq!((f.inferences(), f.made().0), (2, 1));
}

#[test]
fn invalid_groups_are_refused_without_a_change() {
    let f = ready(&cpu(2));
    let gpu = with("instance_group { count: 2 kind: KIND_GPU }");
    let error = f.load(&gpu).expect_err("no GPU");
    let reason = "Invalid argument: instance group m_0 of model m has kind KIND_GPU but no GPUs are available \
                  (m/config.pbtxt:6:34: this server sees no GPU: write `kind: KIND_CPU`, leave out `kind` to use a GPU \
                  where there is one, or give the server `--gpu-groups=cpu`, which runs such groups on the CPU. If the \
                  machine has a GPU, look whether `nvidia-smi` finds it)";
    let expected = format!("load failed for model 'm': version 1 is at READY state: {reason};\n");
    assert_eq!((error, index(&f.engine)), (expected, vec![format!("m:1:READY:{reason}")]));
    f.load("backend: ---").expect_err("no configuration");
    f.load(&cpu(1)).expect("changes");
    assert_eq!((f.made(), index(&f.engine)), ((1, 2), vec!["m:1:READY:".to_owned()]));
}

#[test]
fn other_changes_reload_the_model() {
    let f = ready(&cpu(2));
    let mut loads = 1;
    let mut is_loaded_again = |config: String| {
        f.load(&config).expect("loads");
        let before = std::mem::replace(&mut loads, f.made().0);
        loads > before
    };
    assert!(!is_loaded_again(cpu(3)), "the count");
    assert!(!is_loaded_again(with("")), "no group at all");
    assert!(!is_loaded_again(with("instance_group [ { name: 'x' }, { name: 'y' } ]")), "names");
    assert!(is_loaded_again(cpu(3) + "metric_tags { key: 'a' value: 'b' }"));
    assert!(is_loaded_again(with("instance_group { kind: KIND_MODEL }")), "as its backend wants");
    fs::write(f.root.path().join("m/1/weights"), "x").expect("file");
    assert!(is_loaded_again(cpu(2)), "a file too");
    fs::write(f.root.path().join("m/labels"), "x").expect("file");
    assert!(is_loaded_again(cpu(1)), "a file of all versions");
}

#[test]
fn the_configuration_of_a_load_request_changes_instances_too() {
    let f = ready(&cpu(1));
    let json = |count: u32| {
        let config = f.engine.model("m", None).expect("ready").current_config();
        let mut own = galatea_config::to_json(config.raw());
        own = own.replace("\"count\":1", &format!("\"count\":{count}"));
        LoadOverrides { config: Some(own), ..LoadOverrides::default() }
    };
    f.engine.load_model("m", json(3)).expect("changes");
    assert_eq!((f.groups()[0].1, f.made()), (3, (1, 3)));
    f.load(&cpu(2)).expect("the repository's again");
    assert_eq!((f.groups()[0].1, f.made()), (2, (1, 3)));
}

#[test]
fn instances_of_each_version_change_and_a_new_version_is_loaded() {
    let all = |count| cpu(count) + "version_policy { all {} }";
    let f = explicit(|root| add_model(root, "m", &[1, 2], &all(1)));
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    assert_eq!(f.made(), (2, 2));
    f.load(&all(2)).expect("changes");
    assert_eq!(f.made(), (2, 4));
    add_model(f.root.path(), "m", &[3], &all(1));
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    assert_eq!(f.made(), (3, 5));
    // A version that cannot be loaded leaves the others as they are.
    add_model(f.root.path(), "m", &[4], &all(3));
    fs::write(f.root.path().join("m/4/fails_to_load"), "").expect("file");
    let error = f.load(&all(3)).expect_err("one fails");
    assert!(
        error.contains("version 4 is at UNAVAILABLE state") && !error.contains("READY"),
        "{error}"
    );
    assert_eq!((f.made(), f.groups()[0].1), ((3, 5), 1));
}

#[test]
fn two_hundred_instance_changes_leave_no_threads_or_memory() {
    let f = ready(&cpu(1));
    let open = || {
        let count = |folder| fs::read_dir(folder).expect("listed").count();
        (count("/proc/self/task"), count("/proc/self/fd"))
    };
    f.load(&cpu(2)).expect("changes");
    f.load(&cpu(1)).expect("changes");
    let before = open();
    for turn in 0..100 {
        f.load(&cpu(2 + turn % 5)).expect("changes");
        f.load(&cpu(1)).expect("changes");
    }
    assert_eq!((f.instances(), f.made().0), (vec!["m_0_0".to_owned()], 1));
    eventually("threads and descriptors are as before", || open() == before);
}
