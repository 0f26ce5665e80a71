//! `ModelStreamInfer`: requests and responses in both directions.

use std::{future::poll_fn, rc::Rc, str, time::Instant};

use bytes::Bytes;
use galatea_types::{Error, Result};
use h2::{RecvStream, SendStream, client::ResponseFuture};
use http::HeaderMap;

use super::{
    GrpcCaller,
    fields::{Field, Fields, NoMessage},
    message::MessageReader,
    metadata, outputs,
    pool::Channel,
    status,
    unary::plain,
};
use crate::{
    InferMark, KeepResponse, PreparedInfer, StreamReply, prepared_infer::WireForm,
    response_error::ResponseError, transport::Route,
};

/// Most bytes of capacity requested from flow control at a time.
const MAX_PIECE: usize = 1 << 20;

/// Field numbers of `ModelStreamInferResponse`, `ModelInferResponse`, and its parameters' entries and values.
const ERROR_MESSAGE: u32 = 1;
const INFER_RESPONSE: u32 = 2;
const ID: u32 = 3;
const PARAMETERS: u32 = 4;
const OUTPUTS: u32 = 5;
const KEY: u32 = 1;
const VALUE: u32 = 2;
const BOOL_PARAM: u32 = 1;

/// The sending half of a `ModelStreamInfer` call. If it is dropped without [`finish`](Self::finish) and the receiver is
/// gone too, the stream is cancelled.
pub struct StreamSender {
    body: SendStream<Bytes>,
    /// Not the channel: the two halves share one place on it.
    route: Rc<Route>,
}

/// The receiving half of a `ModelStreamInfer` call.
pub struct StreamReceiver {
    state: State,
    reader: MessageReader,
    channel: Rc<Channel>,
}

enum State {
    Waiting(ResponseFuture),
    Open(RecvStream, HeaderMap),
    Ended,
}

impl GrpcCaller {
    /// Turns the caller into a stream, which keeps its share of the connection.
    pub async fn stream(mut self) -> Result<(StreamSender, StreamReceiver)> {
        self.ready().await?;
        let head = metadata::head(&self.channel.route.target, "ModelStreamInfer")?;
        let opened = self.link.send.send_request(head, false);
        let (response, body) = opened.map_err(|error| self.channel.broken(error))?;
        let sender = StreamSender { body, route: Rc::clone(&self.channel.route) };
        let receiver = StreamReceiver {
            state: State::Waiting(response),
            reader: MessageReader::default(),
            channel: self.channel,
        };
        Ok((sender, receiver))
    }
}

impl StreamSender {
    /// Sends the request over the connection; waits while the server accepts no more.
    ///
    /// # Errors
    /// If the stream or its connection has ended; the receiver has the reason.
    pub async fn send(&mut self, request: &PreparedInfer, mark: InferMark) -> Result<()> {
        let WireForm::Grpc(form) = &request.form else {
            return Err(Error::invalid_arg("the request was prepared for another protocol"));
        };
        self.push(form.front(mark)?).await?;
        for part in form.tail() {
            self.push(part.clone()).await?;
        }
        Ok(())
    }

    /// Sends the bytes as flow control allows.
    async fn push(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            self.body.reserve_capacity(bytes.len().min(MAX_PIECE));
            let capacity = match self.body.capacity() {
                0 => self.capacity().await?,
                capacity => capacity,
            };
            let piece = bytes.split_to(capacity.min(bytes.len()));
            self.body
                .send_data(piece, false)
                .map_err(|error| status::broken(&self.route.target, error, true))?;
        }
        Ok(())
    }

    async fn capacity(&mut self) -> Result<usize> {
        loop {
            match poll_fn(|context| self.body.poll_capacity(context)).await {
                Some(Ok(0)) => {}
                Some(Ok(capacity)) => return Ok(capacity),
                Some(Err(error)) => return Err(status::broken(&self.route.target, error, true)),
                None => {
                    let url = self.route.target.url();
                    return Err(Error::unavailable(format!("the stream to {url} has ended")));
                }
            }
        }
    }

    /// Ends the request side of the stream. Responses still arrive.
    pub fn finish(mut self) {
        // An error means that the stream has already ended.
        let _ = self.body.send_data(Bytes::new(), true);
    }
}

impl StreamReceiver {
    /// Returns the next response; `None` after the stream has ended well, or after an error.
    pub async fn next(&mut self, keep: KeepResponse) -> Option<Result<StreamReply>> {
        let result = self.advance(keep).await;
        if !matches!(result, Ok(Some(_))) {
            self.state = State::Ended;
        }
        result.transpose()
    }

    async fn advance(&mut self, keep: KeepResponse) -> Result<Option<StreamReply>> {
        let limit = self.channel.route.response_limit;
        loop {
            match &mut self.state {
                State::Ended => return Ok(None),
                State::Waiting(response) => {
                    let response = response.await.map_err(|error| self.channel.broken(error))?;
                    self.channel.answered.set(true);
                    if let Some(ended) = status::find(response.headers()) {
                        return ended.map(|()| None);
                    }
                    if response.status() != 200 {
                        return Err(status::not_grpc(
                            &self.channel.route.target,
                            response.status(),
                        ));
                    }
                    let (head, body) = response.into_parts();
                    self.state = State::Open(body, head.headers);
                }
                State::Open(body, headers) => {
                    if let Some(message) = self.reader.next() {
                        let at = Instant::now();
                        return reply(at, plain(message, headers, limit)?, keep).map(Some);
                    }
                    match body.data().await {
                        Some(piece) => {
                            let piece = piece.map_err(|error| self.channel.broken(error))?;
                            // Cannot fail: no more is released than was received.
                            let _ = body.flow_control().release_capacity(piece.len());
                            self.reader.push(piece);
                            self.reader.check_length(limit)?;
                        }
                        None => return ended(body, &self.channel, &self.reader).await,
                    }
                }
            }
        }
    }
}

