//! How processes end.

/// How a rank's process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With this result of its scenario.
    Done(String),
    /// With an error: its kind and message.
    Failed(String, String),
    /// By a signal.
    Killed(i32),
    /// With this code, before the end of its scenario.
    Exited(i32),
}

impl Outcome {
    /// The result.
    pub fn done(&self) -> &str {
        match self {
            Outcome::Done(text) => text,
            other => panic!("expected success, got {other:?}"),
        }
    }

    /// The message of an error of `kind`.
    pub fn failed(&self, kind: &str) -> &str {
        match self {
            Outcome::Failed(actual, message) if actual == kind => message,
            other => panic!("expected {kind}, got {other:?}"),
        }
    }
}
