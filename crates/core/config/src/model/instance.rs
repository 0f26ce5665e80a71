//! Where instances of a model run, and how many.

use std::sync::Arc;

/// What an instance runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// The CPU.
    Cpu,
    /// One GPU per instance.
    Gpu,
    /// The model or its backend decides.
    Model,
}

/// What becomes of an instance group for GPUs of which this server can use none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingGpus {
    /// The model does not load, as in Triton.
    #[default]
    Refuse,
    /// As many instances as it would have on its GPUs run on the CPU.
    UseCpu,
}

/// Instances of one kind, after defaults: the kind is never AUTO, the count never 0.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct InstanceGroup {
    /// The prefix of the names of its instances.
    pub name: String,
    /// What each of them runs on.
    pub kind: InstanceKind,
    /// Instances, on each of `gpus` where the kind is GPU.
    pub count: u32,
    /// Indices of the GPUs; empty for the other kinds.
    pub gpus: Vec<u32>,
    /// It was written for GPUs that are not there, and runs on the CPU by [`MissingGpus::UseCpu`].
    pub stands_for_gpus: bool,
    /// The group is loaded and gets no requests.
    pub is_passive: bool,
    /// The file gave no count, so the default applies and a backend may choose a better layout.
    pub is_count_default: bool,
    /// What an execution must hold before it begins, where the server limits rates.
    pub rate_limiter: Option<RateLimiter>,
    /// The policy of the command line for threads and memory; empty: that of the device.
    pub host_policy: String,
}

impl InstanceGroup {
    /// One instance on the CPU, with all defaults.
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

    /// Whether an instance of the one can stand for an instance of the other: they differ in name and count at most.
    pub fn has_like_instances(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.gpus == other.gpus
            && self.is_passive == other.is_passive
            && self.rate_limiter == other.rate_limiter
            && self.host_policy == other.host_policy
    }
}

/// What an instance needs to execute, and when it gets it before others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimiter {
    /// What an execution holds while it runs.
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
    /// There is one pool for the server, not one per device.
    pub is_global: bool,
    /// Copies that one execution holds.
    pub count: u32,
}
