//! Load reports: the stream, and the trailers of calls that ask.

use std::time::Duration;

use galatea_proto::{load_report::OrcaLoadReport, load_report_service::OrcaLoadReportRequest};
use prost::Message as _;
use tonic::{Code, Request, metadata::MetadataMap};

use crate::{clients::OpenRcaServiceClient, support::*};

fn reported(metadata: &MetadataMap) -> Option<OrcaLoadReport> {
    let value = metadata.get_bin("endpoint-load-metrics-bin")?.to_bytes().expect("base64");
    Some(OrcaLoadReport::decode(value).expect("a report"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stream_of_reports_does_not_delay_the_exit() {
    let mut f = Fixture::start();
    f.engine.sample_load();
    let mut client = OpenRcaServiceClient::new(f.channel().await);
    // The second report would come in an hour.
    let report_interval = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
    let request = OrcaLoadReportRequest { report_interval, request_cost_names: Vec::new() };
    let reports = client.stream_core_metrics(request.clone()).await.expect("reports");
    let mut reports = reports.into_inner();
    let report = reports.message().await.expect("a report").expect("the first");
    assert_eq!(report.application_utilization, 0.001);
    assert!(report.named_metrics.contains_key("galatea.load.identity_fp32"), "{report:?}");
    let server = f.server.take().expect("running");
    server.refuse_new_requests();
    let end = reports.message().await.expect_err("the end");
    assert_eq!(end.code(), Code::Unavailable);
    client.stream_core_metrics(request).await.expect_err("refused");
    assert_eq!(server.shut_down(Duration::from_secs(20)), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_gets_a_report_only_if_it_asks() {
    let f = Fixture::start();
    f.engine.sample_load();
    let mut client = f.client().await;
    let asking = |model: &str, form: &'static str| {
        let mut request = Request::new(vector(model, "r", &[1.0]));
        request.metadata_mut().insert("endpoint-load-metrics-format", form.parse().expect("text"));
        request
    };
    let answer = client.model_infer(asking("identity_fp32", "bin")).await.expect("an answer");
    let report = reported(answer.metadata()).expect("in the trailers");
    assert!(report.named_metrics.contains_key("galatea.queue"), "{report:?}");
    let answer = client.model_infer(asking("identity_fp32", "xml")).await.expect("an answer");
    assert_eq!(reported(answer.metadata()), None);
    let error = client.model_infer(asking("nosuch", "JSON")).await.expect_err("no such model");
    assert_eq!(error.code(), Code::NotFound);
    assert!(reported(error.metadata()).is_some());
}
