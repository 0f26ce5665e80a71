//! The devices and the number of a model's instances.

use std::sync::Arc;

/// The device of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// The CPU.
    Cpu,
    /// One GPU per instance.
    Gpu,
    /// The model or its backend decides.
    Model,
}

/// The treatment of an instance group for GPUs when this server can use none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingGpus {
    /// The model does not load, as in Triton.
    #[default]
    Refuse,
    /// The instances run on the CPU, as many as on its GPUs.
    UseCpu,
}

/// Instances of one kind, after defaults: the kind is never AUTO, the count never 0.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InstanceGroup {
    /// The prefix of the names of its instances.
    pub name: String,
    /// The device of each instance.
    pub kind: InstanceKind,
    /// The number of instances; for GPUs, the number on each of `gpus`.
    pub count: u32,
    /// Indices of the GPUs; empty for the other kinds.
    pub gpus: Vec<u32>,
    /// The group was written for missing GPUs, and runs on the CPU by [`MissingGpus::UseCpu`].
    pub stands_for_gpus: bool,
    /// The instances are loaded and get no requests.
    pub is_passive: bool,
    /// The file gave no count, so the default applies and a backend may choose a better layout.
    pub is_count_default: bool,
    /// The resources that an execution needs before it begins, when the server limits rates.
    pub rate_limiter: Option<RateLimiter>,
    /// The policy of the command line for threads and memory; empty for the policy of the device.
    pub host_policy: String,
}

impl InstanceGroup {
    /// Makes a group of one instance on the CPU, with all defaults.
    pub fn of_cpu(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: InstanceKind::Cpu,
            count: 1,
            gpus: Vec::new(),
            stands_for_gpus: false,
            is_passive: false,
            is_count_default: false,
            rate_limiter: None,
            host_policy: String::new(),
        }
    }

    /// Returns whether the instances of both groups are alike: only name and count may differ.
    pub fn has_like_instances(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.gpus == other.gpus
            && self.is_passive == other.is_passive
            && self.rate_limiter == other.rate_limiter
            && self.host_policy == other.host_policy
    }
}

/// The resources that an instance needs to execute, and its priority for them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimiter {
    /// The resources that an execution holds while it runs.
    pub resources: Vec<RateLimiterResource>,
    /// A weight: an instance of priority 2 executes half as often as one of priority 1. Never 0.
    pub priority: u32,
}

/// Copies of a resource that the command line provides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimiterResource {
    /// The name on the command line.
    pub name: Arc<str>,
    /// The server has one pool of it, not one per device.
    pub is_global: bool,
    /// Copies that an execution holds.
    pub count: u32,
}
