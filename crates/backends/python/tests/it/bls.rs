//! Calls of models to other models and to the server.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    thread,
};

use galatea_backend::{Batch, InferTarget, ModelControl, Outcome, ServerAccess, testing};
use galatea_telemetry::CustomMetrics;
use galatea_types::{
    Buffer, Cause, Error, InferRequest, InferResponse, Observer, ParameterValue, Refused,
    RequestContext, Responder, Result, Tensor, Timeline,
};

use crate::common::{Written, bytes, error_text, output, request, run};

/// Models `twice` (doubles on another thread), `stream` (decoupled: each byte its own response) and
/// `refuses`, and `silent`, which never responds; it records its calls.
#[derive(Default)]
struct OtherModels {
    calls: Mutex<Vec<String>>,
    silent: Mutex<Vec<Responder>>,
}

impl InferTarget for OtherModels {
    fn infer(
        &self,
        request: InferRequest,
        mut context: RequestContext,
        mut responder: Responder,
    ) -> Result<(), Refused> {
        context.finish(std::time::Instant::now());
        self.record(format!("infer {} {}", request.model_name, request.id));
        let data = request.inputs[0].host_bytes().expect("host memory").clone();
        let answer = move |data: Vec<u8>| InferResponse {
            model_name: request.model_name.clone(),
            model_version: 1,
            id: request.id.clone(),
            parameters: vec![("seen".to_owned(), ParameterValue::Int(1))],
            outputs: vec![Tensor::new(
                "OUT",
                request.inputs[0].data_type,
                [data.len() as i64],
                data,
            )],
        };
        match &*answer(Vec::new()).model_name {
            "silent" => self.silent.lock().expect("no panic").push(responder),
            "refuses" => return Err(Refused::new(Error::invalid_arg("no"), responder)),
            "stream" => {
                thread::spawn(move || {
                    data.iter().for_each(|&byte| {
                        responder.send(Ok(answer(vec![byte])));
                    });
                    responder.close();
                });
            }
            _ => {
                thread::spawn(move || {
                    let doubled = data.iter().map(|byte| byte * 2).collect();
                    responder.finish(Ok(answer(doubled)));
                });
            }
        }
        Ok(())
    }

    fn is_decoupled(&self, model: &str, _: Option<i64>) -> Result<bool> {
        match model {
            "absent" => Err(Error::not_found("no such model")),
            model => Ok(model == "stream"),
        }
    }
}

impl ModelControl for OtherModels {
    fn load_model(
        &self,
        name: &str,
        config: Option<String>,
        files: BTreeMap<String, Buffer>,
    ) -> Result<()> {
        let files: Vec<_> = files
            .iter()
            .map(|(n, f)| format!("{n}={:?}", f.host().expect("host memory")))
            .collect();
        self.record(format!("load {name} {config:?} {files:?}"));
        Ok(())
    }

    fn unload_model(&self, name: &str, _: bool) -> Result<()> {
        Err(Error::not_found(format!("cannot unload {name}")))
    }

    fn is_model_ready(&self, name: &str, version: Option<i64>) -> bool {
        name == "twice" && version.is_none_or(|v| v == 1)
    }
}

impl OtherModels {
    fn record(&self, text: String) {
        self.calls.lock().expect("no panic").push(text);
    }
}

fn server() -> (ServerAccess, Arc<OtherModels>) {
    let others = Arc::new(OtherModels::default());
    let server = ServerAccess {
        models: others.clone(),
        control: others.clone(),
        metrics: Arc::new(CustomMetrics::default()),
        ..ServerAccess::default()
    };
    (server, others)
}

/// Calls `{model}` with its own input and responds with the result.
fn caller(model: &str) -> Written {
    Written::execute(&format!(
        r#"
        out = []
        for r in requests:
            call = pb_utils.InferenceRequest(model_name="{model}", request_id="inner",
                requested_output_names=["OUT"], inputs=[pb_utils.Tensor("IN", r.inputs()[0].as_numpy())])
            answer = call.exec()
            if answer.has_error():
                raise pb_utils.TritonModelException(answer.error().message())
            data = pb_utils.get_output_tensor_by_name(answer, "OUT").as_numpy()
            out.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", data)]))
        return out
"#
    ))
}

