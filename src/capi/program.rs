//! Programs: created and built call by call, or parsed; finished, printed, destroyed.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::ir::{self, Builder, Diagnostic, Loc, Program, Severity};
use crate::passes::expand_collectives::{Target, expand_collectives};
use crate::passes::task_graph;
use crate::runtime::MAX_RANKS;
use crate::verify;

use super::callback::Functions;
use super::guard;
use super::handle::Tag;
use super::options::{ExpandOptions, ExpandOptionsOut};
use super::pointer::Text;
use super::reserve;
use super::status::pld_status_t;
use super::world::pld_transport_t;

/// A program and, until it is finished, its builder.
///
/// One thread at a time may build it. A finished program may be used by any number of threads at once, until it is
/// destroyed.
pub struct pld_program_t {
    pub(super) state: State,
    pub(super) tag: Tag,
    pub(super) functions: Functions,
}

/// Where a program is in its life.
pub(super) enum State {
    /// Calls are added to it.
    Building(Box<Builder>),
    /// It has been verified.
    Finished(Arc<Program>),
    /// It cannot be used any more, and every call says this.
    Refused(Error),
}

impl pld_program_t {
    fn new(state: State, functions: Functions) -> *mut Self {
        Box::into_raw(Box::new(Self { state, tag: Tag::next(), functions }))
    }

    /// The program, if it is finished.
    pub(super) fn finished(&self) -> Result<&Arc<Program>> {
        match &self.state {
            State::Finished(program) => Ok(program),
            State::Building(_) => Err(invalid_state("the program is not finished: pld_program_finish comes first")),
            State::Refused(error) => Err(error.clone()),
        }
    }
}

/// A call that the program is not in the state for.
pub(super) fn invalid_state(message: &str) -> Error {
    Error::new(ErrorKind::InvalidState, message)
}

/// Memory that verifying, printing or parsing a usual program takes at most.
const MEMORY: usize = 2 << 20;

/// How bad a finding is: a value of `enum pld_severity`.
pub type pld_severity_t = u32;

/// Values of `pld_severity_t`.
#[repr(C)]
pub enum pld_severity {
    /// Legal, but likely not what is meant.
    PLD_SEVERITY_WARNING = 1,
    /// The program is refused.
    PLD_SEVERITY_ERROR = 2,
}

/// One finding about a program. The strings are never NULL, and live until the callback returns.
#[repr(C)]
pub struct pld_diagnostic_t {
    /// Error or warning.
    pub severity: pld_severity_t,
    /// Line in the source, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown (always, for programs built from C).
    pub column: u32,
    /// Stable code of the rule, such as `PLD-V012`.
    pub code: *const c_char,
    /// Source file; empty if unknown.
    pub file: *const c_char,
    /// What is wrong, in one line with the numbers.
    pub message: *const c_char,
    /// The operation as program text, or the line of the text; may be empty.
    pub snippet: *const c_char,
    /// What would make it right; may be empty.
    pub hint: *const c_char,
    /// All of it, laid out over several lines as a person wants to read it.
    pub text: *const c_char,
    /// The schedule that shows it, for `replay` of `pld_check_options_t`; empty unless `pld_check` has found it.
    pub schedule: *const c_char,
}

/// Gets every finding about a program, in source order. It must not use the program, nor throw or jump out.
pub type pld_diagnostic_fn = Option<extern "C" fn(diagnostic: *const pld_diagnostic_t, user_data: *mut c_void)>;

/// Gets a piece of text: `size` bytes, not NUL-terminated. Returns 0 to go on; anything else ends the writing.
pub type pld_write_fn = Option<extern "C" fn(text: *const c_char, size: usize, user_data: *mut c_void) -> i32>;

/// Begins a program with this name (letters, digits and `_`, as every name). NULL if the name is NULL or memory is
/// exhausted; see `pld_last_error`. The caller owns the program and frees it with `pld_program_destroy`. Local;
/// callable from any thread.
#[unsafe(no_mangle)]
pub extern "C" fn pld_program_create(name: Text) -> *mut pld_program_t {
    guard::value(std::ptr::null_mut(), || {
        let name = name.str("name")?;
        reserve::ensure(0)?;
        let builder = Builder::new(name);
        Ok(pld_program_t::new(State::Building(Box::new(builder)), Functions::default()))
    })
}

