//! The JSON documents other than those of inference. Key orders are Triton's.

use std::collections::BTreeMap;

use galatea_proto::inference::{
    InferBatchStatistics, InferResponseStatistics, InferStatistics, ModelStatistics,
};
use serde::Serialize;

/// Returns a message as JSON.
pub fn to_json(document: &(impl Serialize + ?Sized)) -> Vec<u8> {
    // Writing to memory with string keys only cannot fail.
    serde_json::to_vec(document).unwrap_or_default()
}

/// Returns the statistics of model versions. Their keys have another order than over gRPC.
pub fn statistics(models: &[ModelStatistics]) -> Vec<u8> {
    #[derive(Serialize)]
    struct Document<'a> {
        model_stats: Vec<Entry<'a>>,
    }
    #[derive(Serialize)]
    struct Entry<'a> {
        name: &'a str,
        version: &'a str,
        last_inference: u64,
        inference_count: u64,
        execution_count: u64,
        inference_stats: Option<InferStatistics>,
        response_stats: &'a BTreeMap<String, InferResponseStatistics>,
        batch_stats: &'a [InferBatchStatistics],
        memory_usage: [(); 0],
    }
    let entries = models.iter().map(|of| Entry {
        name: &of.name,
        version: &of.version,
        last_inference: of.last_inference,
        inference_count: of.inference_count,
        execution_count: of.execution_count,
        inference_stats: of.inference_stats,
        response_stats: &of.response_stats,
        batch_stats: &of.batch_stats,
        memory_usage: [],
    });
    to_json(&Document { model_stats: entries.collect() })
}

/// Returns the body of every error: `{"error": text}`.
pub fn error_body(message: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct ErrorBody<'a> {
        error: &'a str,
    }
    to_json(&ErrorBody { error: message })
}
