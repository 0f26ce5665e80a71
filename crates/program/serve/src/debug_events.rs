//! Writes events inside the server as lines of JSON, for tests. Off, unless an environment variable names the destination.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
    thread,
};

use anyhow::{Context, Result};
use galatea_telemetry::logger::{self, LogObserver};
use galatea_types::{DebugEvent, DebugEventReader, DebugEvents};
use serde_json::{Map, Value, json};

use crate::options::ServeOptions;

/// Environment variable that names a file or a pipe.
const VARIABLE: &str = "GALATEA_DEBUG_EVENTS";

/// Reports changes of the log settings as long as it lives.
pub struct LogChanges(DebugEvents);

impl LogObserver for LogChanges {
    fn log_changed(&self) {
        self.0.report(|| DebugEvent::SettingsChanged { settings: "log" });
    }
}

/// Writes events to the variable's file, if it is set.
///
/// # Errors
/// If the file cannot be opened, or the thread that writes cannot be started.
pub fn open(options: &mut ServeOptions) -> Result<Option<Arc<LogChanges>>> {
    let Some(path) = options.runtimes.environment.path(VARIABLE) else { return Ok(None) };
    let file = open_file(&path)
        .with_context(|| format!("failed to open '{}', which {VARIABLE} names", path.display()))?;
    log::warn!("events for tests are written to '{}', as {VARIABLE} asks for", path.display());
    let events = DebugEvents::on();
    let reader = events.subscribe();
    let writer = thread::Builder::new().name("debug events".to_owned());
    writer.spawn(move || write(reader, file)).context("failed to start a thread")?;
    options.engine.execution.events = events.clone();
    let changes = Arc::new(LogChanges(events));
    let observer: Arc<dyn LogObserver> = changes.clone();
    logger::observe(Arc::downgrade(&observer));
    Ok(Some(changes))
}

/// Opens for reading too: the start does not wait for a reader of a pipe, and a later reader finds it open.
fn open_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path)
}

/// Writes events. The reader may be slow, or gone: this thread waits for it, and the server continues.
fn write(events: DebugEventReader, mut file: File) {
    for event in events {
        if let Err(error) = file.write_all(format!("{}\n", line(&event)).as_bytes()) {
            return log::error!("events for tests can no longer be written: {error}");
        }
    }
}

fn line(event: &DebugEvent) -> Value {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    set("event", event.kind().into());
    if let Some(instance) = event.instance() {
        set("model", instance.model.as_ref().into());
        set("version", instance.version.into());
        set("instance", instance.instance.clone().into());
    }
    match event {
        DebugEvent::BatchFormed { requests, .. } | DebugEvent::ExecutionBegan { requests, .. } => {
            set("requests", json!(requests));
        }
        DebugEvent::RestartPlanned { wait, .. } => {
            set("wait_seconds", wait.as_secs_f64().into());
        }
        DebugEvent::SettingsChanged { settings } => {
            set("settings", (*settings).into());
        }
        DebugEvent::InstanceIdle { .. } | DebugEvent::WorkerRestarted { .. } => {}
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use galatea_types::InstanceName;

    use super::*;

    #[test]
    fn each_event_is_a_line_that_begins_with_its_kind() {
        let of = || InstanceName { model: "m".into(), version: 2, instance: "m_0_1".to_owned() };
        let about = r#""model":"m","version":2,"instance":"m_0_1""#;
        let wait = Duration::from_millis(100);
        for (event, expected) in [
            (
                DebugEvent::ExecutionBegan { instance: of(), requests: 3 },
                format!(r#"{{"event":"execution_began",{about},"requests":3}}"#),
            ),
            (
                DebugEvent::BatchFormed { instance: of(), requests: 3 },
                format!(r#"{{"event":"batch_formed",{about},"requests":3}}"#),
            ),
            (
                DebugEvent::RestartPlanned { instance: of(), wait },
                format!(r#"{{"event":"restart_planned",{about},"wait_seconds":0.1}}"#),
            ),
            (
                DebugEvent::WorkerRestarted { instance: of() },
                format!(r#"{{"event":"worker_restarted",{about}}}"#),
            ),
            (
                DebugEvent::InstanceIdle { instance: of() },
                format!(r#"{{"event":"instance_idle",{about}}}"#),
            ),
            (
                DebugEvent::SettingsChanged { settings: "log" },
                r#"{"event":"settings_changed","settings":"log"}"#.to_owned(),
            ),
        ] {
            let expected: Value = serde_json::from_str(&expected).expect("JSON");
            assert_eq!(line(&event), expected);
        }
    }
}
