//! The document of made-up models.

use galatea_config::testing::model_config;

use super::*;

#[test]
fn the_query_selects_a_model_with_percent_escapes() {
    let named = |name: &str| Ok(Models::Named(name.to_owned()));
    for (query, expected) in [
        ("", Ok(Models::First)),
        ("x=model=a", Ok(Models::First)),
        ("model=a", named("a")),
        ("x=1&model=a%20b+c%2", named("a b c%2")),
        ("model=%E2%82%AC&model=b", named("€")),
        ("model=%+1", named("% 1")),
    ] {
        assert_eq!(Models::of_query(query).map_err(|_| ()), expected, "{query}");
    }
    assert!(Models::of_query("model=%FF").is_err());
}

#[test]
fn names_with_special_characters_in_paths_have_no_entries() {
    for (name, expected) in [
        ("a-b_c.1", true),
        ("a b", false),
        ("a{b}", false),
        ("a%20", false),
        ("ä", false),
        ("", false),
    ] {
        assert_eq!(is_plain(name), expected, "{name}");
    }
}

#[test]
fn the_entries_of_a_model_have_its_tensors() {
    let config = model_config(
        "name: \"m\" backend: \"identity\" max_batch_size: 4 \
         input { name: \"A\" data_type: TYPE_FP32 dims: [ -1, 3 ] } \
         input { name: \"B\" data_type: TYPE_FP16 dims: [ 1 ] optional: true } \
         output { name: \"C\" data_type: TYPE_STRING dims: [ 2 ] }",
    );
    let entries: Map<String, Value> = model::entries(&config).into_iter().collect();
    let body = &entries["/v2/models/m/infer"]["post"]["requestBody"]["content"];
    let inputs = &body["application/json"]["schema"]["properties"]["inputs"];
    assert_eq!(inputs["maxItems"], 2);
    assert_eq!(inputs["allOf"].as_array().map(Vec::len), Some(1), "B is optional");
    let a = &inputs["items"]["anyOf"][0]["properties"];
    assert_eq!(a["data"]["$ref"], "#/components/schemas/DataFP32");
    let sizes = &a["shape"]["prefixItems"];
    assert_eq!((&sizes[0]["maximum"], &sizes[2]["const"]), (&json!(4), &json!(3)));
    assert!(inputs["items"]["anyOf"][1]["properties"].get("data").is_none(), "no JSON of FP16");
    assert_eq!(entries.len(), 3);
}

#[test]
fn every_referenced_schema_exists() {
    let base = base().expect("JSON");
    let mut names = Vec::new();
    references(&base, &mut names);
    for name in &names {
        assert!(base.pointer(name.trim_start_matches('#')).is_some(), "{name}");
    }
    assert!(names.len() > 50);
    for data_type in ["BOOL", "UINT8", "INT64", "FP32", "FP64", "BYTES"] {
        assert!(base["components"]["schemas"].get(format!("Data{data_type}")).is_some());
    }
}

fn references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            names.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| references(member, names));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}
