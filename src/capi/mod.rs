//! The C interface: the only `extern "C"` that is exported. Convert, call, store; one file a noun.