/// Ends the building: closes the program and checks every rule that does not need a world. `callback` (may be NULL)
/// gets all findings, mistakes of building first, warnings too; calls nothing after this function has returned.
///
/// Afterwards the program cannot be changed. It can be compiled if this call succeeded; otherwise only destroyed.
/// Local; nobody else may use the program meanwhile.
///
/// Errors: `PLD_ERR_VERIFY` if there is a finding that is an error, `PLD_ERR_INVALID_STATE` if the program was
/// finished before.
#[unsafe(no_mangle)]
pub extern "C" fn pld_program_finish(
    p: Option<&mut pld_program_t>,
    callback: pld_diagnostic_fn,
    user_data: *mut c_void,
) -> pld_status_t {
    guard::status(|| {
        let p = p.ok_or_else(|| Error::invalid("the program is NULL"))?;
        match &p.state {
            State::Building(_) => reserve::ensure(MEMORY)?,
            State::Finished(_) => return Err(invalid_state("the program is finished already")),
            State::Refused(error) => return Err(error.clone()),
        }
        let refused = State::Refused(invalid_state("the program did not pass pld_program_finish"));
        let State::Building(builder) = std::mem::replace(&mut p.state, refused) else { return Ok(()) };
        p.state = State::Finished(Arc::new(checked(builder.finish(), ErrorKind::Verify, callback, user_data)?));
        Ok(())
    })
}

/// Makes a finished program of text: `size` bytes of UTF-8. `file` (may be NULL) is the name that findings show.
/// `callback` (may be NULL) gets all findings, each with line, column and the line of text. On success `*out_program`
/// is a program as after `pld_program_finish`; the caller owns it. Local; callable from any thread.
///
/// Errors: `PLD_ERR_PARSE` if the text is not a program, `PLD_ERR_VERIFY` if it breaks a rule.
#[unsafe(no_mangle)]
pub extern "C" fn pld_program_parse(
    text: Text,
    size: usize,
    file: Text,
    callback: pld_diagnostic_fn,
    user_data: *mut c_void,
    out_program: Option<&mut MaybeUninit<*mut pld_program_t>>,
) -> pld_status_t {
    guard::status(|| {
        let out = out_program.ok_or_else(|| Error::invalid("out_program is NULL"))?;
        let text = text.str_of_size(size, "text")?;
        // A character of text becomes at most that much of a program.
        reserve::ensure(text.len().saturating_mul(64).saturating_add(MEMORY))?;
        let file = if file.get().is_some() { file.str("file")? } else { "text" };
        let program = checked(ir::parse::parse(text, file), ErrorKind::Parse, callback, user_data)?;
        out.write(pld_program_t::new(State::Finished(Arc::new(program)), Functions::default()));
        Ok(())
    })
}

/// Writes the finished program as text, which `pld_program_parse` reads back. `write` is called any number of times.
/// Local; any number of threads may print a finished program.
///
/// Errors: `PLD_ERR_INVALID_STATE` if the program is not finished, `PLD_ERR_IO` if `write` returned other than 0.
#[unsafe(no_mangle)]
pub extern "C" fn pld_program_print(
    p: Option<&pld_program_t>,
    write: pld_write_fn,
    user_data: *mut c_void,
) -> pld_status_t {
    guard::status(|| {
        let p = p.ok_or_else(|| Error::invalid("the program is NULL"))?;
        let write = write.ok_or_else(|| Error::invalid("write is NULL"))?;
        let program = p.finished()?;
        reserve::ensure(MEMORY)?;
        put(write, user_data, &ir::print::print(program))
    })
}

/// How a task graph is written: a value of `enum pld_graph_format`.
pub type pld_graph_format_t = u32;

/// Values of `pld_graph_format_t`.
#[repr(C)]
pub enum pld_graph_format {
    /// A line for each task, with the tasks that it waits for and why.
    PLD_GRAPH_TEXT = 1,
    /// The input of Graphviz' `dot`. Dashed edges go from one turn of a loop to the next.
    PLD_GRAPH_DOT = 2,
}

