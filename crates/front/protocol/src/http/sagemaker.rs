//! The bodies of SageMaker's calls to load and list models.

use serde::Serialize;

use super::{
    decode_error::{DecodeError, Result},
    documents::to_json,
    json::JsonCursor,
    repository::{for_each_member_of, refuse_non_object},
};

/// A load request. Missing members are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SageMakerLoad {
    /// SageMaker's name for the model, which is a hash.
    pub name: String,
    /// The folder with the unpacked model.
    pub url: String,
}

/// Decodes the body of a load. Of two equal members the first counts.
pub fn decode_sagemaker_load(body: &[u8]) -> galatea_types::Result<SageMakerLoad> {
    refuse_non_object(body)?;
    let (mut name, mut url) = (None, None);
    for_each_member_of(body, |key, cursor| match key {
        b"model_name" if name.is_none() => {
            name = Some(text(cursor, "model_name")?);
            Ok(())
        }
        b"url" if url.is_none() => {
            url = Some(text(cursor, "url")?);
            Ok(())
        }
        _ => Ok(cursor.skip_value()?),
    })?;
    Ok(SageMakerLoad { name: name.unwrap_or_default(), url: url.unwrap_or_default() })
}

/// Fails for bytes that are not text: with replacements they would name something else.
fn text(cursor: &mut JsonCursor<'_>, field: &'static str) -> Result<String> {
    let bytes = cursor.expect_string().map_err(|e| DecodeError::from(e).in_field(field))?;
    String::from_utf8(bytes.into_owned()).map_err(|_| DecodeError::NotText(field))
}

/// A model that SageMaker has loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SageMakerModel {
    /// SageMaker's name for the model.
    #[serde(rename = "modelName")]
    pub name: String,
    /// The repository of the model.
    #[serde(rename = "modelUrl")]
    pub url: String,
}

/// Returns the list of all loaded models.
pub fn sagemaker_models(models: &[SageMakerModel]) -> Vec<u8> {
    #[derive(Serialize)]
    struct Document<'a> {
        models: &'a [SageMakerModel],
    }
    to_json(&Document { models })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_names_a_model_and_its_folder() {
        let load = |body: &str| decode_sagemaker_load(body.as_bytes());
        let found = load(r#"{"url":"/a","model_name":"m","other":[1],"url":"/b"}"#).expect("valid");
        assert_eq!(found, SageMakerLoad { name: "m".to_owned(), url: "/a".to_owned() });
        assert_eq!(load("").expect("valid"), SageMakerLoad::default());
        assert_eq!(load("{}").expect("valid"), SageMakerLoad::default());
        for body in ["x", "[]", "{\"url\":5}", "{\"model_name\":null}", "{\"url\":\"a\"", "5"] {
            assert!(load(body).is_err(), "{body}");
        }
        let not_text = decode_sagemaker_load(b"{\"url\":\"\xff\"}").expect_err("no text");
        assert_eq!(not_text.message(), "Unable to parse 'url': it is not UTF-8");
    }

    #[test]
    fn models_are_listed_in_sagemakers_form() {
        let model = SageMakerModel { name: "m".to_owned(), url: "/a".to_owned() };
        assert_eq!(to_json(&model), br#"{"modelName":"m","modelUrl":"/a"}"#);
        let list = sagemaker_models(&[model]);
        assert_eq!(list, br#"{"models":[{"modelName":"m","modelUrl":"/a"}]}"#);
        assert_eq!(sagemaker_models(&[]), br#"{"models":[]}"#);
    }
}
