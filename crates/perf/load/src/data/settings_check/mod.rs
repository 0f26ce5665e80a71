//! Checks of settings against the model.

use galatea_perf_types::{
    failure::{Failure, Result},
    model::ModelInfo,
    settings::{Load, Settings},
};

/// Checks the settings against the model. Sequence models get asynchronous calls unless `--sync`
/// was given, whatever `settings.calls.asynchronous` is here.
pub fn check_settings(settings: &Settings, model: &ModelInfo) -> Result<()> {
    check_batch_size(settings, model)?;
    let asynchronous = settings.is_asynchronous(model);
    check_calls(settings, model, asynchronous)?;
    check_sequences(settings, model, asynchronous)
}

fn check_batch_size(settings: &Settings, model: &ModelInfo) -> Result<()> {
    match settings.batch_size > 1 {
        true if model.max_batch_size == 0 => Err(Failure::generic(
            "can not specify batch size > 1 as the model does not support batching",
        )),
        true if model.is_sequence() => {
            Err(Failure::generic("can not specify batch size > 1 when using a sequence model"))
        }
        _ => Ok(()),
    }
}

fn check_calls(settings: &Settings, model: &ModelInfo, asynchronous: bool) -> Result<()> {
    if settings.calls.streaming && settings.calls.forced_sync {
        return Err(Failure::generic("can not use streaming with synchronous API"));
    }
    if model.decoupled && !(asynchronous && settings.calls.streaming) {
        return Err(Failure::generic(
            "Decoupled models must be run with `--async` and `--streaming` and either `-i grpc` \
             or `--service-kind=triton_c_api`",
        ));
    }
    Ok(())
}

fn check_sequences(settings: &Settings, model: &ModelInfo, asynchronous: bool) -> Result<()> {
    let (most, what) = match &settings.load {
        Load::Concurrency(range) => {
            if model.is_sequence() && range.end == 0 && asynchronous {
                return Err(Failure::generic(
                    "The 'end' concurrency can not be 0 for sequence models when using \
                     asynchronous API.",
                ));
            }
            (range.start.max(range.end), "concurrency")
        }
        Load::RequestRate { .. } | Load::CustomIntervals(_) => {
            (settings.sequences.count, "number of sequences")
        }
        Load::PeriodicConcurrency { .. } => return Ok(()),
    };
    match settings.sequences.id_count {
        Some(count) if count < most => Err(Failure::generic(format!(
            "sequence id range specified is smaller than the maximum possible {what}, sequence id \
             collision may occur."
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
