//! What stays of loads that fail: nothing.
#![allow(clippy::expect_used)] // a test may stop where it stands

use std::{fs, time::Duration};

use galatea_engine::LoadOverrides;
use galatea_types::Code;

use crate::fixture::{CONFIG, add_model, eventually, explicit, index, wait};

/// Memory of the process, in MiB.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number") * 4 / 1024
}

fn overrides(config: String) -> LoadOverrides {
    LoadOverrides { config: Some(config), ..LoadOverrides::default() }
}

#[test]
fn names_of_failed_loads_do_not_stay_in_memory() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    let load = |name: String| wait(f.engine.control().load(name, LoadOverrides::default()));
    let before = resident();
    for i in 0..2000 {
        let error = load(format!("{i}{}", "x".repeat(60_000))).expect_err("no such model");
        assert_eq!(error.code(), Code::InvalidArg);
        assert!(error.message().starts_with("invalid model name: it has 60"), "{error}");
        assert!(error.message().ends_with("bytes, the limit is 255"), "{error}");
    }
    for i in 0..20_000 {
        load(format!("{i:0>255}")).expect_err("no such model");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 20, "{grown} MiB for names of models that do not exist");
    assert_eq!(index(&f.engine), ["m:-:-:"]);
}

#[test]
fn refused_ensembles_do_not_stay_in_memory() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    let padding = "x".repeat(3 << 20);
    let config = |tail: &str| {
        format!(
            r#"{{"platform":"ensemble","ensemble_scheduling":{{"step":[{{"model_name":"none",
                "input_map":{{"IN":"IN"}},"output_map":{{"OUT":"OUT"}}}}]}},
                "input":[{{"name":"IN","data_type":"TYPE_INT32","dims":[1]}}],
                "output":[{{"name":"OUT","data_type":"TYPE_INT32","dims":[1]}}],
                "metric_tags":{{"{padding}":""}}{tail}}}"#
        )
    };
    let before = resident();
    for i in 0..60 {
        let mut with_files = overrides(config(""));
        with_files.files.insert("1/x".to_owned(), vec![0; 1 << 20].into());
        f.engine.load_model(&format!("e{i}"), with_files).expect_err("no such step");
        f.engine.load_model("m", overrides(config(""))).expect_err("no such step");
        f.engine.load_model("m", overrides(config(",\"nonsense\":1"))).expect_err("no field");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 60, "{grown} MiB for ensembles that were refused");
    let rows = index(&f.engine);
    assert_eq!(rows.len(), 1, "only the repository's model is remembered");
    assert!(rows[0].starts_with("m:-:UNAVAILABLE:") && rows[0].len() < 10_000);
}

#[test]
fn a_long_failure_reason_is_cut() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    let name = "y".repeat(1 << 20);
    let error =
        f.engine.load_model("m", overrides(format!(r#"{{"name":"{name}","backend":"copy"}}"#)));
    error.expect_err("another name than the folder's");
    let reason = &index(&f.engine)[0];
    assert!(reason.len() < 10_000 && reason.ends_with("bytes more)"), "{} bytes", reason.len());
}

#[test]
fn files_of_a_load_request_are_removed_on_failure_and_replacement() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    let config = r#"{"backend":"copy","max_batch_size":4,
        "input":[{"name":"IN","data_type":"TYPE_INT32","dims":[1]}],
        "output":[{"name":"OUT","data_type":"TYPE_INT32","dims":[1]}]}"#;
    let with_file = |path: &str| {
        let mut all = overrides(config.to_owned());
        all.files.insert("1/model".to_owned(), vec![1].into());
        all.files.insert(path.to_owned(), vec![1].into());
        all
    };
    let folder = || f.backend.loaded_from.lock().expect("no panic").clone();
    f.engine.load_model("m", with_file("1/first")).expect("loads");
    let first = folder();
    f.engine.load_model("m", with_file("1/second")).expect("loads");
    let second = folder();
    assert!(second.join("second").is_file() && first != second);
    eventually("the files of the first are gone", || !first.exists());
    f.engine.load_model("m", with_file("1/fails_to_load")).expect_err("fails");
    let parent = second.ancestors().nth(2).expect("the folder of all such files").to_owned();
    let models = || fs::read_dir(&parent).expect("readable").count();
    eventually("the files of the failed load are gone", || models() == 1);
    assert!(second.join("second").is_file(), "the model that is ready keeps its own");
    assert!(f.engine.shutdown(std::time::Instant::now() + Duration::from_secs(20)));
    assert!(!parent.exists(), "nothing stays after the exit");
}

