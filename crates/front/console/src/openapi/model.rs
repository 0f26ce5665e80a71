//! The entries of one model: inference with its own inputs and outputs.

use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{DataType, Shape};
use serde_json::{Map, Value, json};

/// Returns the paths of a model, each with its operations.
pub(super) fn entries(config: &ModelConfig) -> Vec<(String, Value)> {
    let name = config.name();
    let mut entries = vec![
        (format!("/v2/models/{name}/infer"), infer(config)),
        (format!("/v2/models/{name}/generate_stream"), generate(config, true)),
    ];
    if !config.is_decoupled() {
        entries.push((format!("/v2/models/{name}/generate"), generate(config, false)));
    }
    entries
}

fn infer(config: &ModelConfig) -> Value {
    let name = config.name();
    let header = json!({ "$ref": "#/components/parameters/header_length" });
    let mut operation = operation(config, "infer", &format!("Inference with {name}"));
    operation["parameters"] = json!([header]);
    operation["requestBody"] = json!({
        "required": true,
        "content": {
            "application/json": { "schema": request(config) },
            "application/octet-stream": { "schema": {} },
        },
    });
    let media_types = match config.is_decoupled() {
        true => json!({ "application/x-ndjson": { "schema": response(config) } }),
        false => json!({
            "application/json": { "schema": response(config) },
            "application/octet-stream": { "schema": {} },
            "application/x-ndjson": { "schema": {} },
        }),
    };
    operation["responses"]["200"] = json!({ "description": "The outputs", "content": media_types });
    json!({ "post": operation })
}

fn generate(config: &ModelConfig, is_stream: bool) -> Value {
    let name = config.name();
    let (id, summary) = match is_stream {
        true => {
            ("generate_stream", format!("Flat JSON in, an event per response out, with {name}"))
        }
        false => ("generate", format!("Flat JSON in, flat JSON out, with {name}")),
    };
    let mut operation = operation(config, id, &summary);
    let body = json!({ "application/json": { "schema": generate_request(config) } });
    operation["requestBody"] = json!({ "required": true, "content": body });
    let media_types = match is_stream {
        true => json!({ "text/event-stream": { "schema": { "type": "string" } } }),
        false => json!({ "application/json": { "schema": generate_response(config) } }),
    };
    operation["responses"]["200"] = json!({ "description": "The outputs", "content": media_types });
    json!({ "post": operation })
}

/// Returns an operation without its request and its response.
fn operation(config: &ModelConfig, id: &str, summary: &str) -> Value {
    let named = |name: &str| json!({ "$ref": format!("#/components/responses/{name}") });
    json!({
        "operationId": format!("{id}.{}", config.name()),
        "tags": ["inference"],
        "summary": summary,
        "responses": {
            "400": named("BadRequest"),
            "403": named("Forbidden"),
            "404": named("NotFound"),
            "500": named("Failed"),
            "501": named("Unsupported"),
            "503": named("Unavailable"),
        },
    })
}

fn request(config: &ModelConfig) -> Value {
    let inputs: Vec<Value> = config.inputs().iter().map(|input| tensor(input, config)).collect();
    let required = config.inputs().iter().filter(|input| !input.is_optional);
    let has = |input: &TensorSpec| json!({ "contains": { "properties": { "name": { "const": &*input.name } } } });
    let has_required: Vec<Value> = required.map(has).collect();
    let mut list = json!({ "type": "array", "maxItems": inputs.len() });
    if !inputs.is_empty() {
        list["items"] = json!({ "anyOf": inputs });
    }
    if !has_required.is_empty() {
        list["allOf"] = json!(has_required);
    }
    let outputs: Vec<&str> = config.outputs().iter().map(|output| &*output.name).collect();
    let output = json!({
        "allOf": [{ "$ref": "#/components/schemas/RequestOutput" }],
        "properties": { "name": { "enum": outputs } },
    });
    json!({
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": { "type": "string" },
            "parameters": { "$ref": "#/components/schemas/Parameters" },
            "inputs": list,
            "outputs": { "type": "array", "items": output },
        },
    })
}