/// Writes the task graph of every entry of the finished program: which task waits for which, by `deps` or because both
/// touch something, as far as that is known before the program runs (offsets that only a launch knows count as
/// touching). `nranks` is the number of ranks, or 0 if it is open. Local; any number of threads may do it at once.
///
/// Errors: `PLD_ERR_INVALID_STATE` if the program is not finished, `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_IO` if `write`
/// returned other than 0.
#[unsafe(no_mangle)]
pub extern "C" fn pld_program_graph(
    p: Option<&pld_program_t>,
    nranks: u32,
    format: pld_graph_format_t,
    write: pld_write_fn,
    user_data: *mut c_void,
) -> pld_status_t {
    guard::status(|| {
        let p = p.ok_or_else(|| Error::invalid("the program is NULL"))?;
        let write = write.ok_or_else(|| Error::invalid("write is NULL"))?;
        let program = p.finished()?;
        reserve::ensure(MEMORY)?;
        let world = (nranks > 0).then_some(nranks);
        let text = match format {
            1 => task_graph::text(program, world),
            2 => task_graph::dot(program, world),
            raw => return Err(Error::invalid(format!("graph format {raw} is unknown"))),
        };
        put(write, user_data, &text)
    })
}

/// Options of `pld_program_expand`: the world that the program is written out for. `pld_expand_options_init` sets the
/// size; 0 is the default everywhere else.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_expand_options_t {
    /// `sizeof(pld_expand_options_t)`.
    pub struct_size: u32,
    /// Number of ranks; default 2.
    pub nranks: u32,
    /// The transport.
    pub transport: pld_transport_t,
    /// Other than 0: there are more ranks than CPUs.
    pub crowded: u32,
    /// Other than 0: as an unchecked executable.
    pub unchecked: u32,
    /// How many ranks run on each host, side by side; 0: all run on one.
    pub ranks_per_host: u32,
}

impl pld_expand_options_t {
    fn target(&self) -> Result<Target> {
        if self.nranks > MAX_RANKS {
            return Err(Error::invalid(format!("nranks is {}; 1 to {MAX_RANKS} are possible", self.nranks)));
        }
        if self.transport > 5 {
            return Err(Error::invalid(format!("transport {} is unknown", self.transport)));
        }
        let nranks = if self.nranks == 0 { 2 } else { self.nranks };
        let ranks_per_host = if self.ranks_per_host == 0 { nranks } else { self.ranks_per_host };
        Ok(Target {
            crowded: self.crowded != 0,
            checked: self.unchecked == 0,
            ..Target::on_hosts(nranks, ranks_per_host)
        })
    }
}

/// Sets all options to their defaults. `size` is `sizeof(pld_expand_options_t)` in the caller's header. Local; callable
/// from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_expand_options_init(options: ExpandOptionsOut, size: usize) -> pld_status_t {
    guard::status(|| options.init(size))
}

/// Makes a finished program in which the collectives of this one are written out in puts, gets, notifies and waits, as
/// `pld_compile` does for a world of this kind: to be printed, or checked. `options` may be NULL. `*out_program` is a
/// program as after `pld_program_finish`; the caller owns it. Local; any number of threads may expand a finished
/// program.
///
/// Errors: `PLD_ERR_VERIFY` if the program breaks a rule for this number of ranks, which `pld_last_error` tells;
/// `PLD_ERR_UNSUPPORTED` if no such program can be made; `PLD_ERR_INVALID_STATE` if the program is not finished;
/// `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_VERSION`, `PLD_ERR_NO_MEMORY`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_program_expand(
    p: Option<&pld_program_t>,
    options: ExpandOptions,
    out_program: Option<&mut MaybeUninit<*mut pld_program_t>>,
) -> pld_status_t {
    guard::status(|| {
        let out = out_program.ok_or_else(|| Error::invalid("out_program is NULL"))?;
        let p = p.ok_or_else(|| Error::invalid("the program is NULL"))?;
        let program = p.finished()?;
        let target = options.read()?.target()?;
        reserve::ensure(MEMORY)?;
        if let Some(refusal) = refusal(ErrorKind::Verify, &verify::verify(program, Some(target.nranks))) {
            return Err(refusal);
        }
        let expanded = expand_collectives(program, &target)?.into_owned();
        out.write(pld_program_t::new(State::Finished(Arc::new(expanded)), p.functions.clone()));
        Ok(())
    })
}

