//! Times on the command line.

use std::time::Duration;

/// A number of seconds, such as 2.5.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map_err(|_| "not a number of seconds".to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}
