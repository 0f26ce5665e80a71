//! Every request with its timestamps and tensors, as perf_analyzer 2.50 writes them (`--profile-export-file`);
//! genai-perf reads this.
//!
//! One line of JSON: `{"experiments":[{"experiment":{"mode","value"},"requests":[..],"window_boundaries":[..]}],
//! "version","service_kind","endpoint"}`. A request is `{"timestamp","sequence_id" (if it has one),
//! "request_inputs":{name: value},"response_timestamps":[..],"response_outputs":[{name: value}]}`. Times are
//! nanoseconds since the Unix epoch. A tensor of one element is that element, of more a flat list.

mod tensor;

use std::{
    collections::HashMap,
    io::{self, Write},
};

use galatea_client::{InputData, OutputTensor};
use galatea_perf_types::{
    record::{Nanos, RequestRecord},
    requests::RequestSource,
    status::LoadPoint,
};

/// Writes an export during the run, so that it never holds more than one request.
pub struct ProfileExport<'a, W: Write> {
    out: W,
    source: &'a dyn RequestSource,
    /// Inputs by stream and step. Requests repeat the steps of the data, so each is converted to JSON once.
    inputs: HashMap<(usize, usize), String>,
    has_experiments: bool,
}

impl<'a, W: Write> ProfileExport<'a, W> {
    /// `out` should be buffered. `source` made the requests.
    pub fn new(mut out: W, source: &'a dyn RequestSource) -> io::Result<Self> {
        out.write_all(br#"{"experiments":["#)?;
        Ok(Self { out, source, inputs: HashMap::new(), has_experiments: false })
    }

    /// Writes one point of the search, stable or not. A window begins where the last one ended, so there is one boundary more
    /// than windows. Periodic concurrency is `Concurrency(1)` with the boundaries 0 and `u64::MAX`.
    pub fn experiment<'r>(
        &mut self,
        load: LoadPoint,
        requests: impl IntoIterator<Item = &'r RequestRecord>,
        window_boundaries: &[Nanos],
    ) -> io::Result<()> {
        if std::mem::replace(&mut self.has_experiments, true) {
            self.out.write_all(b",")?;
        }
        let (mode, value) = match load {
            LoadPoint::Concurrency(concurrency) => ("concurrency", concurrency.to_string()),
            LoadPoint::RequestRate(rate) => ("request_rate", tensor::float(rate)),
        };
        write!(self.out, r#"{{"experiment":{{"mode":"{mode}","value":{value}}},"requests":["#)?;
        for (index, request) in requests.into_iter().enumerate() {
            if index > 0 {
                self.out.write_all(b",")?;
            }
            self.request(request)?;
        }
        write!(self.out, r#"],"window_boundaries":[{}]}}"#, joined(window_boundaries))
    }

    fn request(&mut self, request: &RequestRecord) -> io::Result<()> {
        write!(self.out, r#"{{"timestamp":{},"#, request.start)?;
        if request.sequence_id != 0 {
            write!(self.out, r#""sequence_id":{},"#, request.sequence_id)?;
        }
        self.out.write_all(br#""request_inputs":"#)?;
        let exported = request.exported.as_deref();
        match exported {
            None => self.out.write_all(b"{}")?,
            Some(exported) => {
                let (stream, step) = (exported.stream, exported.step);
                let (source, inputs) = (self.source, self.inputs.entry((stream, step)));
                let inputs = inputs.or_insert_with(|| step_inputs(source, stream, step));
                self.out.write_all(inputs.as_bytes())?;
            }
        }
        let timestamps = joined(&request.responses);
        write!(self.out, r#","response_timestamps":[{timestamps}],"response_outputs":["#)?;
        let outputs = exported.map(|exported| exported.outputs.as_slice()).unwrap_or_default();
        for (index, response) in outputs.iter().enumerate() {
            if index > 0 {
                self.out.write_all(b",")?;
            }
            self.out.write_all(response_outputs(response).as_bytes())?;
        }
        self.out.write_all(b"]}")
    }

    /// Completes the document, flushes it and returns its writer.
    pub fn finish(mut self) -> io::Result<W> {
        // perf_analyzer also leaves the version empty, and the endpoint except for OpenAI servers.
        self.out.write_all(br#"],"version":"","service_kind":"triton","endpoint":""}"#)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn step_inputs(source: &dyn RequestSource, stream: usize, step: usize) -> String {
    let template = source.template(stream, step);
    let members = template.inputs.iter().map(|input| {
        let data: &[u8] = match &input.data {
            InputData::Inline(data) => data,
            InputData::Region(_) => &[],
        };
        member(&input.name, &tensor::value(input.data_type, data))
    });
    object(members)
}

fn response_outputs(outputs: &[OutputTensor]) -> String {
    let members = outputs
        .iter()
        .map(|output| member(&output.name, &tensor::value(output.data_type, &output.data)));
    object(members)
}

fn member(name: &str, value: &str) -> String {
    format!("{}:{value}", tensor::string(name))
}

fn object(members: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn joined(times: &[Nanos]) -> String {
    times.iter().map(Nanos::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
