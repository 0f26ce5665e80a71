//! SageMaker's many-model mode.

use std::{fs, path::Path, sync::Barrier, thread};

use galatea_engine::ControlMode;
use galatea_frontend::{FrontEnd, RestrictedApis};
use galatea_http::{CloudFrontEnd, CloudInference, HttpOptions, SageMakerModels, serve_cloud};
use galatea_test_support::eventually;
use tempfile::TempDir;

use crate::{
    Fixture, any_port,
    client::{Client, Reply, fp32},
    gate,
};

const CONFIG: &str = "backend: \"failing\" input { name: \"INPUT0\" data_type: TYPE_FP32 dims: -1 } \
                      output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: -1 }";
const TARGET: &str = "X-Amzn-SageMaker-Target-Model";

struct SageMaker {
    fixture: Fixture,
    server: FrontEnd,
    models: TempDir,
}

impl SageMaker {
    fn start(control_mode: ControlMode, options: &HttpOptions) -> Self {
        let fixture = Fixture::with(control_mode, HttpOptions::default());
        let models = tempfile::tempdir().expect("folder");
        let platform = CloudFrontEnd::SageMaker {
            pings_liveness: true,
            model: "none".to_owned(),
            inference: CloudInference::Infer,
            models: SageMakerModels::below(models.path()),
        };
        let server = serve_cloud(any_port(), &fixture.engine, options, platform).expect("serves");
        Self { fixture, server, models }
    }

    fn client(&self) -> Client {
        Client::connect(self.server.local_addr().expect("TCP"))
    }

    fn url(&self, tail: &str) -> String {
        self.models.path().join(tail).display().to_string()
    }

    fn unpack(&self, tail: &str, config: &str) -> String {
        write(&self.models.path().join(tail), config);
        self.url(tail)
    }
}

fn write(folder: &Path, config: &str) {
    fs::create_dir_all(folder.join("1")).expect("folder");
    fs::write(folder.join("config.pbtxt"), config).expect("written");
}