#[test]
fn a_model_calls_another_model() {
    let (access, others) = server();
    let (mut instance, _loaded) = caller("twice").beside(access).instance();
    for size in [3, 40_000, 2 << 20] {
        assert_eq!(output(run(&mut *instance, bytes(&vec![4; size]))), vec![8; size]);
    }
    assert_eq!(others.calls.lock().expect("no panic")[0], "infer twice inner");
    // The workers' memory is used again and again.
    let requests = (0..16).map(|i| request(bytes(&vec![i; 50_000]))).collect();
    for (i, answer) in testing::run_batch(&mut *instance, requests).into_iter().enumerate() {
        assert_eq!(output(answer), vec![i as u8 * 2; 50_000]);
    }
}

#[test]
fn invalid_calls_are_refused_like_in_triton() {
    let (access, _) = server();
    let cases = [
        (
            "absent",
            "Model absent - Error when running inference: Failed for execute the inference request. Model 'absent' is not ready.",
        ),
        ("stream", "using the decoupled transaction policy. Please use 'decoupled=True' argument"),
        ("refuses", "Model refuses - Error when running inference: no"),
    ];
    for (model, text) in cases {
        let (mut instance, _loaded) = caller(model).beside(access.clone()).instance();
        let error = error_text(run(&mut *instance, bytes(&[1])));
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn a_call_to_a_decoupled_model_returns_many_responses() {
    let body = r#"
        call = pb_utils.InferenceRequest(model_name="stream", requested_output_names=["OUT"],
            inputs=[pb_utils.Tensor("IN", requests[0].inputs()[0].as_numpy())])
        parts = [pb_utils.get_output_tensor_by_name(a, "OUT").as_numpy()
            for a in call.exec(decoupled=True) if len(a.output_tensors()) > 0]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.concatenate(parts[::-1]))])]
"#;
    let (mut instance, _loaded) = Written::execute(body).beside(server().0).instance();
    assert_eq!(output(run(&mut *instance, bytes(&[1, 2, 3]))), [3, 2, 1]);
}

#[test]
fn a_model_loads_and_unloads_other_models() {
    let body = r#"
        pb_utils.load_model("other", config='{"a": 1}', files={"file:1/x": b"\x00\x01"})
        results = [pb_utils.is_model_ready("twice"), pb_utils.is_model_ready("twice", "2")]
        try:
            pb_utils.unload_model("other")
        except Exception as error:
            results.append(str(error))
        text = np.frombuffer(repr(results).encode(), dtype=np.uint8)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", text)])]
"#;
    let (access, others) = server();
    let (mut instance, _loaded) = Written::execute(body).beside(access).instance();
    let text = String::from_utf8(output(run(&mut *instance, bytes(&[1])))).expect("text");
    assert!(text.starts_with("[True, False, ") && text.contains("cannot unload other"), "{text}");
    let call = others.calls.lock().expect("no panic")[0].clone();
    assert_eq!(call, r#"load other Some("{\"a\": 1}") ["1/x=[0, 1]"]"#);
}

#[test]
fn metrics_are_removed_with_their_worker() {
    let class = r#"
    def initialize(self, args):
        self.family = pb_utils.MetricFamily(
            name="seen_total", description="What was seen", kind=pb_utils.MetricFamily.COUNTER)
        self.metric = self.family.Metric(labels={"model": "m"})

    def execute(self, requests):
        self.metric.increment(2.5)
        value = np.array([int(self.metric.value() * 10)], dtype=np.uint8)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", value)])]
"#;
    let (access, _) = server();
    let (mut instance, _loaded) = Written::class(class).beside(access.clone()).instance();
    assert_eq!(output(run(&mut *instance, bytes(&[1]))), [25]);
    assert_eq!(output(run(&mut *instance, bytes(&[1]))), [50]);
    assert!(page(&access).contains("seen_total{model=\"m\"} 5"), "{}", page(&access));
    drop(instance);
    assert_eq!(page(&access), "");
}

/// The model creates its metrics when it needs them and keeps only their family.
#[test]
fn a_kept_metric_family_accepts_recreated_metrics() {
    let class = r#"
    def initialize(self, args):
        self.family = pb_utils.MetricFamily(name="kept", description="x", kind=pb_utils.MetricFamily.COUNTER)

    def execute(self, requests):
        metric = self.family.Metric(labels={"b": "2", "a": "1"})
        metric.increment(np.float32(1))
        value = np.array([int(self.family.Metric(labels={"a": "1", "b": "2"}).value())], dtype=np.uint8)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", value)])]
"#;
    let (access, _) = server();
    let (mut instance, _loaded) = Written::class(class).beside(access.clone()).instance();
    for count in 1..=3 {
        assert_eq!(output(run(&mut *instance, bytes(&[1]))), [count]);
    }
    assert!(page(&access).contains("kept{a=\"1\",b=\"2\"} 3"), "{}", page(&access));
}

/// The processes of a model's instances share a series, which outlives the end of one process.
#[test]
fn instances_share_one_metric_series() {
    let class = r#"
    def initialize(self, args):
        self.family = pb_utils.MetricFamily(name="shared", description="x", kind=pb_utils.MetricFamily.COUNTER)
        self.metric = self.family.Metric(labels={"by": "all"})

    def execute(self, requests):
        self.metric.increment(1)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([int(self.metric.value())], dtype=np.uint8))])]
