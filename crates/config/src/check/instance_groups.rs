//! Instance groups (C-45, C-47).

use galatea_proto::inference::{
    ModelInstanceGroup, ModelRateLimiter, model_instance_group::Kind, model_rate_limiter::Resource,
};
use galatea_types::{Error, Result};

use super::{CheckContext, refuse, scheduling::is_ensemble};
use crate::{
    InstanceGroup, InstanceKind, NormalizedConfig, RateLimiter, RateLimiterResource, RawModelConfig,
};

pub(super) fn check(
    config: &NormalizedConfig,
    context: &CheckContext<'_>,
) -> Result<Vec<InstanceGroup>> {
    let raw = &config.raw;
    if is_ensemble(raw) {
        return Ok(Vec::new());
    }
    if raw.instance_group.is_empty() {
        return refuse(format!("must specify one or more 'instance group's for {}", raw.name));
    }
    let groups = raw.instance_group.iter().enumerate().map(|(index, group)| {
        let kind = check_kind(group, raw, context)?;
        check_profiles(group, raw)?;
        Ok(InstanceGroup {
            name: group.name.clone(),
            kind,
            count: u32::try_from(group.count).unwrap_or_default().max(1),
            gpus: group.gpus.iter().filter_map(|&g| u32::try_from(g).ok()).collect(),
            is_passive: group.passive,
            is_count_default: config.default_count_groups.contains(&index),
            rate_limiter: group.rate_limiter.as_ref().map(rate_limiter),
            host_policy: group.host_policy.clone(),
        })
    });
    groups.collect()
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
    let refuse = |what: String| {
        refuse(format!("instance group {} of model {} {what}", group.name, raw.name))
    };
    let has_gpus = !group.gpus.is_empty();
    match Kind::try_from(group.kind) {
        Ok(Kind::Model) if has_gpus => {
            refuse("has kind KIND_MODEL but specifies one or more GPUs".to_owned())
        }
        Ok(Kind::Cpu) if has_gpus => {
            refuse("has kind KIND_CPU but specifies one or more GPUs".to_owned())
        }
        Ok(Kind::Model) => Ok(InstanceKind::Model),
        Ok(Kind::Cpu) => Ok(InstanceKind::Cpu),
        Ok(Kind::Gpu) => match gpu_mistake(&group.gpus, context) {
            Some(mistake) => refuse(mistake),
            None => Ok(InstanceKind::Gpu),
        },
        Ok(Kind::Auto) => refuse("has unexpected kind KIND_AUTO".to_owned()),
        Err(_) => refuse(format!("has unexpected kind {}", group.kind)),
    }
}

fn gpu_mistake(gpus: &[i32], context: &CheckContext<'_>) -> Option<String> {
    let available = context.available_gpus;
    if !context.supports_gpus {
        return Some("has kind KIND_GPU but server does not support GPUs".to_owned());
    }
    if gpus.is_empty() {
        let what = if available.is_empty() { "no GPUs are available" } else { "specifies no GPUs" };
        return Some(format!("has kind KIND_GPU but {what}"));
    }
    let is_unknown = |&&gpu: &&i32| !u32::try_from(gpu).is_ok_and(|g| available.contains(&g));
    let gpu = gpus.iter().find(is_unknown)?;
    let available = available.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    Some(format!(
        "specifies invalid or unsupported gpu id {gpu}. GPUs with at least the minimum required \
         CUDA compute compatibility of {:.6} are: {available}",
        context.min_compute_capability
    ))
}

fn check_profiles(group: &ModelInstanceGroup, raw: &RawModelConfig) -> Result<()> {
    let Some(first) = group.profile.first() else {
        return Ok(());
    };
    let platform = &raw.platform;
    let prefix =
        format!("instance group {} of model {} and platform {platform}", group.name, raw.name);
    if platform != "tensorrt_plan" {
        return refuse(format!(
            "{prefix}specifies profile field which is only supported for TensorRT models"
        ));
    }
    let is_index = |p: &String| p.parse::<u32>().is_ok_and(|i| i <= i32::MAX as u32);
    let wrong = group.profile.iter().find(|p| !is_index(p));
    match wrong {
        None => Ok(()),
        Some(_) if first.is_empty() => Err(Error::invalid_arg("profile name must not be empty")),
        Some(profile) => refuse(format!(
            "{prefix} specifies invalid profile {profile}. The field should contain the string \
             representation of a non-negative integer."
        )),
    }
}
