//! HTTP calls other than inference, as JSON.

use std::{fmt::Write, os::fd::BorrowedFd};

use galatea_types::{DataType, Error, Result};
use serde_json::{Map, Value, json};

use super::{HttpConnection, checked, model_path, parser::Response, path_segment};
use crate::{
    BatchStatistics, CountAndTime, ModelConfigFacts, ModelIndexEntry, ModelMetadata,
    ModelStatistics, ServerMetadata, TensorMetadata, facts::unknown_data_type,
};

pub(crate) struct HttpAdmin {
    connection: HttpConnection,
}

impl HttpAdmin {
    pub fn new(connection: HttpConnection) -> Self {
        Self { connection }
    }

    pub async fn server_metadata(&mut self) -> Result<ServerMetadata> {
        let value = self.get("/v2").await?;
        Ok(ServerMetadata {
            name: text(&value, "name"),
            version: text(&value, "version"),
            extensions: texts(&value, "extensions"),
            implementation: text(&value, "implementation"),
        })
    }

    pub async fn is_ready(&mut self) -> Result<bool> {
        let path = "/v2/health/ready";
        let response = self.connection.exchange("GET", path, None).await?;
        match response.status {
            // A server that is not ready is not an error.
            400 | 503 => Ok(false),
            _ => checked(&response, path).map(|()| true),
        }
    }

    pub async fn load_model(&mut self, model: &str, config: Option<&str>) -> Result<()> {
        let path = format!("/v2/repository/models/{}/load", path_segment(model));
        let parameters = config.map(|config| json!({"config": config})).unwrap_or(json!({}));
        self.post(&path, &json!({ "parameters": parameters })).await
    }

    pub async fn unload_model(&mut self, model: &str, dependents: bool) -> Result<()> {
        let path = format!("/v2/repository/models/{}/unload", path_segment(model));
        self.post(&path, &json!({"parameters": {"unload_dependents": dependents}})).await
    }

    pub async fn model_metadata(&mut self, model: &str, version: &str) -> Result<ModelMetadata> {
        let value = self.get(&model_path(model, version)).await?;
        model_metadata(&value)
    }

    pub async fn model_config(&mut self, model: &str, version: &str) -> Result<ModelConfigFacts> {
        let value = self.get(&format!("{}/config", model_path(model, version))).await?;
        Ok(model_config(&value))
    }

    pub async fn statistics(&mut self, model: &str, version: &str) -> Result<Vec<ModelStatistics>> {
        let path = match model {
            "" => "/v2/models/stats".to_owned(),
            model => format!("{}/stats", model_path(model, version)),
        };
        let value = self.get(&path).await?;
        Ok(list(&value, "model_stats").iter().map(model_statistics).collect())
    }

    pub async fn repository_index(&mut self) -> Result<Vec<ModelIndexEntry>> {
        let path = "/v2/repository/index";
        let response = self.connection.exchange("POST", path, Some("{}")).await?;
        let value = document(&response, path)?;
        Ok(value.as_array().map_or(&[][..], Vec::as_slice).iter().map(index_entry).collect())
    }

    pub async fn set_trace(&mut self, model: &str, fields: &[(String, Vec<String>)]) -> Result<()> {
        let path = match model {
            "" => "/v2/trace/setting".to_owned(),
            model => format!("{}/trace/setting", model_path(model, "")),
        };
        let mut settings = Map::new();
        for (name, values) in fields {
            // The server reads the levels as a list and everything else as one text.
            let value = match values.as_slice() {
                [value] if name != "trace_level" => json!(value),
                values => json!(values),
            };
            settings.insert(name.clone(), value);
        }
        self.post(&path, &Value::Object(settings)).await
    }

    pub async fn register_system_region(
        &mut self,
        name: &str,
        key: &str,
        byte_size: usize,
    ) -> Result<()> {
        let path = register_path(name);
        self.post(&path, &json!({"key": key, "offset": 0, "byte_size": byte_size})).await
    }

    pub async fn register_passed_region(
        &mut self,
        name: &str,
        memory: BorrowedFd<'_>,
        byte_size: usize,
    ) -> Result<()> {
        let path = register_path(name);
        let body = json!({"offset": 0, "byte_size": byte_size}).to_string();
        let response = self.connection.post_with_descriptor(&path, &body, memory).await?;
        checked(&response, &path)
    }

    pub async fn unregister_system_region(&mut self, name: &str) -> Result<()> {
        let mut path = String::from("/v2/systemsharedmemory");
        if !name.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(path, "/region/{}", path_segment(name));
        }
        path.push_str("/unregister");
        self.post(&path, &json!({})).await
    }

    async fn get(&mut self, path: &str) -> Result<Value> {
        let response = self.connection.exchange("GET", path, None).await?;
        document(&response, path)
    }

    async fn post(&mut self, path: &str, body: &Value) -> Result<()> {
        let response = self.connection.exchange("POST", path, Some(&body.to_string())).await?;
        checked(&response, path)
    }
}

