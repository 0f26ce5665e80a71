//! Input data: from options, files and the model to requests.
