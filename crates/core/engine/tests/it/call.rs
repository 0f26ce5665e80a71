//! The one way of a client's request to its model, and what observers see of it.

use std::sync::{Arc, Mutex};

use galatea_engine::{
    Engine,
    call::{DecodedCall, FoundModel},
};
use galatea_types::{
    CallRecord, Cause, ClientAccount, ClientShare, Error, Identity, InferRequest, MemoryBudget,
    MemoryReservation, Observer, ParameterValue, Protocol, RequestContext, RequestStart, Responder,
    Result, Sender, ShareLimits, Timeline,
};

use crate::fixture::{CONFIG, add_model, explicit, request, wait};

/// A sender that may not ask a model called `secret`.
struct Client(Arc<ClientAccount>);

impl Client {
    fn new(requests: usize) -> Self {
        Self(ClientAccount::new(ShareLimits { requests, ..ShareLimits::NONE }))
    }
}

impl Sender for Client {
    const PROTOCOL: Protocol = Protocol::Grpc;

    fn check(&self, model: &str) -> Result<()> {
        if model == "secret" { Err(Error::unsupported("not allowed")) } else { Ok(()) }
    }

    fn identity(&self) -> Option<&Arc<Identity>> {
        None
    }

    fn take_share(&mut self, bytes: usize) -> Result<Option<Box<ClientShare>>> {
        let share = self.0.take(bytes).map_err(|_| Error::unavailable("too many"))?;
        Ok(Some(Box::new(share)))
    }

    fn forward_headers(&self, request: &mut InferRequest) -> Result<()> {
        request.parameters.push(("header".into(), ParameterValue::Bool(true)));
        Ok(())
    }
}

/// Notes the steps of a call, and gives its request an observer.
#[derive(Clone, Default)]
struct Noted(Arc<Mutex<Vec<String>>>);

impl Noted {
    fn note(&self, what: String) {
        self.0.lock().expect("no panic").push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

impl CallRecord for Noted {
    fn record_asked(&mut self, model: &str, version: Option<i64>) {
        self.note(format!("asked {model} {version:?}"));
    }

    fn record_model(&mut self, model: &Arc<str>, version: i64) {
        self.note(format!("model {model} {version}"));
    }

    fn record_submitted(&mut self, request: &InferRequest, context: &mut RequestContext) {
        self.note(format!("submitted {}", request.id));
        context.observers.add(Arc::new(Observed { parent: None, noted: self.clone() }));
    }
}

#[derive(Clone)]
struct Observed {
    parent: Option<&'static str>,
    noted: Noted,
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Observed")
    }
}

impl Observer for Observed {
    fn start(&self, start: &RequestStart<'_>) {
        let RequestStart { request, version, origin } = start;
        let origin = format!("{origin:?}");
        let origin = origin.split(' ').next().unwrap_or_default();
        let (model, id) = (&request.model_name, &request.id);
        let inputs: Vec<_> = request.inputs.iter().map(|input| &*input.name).collect();
        let parent = self.parent;
        self.noted.note(format!("start {model} {version} {id} {origin} {inputs:?} {parent:?}"));
    }

    fn finish(&self, timeline: &Timeline) {
        let is_complete = timeline.end.is_some_and(|end| timeline.received <= end);
        self.noted.note(format!("finish {} {:?}", is_complete, self.parent));
    }

    fn child(self: Arc<Self>, model: &str, cause: Cause) -> Option<Arc<dyn Observer>> {
        self.noted.note(format!("child {model} {cause:?}"));
        Some(Arc::new(Self { parent: Some("the ensemble's"), noted: self.noted.clone() }))
    }
}

fn find(engine: &Engine, name: &str, record: &mut Noted) -> Result<FoundModel> {
    FoundModel::find(engine, name, || Ok(None), &Client::new(1), record)
}

fn decoded(
    found: FoundModel,
    client: &mut Client,
    value: i32,
) -> Result<DecodedCall<&'static str>> {
    let call = found.admit(client, MemoryReservation::default(), 4)?;
    let mut decoded = call.decode(|to| {
        let request = InferRequest {
            model_name: to.config.name().clone(),
            model_version: to.version,
            id: "7".into(),
            ..request(value)
        };
        Ok((request, "the plan"))
    })?;
    decoded.forward_headers(client)?;
    Ok(decoded)
}

#[test]
fn the_steps_of_a_call_run_in_order() {
    let fixture = explicit(|root| add_model(root, "m", &[1, 2], CONFIG));
    fixture.engine.load_model("m", Default::default()).expect("loads");
    let (mut record, mut client) = (Noted::default(), Client::new(1));
    let found = find(&fixture.engine, "m", &mut record).expect("it is there");
    found.check_responds_once("not this one").expect("an ordinary model");
    let decoded = decoded(found, &mut client, 5).expect("a request");
    assert_eq!(decoded.request().parameters.len(), 1);
    assert!(!client.0.is_idle(), "its share is taken");
    let (mut running, answer) = decoded.submit_unary(&mut record).expect("accepted");
    let answer = wait(answer).expect("an answer");
    running.end();
    assert_eq!((answer.id.as_str(), answer.model_version, *running.plan()), ("7", 2, "the plan"));
    assert_eq!(running.model().version(), 2);
    assert_eq!(
        record.take(),
        ["model m 2", "submitted 7", "start m 2 7 Client(Grpc) [\"IN\"] None", "finish true None"]
    );
}

