//! KServe v2 JSON and the binary tensor extension to and from the vocabulary.