fn response(config: &ModelConfig) -> Value {
    let outputs = config.outputs().iter();
    let outputs: Vec<Value> =
        outputs.flat_map(|output| [tensor(output, config), classes(output)]).collect();
    json!({
        "type": "object",
        "required": ["model_name", "model_version", "outputs"],
        "properties": {
            "id": { "type": "string" },
            "model_name": { "const": &**config.name() },
            "model_version": { "type": "string" },
            "parameters": { "$ref": "#/components/schemas/Parameters" },
            "outputs": { "type": "array", "items": { "anyOf": outputs } },
        },
    })
}

/// Returns the schema of a tensor in a request or a response. A tensor without `data` is binary, or in a shared memory region.
fn tensor(spec: &TensorSpec, config: &ModelConfig) -> Value {
    let mut properties = json!({
        "name": { "const": &*spec.name },
        "datatype": { "const": spec.data_type.protocol_name() },
        "shape": shape(&spec.dims, config.max_batch_size()),
        "parameters": { "$ref": "#/components/schemas/Parameters" },
    });
    let mut needs = json!([{ "required": ["parameters"] }]);
    if let (Some(name), Some(needs)) = (data(spec.data_type), needs.as_array_mut()) {
        properties["data"] = json!({ "$ref": name });
        needs.push(json!({ "required": ["data"] }));
    }
    json!({
        "type": "object",
        "required": ["name", "datatype", "shape"],
        "properties": properties,
        "anyOf": needs,
    })
}

/// Returns the schema of an output that is returned as classes.
fn classes(spec: &TensorSpec) -> Value {
    json!({
        "type": "object",
        "required": ["name", "datatype", "shape"],
        "properties": {
            "name": { "const": &*spec.name },
            "datatype": { "const": "BYTES" },
            "shape": { "$ref": "#/components/schemas/Shape" },
            "data": { "type": "array", "items": { "type": "string" } },
        },
    })
}

/// Returns the schema of a shape. `most`: the largest batch; 0 without batching.
fn shape(dims: &Shape, most: u32) -> Value {
    let batch = (most > 0).then(|| json!({ "type": "integer", "minimum": 1, "maximum": most }));
    let sizes = dims.iter().map(|&size| match size {
        0.. => json!({ "const": size }),
        _ => json!({ "type": "integer", "minimum": 0 }),
    });
    let sizes: Vec<Value> = batch.into_iter().chain(sizes).collect();
    let count = sizes.len();
    let mut shape = json!({ "type": "array", "minItems": count, "maxItems": count });
    if count > 0 {
        shape["prefixItems"] = json!(sizes);
    }
    shape
}

/// Returns the schema of elements in JSON, if the data type has a JSON form.
fn data(data_type: DataType) -> Option<String> {
    let has_form = !matches!(data_type, DataType::Fp16 | DataType::Bf16);
    has_form.then(|| format!("#/components/schemas/Data{}", data_type.protocol_name()))
}

fn generate_request(config: &ModelConfig) -> Value {
    let required = config.inputs().iter().filter(|input| !input.is_optional);
    let required: Vec<&str> = required.map(|input| &*input.name).collect();
    json!({ "type": "object", "required": required, "properties": fields(config.inputs()) })
}

fn generate_response(config: &ModelConfig) -> Value {
    let mut properties = fields(config.outputs());
    properties.insert("model_name".to_owned(), json!({ "const": &**config.name() }));
    properties.insert("model_version".to_owned(), json!({ "type": "string" }));
    json!({ "type": "object", "required": ["model_name", "model_version"], "properties": properties })
}

/// Returns the schema of each tensor: a value or an array of values.
fn fields(tensors: &[TensorSpec]) -> Map<String, Value> {
    let field = |spec: &TensorSpec| {
        let schema = match data(spec.data_type) {
            Some(data) => {
                json!({ "anyOf": [{ "$ref": data }, { "$ref": format!("{data}/items/anyOf/0") }] })
            }
            None => json!({}),
        };
        (spec.name.to_string(), schema)
    };
    tensors.iter().map(field).collect()
}
