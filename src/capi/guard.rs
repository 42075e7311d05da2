//! The boundary: nothing unwinds into C, and what went wrong is kept for `pld_last_error`.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::error::{Error, ErrorKind, Result};

use super::status::{PLD_OK, pld_status_t};

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
    static GUARDED: Cell<bool> = const { Cell::new(false) };
    static PANIC_PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs the body of a function that returns a status.
pub(super) fn status(body: impl FnOnce() -> Result<()>) -> pld_status_t {
    match caught(body) {
        Ok(()) => PLD_OK,
        Err(error) => fail(error),
    }
}

/// Runs the body of a function that returns a value; `default` if it has none to return.
pub(super) fn value<T>(default: T, body: impl FnOnce() -> Result<T>) -> T {
    caught(body).unwrap_or_else(|error| {
        fail(error);
        default
    })
}

/// Runs a body whose panics are errors.
pub(super) fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    silence_panics();
    let outer = GUARDED.replace(true);
    // A panic may leave what the body worked on half-changed; callers give up objects that were changed in place.
    let result = catch_unwind(AssertUnwindSafe(body));
    GUARDED.set(outer);
    result.unwrap_or_else(|payload| Err(internal(payload)))
}

/// Keeps an error for `pld_last_error` and returns its status.
pub(super) fn fail(error: Error) -> pld_status_t {
    // A thread that is ending has no place for it any more.
    let _ = LAST_ERROR.try_with(|last| last.replace(error.message));
    error.kind as pld_status_t
}

/// This thread's last message.
pub(super) fn last_error() -> String {
    LAST_ERROR.try_with(|last| last.borrow().clone()).unwrap_or_default()
}

fn internal(payload: Box<dyn Any + Send>) -> Error {
    let text = payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
    let place = PANIC_PLACE.take();
    Error::new(ErrorKind::Internal, format!("a bug of the library: {} ({place})", text.unwrap_or("no message")))
}

/// The library prints nothing: a panic inside a guard notes its place for the message instead. Elsewhere the hook that
/// was there before is called.
fn silence_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if GUARDED.get() {
                PANIC_PLACE.set(info.location().map(ToString::to_string).unwrap_or_default());
            } else {
                previous(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error_that_says_where() {
        let line = line!() + 1;
        let code = status(|| panic!("cell {} is on fire", 7));
        assert_eq!(code, ErrorKind::Internal as pld_status_t);
        let message = last_error();
        assert!(message.contains("cell 7 is on fire"), "{message}");
        assert!(message.contains(&format!("{}:{line}", file!())), "{message}");
    }

    #[test]
    fn success_keeps_the_last_error() {
        assert_eq!(status(|| Err(Error::invalid("size is 3"))), ErrorKind::InvalidArgument as pld_status_t);
        assert_eq!(status(|| Ok(())), PLD_OK);
        assert_eq!(last_error(), "size is 3");
    }
}