/// Hands a text to the caller.
pub(super) fn put(
    write: extern "C" fn(*const c_char, usize, *mut c_void) -> i32,
    user_data: *mut c_void,
    text: &str,
) -> Result<()> {
    match write(text.as_ptr().cast(), text.len(), user_data) {
        0 => Ok(()),
        code => Err(Error::new(ErrorKind::Io, format!("write returned {code}"))),
    }
}

/// Frees a program, finished or not; NULL is ignored. What was compiled from it stays as it is. Local; nobody else
/// may use the program any more.
#[unsafe(no_mangle)]
pub extern "C" fn pld_program_destroy(p: Option<Box<pld_program_t>>) {
    guard::value((), || {
        drop(p);
        Ok(())
    });
}

/// Says where in the user's source the following builder calls stand, and returns `p`. The header's macros put it
/// around the program of every builder call; `PLD_NO_LOCATIONS` leaves them out. `file` is copied; NULL for unknown.
#[unsafe(no_mangle)]
pub extern "C" fn pld_loc(p: Option<&mut pld_program_t>, file: Text, line: u32) -> Option<&mut pld_program_t> {
    let p = p?;
    guard::value((), || {
        if let State::Building(builder) = &mut p.state {
            let name = file.get().map(|name| name.to_string_lossy());
            let file = name.map(|name| builder.file(&name));
            builder.set_loc(Loc { file, line, column: 0 });
        }
        Ok(())
    });
    Some(p)
}

/// The program, if it was built without a mistake and breaks no rule. Reports all findings.
fn checked(
    built: Result<Program, Vec<Diagnostic>>,
    otherwise: ErrorKind,
    callback: pld_diagnostic_fn,
    user_data: *mut c_void,
) -> Result<Program> {
    let (program, findings, kind) = match built {
        Ok(program) => {
            let findings = verify::verify(&program, None);
            (Some(program), findings, ErrorKind::Verify)
        }
        Err(findings) => (None, findings, otherwise),
    };
    for finding in &findings {
        report(finding, "", callback, user_data);
    }
    match (program, refusal(kind, &findings)) {
        (Some(program), None) => Ok(program),
        (_, refusal) => Err(refusal.unwrap_or_else(|| Error::new(kind, ""))),
    }
}

/// What the errors among the findings are for the caller, if there are any.
pub(super) fn refusal<'a>(kind: ErrorKind, findings: impl IntoIterator<Item = &'a Diagnostic>) -> Option<Error> {
    let mut errors = findings.into_iter().filter(|f| f.severity == Severity::Error);
    let first = errors.next()?;
    let more = match errors.count() {
        0 => String::new(),
        1 => "\nand 1 more error".into(),
        n => format!("\nand {n} more errors"),
    };
    Some(Error::new(kind, format!("{first}{more}")))
}

/// Gives a finding to the caller.
pub(super) fn report(finding: &Diagnostic, schedule: &str, callback: pld_diagnostic_fn, user_data: *mut c_void) {
    let Some(callback) = callback else { return };
    let text = |s: &str| CString::new(s.replace('\0', "\u{fffd}")).unwrap_or_default();
    let strings = [
        text(finding.code.0),
        text(&finding.file),
        text(&finding.message),
        text(&finding.snippet),
        text(&finding.hint),
        text(&finding.to_string()),
        text(schedule),
    ];
    let [code, file, message, snippet, hint, all, schedule] = strings.each_ref().map(|s| s.as_ptr());
    let severity = match finding.severity {
        Severity::Warning => pld_severity::PLD_SEVERITY_WARNING,
        Severity::Error => pld_severity::PLD_SEVERITY_ERROR,
    } as pld_severity_t;
    let (line, column) = (finding.line, finding.column);
    callback(
        &pld_diagnostic_t { severity, line, column, code, file, message, snippet, hint, text: all, schedule },
        user_data,
    );
}