#[test]
fn too_many_or_too_deep_files_are_refused_before_writing() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    let mut many = overrides("{}".to_owned());
    many.files = (0..5000).map(|i| (format!("1/{i}"), vec![0].into())).collect();
    let error = f.engine.load_model("m", many).expect_err("too many");
    assert!(
        error.message().ends_with("5000 files in a load request, the limit is 4096"),
        "{error}"
    );
    let mut deep = overrides("{}".to_owned());
    deep.files.insert(format!("{}x", "a/".repeat(100)), vec![0].into());
    let error = f.engine.load_model("m", deep).expect_err("too deep");
    assert!(error.message().contains("has 101 parts, the limit is 16"), "{error}");
    let mut long = overrides("{}".to_owned());
    long.files.insert("a".repeat(1 << 20), vec![0].into());
    let error = f.engine.load_model("m", long).expect_err("too long");
    assert!(error.message().contains("1048576 bytes, the limit is 1024"), "{error}");
    assert!(error.message().len() < 500);
}

#[test]
fn a_panic_while_loading_is_the_reason_and_the_model_can_be_reloaded() {
    let f = explicit(|root| {
        add_model(root, "m", &[1, 2], &format!("{CONFIG} version_policy {{ all {{}} }}"));
        fs::write(root.join("m/2/panics"), "").expect("file");
    });
    let error = f.engine.load_model("m", LoadOverrides::default()).expect_err("it panics");
    let text = "load failed for model 'm': version 2 is at UNAVAILABLE state: Internal: loading panicked: the model \
                panics when it is loaded;\n";
    assert_eq!(error.message(), text);
    eventually("nothing is loading", || {
        index(&f.engine).iter().all(|row| row.contains(":UNAVAILABLE:"))
    });
    fs::remove_file(f.root.path().join("m/2/panics")).expect("removed");
    f.engine.load_model("m", LoadOverrides::default()).expect("loads");
    assert!(f.engine.shutdown(std::time::Instant::now() + Duration::from_secs(20)));
}

#[test]
fn files_of_load_requests_are_removed_after_a_forced_exit() {
    let f = explicit(|root| add_model(root, "m", &[1], CONFIG));
    let config = r#"{"backend":"copy","max_batch_size":4,
        "input":[{"name":"IN","data_type":"TYPE_INT32","dims":[1]}],
        "output":[{"name":"OUT","data_type":"TYPE_INT32","dims":[1]}]}"#;
    let mut with_file = overrides(config.to_owned());
    with_file.files.insert("1/model".to_owned(), vec![1].into());
    f.engine.load_model("m", with_file).expect("loads");
    let folder = f.backend.loaded_from.lock().expect("no panic").clone();
    f.backend.gate.set(true);
    let model = f.engine.model("m", None).expect("ready");
    let answer = crate::fixture::start(&model, 1);
    drop(model);
    assert!(folder.join("model").is_file());
    assert!(!f.engine.shutdown(std::time::Instant::now()), "one request does not end");
    assert!(!folder.exists(), "the process would end now");
    f.backend.gate.set(false);
    answer.blocking_recv().expect("answered").expect("an answer");
}