"#;
    let (access, _) = server();
    let loaded = Written::class(class).beside(access.clone()).load();
    let mut first = loaded.instance(0).expect("an instance");
    let mut second = loaded.instance(1).expect("another");
    assert_eq!(output(run(&mut *first, bytes(&[1]))), [1]);
    assert_eq!(output(run(&mut *second, bytes(&[1]))), [2]);
    drop(first);
    assert_eq!(output(run(&mut *second, bytes(&[1]))), [3]);
    assert!(page(&access).contains("shared{by=\"all\"} 3"), "{}", page(&access));
}

/// The name is free again, also for another kind.
#[test]
fn a_removed_metric_family_removes_its_series() {
    let body = r#"
        family = pb_utils.MetricFamily(name="goes", description="x", kind=pb_utils.MetricFamily.COUNTER)
        metric = family.Metric()
        metric.increment(1)
        del family
        try:
            metric.value()
        except pb_utils.TritonModelException as error:
            text = str(error)
        again = pb_utils.MetricFamily(name="goes", description="x", kind=pb_utils.MetricFamily.GAUGE)
        again.Metric().set(float("inf"))
        text += " " + str(again.Metric().value())
        del metric, again
        # Messages keep their order: the server knows of the end of the family when it answers this.
        pb_utils.is_model_ready("twice")
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError(text))]
"#;
    let (access, _) = server();
    let (mut instance, _loaded) = Written::execute(body).beside(access.clone()).instance();
    let text = error_text(run(&mut *instance, bytes(&[1])));
    assert!(text.contains("'MetricFamily' has been deleted") && text.ends_with(" inf"), "{text}");
    assert_eq!(page(&access), "");
}

fn page(access: &ServerAccess) -> String {
    let mut text = String::new();
    access.metrics.render_into(&mut text);
    text
}

/// The model makes endless calls without waiting for responses: the limit stops them, and the worker continues.
#[test]
fn the_number_of_open_calls_of_a_model_is_bounded() {
    let body = r#"
        import asyncio

        async def call():
            inner = pb_utils.InferenceRequest(model_name="silent", requested_output_names=["OUT"],
                inputs=requests[0].inputs())
            return await inner.async_exec()

        async def flood():
            tasks = [asyncio.ensure_future(call()) for _ in range(5000)]
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            response = next(iter(done)).result()
            [task.cancel() for task in tasks]
            return response.error().message()

        message = asyncio.run(flood())
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError(message))]
"#;
    let (server, others) = server();
    let (mut instance, _loaded) = Written::execute(body).beside(server).instance();
    let text = error_text(run(&mut *instance, bytes(&[1])));
    assert!(text.contains("already has 4096 open calls"), "{text}");
    assert!(others.silent.lock().expect("no panic").len() <= 4096);
}

