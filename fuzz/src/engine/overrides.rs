//! Load requests that bring their own configuration and files.

use std::{
    env::temp_dir,
    fs,
    path::Path,
    sync::{Arc, LazyLock},
};

use arbitrary::{Arbitrary, Unstructured};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use galatea_config::{parse_text, to_json};
use galatea_engine::{ControlMode, Engine, LoadOverrides};
use galatea_protocol::http::decode_load;
use galatea_test_support::eventually;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    edits::{self, Edit},
    memory::{Bound, bounded},
    server::{add_model, engine},
};

/// A model has threads and statistics whatever its configuration says.
const BOUND: Bound = Bound { per_byte: 1024, base: 4 << 20 };

/// What nobody but an override may write.
const MARKER: &str = "galatea-fuzz-marker";

const CONFIG: &str = r#"
backend: "identity" max_batch_size: 4
input { name: "INPUT0" data_type: TYPE_FP32 dims: -1 }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: -1 label_filename: "labels.txt" }
instance_group { count: 1 kind: KIND_CPU }
parameters { key: "execute_delay_ms" value { string_value: "0" } }
"#;

struct Fixture {
    engine: Arc<Engine>,
    root: TempDir,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let root = tempfile::tempdir().expect("folder");
    add_model(root.path(), "m", CONFIG);
    Fixture { engine: engine(root.path(), ControlMode::Explicit), root }
});

#[derive(Arbitrary, Debug)]
struct Request {
    files: Vec<File>,
    config_edits: Vec<Edit>,
    has_config: bool,
    label_file: Option<Vec<Part>>,
    edits: Vec<Edit>,
}

#[derive(Arbitrary, Debug)]
struct File {
    path: Vec<Part>,
    content: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
enum Part {
    Up,
    Here,
    Root,
    Version,
    Labels,
    Marker,
    Text(String),
}

/// Panics when the load panics, writes outside of the model's folder, or leaves the model half there.
pub fn run(data: &[u8]) {
    let Ok(request) = Unstructured::new(data).arbitrary::<Request>() else { return };
    let mut body = request.body();
    edits::apply(&mut body, &request.edits);
    let Ok(load) = decode_load(&body) else { return };
    // What the backend is told to wait is no finding.
    if load
        .config
        .as_ref()
        .is_some_and(|config| config.contains("delay") && !config.contains("\"0\""))
    {
        return;
    }
    let fixture = &*FIXTURE;
    bounded(body.len(), BOUND, || {
        let overrides = LoadOverrides { config: load.config, files: load.files };
        let is_loaded = fixture.engine.load_model("m", overrides).is_ok();
        assert_eq!(fixture.engine.model("m", None).is_ok(), is_loaded);
        fixture.engine.unload_model("m", false).expect("unloads");
        eventually("the model has ended", || {
            let index = fixture.engine.repository_index(false).unwrap_or_default();
            index.iter().all(|row| matches!(row.state, None | Some("UNAVAILABLE")))
        });
    });
    assert_untouched(fixture.root.path());
}

fn assert_untouched(root: &Path) {
    for folder in [root, &root.join("m"), &root.join("m/1"), &temp_dir(), Path::new("/")] {
        assert!(!folder.join(MARKER).exists(), "written outside, to {}", folder.display());
    }
    let config = fs::read_to_string(root.join("m/config.pbtxt")).expect("configuration");
    assert_eq!(config, CONFIG);
}

impl Request {
    fn body(&self) -> Vec<u8> {
        let mut parameters = serde_json::Map::new();
        for file in &self.files {
            let name = format!("file:{}", path(&file.path));
            parameters.insert(name, json!(STANDARD.encode(&file.content)));
        }
        if self.has_config {
            let labels = self.label_file.as_deref().map_or("labels.txt".to_owned(), path);
            let raw = parse_text(CONFIG).expect("a configuration");
            let text =
                to_json(&raw).replace("labels.txt", &json!(labels).to_string().replace('"', ""));
            let mut text = text.into_bytes();
            edits::apply(&mut text, &self.config_edits);
            parameters.insert("config".to_owned(), json!(String::from_utf8_lossy(&text)));
        }
        serde_json::to_vec(&json!({ "parameters": parameters })).expect("JSON")
    }
}

fn path(parts: &[Part]) -> String {
    let parts: Vec<&str> = parts.iter().map(Part::text).collect();
    parts.join("/")
}

impl Part {
    fn text(&self) -> &str {
        match self {
            Self::Up => "..",
            Self::Here => ".",
            Self::Root => "",
            Self::Version => "1",
            Self::Labels => "labels.txt",
            Self::Marker => MARKER,
            Self::Text(text) => text,
        }
    }
}
