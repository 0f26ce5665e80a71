//! The model itself: what it is called, what runs it, its tensors, and how it is served.

use super::entry::{Section, by_table, works};

pub(super) const SECTIONS: &[Section] = &[
    Section {
        message: "ModelConfig",
        about: "What stands in `config.pbtxt` outside of all braces.",
        fields: &[
            works("name", "the name of the folder", "The name of the model")
                .with("another name than that of the folder is refused"),
            works("platform", "by `backend` and the model's file", "An older way to name the backend: \
                   `onnxruntime_onnx`, `pytorch_libtorch`, `torch_aoti`, `tensorflow_savedmodel`, `tensorflow_graphdef`, \
                   `ensemble`"),
            works("backend", "by `platform` and the model's file", "What runs the model: `onnxruntime`, `pytorch`, \
                   `tensorflow`, `python`, or the name of a backend written in Python; for tests also `identity`, `repeat`, `square`. \
                   Empty for an ensemble")
                .with("any other name is refused when a version is loaded, with the names there are"),
            works("runtime", "that of the backend", "The library or file inside of the backend that runs the model")
                .with("only the name that the backend itself has in Triton, or `model.py` of a backend written in Python"),
            works("version_policy", "`latest { num_versions: 1 }`", "Which of the versions in the model's folder are served"),
            works("max_batch_size", "0", "The most items of a batch. Above 0 every tensor has a batch dimension before its \
                   `dims`; 0: tensors are as `dims` says")
                .with("left out for an ONNX model whose first dimension is open, it becomes 4, or \
                       `--backend-config=default-max-batch-size=N`"),
            works("input", "asked of the model's file where it tells", "The inputs, one block each"),
            works("output", "asked of the model's file where it tells", "The outputs, one block each"),
            by_table("batch_input", "", "Inputs that the server makes from the shapes of a ragged batch"),
            by_table("batch_output", "", "Outputs that are divided by the shapes of a ragged batch"),
            works("optimization", "", "Hints that change how fast the model runs, and not what it answers"),
            works("dynamic_batching", "no batches are formed; on for a completed ONNX model that batches",
                  "Requests are joined in batches. `dynamic_batching {}` is enough to switch it on"),
            works("sequence_batching", "", "The requests of a sequence go to one instance, which keeps its state"),
            works("ensemble_scheduling", "", "The model is a graph of other models, and has no file of its own"),
            works("instance_group", "one group, of kind `KIND_AUTO`", "How many instances of the model run, and on what"),
            works("default_model_filename", "`model.onnx`, `model.pt`, `model.pt2` or `model.py`, by the backend",
                  "The file of the model in each version folder")
                .with("inside of the version's folder"),
            by_table("cc_model_filenames", "", "Files for GPUs of a certain compute capability"),
            works("metric_tags", "", "Labels of the model's metrics: key `a` becomes the label `_a`"),
            works("parameters", "", "Settings for the backend, by name. Which there are is told by the pages of the \
                   backends: [Python](python.md), [PyTorch](pytorch.md), [processes](isolation.md); [batches](batching.md); \
                   [mixed shapes](mixed-shapes.md)"),
            works("model_warmup", "", "Requests that each instance executes before those of clients, see [warm-up](warm-up.md)"),
            works("model_operations", "", "Libraries of custom operators"),
            works("model_transaction_policy", "one response to each request", "Whether a request has exactly one response"),
            works("model_repository_agents", "", "What the model's files go through before they are loaded")
                .with("the agent `checksum`; a model that names another one does not load"),
            works("response_cache", "", "Whether equal requests are answered from the server's [response cache](response-cache.md)"),
            works("model_metrics", "the server's buckets", "Buckets of the model's histograms"),
        ],
    },
    Section {
        message: "ModelVersionPolicy",
        about: "One of these.",
        fields: &[
            works("latest", "", "Those with the highest numbers"),
            works("all", "", "Every one: `all {}`"),
            works("specific", "", "Those that are listed"),
        ],
    },
    Section {
        message: "ModelVersionPolicy.Latest",
        about: "",
        fields: &[works("num_versions", "0: none, so give one", "How many versions, those with the highest numbers first")],
    },
    Section { message: "ModelVersionPolicy.All", about: "Has no fields.", fields: &[] },
    Section {
        message: "ModelVersionPolicy.Specific",
        about: "",
        fields: &[works("versions", "", "The numbers of the versions")],
    },
    Section {
        message: "ModelInput",
        about: "An input as clients see it.",
        fields: &[
            works("name", "", "The name in requests and in the model. Required"),
            works("data_type", "", "The type of its elements. Required"),
            works("format", "`FORMAT_NONE`", "The layout of an image")
                .with("needs three `dims`; a fact for clients, nothing is converted"),
            works("dims", "", "Its shape without the batch dimension; -1 is any size. Required"),
            works("reshape", "as `dims`", "The shape that the model itself takes, where it is another"),
            works("is_shape_tensor", "false", "The values are shapes")
                .refused("shape tensors are TensorRT's"),
            works("allow_ragged_batch", "false", "Requests of different shapes may share a batch")
                .with("the elements of all requests in one dimension; Python models get each request's own tensor"),
            works("optional", "false", "A request may leave it out"),
            works("is_non_linear_format_io", "false", "The tensor lies in a format of TensorRT")
                .refused("these formats are TensorRT's"),
        ],
    },
    Section {
        message: "ModelOutput",
        about: "An output as clients see it.",
        fields: &[
            works("name", "", "The name in responses and in the model. Required"),
            works("data_type", "", "The type of its elements. Required"),
            works("dims", "", "Its shape without the batch dimension; -1 is any size. Required"),
            works("reshape", "as `dims`", "The shape that the model itself gives, where it is another"),
            works("label_filename", "", "A file in the model's folder with a class label per line, for clients that ask for \
                   classes"),
            works("is_shape_tensor", "false", "The values are shapes")
                .refused("shape tensors are TensorRT's"),
            works("is_non_linear_format_io", "false", "The tensor lies in a format of TensorRT")
                .refused("these formats are TensorRT's"),
        ],
    },
    Section {
        message: "ModelTensorReshape",
        about: "",
        fields: &[works("shape", "", "Without the batch dimension. Has as many elements as `dims`; empty: a scalar per \
                         item of the batch")],
    },
    Section {
        message: "BatchInput",
        about: "",
        fields: &[
            by_table("kind", "`BATCH_ELEMENT_COUNT`", "What the input is filled with"),
            by_table("target_name", "", "Inputs of the model that get it"),
            by_table("data_type", "", "`TYPE_INT32` or `TYPE_FP32`"),
            by_table("source_input", "", "The input of the requests that it is about, exactly one"),
        ],
    },
    Section {
        message: "BatchOutput",
        about: "",
        fields: &[
            by_table("target_name", "", "Outputs of the model"),
            by_table("kind", "`BATCH_SCATTER_WITH_INPUT_SHAPE`", "How they are divided"),
            by_table("source_input", "", "The input of the requests whose shapes divide them, exactly one"),
        ],
    },
    Section {
        message: "ModelParameter",
        about: "As in `parameters { key: \"isolation\" value { string_value: \"process\" } }`.",
        fields: &[works("string_value", "", "The value, always a text")],
    },
    Section {
        message: "ModelOperations",
        about: "",
        fields: &[by_table("op_library_filename", "", "Libraries of custom operators, relative to the folder of the version or \
                            of the model")],
    },
    Section {
        message: "ModelTransactionPolicy",
        about: "",
        fields: &[works("decoupled", "false", "A request may have any number of responses, at any time")],
    },
    Section {
        message: "ModelRepositoryAgents",
        about: "",
        fields: &[works("agents", "", "In the order in which they look at the files")],
    },
    Section {
        message: "ModelRepositoryAgents.Agent",
        about: "",
        fields: &[
            works("name", "", "The agent: `checksum`"),
            works("parameters", "", "For `checksum`: key `MD5:1/model.onnx`, value the digest in hexadecimal digits"),
        ],
    },
    Section {
        message: "ModelResponseCache",
        about: "",
        fields: &[works("enable", "false", "Responses of this model may come from the cache")],
    },
    Section {
        message: "ModelMetrics",
        about: "",
        fields: &[works("metric_control", "", "One block for each histogram whose buckets are to be others")
            .with("a family that is none of the server's histograms loads with a warning")],
    },
    Section {
        message: "ModelMetrics.MetricControl",
        about: "",
        fields: &[
            works("metric_identifier", "", "Which histogram. Required"),
            works("histogram_options", "", "Its buckets. Required"),
        ],
    },
    Section {
        message: "ModelMetrics.MetricControl.MetricIdentifier",
        about: "",
        fields: &[works("family", "", "Its name, as in the [metrics](metrics.md). Required")],
    },
    Section {
        message: "ModelMetrics.MetricControl.HistogramOptions",
        about: "",
        fields: &[works("buckets", "", "Upper bounds, ascending, 200 at most. Required")],
    },
];
