//! Responses of `generate_stream`: JSON objects as server-sent events, read as they come.

use bytes::{Buf, BytesMut};
use galatea_types::{DataType, Error, Result};
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt;

use super::{
    HttpConnection, checked, json_data, model_path, not_http,
    parser::{ParseProgress, Response, ResponseParser},
};
use crate::{
    InferTemplate, InputData, OutputTensor, TensorMetadata, response_error::ResponseError,
    transport::Transport,
};

const READ: usize = 16 << 10;

/// The events of one request.
pub(crate) struct HttpEvents {
    io: Transport,
    url: String,
    parser: ResponseParser,
    /// Bytes from the connection.
    buffer: BytesMut,
    /// Text of incomplete events, and the length of its part that was searched for an end.
    text: BytesMut,
    searched: usize,
    /// Limit of the whole response.
    limit: usize,
    received: usize,
    is_ended: bool,
}

impl HttpConnection {
    /// Sends the request to `generate_stream`, its inputs as plain JSON.
    ///
    /// # Errors
    /// If JSON cannot carry the inputs, or there is no connection.
    pub async fn events(
        mut self,
        template: &InferTemplate,
        id: Option<&str>,
    ) -> Result<HttpEvents> {
        let path = format!("{}/generate_stream", model_path(&template.model, &template.version));
        let body = body(template, id)?;
        let io = self.send("POST", &path, &body).await?;
        Ok(HttpEvents {
            io,
            url: self.route.target.url(),
            parser: ResponseParser::new(true),
            buffer: BytesMut::with_capacity(READ),
            text: BytesMut::new(),
            searched: 0,
            limit: self.route.response_limit,
            received: 0,
            is_ended: false,
        })
    }
}

impl HttpEvents {
    /// Returns the outputs of the next response, with these types and names; `None` at the end.
    ///
    /// # Errors
    /// Those of the server, with its text.
    pub async fn next(&mut self, known: &[TensorMetadata]) -> Result<Option<Vec<OutputTensor>>> {
        loop {
            if let Some(event) = take_event(&mut self.text, &mut self.searched) {
                return outputs(&event, known).map(Some);
            }
            if self.is_ended {
                return Ok(None);
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Result<()> {
        self.buffer.reserve(READ);
        let count = self.io.read_buf(&mut self.buffer).await.map_err(|cause| {
            Error::unavailable(format!("failed while receiving from {}: {cause}", self.url))
        })?;
        self.received += count;
        if self.received > self.limit {
            return Err(ResponseError::TooLong { limit: self.limit }.into());
        }
        let progress = match count {
            0 => self.parser.end(&mut self.buffer).map(ParseProgress::Done),
            _ => self.parser.advance(&mut self.buffer),
        };
        match progress.map_err(|malformed| not_http(malformed, &self.url))? {
            ParseProgress::Done(response) => self.end(response),
            ParseProgress::More(_) => {
                if let Some(body) = self.parser.take_success() {
                    self.text.extend_from_slice(&body);
                }
                Ok(())
            }
        }
    }

    fn end(&mut self, response: Response) -> Result<()> {
        self.is_ended = true;
        if response.status != 200 {
            let mut text = BytesMut::from(&response.body[..]);
            // A first response that is an error is an event too.
            if let Some(event) = take_event(&mut text, &mut 0) {
                outputs(&event, &[])?;
            }
        }
        checked(&response, "the inference request")?;
        self.text.extend_from_slice(&response.body);
        Ok(())
    }
}

fn body(template: &InferTemplate, id: Option<&str>) -> Result<String> {
    let mut fields = Vec::new();
    if let Some(id) = id {
        fields.push(format!("\"id\":{}", super::request::string(id)?));
    }
    for (name, value) in &template.parameters {
        fields.push(super::request::parameter(name, value)?);
    }
    for input in &template.inputs {
        let InputData::Inline(data) = &input.data else {
            return Err(Error::unsupported("generate_stream takes no shared memory"));
        };
        let mut json = String::new();
        json_data::write(&mut json, &input.name, input.data_type, data)?;
        let is_one = input.shape.iter().all(|&size| size == 1);
        let name = super::request::string(&input.name)?;
        fields.push(if is_one { format!("{name}:{json}") } else { format!("{name}:[{json}]") });
    }
    Ok(format!("{{{}}}", fields.join(",")))
}

/// Takes the text after `data:` up to the next empty line.
fn take_event(text: &mut BytesMut, searched: &mut usize) -> Option<Vec<u8>> {
    loop {
        // The end may have begun in the text before.
        let start = searched.saturating_sub(3);
        *searched = text.len();
        let is_end =
            |at: &usize| text[*at..].starts_with(b"\n\n") || text[*at..].starts_with(b"\r\n\r\n");
        let at = (start..text.len()).find(is_end)?;
        *searched = 0;
        let event = text.split_to(at);
        text.advance(if text.starts_with(b"\n\n") { 2 } else { 4 });
        let lines = event[..].split(|&byte| byte == b'\n').map(|line| line.trim_ascii());
        let data: Vec<&[u8]> = lines.filter_map(|line| line.strip_prefix(b"data:")).collect();
        if !data.is_empty() {
            return Some(data.join(&b'\n'));
        }
    }
}

fn outputs(event: &[u8], known: &[TensorMetadata]) -> Result<Vec<OutputTensor>> {
    let fields: Map<String, Value> = serde_json::from_slice(event).map_err(ResponseError::Json)?;
    if let Some(Value::String(error)) = fields.get("error") {
        return Err(Error::new(galatea_types::Code::Unknown, error.clone()));
    }
    let found = known.iter().filter_map(|tensor| Some((tensor, fields.get(&tensor.name)?)));
    found.map(|(tensor, value)| output(tensor, value)).collect()
}

fn output(tensor: &TensorMetadata, value: &Value) -> Result<OutputTensor> {
    let TensorMetadata { name, data_type, .. } = tensor;
    let data = json_data::read(name, *data_type, value)?;
    let count = match data_type {
        DataType::Bytes => value.as_array().map_or(1, Vec::len),
        other => data.len() / other.byte_size().unwrap_or(1),
    };
    let shape = vec![i64::try_from(count).unwrap_or(i64::MAX)];
    Ok(OutputTensor { name: name.clone(), data_type: *data_type, shape, data: data.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_ends_an_event() {
        let mut text =
            BytesMut::from(&b": note\n\ndata: {\"a\":1}\n\ndata: x\r\n\r\ndata: half\n"[..]);
        assert_eq!(take_event(&mut text, &mut 0).as_deref(), Some(&b" {\"a\":1}"[..]));
        assert_eq!(take_event(&mut text, &mut 0).as_deref(), Some(&b" x"[..]));
        assert_eq!(take_event(&mut text, &mut 0), None);
        assert_eq!(&text[..], b"data: half\n");
    }

    #[test]
    fn only_known_outputs_are_read() {
        let tensor = |name: &str, data_type| TensorMetadata {
            name: name.to_owned(),
            data_type,
            shape: vec![-1],
        };
        let known = [tensor("a", DataType::Int32), tensor("t", DataType::Bytes)];
        let found = outputs(br#"{"a":[1,2],"t":"x","model_name":"m"}"#, &known).unwrap();
        assert_eq!((found[0].shape[0], found[1].shape[0], found.len()), (2, 1, 2));
        let error = outputs(br#"{"error":"told to"}"#, &known).unwrap_err();
        assert_eq!(error.message(), "told to");
        assert!(outputs(b"[1", &known).is_err());
    }
}
