//! Checks instance groups: the devices and the number of instances.

use galatea_proto::inference::{
    ModelInstanceGroup, ModelRateLimiter, model_instance_group::Kind, model_rate_limiter::Resource,
};

use super::{
    context::CheckContext,
    mistake::{Result, element_of, inside, refuse},
};
use crate::{
    FieldPath, InstanceGroup, InstanceKind, MissingGpus, NormalizedConfig, RateLimiter,
    RateLimiterResource, RawModelConfig,
};

pub(super) fn check(
    config: &NormalizedConfig,
    context: &CheckContext<'_>,
) -> Result<Vec<InstanceGroup>> {
    let raw = &config.raw;
    if raw.instance_group.is_empty() {
        let text = format!("must specify one or more 'instance group's for {}", raw.name);
        return refuse("instance_group", text, "write `instance_group [ { count: 1 } ]`");
    }
    let groups = raw.instance_group.iter().enumerate().map(|(index, group)| {
        let inside = || inside(element_of("instance_group", index));
        let is_automatic = config.automatic_cpu_groups.contains(&index);
        let stands_for_gpus = runs_on_cpu_instead(group, is_automatic, context);
        let kind = match stands_for_gpus {
            true => InstanceKind::Cpu,
            false => check_kind(group, &raw.name, context).map_err(inside())?,
        };
        check_profiles(group, raw).map_err(inside())?;
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

/// Returns whether a group for GPUs runs on the CPU because the server has none of its GPUs. With `is_automatic`, its kind was
/// AUTO. A group with some of its GPUs present is not moved: it would become slow without a visible reason.
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

/// Returns the number of instances of a group on all the GPUs that it names.
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
    model: &str,
    context: &CheckContext<'_>,
) -> Result<InstanceKind> {
    let refuse = |field: FieldPath, problem: String, advice: &str| {
        let text = format!("instance group {} of model {model} {problem}", group.name);
        refuse(field, text, advice)
    };
    match Kind::try_from(group.kind) {
        Ok(kind @ (Kind::Model | Kind::Cpu)) if !group.gpus.is_empty() => {
            let problem = format!("has kind {} but specifies one or more GPUs", kind.as_str_name());
            refuse("gpus".into(), problem, "remove `gpus`, or write `kind: KIND_GPU`")
        }
        Ok(Kind::Model) => Ok(InstanceKind::Model),
        Ok(Kind::Cpu) => Ok(InstanceKind::Cpu),
        Ok(Kind::Gpu) => match gpu_problem(&group.gpus, context) {
            None => Ok(InstanceKind::Gpu),
            Some((field, problem, advice)) => refuse(field, problem, advice),
        },
        Ok(Kind::Auto) => {
            let advice = "write `kind: KIND_CPU` or `kind: KIND_GPU`";
            refuse("kind".into(), "has unexpected kind KIND_AUTO".to_owned(), advice)
        }
        Err(_) => {
            let problem = format!("has unexpected kind {}", group.kind);
            let advice =
                "write `KIND_AUTO`, `KIND_CPU`, `KIND_GPU` or `KIND_MODEL`, or leave out `kind`";
            refuse("kind".into(), problem, advice)
        }
    }
}

/// Returns why the GPUs of a group do not match those of the server: field, problem and advice.
fn gpu_problem(
    gpus: &[i32],
    context: &CheckContext<'_>,
) -> Option<(FieldPath, String, &'static str)> {
    let available = context.available_gpus;
    let no_gpu = "this server sees no GPU: write `kind: KIND_CPU`, leave out `kind` to use a GPU where there is one, or give the \
         server `--gpu-groups=cpu`, which runs such groups on the CPU. If the machine has a GPU, look whether \
         `nvidia-smi` finds it";
    let of_kind = |problem: &str, advice| Some(("kind".into(), problem.to_owned(), advice));
    if !context.supports_gpus {
        return of_kind("has kind KIND_GPU but server does not support GPUs", no_gpu);
    }
    if gpus.is_empty() && available.is_empty() {
        return of_kind("has kind KIND_GPU but no GPUs are available", no_gpu);
    }
    if gpus.is_empty() {
        let advice = "name them, for example `gpus: [ 0 ]`";
        return of_kind("has kind KIND_GPU but specifies no GPUs", advice);
    }
    let is_unknown = |&gpu: &i32| !u32::try_from(gpu).is_ok_and(|g| available.contains(&g));
    let index = gpus.iter().position(is_unknown)?;
    let listed = available.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let problem = format!(
        "specifies invalid or unsupported gpu id {}. GPUs with at least the minimum required CUDA compute compatibility of \
         {:.6} are: {listed}",
        gpus.get(index)?,
        context.min_compute_capability
    );
    let advice = match available {
        [] => {
            "this server sees no GPU: write `kind: KIND_CPU` without `gpus`, or give the server `--gpu-groups=cpu`, which \
             runs such groups on the CPU. If the machine has a GPU, look whether `nvidia-smi` finds it"
        }
        _ => "leave out `gpus` to use all there are",
    };
    Some((element_of("gpus", index), problem, advice))
}

/// Checks profiles, which only TensorRT uses.
fn check_profiles(group: &ModelInstanceGroup, raw: &RawModelConfig) -> Result<()> {
    let Some(first) = group.profile.first() else {
        return Ok(());
    };
    let subject = format!("instance group {} of model {} and platform", group.name, raw.name);
    let refuse =
        |text| refuse("profile", text, "remove `profile`: no TensorRT engine runs in this server");
    if raw.platform != "tensorrt_plan" {
        return refuse(format!(
            "{subject} {}specifies profile field which is only supported for TensorRT models",
            raw.platform
        ));
    }
    let is_index = |p: &String| p.parse::<u32>().is_ok_and(|i| i <= i32::MAX as u32);
    match group.profile.iter().find(|p| !is_index(p)) {
        None => Ok(()),
        Some(_) if first.is_empty() => refuse("profile name must not be empty".to_owned()),
        Some(profile) => refuse(format!(
            "{subject} tensorrt_plan specifies invalid profile {profile}. The field should contain the string \
             representation of a non-negative integer."
        )),
    }
}