fn register_path(name: &str) -> String {
    format!("/v2/systemsharedmemory/region/{}/register", path_segment(name))
}

/// Returns the JSON of a response that is not an error.
fn document(response: &Response, path: &str) -> Result<Value> {
    checked(response, path)?;
    serde_json::from_slice(&response.body).map_err(|error| {
        Error::internal(format!("failed to read the server's answer to {path}: {error}"))
            .with_source(error)
    })
}

fn index_entry(value: &Value) -> ModelIndexEntry {
    ModelIndexEntry {
        name: text(value, "name"),
        version: text(value, "version"),
        state: text(value, "state"),
        reason: text(value, "reason"),
    }
}

fn model_metadata(value: &Value) -> Result<ModelMetadata> {
    let name = text(value, "name");
    let tensors = |kind: &str| {
        list(value, kind).iter().map(|tensor| tensor_metadata(&name, tensor)).collect::<Result<_>>()
    };
    Ok(ModelMetadata {
        versions: texts(value, "versions"),
        platform: text(value, "platform"),
        inputs: tensors("inputs")?,
        outputs: tensors("outputs")?,
        name: name.clone(),
    })
}

fn tensor_metadata(model: &str, value: &Value) -> Result<TensorMetadata> {
    let name = text(value, "name");
    let data_type = text(value, "datatype");
    let shape = list(value, "shape").iter().filter_map(signed).collect();
    let data_type = DataType::from_protocol_name(&data_type)
        .ok_or_else(|| unknown_data_type(model, &name, &data_type))?;
    Ok(TensorMetadata { name, data_type, shape })
}

fn model_config(value: &Value) -> ModelConfigFacts {
    let steps = value.pointer("/ensemble_scheduling/step").and_then(Value::as_array);
    let flagged = |flag: &str| {
        let inputs = list(value, "input").iter().filter(|input| is_true(input.get(flag)));
        inputs.map(|input| text(input, "name")).collect()
    };
    ModelConfigFacts {
        name: text(value, "name"),
        max_batch_size: value.get("max_batch_size").and_then(unsigned).unwrap_or_default(),
        dynamic_batching: is_there(value, "dynamic_batching"),
        sequence_batching: is_there(value, "sequence_batching"),
        decoupled: is_true(value.pointer("/model_transaction_policy/decoupled")),
        response_cache: is_true(value.pointer("/response_cache/enable")),
        ensemble_steps: steps.map_or(&[][..], Vec::as_slice).iter().map(step).collect(),
        shape_tensors: flagged("is_shape_tensor"),
        optional_inputs: flagged("optional"),
        image_formats: list(value, "input")
            .iter()
            .map(|input| (text(input, "name"), text(input, "format")))
            .filter(|(_, format)| format == "FORMAT_NHWC" || format == "FORMAT_NCHW")
            .collect(),
    }
}

fn step(value: &Value) -> (String, i64) {
    let version = value.get("model_version").and_then(signed).unwrap_or(-1);
    (text(value, "model_name"), version)
}

fn model_statistics(value: &Value) -> ModelStatistics {
    let number = |name: &str| value.get(name).and_then(unsigned).unwrap_or_default();
    let time = |name: &str| count_and_time(value.get("inference_stats"), name);
    ModelStatistics {
        name: text(value, "name"),
        version: text(value, "version"),
        inference_count: number("inference_count"),
        execution_count: number("execution_count"),
        success: time("success"),
        fail: time("fail"),
        queue: time("queue"),
        compute_input: time("compute_input"),
        compute_infer: time("compute_infer"),
        compute_output: time("compute_output"),
        cache_hit: time("cache_hit"),
        cache_miss: time("cache_miss"),
        batches: list(value, "batch_stats").iter().map(batch_statistics).collect(),
    }
}

fn batch_statistics(value: &Value) -> BatchStatistics {
    BatchStatistics {
        batch_size: value.get("batch_size").and_then(unsigned).unwrap_or_default(),
        compute_input: count_and_time(Some(value), "compute_input"),
        compute_infer: count_and_time(Some(value), "compute_infer"),
        compute_output: count_and_time(Some(value), "compute_output"),
    }
}

fn count_and_time(value: Option<&Value>, name: &str) -> CountAndTime {
    let found = value.and_then(|value| value.get(name));
    let part = |part: &str| found.and_then(|time| time.get(part)).and_then(unsigned);
    CountAndTime { count: part("count").unwrap_or_default(), ns: part("ns").unwrap_or_default() }
}

fn text(value: &Value, name: &str) -> String {
    match value.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn texts(value: &Value, name: &str) -> Vec<String> {
    list(value, name).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Reads a 64-bit integer, which may be a number or, as in protobuf's JSON form, a text.
fn signed(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn unsigned(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn is_true(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool).unwrap_or_default()
}

fn is_there(value: &Value, name: &str) -> bool {
    value.get(name).is_some_and(|value| !value.is_null())
}

#[cfg(test)]
mod tests;
