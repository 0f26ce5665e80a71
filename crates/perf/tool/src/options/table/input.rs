//! Options for the data of requests.

use std::path::PathBuf;

use galatea_client::TensorFormat;
use galatea_command_line::{Occurrence, options, set};
use galatea_perf_types::settings::SharedMemory;

use super::{
    super::{
        error::OptionError,
        range,
        readers::{at_least, choice, failed, number, unsupported},
        setting,
    },
    row::{Row, switch, value},
};

pub const ROWS: &[Row] = options! {
    /// Batch size of every request. Default 1.
    "" => value("n", set!(|given, text| given.settings.batch_size = at_least(text, 1, "be > 0.")?))
        .short('b').meaning("batch size"),
    /// Content of requests: random values, zeros, a directory with one file per input (named like it), or JSON.
    /// Several JSON files follow each other. Default random.
    "input-data" => value("random|zero|path", |given, text| {
        let path = PathBuf::from(&text.text);
        // A file with that name has priority over the word.
        match text.text.as_str() {
            _ if path.exists() => given.user_data.push(path),
            "zero" => given.zero_input = true,
            "random" => {}
            _ => {
                return Err(unsupported(
                    text,
                    "The available options are 'zero', 'random', path to a directory, or a json \
                     file.",
                ));
            }
        }
        Ok(())
    }),
    /// Dimensions of an input that leaves some open, without the batch. Once for each such input.
    "shape" => value("name:d1,d2,...", |given, text| {
        let (name, dimensions) = setting::shape(text)?;
        given.settings.data.shapes.insert(name, dimensions);
        Ok(())
    }),
    /// Length of random strings. Default 128.
    "string-length" => value("n",
        set!(|given, text| given.settings.data.string_length = at_least(text, 1, "be > 0")?)),
    /// The string to fill string inputs with instead of random ones.
    "string-data" => value("text", |given, v| v.put(&mut given.settings.data.string_data)),
    /// Hand tensors to a server on this machine through shared memory: files of /dev/shm (system), or memory without a
    /// name that is passed over the server's Unix socket for HTTP (memfd). Default none; cuda is refused.
    "shared-memory" => value("none|system|memfd", |given, text| {
        if text.text == "cuda" {
            return Err(OptionError::rule(
                "--shared-memory cuda is not supported: regions are in system memory ('system')",
            ));
        }
        let all = [SharedMemory::None, SharedMemory::System, SharedMemory::Memfd];
        let choices = all.map(|kind| (kind.name(), kind));
        let available = "The available options are 'system', 'cuda', or 'none'. This program has 'memfd' as \
                         well, and refuses 'cuda'.";
        given.settings.shared_memory = choice(text, &choices, available)?;
        Ok(())
    }),
    /// Room for an output whose size cannot be known beforehand, per batch element. Default 102400.
    "output-shared-memory-size" => value("bytes",
        set!(|given, text| given.settings.output_region_size = at_least(text, 0, "be >= 0.")?)),
    /// Requests of a sequence. Default 20, or as many as the input data has.
    "sequence-length" => value("n", |given, text| {
        let length: i64 = at_least(text, i128::from(i64::MIN), "")?;
        match u64::try_from(length) {
            Ok(length) if length > 0 => given.settings.sequences.length = length,
            _ => given.warn(
                "The sequence length must be > 0. Perf Analyzer will use default value if it is \
                 measuring on sequence model.",
            ),
        }
        given.settings.sequences.length_specified = true;
        Ok(())
    }),
    /// Percentage by which sequences may be longer or shorter than that. Default 20.
    "sequence-length-variation" => value("percent",
        set!(|given, text| given.settings.sequences.length_variation = number(text)?)),
    /// Ids for sequences, end excluded; they are used again when all are used up. Default 1, without an end.
    "sequence-id-range" => value("start[:end]", |given, text| {
        let (first, count) = range::sequence_ids(text)?;
        given.settings.sequences.first_id = first;
        given.settings.sequences.id_count = count;
        Ok(())
    }),
    /// Form of inputs over HTTP. Default binary.
    "input-tensor-format" => value("binary|json",
        set!(|given, text| given.settings.data.input_format = tensor_format(text)?)),
    /// Form of outputs over HTTP. Default binary.
    "output-tensor-format" => value("binary|json",
        set!(|given, text| given.settings.data.output_format = tensor_format(text)?)),
    /// A parameter of every request; type bool, int or string. May be repeated. gRPC only.
    "request-parameter" => value("name:value:type", |given, text| {
        let (name, value) = setting::request_parameter(text)?;
        given.settings.request_parameters.retain(|(other, _)| *other != name);
        given.settings.request_parameters.push((name, value));
        Ok(())
    }),
    /// Deprecated: --input-data zero.
    "" => switch(|given, v| v.put(&mut given.zero_input)).short('z'),
    /// Deprecated: --input-data path.
    "data-directory" => value("path", |given, text| {
        let path = PathBuf::from(&text.text);
        if !path.exists() {
            return Err(failed(text, format!("There is no '{}'.", text.text)));
        }
        given.user_data.push(path);
        Ok(())
    }),
};

fn tensor_format(text: &Occurrence) -> Result<TensorFormat, OptionError> {
    match text.text.to_ascii_lowercase().as_str() {
        "binary" => Ok(TensorFormat::Binary),
        "json" => Ok(TensorFormat::Json),
        _ => Err(unsupported(text, "The available options are 'binary' or 'json'.")),
    }
}
