//! Instance groups: where instances run.

use galatea_proto::inference::{
    ModelInstanceGroup, ModelRateLimiter, model_instance_group::Kind, model_rate_limiter::Resource,
};

use super::{
    at::{About, At},
    context::CheckContext,
};
use crate::{
    FieldPath, InstanceGroup, InstanceKind, MissingGpus, NormalizedConfig, RateLimiter,
    RateLimiterResource, RawModelConfig,
};

type Result<T> = std::result::Result<T, At<InstanceGroupError>>;

/// What is wrong with the instance groups of a model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InstanceGroupError {
    /// There is none, which only a configuration without defaults can lack.
    #[error("must specify one or more 'instance group's for {model}")]
    None {
        /// The model.
        model: String,
    },
    /// Its kind does not go with its GPUs.
    #[error("instance group {group} of model {model} {problem}")]
    Kind {
        /// The group.
        group: String,
        /// The model.
        model: String,
        /// What is wrong.
        problem: KindProblem,
    },
    /// Profiles are for TensorRT.
    #[error(
        "instance group {group} of model {model} and platform {platform}specifies profile field which is \
         only supported for TensorRT models"
    )]
    ProfileWithoutTensorrt {
        /// The group.
        group: String,
        /// The model.
        model: String,
        /// Its platform.
        platform: String,
    },
    /// A profile without a name.
    #[error("profile name must not be empty")]
    EmptyProfile,
    /// A profile that is no number.
    #[error(
        "instance group {group} of model {model} and platform tensorrt_plan specifies invalid profile \
         {profile}. The field should contain the string representation of a non-negative integer."
    )]
    InvalidProfile {
        /// The group.
        group: String,
        /// The model.
        model: String,
        /// The profile.
        profile: String,
    },
}

/// How a kind does not go with the GPUs of a group or of the server.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum KindProblem {
    /// GPUs on a group that does not run on them.
    #[error("has kind {kind} but specifies one or more GPUs")]
    GpusNotUsed {
        /// The kind, as it is written.
        kind: &'static str,
    },
    /// The server runs nothing on GPUs.
    #[error("has kind KIND_GPU but server does not support GPUs")]
    NoSupport,
    /// The server has none.
    #[error("has kind KIND_GPU but no GPUs are available")]
    NoneAvailable,
    /// The group names none.
    #[error("has kind KIND_GPU but specifies no GPUs")]
    NoneNamed,
    /// The server does not have this one, or cannot use it.
    #[error(
        "specifies invalid or unsupported gpu id {gpu}. GPUs with at least the minimum required CUDA compute \
         compatibility of {min_compute_capability:.6} are: {available}"
    )]
    UnknownGpu {
        /// The index in the configuration.
        gpu: i32,
        /// The server's limit.
        min_compute_capability: f64,
        /// The indices of those there are, with commas between.
        available: String,
    },
    /// AUTO, which defaults replace.
    #[error("has unexpected kind KIND_AUTO")]
    Auto,
    /// A number that is no kind.
    #[error("has unexpected kind {0}")]
    Unknown(i32),
}

impl KindProblem {
    fn field(&self, group: &ModelInstanceGroup) -> FieldPath {
        match self {
            Self::GpusNotUsed { .. } => "gpus".into(),
            Self::UnknownGpu { gpu, .. } => {
                let index = group.gpus.iter().position(|g| g == gpu).unwrap_or_default();
                FieldPath::from("gpus").index(index)
            }
            _ => "kind".into(),
        }
    }
}

pub(super) fn check(
    config: &NormalizedConfig,
    context: &CheckContext<'_>,
) -> Result<Vec<InstanceGroup>> {
    let raw = &config.raw;
    if raw.instance_group.is_empty() {
        return Err(InstanceGroupError::None { model: raw.name.clone() }.at("instance_group"));
    }
    let groups = raw.instance_group.iter().enumerate().map(|(index, group)| {
        let inside = |error: At<_>| error.inside(FieldPath::from("instance_group").index(index));
        let is_automatic = config.automatic_cpu_groups.contains(&index);
        let stands_for_gpus = runs_on_cpu_instead(group, is_automatic, context);
        let kind = match stands_for_gpus {
            true => InstanceKind::Cpu,
            false => check_kind(group, raw, context).map_err(inside)?,
        };
        check_profiles(group, raw).map_err(inside)?;
        let count = u32::try_from(group.count).unwrap_or_default().max(1);
        let gpus = group.gpus.iter().filter_map(|&g| u32::try_from(g).ok());
        Ok(InstanceGroup {
            name: group.name.clone(),
            kind,
            count: if stands_for_gpus { on_each_gpu(count, group) } else { count },
            gpus: if stands_for_gpus { Vec::new() } else { gpus.collect() },
            stands_for_gpus,
            is_passive: group.passive,
            is_count_default: config.default_count_groups.contains(&index),
            rate_limiter: group.rate_limiter.as_ref().map(rate_limiter),
            host_policy: group.host_policy.clone(),
        })
    });
    groups.collect()
}

