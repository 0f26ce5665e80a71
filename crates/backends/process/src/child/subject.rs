//! The model that a child loads or completes, with the backend constructed.

use std::sync::Arc;

use galatea_backend::{
    Backend, CompletionContext, InstanceAlarm, InstanceSpec, LoadContext, Model, ModelInstance,
    ServerAccess,
};
use galatea_config::{
    CheckContext, ConfigDraft, InstanceGroup, ModelConfig, RawModelConfig, parse_json, to_json,
    with_preferred_group,
};
use galatea_types::{Error, Result};

use crate::messages::{InstancePlace, Subject};

/// A loaded model and its instance, which is dropped first.
pub(super) struct Loaded {
    pub instance: Box<dyn ModelInstance>,
    _model: Box<dyn Model>,
    pub config: Arc<ModelConfig>,
    pub version: i64,
}

/// Returns the configuration as the backend completes it, as JSON.
pub(super) fn complete(backend: &dyn Backend, subject: &Subject) -> Result<String> {
    let config: ConfigDraft = raw_config(subject)?.into();
    let context = CompletionContext {
        model_name: &subject.model_name,
        model_dir: &subject.model_dir,
        version: subject.version,
        version_dir: &subject.version_dir,
        backend_config: &subject.backend_config,
        paths: &subject.paths(),
    };
    let preferred = backend.preferred_groups(&config, &context);
    let completed = backend.complete_config(config, &context)?.into_raw();
    Ok(to_json(&with_preferred_group(completed, &preferred, &[])))
}

pub(super) fn load(
    backend: &dyn Backend,
    subject: &Subject,
    instance: &InstancePlace,
) -> Result<Loaded> {
    let config = Arc::new(checked(raw_config(subject)?, instance)?);
    let group = config.instance_groups().first().cloned();
    let group = group.unwrap_or_else(|| InstanceGroup::of_cpu(config.name()));
    let model = backend.load(LoadContext {
        config: config.clone(),
        version: subject.version,
        model_dir: subject.model_dir.clone(),
        version_dir: subject.version_dir.clone(),
        backend_config: subject.backend_config.clone(),
        paths: subject.paths(),
        server: ServerAccess::default(),
        devices: galatea_backend::Devices::default(),
    })?;
    let instance = model.new_instance(&InstanceSpec {
        name: instance.name.clone(),
        kind: group.kind,
        group: Arc::new(group),
        device_id: instance.device_id,
        index: instance.index,
        // A failed instance ends the process, which the server watches.
        alarm: InstanceAlarm::default(),
    })?;
    Ok(Loaded { instance, _model: model, config, version: subject.version })
}

fn raw_config(subject: &Subject) -> Result<RawModelConfig> {
    parse_json(&subject.config.to_string())
}

/// Checks a configuration that the server has checked, to get the form that backends take.
fn checked(raw: RawModelConfig, instance: &InstancePlace) -> Result<ModelConfig> {
    let name = raw.name.clone();
    let gpus = [instance.device_id];
    let context = CheckContext {
        directory_name: &name,
        supports_gpus: true,
        available_gpus: if instance.on_gpu { &gpus } else { &[] },
        ..CheckContext::default()
    };
    ModelConfig::check(raw, &context)
        .map_err(|error| Error::internal(format!("the configuration changed on its way: {error}")))
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test fails by panicking")]
mod tests {
    use galatea_backend::testing::{Fixture, Host, instance_spec, load_context};
    use galatea_config::InstanceKind;
    use serde_json::Value;

    use super::*;
    use crate::{isolation::Isolation, model::IsolatedModel, start::ChildProgram};

    /// Returns the configuration that the child of this instance works with, and the instance in its message.
    fn told(spec: &InstanceSpec) -> (ModelConfig, InstancePlace) {
        let text = "name: 'm' backend: 'b' max_batch_size: 4
             parameters { key: 'isolation' value { string_value: 'process' } }
             instance_group [ { kind: KIND_GPU gpus: [ 0, 3 ] count: 2 }, { kind: KIND_CPU count: 5 } ]";
        let config = Host { gpus: &[0, 3], ..Host::default() }.configure(text).expect("valid");
        let context = load_context(&Fixture::new(config, "unused"));
        let isolation = Isolation::read(context.config.parameters(), &context.backend_config);
        let child = ChildProgram::new("unused", [], []);
        let isolation = isolation.expect("read");
        let model = IsolatedModel::new(context, Value::Null, child, isolation).expect("made");
        // As it travels.
        let sent = serde_json::to_string(&model.subject(spec)).expect("JSON");
        let subject: Subject = serde_json::from_str(&sent).expect("as it was written");
        let raw = raw_config(&subject).expect("a configuration");
        let place = subject.instance.expect("an instance");
        (checked(raw, &place).expect("valid"), place)
    }

    #[test]
    fn a_child_receives_only_its_own_instance() {
        let gpu = InstanceSpec { kind: InstanceKind::Gpu, device_id: 3, ..instance_spec("m", 1) };
        let (config, place) = told(&gpu);
        let group = config.instance_groups().first().expect("one");
        assert_eq!((group.kind, &group.gpus[..], group.count), (InstanceKind::Gpu, &[3][..], 1));
        assert_eq!((place.device_id, place.index, &place.name), (3, 1, &gpu.name));
        assert_eq!((config.instance_groups().len(), config.max_batch_size()), (1, 4));
        let (config, place) = told(&instance_spec("m", 2));
        let group = config.instance_groups().first().expect("one");
        assert_eq!((group.kind, &group.gpus[..], group.count), (InstanceKind::Cpu, &[][..], 1));
        assert_eq!(place.index, 2);
    }
}