#[test]
fn the_number_of_metrics_of_a_model_is_bounded() {
    let body = r#"
        family = pb_utils.MetricFamily(name="many", description="x", kind=pb_utils.MetricFamily.COUNTER)
        self.kept = []
        try:
            for n in range(20_000):
                self.kept.append(family.Metric(labels={"n": str(n)}))
        except Exception as error:
            first = str(error)
        try:
            pb_utils.MetricFamily(name="long", description="x" * 100_000, kind=pb_utils.MetricFamily.COUNTER)
        except Exception as error:
            first += "; " + str(error)
        del family
        family = pb_utils.MetricFamily(name="many", description="x", kind=pb_utils.MetricFamily.COUNTER)
        self.kept.append(family.Metric(labels={"n": "again"}))
        return [pb_utils.InferenceResponse(error=pb_utils.TritonError(first))]
"#;
    let (server, _) = server();
    let metrics = server.metrics.clone();
    let (mut instance, _loaded) = Written::execute(body).beside(server).instance();
    let text = error_text(run(&mut *instance, bytes(&[1])));
    assert!(text.contains("may not define more than 10000 metrics"), "{text}");
    drop(instance);
    drop(metrics);
}

/// Notes the calls that a request causes and that end, each behind the name of the request.
#[derive(Clone, Debug)]
struct Calls {
    name: &'static str,
    ended: Arc<Mutex<Vec<String>>>,
}

impl Observer for Calls {
    fn finish(&self, _: &Timeline) {}

    fn child(self: Arc<Self>, model: &str, cause: Cause) -> Option<Arc<dyn Observer>> {
        let traced = match cause {
            Cause::ModelCall { passes_trace: true } => ", traced",
            Cause::ModelCall { passes_trace: false } => "",
            Cause::Step => " as a step",
        };
        let text = format!("{}: {model}{traced}", self.name);
        Some(Arc::new(Call { text, ended: self.ended.clone() }))
    }
}

#[derive(Debug)]
struct Call {
    text: String,
    ended: Arc<Mutex<Vec<String>>>,
}

impl Observer for Call {
    fn finish(&self, timeline: &Timeline) {
        assert!(timeline.end.is_some());
        self.ended.lock().expect("no panic").push(self.text.clone());
    }

    fn child(self: Arc<Self>, _: &str, _: Cause) -> Option<Arc<dyn Observer>> {
        None
    }
}

/// Runs a batch of requests, named in their order, and returns the observed calls.
fn observed_calls(model: Written, names: &[&'static str]) -> Vec<String> {
    let (access, _) = server();
    let (mut instance, _loaded) = model.beside(access).instance();
    let ended = Arc::<Mutex<Vec<String>>>::default();
    let pending: Vec<_> = names
        .iter()
        .map(|&name| {
            let (mut pending, _) = testing::pending(request(bytes(&[1])));
            pending.context.observers.add(Arc::new(Calls { name, ended: ended.clone() }));
            pending
        })
        .collect();
    let mut batch = Batch::new("m".into(), 1, pending);
    instance.execute(&mut batch);
    for (_, outcome) in batch.into_outcomes() {
        assert!(matches!(outcome, Outcome::Answered(Ok(_))));
    }
    ended.lock().expect("no panic").clone()
}

#[test]
fn a_call_with_a_trace_is_a_child_of_that_request() {
    let traced = Written::execute(
        r#"
        out = []
        for r in reversed(requests):
            call = pb_utils.InferenceRequest(model_name="twice", trace=r.trace(),
                requested_output_names=["OUT"], inputs=[pb_utils.Tensor("IN", r.inputs()[0].as_numpy())])
            out.append(pb_utils.InferenceResponse([pb_utils.get_output_tensor_by_name(call.exec(), "OUT")]))
        return out
"#,
    );
    assert_eq!(observed_calls(traced, &["a", "b"]), ["b: twice, traced", "a: twice, traced"]);
}

#[test]
fn a_call_without_a_trace_is_a_child_of_the_only_request() {
    assert_eq!(observed_calls(caller("twice"), &["a"]), ["a: twice"]);
    assert!(observed_calls(caller("twice"), &["a", "b"]).is_empty(), "either may have caused it");
}