/// Whether a group asks for GPUs of which none is there, where such groups run on the CPU. `is_automatic`: its kind was
/// AUTO. One that could run on a part of its GPUs is no such group: it would become slow without anyone seeing why.
fn runs_on_cpu_instead(
    group: &ModelInstanceGroup,
    is_automatic: bool,
    context: &CheckContext<'_>,
) -> bool {
    let is_available =
        |&gpu: &i32| u32::try_from(gpu).is_ok_and(|g| context.available_gpus.contains(&g));
    let has_gpu = match &group.gpus[..] {
        [] => !context.available_gpus.is_empty(),
        gpus => gpus.iter().any(is_available),
    };
    let asks_for_gpus = match Kind::try_from(group.kind) {
        Ok(Kind::Gpu) => true,
        Ok(Kind::Cpu) => is_automatic && !group.gpus.is_empty(),
        _ => false,
    };
    context.missing_gpus == MissingGpus::UseCpu && asks_for_gpus && !has_gpu
}

/// The instances of a group on all the GPUs that it names.
fn on_each_gpu(count: u32, group: &ModelInstanceGroup) -> u32 {
    count.saturating_mul(u32::try_from(group.gpus.len().max(1)).unwrap_or(u32::MAX))
}

fn rate_limiter(limiter: &ModelRateLimiter) -> RateLimiter {
    let resource = |r: &Resource| RateLimiterResource {
        name: r.name.as_str().into(),
        is_global: r.global,
        count: r.count,
    };
    RateLimiter {
        resources: limiter.resources.iter().map(resource).collect(),
        priority: limiter.priority.max(1),
    }
}

fn check_kind(
    group: &ModelInstanceGroup,
    raw: &RawModelConfig,
    context: &CheckContext<'_>,
) -> Result<InstanceKind> {
    kind(group, context).map_err(|problem| {
        let field = problem.field(group);
        let (group, model) = (group.name.clone(), raw.name.clone());
        InstanceGroupError::Kind { group, model, problem }.at(field)
    })
}

fn kind(
    group: &ModelInstanceGroup,
    context: &CheckContext<'_>,
) -> std::result::Result<InstanceKind, KindProblem> {
    let has_gpus = !group.gpus.is_empty();
    match Kind::try_from(group.kind) {
        Ok(kind @ (Kind::Model | Kind::Cpu)) if has_gpus => {
            Err(KindProblem::GpusNotUsed { kind: kind.as_str_name() })
        }
        Ok(Kind::Model) => Ok(InstanceKind::Model),
        Ok(Kind::Cpu) => Ok(InstanceKind::Cpu),
        Ok(Kind::Gpu) => gpu_problem(&group.gpus, context).map_or(Ok(InstanceKind::Gpu), Err),
        Ok(Kind::Auto) => Err(KindProblem::Auto),
        Err(_) => Err(KindProblem::Unknown(group.kind)),
    }
}

fn gpu_problem(gpus: &[i32], context: &CheckContext<'_>) -> Option<KindProblem> {
    let available = context.available_gpus;
    if !context.supports_gpus {
        return Some(KindProblem::NoSupport);
    }
    if gpus.is_empty() {
        let is_any = !available.is_empty();
        return Some(if is_any { KindProblem::NoneNamed } else { KindProblem::NoneAvailable });
    }
    let is_unknown = |&&gpu: &&i32| !u32::try_from(gpu).is_ok_and(|g| available.contains(&g));
    let gpu = *gpus.iter().find(is_unknown)?;
    let available = available.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let min_compute_capability = context.min_compute_capability;
    Some(KindProblem::UnknownGpu { gpu, min_compute_capability, available })
}

fn check_profiles(group: &ModelInstanceGroup, raw: &RawModelConfig) -> Result<()> {
    let Some(first) = group.profile.first() else {
        return Ok(());
    };
    let (group_name, model) = (group.name.clone(), raw.name.clone());
    if raw.platform != "tensorrt_plan" {
        let platform = raw.platform.clone();
        return Err(InstanceGroupError::ProfileWithoutTensorrt {
            group: group_name,
            model,
            platform,
        }
        .at("profile"));
    }
    let is_index = |p: &String| p.parse::<u32>().is_ok_and(|i| i <= i32::MAX as u32);
    match group.profile.iter().find(|p| !is_index(p)) {
        None => Ok(()),
        Some(_) if first.is_empty() => Err(InstanceGroupError::EmptyProfile.at("profile")),
        Some(profile) => {
            let profile = profile.clone();
            Err(InstanceGroupError::InvalidProfile { group: group_name, model, profile }
                .at("profile"))
        }
    }
}