fn load(client: &mut Client, name: &str, url: &str) -> Reply {
    client.post("/models", format!(r#"{{"model_name":"{name}","url":"{url}"}}"#))
}

fn delete(client: &mut Client, name: &str) -> Reply {
    client.request("DELETE", &format!("/models/{name}"), &[], b"")
}

fn explicit() -> SageMaker {
    SageMaker::start(ControlMode::Explicit, &HttpOptions::default())
}

#[test]
fn models_are_loaded_and_unloaded_by_url() {
    let sagemaker = explicit();
    let (one, two) = (sagemaker.unpack("a/model", CONFIG), sagemaker.unpack("b/model/in", CONFIG));
    let two = two.trim_end_matches("/in");
    let mut client = sagemaker.client();
    client.get("/models").check(200, "text/plain", r#"{"models":[]}"#);
    load(&mut client, "aaa", &one).check(200, "text/plain", "");
    load(&mut client, "bbb", two).check(200, "text/plain", "");
    let (place, other) = (sagemaker.url("a"), two);
    let first = format!(r#"{{"modelName":"aaa","modelUrl":"{place}"}}"#);
    client.get("/models/aaa").check(200, "text/plain", &first);
    let list = format!(r#"{{"models":[{first},{{"modelName":"bbb","modelUrl":"{other}"}}]}}"#);
    client.get("/models/").check(200, "text/plain", &list);
    for name in ["aaa", "bbb"] {
        let reply = client.post(&format!("/models/{name}/invoke"), fp32("[1]", 1));
        assert_eq!((reply.status, reply.header("Content-Type")), (200, Some("application/json")));
        assert!(reply.text().contains(&format!(r#""model_name":"{name}""#)), "{}", reply.text());
    }
    delete(&mut client, "aaa").check(200, "text/plain", "");
    for reply in [
        delete(&mut client, "aaa"),
        client.get("/models/aaa"),
        client.post("/models/aaa/invoke", fp32("[1]", 1)),
        delete(&mut client, ""),
    ] {
        reply.check(404, "text/plain", "");
    }
    load(&mut client, "aaa", &one).check(200, "text/plain", "");
    assert_eq!(client.post("/models/aaa/invoke", fp32("[1]", 1)).status, 200);
}

#[test]
fn a_model_keeps_its_archive_name_and_is_called_by_its_sagemaker_name() {
    let sagemaker = explicit();
    let url = sagemaker.unpack("a/model", CONFIG);
    let other = sagemaker.unpack("b/model", CONFIG);
    let mut client = sagemaker.client();
    let body = format!(r#"{{"model_name":"hash","url":"{url}"}}"#);
    let target = [(TARGET, "m.tar.gz")];
    assert_eq!(client.request("POST", "/models", &target, body.as_bytes()).status, 200);
    load(&mut client, "other", &other).check(200, "text/plain", "");
    let other = [(TARGET, "other")];
    let reply = client.request("POST", "/models/hash/invoke", &other, fp32("[1]", 1).as_bytes());
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("does not name the model loaded"), "{}", reply.text());
    for headers in [&target[..], &[]] {
        let body = fp32("[1]", 1);
        let reply = client.request("POST", "/models/hash/invoke", headers, body.as_bytes());
        assert!(reply.text().contains(r#""model_name":"m.tar.gz""#), "{}", reply.text());
    }
    assert!(client.get("/models").text().contains(r#""modelName":"hash""#));
    delete(&mut client, "hash").check(200, "text/plain", "");
}

#[test]
fn a_taken_name_or_folder_is_a_conflict() {
    let sagemaker = explicit();
    let (one, two) = (sagemaker.unpack("a/model", CONFIG), sagemaker.unpack("b/model", CONFIG));
    let mut client = sagemaker.client();
    load(&mut client, "m", &one).check(200, "text/plain", "");
    let registered = format!(
        r#"{{"error":"model repository '{}' has already been registered"}}"#,
        sagemaker.url("a")
    );
    load(&mut client, "m", &one).check(409, "text/plain", &registered);
    load(&mut client, "n", &one).check(409, "text/plain", &registered);
    let taken = r#"{"error":"failed to register 'm', there is a conflicting mapping for 'm'"}"#;
    load(&mut client, "m", &two).check(409, "text/plain", taken);
    let body = format!(r#"{{"model_name":"m","url":"{two}"}}"#);
    let reply = client.request("POST", "/models", &[(TARGET, "other")], body.as_bytes());
    reply.check(409, "text/plain", taken);
    load(&mut client, "n", &two).check(200, "text/plain", "");
}

#[test]
fn one_of_many_simultaneous_loads_succeeds() {
    let sagemaker = explicit();
    let url = sagemaker.unpack("a/model", CONFIG);
    let mut clients: Vec<Client> = (0..8).map(|_| sagemaker.client()).collect();
    let (start, url) = (Barrier::new(8), &*url);
    let each = |client| {
        start.wait();
        load(client, "m", url).status
    };
    let mut statuses: Vec<u16> = thread::scope(|scope| {
        let threads: Vec<_> =
            clients.iter_mut().map(|client| scope.spawn(|| each(client))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
}

#[test]
fn a_failed_load_frees_name_and_folder() {
    let sagemaker = explicit();
    let broken = sagemaker.unpack("a/model", "backend: \"nope\"");
    let mut client = sagemaker.client();
    for _ in 0..2 {
        let reply = load(&mut client, "m", &broken);
        assert_eq!((reply.status, reply.header("Content-Type")), (400, Some("text/plain")));
        assert!(reply.text().contains("load failed for model 'm'"), "{}", reply.text());
    }
    client.get("/models").check(200, "text/plain", r#"{"models":[]}"#);
    assert!(sagemaker.fixture.engine.is_ready(), "nobody can ask for it");
    let good = sagemaker.unpack("a/model", CONFIG);
    load(&mut client, "m", &good).check(200, "text/plain", "");
}

#[test]
fn a_load_continues_after_its_client_disconnects() {
    let sagemaker = explicit();
    let url = sagemaker.unpack("a/model", gate::CONFIG);
    let mut client = sagemaker.client();
    let loads = &sagemaker.fixture.gates.loads;
    loads.shut();
    let mut gone = sagemaker.client();
    gone.send_post("/models", &format!(r#"{{"model_name":"m","url":"{url}"}}"#));
    loads.wait_for_one();
    assert_eq!(load(&mut client, "m", &url).status, 409, "its name is taken at once");
    drop(gone);
    loads.open();
    eventually("the model is loaded", || client.get("/models/m").status == 200);
    assert_eq!(client.post("/models/m/invoke", fp32("[1]", 1)).status, 200);
    delete(&mut client, "m").check(200, "text/plain", "");
    client.get("/models").check(200, "text/plain", r#"{"models":[]}"#);
}

#[test]
fn urls_outside_the_folder_and_invalid_bodies_are_refused() {
    let sagemaker = explicit();
    let secret = tempfile::tempdir().expect("folder");
    write(&secret.path().join("model"), CONFIG);
    let link = sagemaker.models.path().join("link");
    std::os::unix::fs::symlink(secret.path(), &link).expect("link");
    let mut client = sagemaker.client();
    let secret = secret.path().join("model").display().to_string();
    let linked = sagemaker.url("link/model");
    for url in ["/proc/self/root", "/dev/", "/etc", "../../proc", "model", &secret, &linked] {
        let text = format!(
            r#"{{"error":"failed to register '{url}', a model must be in a folder below '{}'"}}"#,
            sagemaker.models.path().display()
        );
        load(&mut client, "m", url).check(400, "text/plain", &text);
    }
    let good = sagemaker.unpack("a/model", CONFIG);
    for name in ["..", "a/b", "", &"x".repeat(300)] {
        assert_eq!(load(&mut client, name, &good).status, 400, "{name}");
    }
    for body in ["x", "[]", "5", "{}", "", r#"{"model_name":1}"#, r#"{"model_name":"m","url":5}"#] {
        assert_eq!(client.post("/models", body).status, 400, "{body}");
    }
    client.get("/models").check(200, "text/plain", r#"{"models":[]}"#);
    load(&mut client, "m", &good).check(200, "text/plain", "");
}

#[test]
fn out_of_memory_has_its_own_status() {
    let sagemaker = explicit();
    let text = |text: &str| {
        format!("{CONFIG} parameters {{ key: \"fail\" value {{ string_value: \"{text}\" }} }}")
    };
    let url = sagemaker.unpack("a/model", &text("execute"));
    // The file that it lacks has the name of an error, which the text of the failure quotes.
    let oom = sagemaker.unpack("b/model", &CONFIG.replace("failing", "CUDA out of memory"));
    let mut client = sagemaker.client();
    load(&mut client, "m", &url).check(200, "text/plain", "");
    let failed = client.post("/models/m/invoke", fp32("[1]", 1));
    assert_eq!(failed.status, 400, "{}", failed.text());
    let failed = load(&mut client, "oom", &oom);
    assert_eq!(failed.status, 507, "{}", failed.text());
    let body = fp32("[1]", 1).replace("INPUT0", "out of memory");
    let failed = client.post("/models/m/invoke", body);
    assert_eq!(failed.status, 507, "{}", failed.text());
}

#[test]
fn the_calls_need_explicit_control_and_respect_restrictions() {
    let sagemaker = SageMaker::start(ControlMode::None, &HttpOptions::default());
    let url = sagemaker.unpack("a/model", CONFIG);
    let text = r#"{"error":"repository registration is not allowed if model control mode is not EXPLICIT"}"#;
    load(&mut sagemaker.client(), "m", &url).check(400, "text/plain", text);

    let mut restricted_apis = RestrictedApis::default();
    restricted_apis.restrict("inference,model-repository:key=secret", "api", "").expect("a rule");
    let options = HttpOptions { restricted_apis, ..Default::default() };
    let sagemaker = SageMaker::start(ControlMode::Explicit, &options);
    let mut client = sagemaker.client();
    assert_eq!(client.get("/ping").status, 200);
    for reply in [
        client.get("/models"),
        client.get("/models/m"),
        load(&mut client, "m", "/x"),
        delete(&mut client, "m"),
        client.post("/models/m/invoke", "{}"),
    ] {
        assert_eq!(reply.status, 403);
    }
}