#[test]
fn a_model_is_not_looked_up_for_an_unauthorized_caller() {
    let fixture = explicit(|_| {});
    let mut record = Noted::default();
    let text = |error: Error| error.message().to_owned();
    let refused = find(&fixture.engine, "secret", &mut record).err().map(text);
    assert_eq!(refused.as_deref(), Some("not allowed"));
    let version = || Err(Error::invalid_arg("no number"));
    let found = FoundModel::find(&fixture.engine, "m", version, &Client::new(1), &mut record);
    assert_eq!(found.err().map(text).as_deref(), Some("no number"));
    let version = || Ok(Some(3));
    let found = FoundModel::find(&fixture.engine, "m", version, &Client::new(1), &mut record);
    assert!(found.is_err());
    assert_eq!(record.take(), ["asked secret None", "asked m None", "asked m Some(3)"]);
}

#[test]
fn a_request_over_the_memory_budget_is_not_decoded() {
    let fixture = explicit(|root| add_model(root, "m", &[1], CONFIG));
    fixture.engine.load_model("m", Default::default()).expect("loads");
    let mut record = Noted::default();
    let mut client = Client::new(0);
    let found = find(&fixture.engine, "m", &mut record).expect("it is there");
    assert!(decoded(found, &mut client, 1).is_err_and(|error| error.message() == "too many"));
    let budget = MemoryBudget::new(3);
    let found = find(&fixture.engine, "m", &mut record).expect("it is there");
    let admitted = found.admit(&mut Client::new(1), budget.reservation(), 4);
    assert!(admitted.is_err());
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_dropped_call_cancels_its_request_unless_it_has_ended() {
    let fixture = explicit(|root| add_model(root, "m", &[1], CONFIG));
    fixture.engine.load_model("m", Default::default()).expect("loads");
    fixture.backend.gate.set(true);
    for has_ended in [false, true] {
        let mut record = Noted::default();
        let found = find(&fixture.engine, "m", &mut record).expect("it is there");
        let decoded = decoded(found, &mut Client::new(1), 1).expect("a request");
        let mut seen = None;
        let submitted = decoded.submit(&mut record, |cancellation| {
            seen = Some(cancellation.clone());
            Responder::unary().0
        });
        let mut running = submitted.expect("accepted");
        if has_ended {
            running.end();
        }
        drop(running);
        assert_eq!(seen.expect("submitted").is_cancelled(), !has_ended);
    }
    fixture.backend.gate.set(false);
}

#[test]
fn a_request_refused_by_its_model_is_observed_to_its_end() {
    let fixture = explicit(|root| add_model(root, "m", &[1], CONFIG));
    fixture.engine.load_model("m", Default::default()).expect("loads");
    let mut record = Noted::default();
    let found = find(&fixture.engine, "m", &mut record).expect("it is there");
    let call = found.admit(&mut Client::new(1), MemoryReservation::default(), 0).expect("room");
    let decoded = call.decode(|_| Ok((InferRequest::new("m"), ()))).expect("a request");
    assert!(decoded.submit_unary(&mut record).is_err(), "it has no inputs");
    let seen = record.take();
    assert_eq!(seen[2..], ["start m 1  Client(Grpc) [] None", "finish true None"]);
}

const ENSEMBLE: &str = r#"
platform: "ensemble"
max_batch_size: 4
input { name: "E_IN" data_type: TYPE_INT32 dims: 1 }
output { name: "E_OUT" data_type: TYPE_INT32 dims: 1 }
ensemble_scheduling {
  step {
    model_name: "m"
    model_version: -1
    input_map { key: "IN" value: "E_IN" }
    output_map { key: "OUT" value: "E_OUT" }
  }
}
"#;

#[test]
fn the_steps_of_an_ensemble_are_observed_as_its_children() {
    let fixture = explicit(|root| {
        add_model(root, "m", &[4], CONFIG);
        add_model(root, "ensemble", &[1], ENSEMBLE);
    });
    fixture.engine.load_model("ensemble", Default::default()).expect("loads");
    let mut record = Noted::default();
    let found = find(&fixture.engine, "ensemble", &mut record).expect("it is there");
    let call = found.admit(&mut Client::new(1), MemoryReservation::default(), 0).expect("room");
    let decode = |value| {
        let mut request = request(value);
        request.model_name = "ensemble".into();
        request.inputs[0].name = "E_IN".into();
        Ok((request, ()))
    };
    let decoded = call.decode(|_| decode(3)).expect("a request");
    let (_running, answer) = decoded.submit_unary(&mut record).expect("accepted");
    wait(answer).expect("an answer");
    let seen = record.take();
    assert_eq!(
        seen[2..],
        [
            "start ensemble 1  Client(Grpc) [\"E_IN\"] None",
            "child m Step",
            "start m 4  Step(StepTimes [\"IN\"] Some(\"the ensemble's\")",
            "finish true Some(\"the ensemble's\")",
            "finish true None",
        ]
    );
}
