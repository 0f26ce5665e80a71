//! A decoupled model that does what its input asks for, step by step, with the test as its conductor.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use galatea_backend::{
    Backend, Batch, InstanceSpec, LoadContext, Model, ModelInstance, ResponseSender,
};
use galatea_types::{Buffer, DataType, Error, Parameters, Result, Shape, Tensor};

/// What an element of the input stands for; one that is not negative is a response with its value.
pub const FAIL: i32 = -1;
/// Waits for [`Conductor::go_on`].
pub const WAIT: i32 = -2;
/// A last response that is an error; the same as the end of the script, but for that.
pub const FAIL_AT_END: i32 = -3;
/// A last response with the value of the element before.
pub const REPEAT_AT_END: i32 = -4;
/// A response of a million elements.
pub const LARGE: i32 = -5;
/// Responses without end, until the client has gone; reports to [`Conductor::wait_for_begin`] and then
/// [`Conductor::wait_for_cancel`].
pub const FOREVER: i32 = -6;
/// The same with large responses, which share their memory.
pub const FLOOD: i32 = -7;

pub const CONFIG: &str = "backend: \"script\" model_transaction_policy { decoupled: true } \
    input { name: \"IN\" data_type: TYPE_INT32 dims: -1 } \
    output { name: \"OUT\" data_type: TYPE_INT32 dims: -1 }";

/// The test's end of the scripts.
pub struct Conductor {
    go: mpsc::Sender<()>,
    events: mpsc::Receiver<&'static str>,
}

impl Conductor {
    pub fn go_on(&self) {
        self.go.send(()).expect("a script waits");
    }

    pub fn wait_for_begin(&self) {
        self.wait_for("begun");
    }

    pub fn wait_for_cancel(&self) {
        self.wait_for("cancelled");
    }

    #[track_caller]
    fn wait_for(&self, event: &str) {
        assert_eq!(self.events.recv_timeout(Duration::from_secs(20)), Ok(event));
    }
}

#[derive(Clone)]
pub struct Script {
    go: Arc<Mutex<mpsc::Receiver<()>>>,
    reports: mpsc::Sender<&'static str>,
}

pub fn script() -> (Script, Conductor) {
    let (go, to_go) = mpsc::channel();
    let (reports, events) = mpsc::channel();
    let script = Script { go: Arc::new(Mutex::new(to_go)), reports };
    (script, Conductor { go, events })
}

impl Backend for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn load(&self, _: LoadContext) -> Result<Box<dyn Model>> {
        Ok(Box::new(self.clone()))
    }
}

impl Model for Script {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(self.clone()))
    }
}

impl ModelInstance for Script {
    fn execute(&mut self, batch: &mut Batch) {
        for index in 0..batch.len() {
            let taken = batch.take(index).expect("once");
            let (elements, _) =
                taken.request.inputs[0].host().expect("host memory").as_chunks::<4>();
            let steps: Vec<i32> = elements.iter().map(|b| i32::from_le_bytes(*b)).collect();
            let script = self.clone();
            thread::spawn(move || script.play(&steps, taken.responder));
        }
    }
}

impl Script {
    fn play(&self, steps: &[i32], mut sender: ResponseSender) {
        let mut last = 0;
        for &step in steps {
            match step {
                FAIL => sender.send(Err(Error::internal("as scripted"))),
                WAIT => self.go.lock().expect("no panic").recv().expect("the test goes on"),
                FAIL_AT_END => return sender.finish(Some(Err(Error::unavailable("at the end")))),
                REPEAT_AT_END => return sender.finish(Some(outputs(&[last]))),
                LARGE => sender.send(outputs(&vec![0; 1_000_000])),
                FOREVER => self.repeat(&mut sender, &[1]),
                FLOOD => self.repeat(&mut sender, &vec![0; 1_000_000]),
                value => sender.send(outputs(&[value])),
            }
            last = step;
        }
        sender.finish(None);
    }

    fn repeat(&self, sender: &mut ResponseSender, values: &[i32]) {
        let response = outputs(values);
        self.reports.send("begun").expect("the test waits");
        while !sender.is_cancelled() {
            sender.send(response.clone());
            thread::yield_now();
        }
        self.reports.send("cancelled").expect("the test waits");
    }
}

fn outputs(values: &[i32]) -> Result<(Vec<Tensor>, Parameters)> {
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let shape = Shape::from([i64::try_from(values.len()).expect("small")]);
    Ok((vec![Tensor::new("OUT", DataType::Int32, shape, Buffer::from(data))], Vec::new()))
}
