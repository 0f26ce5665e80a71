use std::sync::Arc;

use galatea_types::{
    Buffer, CorrelationId, DataType, Error, InferRequest, ParameterValue, Parameters, Result, Shape,
};

/// Which sequence a tensor belongs to, where the step that made it said so in its response.
#[derive(Clone, Debug)]
pub(super) struct SequenceMark {
    pub correlation_id: CorrelationId,
    pub is_start: bool,
    pub is_end: bool,
}

impl SequenceMark {
    /// What a step's response says, if anything; what it leaves out of the identity is as in its request.
    pub fn of(parameters: &Parameters, asked: &CorrelationId) -> Result<Option<Arc<Self>>> {
        let mut mark = None;
        for (name, value) in parameters {
            let is_flag = match name.as_str() {
                "sequence_id" => false,
                "sequence_start" | "sequence_end" => true,
                _ => continue,
            };
            let mark = mark.get_or_insert_with(|| Self {
                correlation_id: asked.clone(),
                is_start: false,
                is_end: false,
            });
            match value {
                ParameterValue::Bool(flag) if name == "sequence_start" => mark.is_start = *flag,
                ParameterValue::Bool(flag) if is_flag => mark.is_end = *flag,
                ParameterValue::Int(id) if !is_flag => {
                    mark.correlation_id = CorrelationId::Number(id.cast_unsigned());
                }
                ParameterValue::Uint(id) if !is_flag => {
                    mark.correlation_id = CorrelationId::Number(*id);
                }
                ParameterValue::String(id) if !is_flag => {
                    mark.correlation_id = CorrelationId::Text(id.clone());
                }
                _ => return Err(wrong_type(name)),
            }
        }
        Ok(mark.map(Arc::new))
    }

    pub fn of_request(request: &InferRequest) -> Self {
        Self {
            correlation_id: request.correlation_id.clone(),
            is_start: request.sequence_start,
            is_end: request.sequence_end,
        }
    }

    /// The parameters an ensemble's answer carries.
    pub fn to_parameters(&self) -> Parameters {
        let id = match &self.correlation_id {
            CorrelationId::None => ParameterValue::Int(0),
            CorrelationId::Number(id) => ParameterValue::Int(id.cast_signed()),
            CorrelationId::Text(id) => ParameterValue::String(id.clone()),
        };
        vec![
            ("sequence_id".to_owned(), id),
            ("sequence_start".to_owned(), ParameterValue::Bool(self.is_start)),
            ("sequence_end".to_owned(), ParameterValue::Bool(self.is_end)),
        ]
    }
}

fn wrong_type(name: &str) -> Error {
    Error::invalid_arg(match name {
        "sequence_id" => "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or \
             TRITONSERVER_PARAMETER_STRING"
            .to_owned(),
        _ => format!("expect parameter '{name}' to be TRITONSERVER_PARAMETER_BOOL"),
    })
}

/// An ensemble tensor. Its name is its reader's business.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub data_type: DataType,
    pub shape: Shape,
    pub data: Buffer,
    /// Of the request it comes from; 0 where its model does not batch.
    pub batch_size: u32,
    /// `None`: as in the request to the ensemble.
    pub mark: Option<Arc<SequenceMark>>,
    /// Written by a step rather than by the client.
    pub is_made: bool,
}

#[derive(Debug, Default)]
enum Slot {
    #[default]
    Empty,
    /// Known not to come: an optional input, or an output the model left out.
    Absent,
    Set {
        value: Value,
        readers_left: usize,
    },
    /// Every reader has had it.
    Spent,
}

/// The tensors of one stage, once; a stage behind a decoupled step has a round per response.
#[derive(Debug)]
pub(super) struct Round {
    pub stage: usize,
    slots: Vec<Slot>,
    /// Steps of this round under way.
    pub live: usize,
    pub is_answered: bool,
}

impl Round {
    pub fn new(stage: usize, slots: usize) -> Self {
        let slots = std::iter::repeat_with(Slot::default).take(slots).collect();
        Self { stage, slots, live: 0, is_answered: false }
    }

    /// False when the tensor was there already: the first one counts.
    pub fn put(&mut self, slot: usize, value: Option<Value>, readers: usize) -> bool {
        let Some(slot @ Slot::Empty) = self.slots.get_mut(slot) else { return false };
        *slot = match value {
            None => Slot::Absent,
            Some(_) if readers == 0 => Slot::Spent,
            Some(value) => Slot::Set { value, readers_left: readers },
        };
        true
    }

    pub fn is_set(&self, slot: usize) -> bool {
        !matches!(self.slots.get(slot), None | Some(Slot::Empty))
    }

    pub fn get(&self, slot: usize) -> Option<&Value> {
        match self.slots.get(slot) {
            Some(Slot::Set { value, .. }) => Some(value),
            _ => None,
        }
    }

    /// Says that one reader has had the tensor. The last one lets it go.
    pub fn release(&mut self, slot: usize) {
        let Some(slot) = self.slots.get_mut(slot) else { return };
        if let Slot::Set { readers_left, .. } = slot {
            *readers_left -= 1;
            if *readers_left == 0 {
                *slot = Slot::Spent;
            }
        }
    }
}