/// Every part of a load fails in turn; each error knows the path of its file.
#[test]
fn errors_sent_to_clients_do_not_show_the_repository_path() {
    let with_labels = CONFIG.replace("name: \"OUT\"", "name: \"OUT\" label_filename: \"none\"");
    let f = explicit(|root| {
        add_model(root, "loading", &[1], CONFIG);
        fs::write(root.join("loading/1/fails_to_load"), "").expect("file");
        add_model(root, "completing", &[1], CONFIG);
        fs::write(root.join("completing/1/fails_to_complete"), "").expect("file");
        add_model(root, "starting", &[1], CONFIG);
        fs::write(root.join("starting/1/fails_to_start"), "").expect("file");
        add_model(root, "panicking", &[1], CONFIG);
        fs::write(root.join("panicking/1/panics"), "").expect("file");
        add_model(root, "labelling", &[1], &with_labels);
        add_model(root, "unreadable", &[1], CONFIG);
        fs::remove_file(root.join("unreadable/config.pbtxt")).expect("removed");
        fs::create_dir(root.join("unreadable/config.pbtxt")).expect("folder");
        add_model(root, "wrong", &[1], "nonsense {}");
        add_model(root, "empty", &[], CONFIG);
    });
    let places = [f.root.path().to_owned(), std::env::temp_dir()];
    let places = places.map(|place| place.display().to_string());
    let check = |text: &str| {
        assert!(!places.iter().any(|place| text.contains(place)), "a path of the server: {text}");
    };
    let names =
        ["loading", "completing", "starting", "panicking", "labelling", "unreadable", "wrong"];
    for name in names.into_iter().chain(["empty", "none"]) {
        let error = f.engine.load_model(name, LoadOverrides::default()).expect_err(name);
        check(error.message());
    }
    let loading = f.engine.load_model("loading", LoadOverrides::default()).expect_err("fails");
    assert!(loading.message().contains("loading/1/fails_to_load is there"), "{loading}");
    let mut with_files = overrides(
        r#"{"backend":"copy","input":[{"name":"IN","data_type":"TYPE_INT32","dims":[1]}],
            "output":[{"name":"OUT","data_type":"TYPE_INT32","dims":[1]}]}"#
            .to_owned(),
    );
    for file in ["1/fails_to_load", "1/fails_to_complete", "1/panics", "1/fails_to_start"] {
        with_files.files = [(file.to_owned(), vec![0].into())].into();
        check(f.engine.load_model("loading", with_files.clone()).expect_err(file).message());
    }
    index(&f.engine).iter().for_each(|row| check(row));
}

/// What a process has open: files, threads, temporary files of load requests.
fn open_things(models: &std::path::Path) -> [usize; 3] {
    let count = |folder: &std::path::Path| fs::read_dir(folder).expect("readable").count();
    let [files, threads] = ["/proc/self/fd", "/proc/self/task"].map(std::path::Path::new);
    [count(files), count(threads), count(models)]
}

#[test]
fn two_hundred_failed_loads_leave_no_files_or_memory() {
    let ways = ["fails_to_load", "fails_to_complete", "fails_to_start", "panics"];
    let f = explicit(|root| {
        add_model(root, "m", &[1], CONFIG);
        for way in ways {
            add_model(root, way, &[1], CONFIG);
            fs::write(root.join(way).join("1").join(way), "").expect("file");
        }
        add_model(root, "wrong", &[1], "nonsense {}");
    });
    let config = r#"{"backend":"copy","input":[{"name":"IN","data_type":"TYPE_INT32","dims":[1]}],
        "output":[{"name":"OUT","data_type":"TYPE_INT32","dims":[1]}]}"#;
    let with_files = |name: &str| {
        let mut all = overrides(config.to_owned());
        all.files.insert(format!("1/{name}"), vec![1; 1 << 20].into());
        all
    };
    f.engine.load_model("m", with_files("model")).expect("loads");
    let place = f.backend.loaded_from.lock().expect("no panic").clone();
    let place = place.ancestors().nth(2).expect("the folder of all such files").to_owned();
    let fail_all = || {
        for way in ways {
            f.engine.load_model(way, LoadOverrides::default()).expect_err(way);
            f.engine.load_model("m", with_files(way)).expect_err(way);
        }
        f.engine.load_model("wrong", LoadOverrides::default()).expect_err("nonsense");
    };
    // Allocator, thread stacks and logs have their size after some rounds.
    (0..50).for_each(|_| fail_all());
    eventually("the first have gone", || open_things(&place)[2] == 1);
    let (memory, things) = (resident(), open_things(&place));
    (0..200).for_each(|_| fail_all());
    eventually("nothing more is open", || open_things(&place) == things);
    let grown = resident().saturating_sub(memory);
    // A file of 1 MiB that stays behind in each round makes 200; tests beside this one take some memory, too.
    assert!(grown <= 100, "{grown} MiB more than {memory} after 200 rounds of failures");
    assert_eq!(f.backend.live_models.load(std::sync::atomic::Ordering::SeqCst), 1);
}
