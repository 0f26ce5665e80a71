//! What the load tool and the commands read: data files, the answers of servers, their metrics, the summaries of other
//! runs, trace files.

use std::sync::LazyLock;

use galatea_client::{decode_infer_message, decode_infer_response, metric_samples};
use galatea_client_commands::read_metrics_page;
use galatea_perf_load::data::read_json;
use galatea_perf_report::html;
use galatea_perf_types::{
    model::{InputInfo, ModelInfo, OutputInfo, SchedulingKind},
    summary::Summary,
};
use galatea_trace_view::read_and_show;
use galatea_types::DataType;

/// One input and output of each type, of open shape. The names are one letter long, so that they are soon found.
static MODEL: LazyLock<ModelInfo> = LazyLock::new(|| {
    let names = || ('A'..).map(String::from).zip(DataType::ALL);
    let inputs = names().map(|(name, data_type)| InputInfo {
        name,
        data_type,
        shape: vec![-1],
        is_shape_tensor: false,
        optional: true,
    });
    let outputs = names().map(|(name, data_type)| OutputInfo { name, data_type, shape: vec![-1] });
    ModelInfo {
        name: "m".to_owned(),
        version: String::new(),
        max_batch_size: 4,
        scheduling: SchedulingKind::None,
        decoupled: false,
        response_cache: false,
        top_level_response_cache: false,
        inputs: inputs.collect(),
        outputs: outputs.collect(),
        composing: Vec::new(),
    }
});

/// No bytes make the reader of data files panic.
pub fn data(json: &[u8]) {
    if let Ok(data) = read_json(json, &MODEL) {
        assert!((0..data.stream_count()).all(|stream| data.step_count(stream) > 0));
    }
}

/// Any bytes as what a server answers over HTTP: tensors or an error, never a panic; and tensors lie within the
/// bytes that came, where they are binary.
pub fn http_response(data: &[u8]) {
    let Ok(outputs) = decode_infer_response(data) else { return };
    for output in &outputs {
        assert!(output.data.len() <= 8 * data.len(), "{output:?}");
    }
}

/// The same of what it answers over gRPC, however the network cuts it. The first byte is the size of the pieces.
pub fn grpc_response(data: &[u8]) {
    let Some((&size, bytes)) = data.split_first() else { return };
    let cut = decode_infer_message(bytes.chunks(usize::from(size) + 1));
    let whole = decode_infer_message(std::iter::once(bytes));
    assert_eq!(format!("{cut:?}"), format!("{whole:?}"));
    for output in cut.into_iter().flatten() {
        assert!(output.data.len() <= 8 * data.len(), "{output:?}");
    }
}

/// Any page of metrics is read: names and labels are parts of it, and there are no more models than lines.
pub fn metrics(page: &[u8]) {
    let page = String::from_utf8_lossy(page);
    for sample in metric_samples(&page) {
        assert!(page.contains(sample.name) && !sample.name.is_empty());
        assert!(sample.labels.iter().all(|(name, value)| name.len() + value.len() < page.len()));
    }
    assert!(read_metrics_page(&page) <= page.lines().count());
}

/// Any summary of another run can be drawn beside one's own.
pub fn summary(json: &[u8]) {
    if let Ok(summary) = serde_json::from_slice::<Summary>(json) {
        assert!(html::page(&[summary.clone(), summary]).is_ok());
    }
}

/// Any trace file is read, and what is shown of it obeys no character in it.
pub fn trace_file(bytes: &[u8]) {
    let Some((text, page)) = read_and_show(bytes) else { return };
    // Colours are the only commands to the terminal.
    let plain = text.replace("\x1b[", "");
    assert!(plain.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    assert!(!text.contains(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')));
    assert_eq!(page.matches("<script").count(), 2);
}
