//! How requests become executions.

use super::entry::{Section, by_table, works};

pub(super) const SECTIONS: &[Section] = &[
    Section {
        message: "ModelDynamicBatching",
        about: "An instance that becomes free takes as many waiting requests as fit in a batch. How it works: \
                [queues and batches](batching.md).",
        fields: &[
            works("preferred_batch_size", "`max_batch_size`", "Sizes worth waiting for, each up to `max_batch_size`"),
            works("max_queue_delay_microseconds", "0", "How long a request may wait for others, to reach a preferred size; 0: \
                   a free instance takes what is there")
                .with("the longest wait where the parameter `batch_delay` leaves it to the server"),
            works("preserve_ordering", "false", "Responses leave in the order of the requests")
                .with("refused together with more than one priority level, or with the action `DELAY`"),
            works("priority_levels", "0: one queue", "Levels of priority, as many as you like: 1 is served first"),
            works("default_priority_level", "0", "The level of requests that name none. Required where there are levels"),
            works("default_queue_policy", "requests wait without limit", "The policy of every level without one of its own"),
            works("priority_queue_policy", "", "Policies by level"),
        ],
    },
    Section {
        message: "ModelQueuePolicy",
        about: "",
        fields: &[
            works("timeout_action", "`REJECT`", "What becomes of a request whose time is over: it fails, or it is executed \
                   after those whose time is not over"),
            works("default_timeout_microseconds", "0: none", "How long a request may wait"),
            works("allow_timeout_override", "false", "A request may give a shorter time-out of its own, with the parameter \
                   `timeout` (microseconds)"),
            works("max_queue_size", "0: no limit", "Requests that may wait; the next one is answered 503"),
        ],
    },
    Section {
        message: "ModelEnsembling",
        about: "",
        fields: &[
            works("step", "", "The models, 1,024 steps at most. Their order is that of the tensors, not that in the file"),
            works("max_inflight_requests", "0: no limit", "The most requests of a step in flight, over all requests to the \
                   ensemble; others wait"),
        ],
    },
    Section {
        message: "ModelEnsembling.Step",
        about: "",
        fields: &[
            works("model_name", "", "The model that the step calls. Required"),
            works("model_version", "0, which is the version 0", "Its version; -1: the latest. Write -1 where no other is meant"),
            works("input_map", "", "Key: input of the model. Value: the tensor of the ensemble that it reads"),
            works("output_map", "", "Key: output of the model. Value: the tensor of the ensemble that it writes"),
            by_table("model_namespace", "", "The repository of the model"),
        ],
    },
    Section {
        message: "ModelSequenceBatching",
        about: "",
        fields: &[
            works("direct", "", "Each sequence has one slot of one instance until it ends"),
            works("oldest", "", "Each sequence has one instance, which batches the oldest requests of its sequences"),
            works("max_sequence_idle_microseconds", "1000000", "A sequence without a request for this long is over"),
            works("control_input", "", "Inputs of the model that tell it where in a sequence a request stands"),
            works("state", "", "Tensors that go from one execution of a sequence to its next"),
            works("iterative_sequence", "false", "The model may ask for its request to be scheduled again"),
        ],
    },
    Section {
        message: "ModelSequenceBatching.StrategyDirect",
        about: "",
        fields: &[
            works("max_queue_delay_microseconds", "0", "How long a request may wait for the other slots"),
            works("minimum_slot_utilization", "0", "The share of slots that must have a request for a batch not to wait"),
        ],
    },
    Section {
        message: "ModelSequenceBatching.StrategyOldest",
        about: "",
        fields: &[
            works("max_candidate_sequences", "0", "The most active sequences of an instance"),
            works("preferred_batch_size", "`max_batch_size`", "As for dynamic batching"),
            works("max_queue_delay_microseconds", "0", "As for dynamic batching"),
            works("preserve_ordering", "false", "As for dynamic batching"),
        ],
    },
    Section {
        message: "ModelSequenceBatching.ControlInput",
        about: "",
        fields: &[
            works("name", "", "The input. Required"),
            works("control", "", "What it is filled with"),
        ],
    },
    Section {
        message: "ModelSequenceBatching.Control",
        about: "",
        fields: &[
            works("kind", "`CONTROL_SEQUENCE_START`", "What is told: first, ready, last, or the sequence's id"),
            works("int32_false_true", "", "The values for no and yes, as INT32"),
            works("fp32_false_true", "", "The same, as FP32"),
            works("bool_false_true", "", "The same, as BOOL"),
            works("data_type", "", "The type of the sequence's id"),
        ],
    },
    Section {
        message: "ModelSequenceBatching.State",
        about: "",
        fields: &[
            works("input_name", "", "The input that takes the state"),
            works("output_name", "", "The output that gives it"),
            works("data_type", "", "The type of its elements. Required"),
            works("dims", "", "Its shape without the batch dimension"),
            works("initial_state", "zeros", "What the first execution gets, one at most"),
            works("use_same_buffer_for_input_output", "false", "No copy is made between the executions of a sequence, with it or without it"),
            works("use_growable_memory", "false", "A state may grow from one execution to the next with it or without it, on the CPU too"),
        ],
    },
    Section {
        message: "ModelSequenceBatching.InitialState",
        about: "",
        fields: &[
            works("data_type", "", "That of the state"),
            works("dims", "", "Without the batch dimension, of fixed size"),
            works("zero_data", "", "All elements are 0"),
            works("data_file", "", "A file in the folder `initial_state` of the model"),
            works("name", "", "Its name in messages. Required"),
        ],
    },
];
