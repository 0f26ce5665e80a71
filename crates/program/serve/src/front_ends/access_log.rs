//! The access log of the front ends, and its figure.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result};
use galatea_telemetry::{
    access_log::{AccessFormat, AccessLog, AccessTarget},
    families,
    logger::LogFormat,
    metrics::FigureSource,
};

use crate::options::ServeOptions;

/// Opens the access log, if the options have one, and gives it to all front ends.
pub fn open(options: &mut ServeOptions) -> Result<Option<Arc<AccessLog>>> {
    let Some(target) = &options.access_log else { return Ok(None) };
    let format = match options.log.format {
        LogFormat::Json => AccessFormat::Json,
        LogFormat::Default | LogFormat::Iso8601 => AccessFormat::Text,
    };
    let opened = AccessLog::open(target, format);
    let log = Arc::new(opened.with_context(|| {
        let file = match target {
            AccessTarget::Stdout => Path::new("stdout"),
            AccessTarget::File(file) => file,
        };
        format!("failed to open access log '{}' (--access-log)", file.display())
    })?);
    let requests = options.http_options.requests.clone().with_access_log(log.clone());
    options.http_options.requests = requests.clone();
    options.grpc_options.requests = requests;
    Ok(Some(log))
}

/// Writes the last lines when it is dropped, at the end of the server. The log also does so when its last owner is gone, but a
/// thread of the engine may own it a little longer than the process lasts.
pub struct LastLines(pub Option<Arc<AccessLog>>);

impl Drop for LastLines {
    fn drop(&mut self) {
        if let Some(log) = &self.0 {
            log.flush();
        }
    }
}

/// Returns the figure of lost lines.
pub fn figures(access_log: Arc<AccessLog>) -> FigureSource {
    Box::new(move |figures| {
        figures.set_labelled(&families::LOG_LINES_LOST, "access", access_log.lost());
    })
}
