//! Repository agents in an engine: what they replace is loaded, and they learn what becomes of it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use galatea_engine::{
    AgentAnswer, AgentContext, ControlMode, EngineOptions, FolderLease, LoadEvent, LoadFollower,
    LoadOverrides, RepositoryAgent,
};
use galatea_types::Result;

use crate::fixture::{CONFIG, Fixture, add_model, ask, eventually, fixture_with, index, touch};

/// Puts a copy of the model in its place, with the version and the file that the agent's parameters name.
#[derive(Clone, Debug, Default)]
struct Copying {
    told: Arc<Mutex<Vec<LoadEvent>>>,
    folder: Arc<Mutex<PathBuf>>,
}

impl LoadFollower for Copying {
    fn on_event(&self, event: LoadEvent) {
        self.told.lock().expect("no panic").push(event);
    }
}

impl RepositoryAgent for Copying {
    fn on_load(&self, model: &AgentContext<'_>) -> Result<AgentAnswer> {
        let folder = tempfile::tempdir().expect("folder");
        let version = folder.path().join(&model.parameters["version"]);
        fs::create_dir(&version).expect("folder");
        if let Some(file) = model.parameters.get("file") {
            fs::write(version.join(file), "").expect("written");
        }
        let config = fs::read_to_string(model.folder.join("config.pbtxt")).expect("readable");
        fs::write(folder.path().join("config.pbtxt"), config).expect("written");
        *self.folder.lock().expect("no panic") = folder.path().to_owned();
        let (folder, follower) = (FolderLease::new(folder), Box::new(self.clone()));
        Ok(AgentAnswer { folder: Some(folder), follower: Some(follower) })
    }
}

fn config(parameters: &[(&str, &str)]) -> String {
    let parameters =
        parameters.iter().map(|(k, v)| format!("parameters {{ key: '{k}' value: '{v}' }}"));
    let parameters = parameters.collect::<String>();
    format!("{CONFIG} model_repository_agents {{ agents {{ name: 'copying' {parameters} }} }}")
}

fn engine(agent: &Copying, fill: impl FnOnce(&Path)) -> Fixture {
    let control_mode = ControlMode::Explicit;
    let mut options = EngineOptions { control_mode, ..EngineOptions::default() };
    options.agents.register("copying", Arc::new(agent.clone()));
    fixture_with(options, fill)
}

impl Copying {
    fn told(&self) -> Vec<LoadEvent> {
        self.told.lock().expect("no panic").clone()
    }

    fn has_folder(&self) -> bool {
        self.folder.lock().expect("no panic").exists()
    }
}

#[test]
fn the_folder_made_by_an_agent_is_loaded_and_the_agent_sees_the_unload() {
    let agent = Copying::default();
    let f = engine(&agent, |root| add_model(root, "m", &[1], &config(&[("version", "7")])));
    f.engine.load_model("m", LoadOverrides::default()).expect("loaded");
    assert_eq!(agent.told(), [LoadEvent::LoadComplete]);
    assert_eq!(index(&f.engine), ["m:7:READY:"]);
    let folder = agent.folder.lock().expect("no panic").clone();
    assert_eq!(*f.backend.loaded_from.lock().expect("no panic"), folder.join("7"));
    ask(&f.engine, 1).expect("answered");
    f.engine.unload_model("m", false).expect("unloaded");
    let all = [LoadEvent::LoadComplete, LoadEvent::Unload, LoadEvent::UnloadComplete];
    eventually("the agent sees the unload", || agent.told() == all && !agent.has_folder());
}

#[test]
fn an_agent_follows_each_load_separately() {
    let agent = Copying::default();
    let f = engine(&agent, |root| add_model(root, "m", &[1], &config(&[("version", "1")])));
    f.engine.load_model("m", LoadOverrides::default()).expect("loaded");
    touch(&f.root.path().join("m"), "1");
    f.engine.load_model("m", LoadOverrides::default()).expect("loaded");
    eventually("the agent sees the unload of what was ready before", || agent.told().len() == 4);
    assert_eq!(agent.told()[..2], [LoadEvent::LoadComplete; 2]);
    assert_eq!(agent.told()[2..], [LoadEvent::Unload, LoadEvent::UnloadComplete]);
    assert!(agent.has_folder(), "the new one");
}

#[test]
fn an_agent_is_told_of_a_failed_load_and_its_folder_is_removed() {
    let agent = Copying::default();
    let failing = config(&[("version", "1"), ("file", "fails_to_load")]);
    let f = engine(&agent, |root| add_model(root, "m", &[1], &failing));
    let error = f.engine.load_model("m", LoadOverrides::default()).expect_err("fails");
    assert!(error.message().contains("m/1/fails_to_load is there"), "{error}");
    assert_eq!(agent.told(), [LoadEvent::LoadFail]);
    assert!(!agent.has_folder());
}