/// Returns `None`, or the error with which the stream ended.
async fn ended(
    body: &mut RecvStream,
    channel: &Channel,
    reader: &MessageReader,
) -> Result<Option<StreamReply>> {
    let trailers = body.trailers().await.map_err(|error| channel.broken(error))?;
    match trailers.as_ref().and_then(status::find) {
        Some(Err(error)) => Err(error),
        Some(Ok(())) if reader.is_empty() => Ok(None),
        Some(Ok(())) => Err(ResponseError::StreamCutShort.into()),
        None => Err(ResponseError::StreamWithoutStatus.into()),
    }
}

/// Reads an encoded `ModelStreamInferResponse`, its tensors only if they are kept.
fn reply(at: Instant, message: Bytes, keep: KeepResponse) -> Result<StreamReply> {
    let malformed = |_: NoMessage| ResponseError::NotProtobuf;
    let mut reply = StreamReply {
        at,
        id: None,
        error: None,
        // A response without this parameter is the only one to its request.
        is_final: true,
        is_empty: true,
        outputs: Vec::new(),
    };
    let mut response = None;
    for field in Fields(&message) {
        match field.map_err(malformed)? {
            Field::Bytes(ERROR_MESSAGE, text) if !text.is_empty() => {
                reply.error = Some(String::from_utf8_lossy(text).into_owned());
            }
            Field::Bytes(INFER_RESPONSE, inner) => {
                read_response(inner, &mut reply).map_err(malformed)?;
                response = Some(message.slice_ref(inner));
            }
            _ => {}
        }
    }
    if let (KeepResponse::Outputs, Some(response), None) = (keep, response, &reply.error) {
        reply.outputs = outputs::decode(response)?;
    }
    Ok(reply)
}

fn read_response(response: &[u8], reply: &mut StreamReply) -> Result<(), NoMessage> {
    for field in Fields(response) {
        match field? {
            Field::Bytes(ID, id) => {
                reply.id = str::from_utf8(id).ok().and_then(|id| id.parse().ok());
            }
            Field::Bytes(PARAMETERS, entry) => {
                if let Some(is_final) = final_flag(entry)? {
                    reply.is_final = is_final;
                }
            }
            Field::Bytes(OUTPUTS, _) => reply.is_empty = false,
            _ => {}
        }
    }
    Ok(())
}

/// Returns the value of the entry, if it is `triton_final_response`.
fn final_flag(entry: &[u8]) -> Result<Option<bool>, NoMessage> {
    let mut is_it = false;
    let mut value: &[u8] = &[];
    for field in Fields(entry) {
        match field? {
            Field::Bytes(KEY, key) => is_it = key == b"triton_final_response",
            Field::Bytes(VALUE, inner) => value = inner,
            _ => {}
        }
    }
    if !is_it {
        return Ok(None);
    }
    let mut flag = false;
    for field in Fields(value) {
        if let Field::Varint(BOOL_PARAM, value) = field? {
            flag = value != 0;
        }
    }
    Ok(Some(flag))
}

#[cfg(test)]
mod tests {
    use galatea_proto::inference::{
        InferParameter, ModelInferResponse, ModelStreamInferResponse,
        infer_parameter::ParameterChoice, model_infer_response::InferOutputTensor,
    };
    use prost::Message;

    use super::*;

    #[track_caller]
    fn read(message: &ModelStreamInferResponse, keep: KeepResponse) -> StreamReply {
        reply(Instant::now(), message.encode_to_vec().into(), keep).unwrap()
    }

    fn response(is_final: Option<bool>) -> ModelStreamInferResponse {
        let flag =
            |value| InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(value)) };
        let mut response = ModelInferResponse { id: "17".into(), ..Default::default() };
        response.parameters.insert("another".into(), flag(true));
        if let Some(is_final) = is_final {
            response.parameters.insert("triton_final_response".into(), flag(is_final));
        }
        ModelStreamInferResponse { infer_response: Some(response), ..Default::default() }
    }

    #[test]
    fn flags_are_read_without_decoding() {
        for (flag, expected) in [(None, true), (Some(true), true), (Some(false), false)] {
            let found = read(&response(flag), KeepResponse::Nothing);
            assert_eq!((found.id, found.is_final, found.is_empty), (Some(17), expected, true));
            assert_eq!(found.error, None);
        }
    }

    #[test]
    fn outputs_are_decoded_on_demand() {
        let mut message = response(Some(false));
        let inner = message.infer_response.as_mut().unwrap();
        let output =
            InferOutputTensor { name: "A".into(), datatype: "UINT8".into(), ..Default::default() };
        inner.outputs.push(output);
        inner.raw_output_contents.push(Bytes::from_static(b"x"));
        let found = read(&message, KeepResponse::Nothing);
        assert!(!found.is_empty && found.outputs.is_empty());
        let found = read(&message, KeepResponse::Outputs);
        assert_eq!(found.outputs[0].data, "x");
    }

    #[test]
    fn errors_keep_message_and_request_id() {
        let mut message = response(None);
        message.error_message = "no such model".into();
        let found = read(&message, KeepResponse::Outputs);
        assert_eq!((found.error.as_deref(), found.id), (Some("no such model"), Some(17)));
    }
}
