//! The checker: what can go wrong in a program, found by running it in many orders.

use std::ffi::{CString, c_void};
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::check::{self, Call, Explore, Fill, Given, GivenTensor, MAX_LAUNCHES, Memory, Report, Scalar, Schedule};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::{Program, Severity};
use crate::passes::plan_windows::plan_windows;
use crate::runtime::{Arg, Callback, CallbackContext, MAX_RANKS, TensorArg, View, check_names};
use crate::verify;

use super::arg::{of_argument, pld_arg_kind, pld_arg_t};
use super::guard;
use super::options::{CheckOptions, CheckOptionsOut, CheckReportOut};
use super::pointer::{Args, Bytes, Callbacks, Text};
use super::program::{pld_diagnostic_fn, pld_program_t, refusal, report};
use super::reserve;
use super::status::pld_status_t;

/// Memory that a check takes at most, besides the inputs and windows, each of which exists several times.
const MEMORY: usize = 16 << 20;
const COPIES: usize = 4;

/// When remote writes land: a value of `enum pld_memory_model`.
pub type pld_memory_model_t = u32;

/// Values of `pld_memory_model_t`.
#[repr(C)]
pub enum pld_memory_model {
    /// The end of a task waits until all that the task wrote at other ranks has landed.
    PLD_MEMORY_HOST = 1,
    /// The end of a task does not wait for its remote stores; only a notify of the same task does.
    PLD_MEMORY_NPU = 2,
}

/// How schedules are chosen: a value of `enum pld_explore`.
pub type pld_explore_t = u32;

/// Values of `pld_explore_t`.
#[repr(C)]
pub enum pld_explore {
    /// Every schedule while that is few; otherwise half of them as in `PLD_EXPLORE_RANDOM`, half as in `PLD_EXPLORE_PCT`.
    PLD_EXPLORE_AUTO = 0,
    /// Each step is one of those that are possible, with equal chances.
    PLD_EXPLORE_RANDOM = 1,
    /// Tasks have random priorities, which change at few random points.
    PLD_EXPLORE_PCT = 2,
    /// Every schedule, leaving out those that differ only in the order of independent steps.
    PLD_EXPLORE_EXHAUSTIVE = 3,
}

/// How tensors are filled that are not given: a value of `enum pld_fill`.
pub type pld_fill_t = u32;

/// Values of `pld_fill_t`.
#[repr(C)]
pub enum pld_fill {
    /// Element `i` of rank `r` in launch `n` is `(r + 1) * 100003 + i + (n - 1) * 1000003`, wrapped to the type; for
    /// floats the remainder of that by 1021, 31 or 7 (of 32, 16 and 8 bits), so that sums of some elements are exact.
    PLD_FILL_IOTA = 0,
    /// By `seed`; floats are small integers, as above.
    PLD_FILL_RANDOM = 1,
}

/// Options of `pld_check`. `pld_check_options_init` sets the size; 0 is the default everywhere else.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_check_options_t {
    /// `sizeof(pld_check_options_t)`.
    pub struct_size: u32,
    /// Number of ranks; default 2.
    pub nranks: u32,
    /// Launches in a row, up to 1000; default 1.
    pub launches: u32,
    /// Other than 0: as a persistent executable. Windows keep their contents from launch to launch, and a rank may begin
    /// one while others are still in the one before.
    pub persistent: u32,
    /// When remote writes land; default `PLD_MEMORY_HOST`.
    pub memory: pld_memory_model_t,
    /// How schedules are chosen.
    pub explore: pld_explore_t,
    /// Most schedules that are run; default 1000.
    pub schedules: u64,
    /// No further schedule is begun after that many microseconds; default no limit.
    pub time_limit_us: u64,
    /// What the random choices follow from, those of generated inputs too.
    pub seed: u64,
    /// The only schedule to run, instead of exploring: the `schedule` of a finding. Other options must be as they were.
    pub replay: Text,
    /// Arguments as for `pld_launch` in a world of threads: one set for all launches, or as many sets as launches, one
    /// behind the other. They are copied, never written. What is not given is made up: a tensor by `fill`, an integer is
    /// the number of the launch, from 1, an `f32` 1, a `bool` true. Not given are all if `nargs` is 0, those of kind
    /// `PLD_ARG_GENERATED`, and the elements of a tensor whose `data` is NULL.
    pub args: Args,
    /// Number of `args`.
    pub nargs: usize,
    /// How tensors are filled that are not given. A dynamic dimension that no given tensor binds is 4.
    pub fill: pld_fill_t,
    /// Functions for extern and host tasks, as in `pld_compile_options_t`; but none is needed.
    pub callbacks: Callbacks,
    /// Number of `callbacks`.
    pub ncallbacks: usize,
}

/// What was explored, and how much was found. The caller sets `struct_size`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pld_check_report_t {
    /// `sizeof(pld_check_report_t)`.
    pub struct_size: u32,
    /// 1 if every schedule was run, up to the order of independent steps; 0 if some were left out.
    pub complete: u32,
    /// Schedules that were run.
    pub schedules: u64,
    /// Steps of all of them: pieces of a task between two signals.
    pub steps: u64,
    /// Findings that are errors.
    pub errors: u32,
    /// Findings that are warnings.
    pub warnings: u32,
}

/// Sets all options to their defaults. `size` is `sizeof(pld_check_options_t)` in the caller's header. Local; callable
/// from any thread. Errors: `PLD_ERR_INVALID_ARGUMENT`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_check_options_init(options: CheckOptionsOut, size: usize) -> pld_status_t {
    guard::status(|| options.init(size))
}

/// Runs the finished program on private copies of its windows and tensors, in many orders of its ranks, tasks and remote
/// writes, and finds what can go wrong: races, signals that are lost, stale or overwritten, deadlocks; `docs/checking.md`
/// says what it can and cannot find. `options` may be NULL. `callback` (may be NULL) gets each finding once, in source
/// order, with a schedule that shows it. `*out_report` (may be NULL) says what was explored, whatever was found.
///
/// Functions of extern and host tasks are called on copies, by this thread, one at a time: those that the program was
/// built with, and those of the options. One that is missing touches memory as it declares, but changes nothing.
///
/// Local; blocks until the budget is used up, and needs no world. Any number of threads may check a program at once.
///
/// Errors: `PLD_ERR_CHECK` if there is a finding that is an error; `PLD_ERR_VERIFY` if the program breaks a rule for this
/// number of ranks, which `callback` gets then, and nothing was run; `PLD_ERR_INVALID_STATE` if it is not finished;
/// `PLD_ERR_UNSUPPORTED` if a run takes too many steps; `PLD_ERR_INVALID_ARGUMENT`, `PLD_ERR_VERSION`,
/// `PLD_ERR_NO_MEMORY`.
#[unsafe(no_mangle)]
pub extern "C" fn pld_check(
    p: Option<&pld_program_t>,
    options: CheckOptions,
    callback: pld_diagnostic_fn,
    user_data: *mut c_void,
    out_report: CheckReportOut,
) -> pld_status_t {
    guard::status(|| {
        let p = p.ok_or_else(|| Error::invalid("the program is NULL"))?;
        let program = p.finished()?;
        let options = options.read()?;
        let report_size = out_report.size()?;
        let functions = Engine::new(p, program, &options)?;
        reserve::ensure(MEMORY)?;
        let run = options.run()?;
        let broken: Vec<_> = verify::verify(program, Some(run.nranks));
        if let Some(refusal) = refusal(ErrorKind::Verify, &broken) {
            broken.iter().filter(|f| f.severity == Severity::Error).for_each(|f| report(f, "", callback, user_data));
            return Err(refusal);
        }
        let inputs = options.inputs(program, &run)?;
        let windows = plan_windows(program, run.nranks)?.bytes.saturating_mul(run.nranks as usize);
        reserve::ensure(windows.saturating_mul(COPIES).saturating_add(MEMORY))?;
        let run = check::Options { dims: &inputs.dims, args: &inputs.args, functions: Some(&functions), ..run };
        let mut in_time = options.in_time();
        let explored = check::check(program, &run, &mut in_time)?;
        for finding in &explored.findings {
            report(&finding.diagnostic, &finding.schedule.to_string(), callback, user_data);
        }
        if let Some(size) = report_size {
            out_report.write(size, &summary(&explored));
        }
        refusal(ErrorKind::Check, explored.findings.iter().map(|f| &f.diagnostic)).map_or(Ok(()), Err)
    })
}

fn summary(explored: &Report) -> pld_check_report_t {
    let count = |severity| explored.findings.iter().filter(|f| f.diagnostic.severity == severity).count() as u32;
    pld_check_report_t {
        struct_size: 0,
        complete: explored.complete.into(),
        schedules: explored.schedules,
        steps: explored.steps,
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
    }
}

fn or_default<T: Default + PartialEq>(value: T, default: T) -> T {
    if value == T::default() { default } else { value }
}

impl pld_check_options_t {
    /// What the options say about the run, without its inputs.
    fn run(&self) -> Result<check::Options<'static>> {
        let default = check::Options::default();
        let nranks = or_default(self.nranks, default.nranks);
        if nranks > MAX_RANKS {
            return Err(Error::invalid(format!("nranks is {nranks}; 1 to {MAX_RANKS} are possible")));
        }
        let launches = or_default(self.launches, default.launches);
        if launches > MAX_LAUNCHES {
            return Err(Error::invalid(format!("launches is {launches}; 1 to {MAX_LAUNCHES} are possible")));
        }
        let memory = match self.memory {
            0 | 1 => Memory::Host,
            2 => Memory::Npu,
            raw => return Err(Error::invalid(format!("memory is {raw}, which is no memory model"))),
        };
        let explore = match self.explore {
            0 => Explore::Auto,
            1 => Explore::Random,
            2 => Explore::Pct,
            3 => Explore::Exhaustive,
            raw => return Err(Error::invalid(format!("explore is {raw}, which is unknown"))),
        };
        let replay = self.replay.get().map(|_| self.replay.str("replay")).transpose()?;
        let replay = replay.map(|text| text.parse::<Schedule>().map_err(|e| Error::invalid(format!("replay: {e}"))));
        Ok(check::Options {
            nranks,
            launches,
            persistent: self.persistent != 0,
            memory,
            explore,
            schedules: or_default(self.schedules, default.schedules),
            seed: self.seed,
            replay: replay.transpose()?,
            ..default
        })
    }

    fn inputs(&self, program: &Program, run: &check::Options) -> Result<check::Inputs> {
        let fill = match self.fill {
            0 => Fill::Iota,
            1 => Fill::Random,
            raw => return Err(Error::invalid(format!("fill is {raw}, which is unknown"))),
        };
        let count = self.nargs;
        let args = self.args.get(count).ok_or_else(|| Error::invalid(format!("args is NULL, but nargs is {count}")))?;
        let mut parts: Vec<Vec<GivenTensor>> = Vec::new();
        for (index, arg) in args.iter().enumerate() {
            parts.push(arg.parts().map_err(|e| of_argument(index, e))?);
        }
        let args = args.iter().zip(&parts).enumerate();
        let given = args.map(|(index, (arg, parts))| arg.given(parts).map_err(|e| of_argument(index, e)));
        let given = given.collect::<Result<Vec<_>>>()?;
        check::inputs(program, run.nranks, run.launches, fill, self.seed, &given)
    }

    /// Whether there is still time.
    fn in_time(&self) -> impl FnMut() -> bool + use<> {
        let limit = (self.time_limit_us != 0).then(|| Duration::from_micros(self.time_limit_us));
        let begin = Instant::now();
        move || limit.is_none_or(|limit| begin.elapsed() < limit)
    }
}

impl pld_arg_t {
    /// The tensors of a list of parts.
    fn parts(&self) -> Result<Vec<GivenTensor<'_>>> {
        if !self.is(pld_arg_kind::PLD_ARG_PARTS) {
            return Ok(Vec::new());
        }
        let count = self.nparts as usize;
        let parts = self.parts.get(count);
        let parts = parts.ok_or_else(|| Error::invalid(format!("parts is NULL, but nparts is {count}")))?;
        parts.iter().map(|part| given_tensor(&part.read()?)).collect()
    }

    fn given<'a>(&'a self, parts: &'a [GivenTensor]) -> Result<Given<'a>> {
        if self.is(pld_arg_kind::PLD_ARG_GENERATED) {
            return Ok(Given::Generated);
        }
        if self.is(pld_arg_kind::PLD_ARG_PARTS) {
            return Ok(Given::Parts(parts));
        }
        Ok(match self.read()? {
            Arg::Tensor(tensor) => Given::Tensor(given_tensor(&tensor)?),
            Arg::Int(value) => Given::Int(value),
            Arg::Float(value) => Given::Float(value),
            Arg::Bool(value) => Given::Bool(value),
            Arg::Ranks(_) | Arg::Resident(_) => {
                return Err(Error::invalid("a resident belongs to a world, and pld_check has none; give a tensor"));
            }
        })
    }
}

fn given_tensor<'a>(tensor: &TensorArg<'a>) -> Result<GivenTensor<'a>> {
    tensor.check_packed("the tensor")?;
    let &TensorArg { data, dtype, shape, .. } = tensor;
    let bytes = if data.is_null() {
        None
    } else {
        let sizes = shape.iter().map(|&extent| usize::try_from(extent).ok());
        let size = sizes.chain([Some(dtype.size() as usize)]).try_fold(1usize, |n, size| n.checked_mul(size?));
        let size = size.ok_or_else(|| Error::invalid(format!("a tensor of shape {shape:?}")))?;
        Some(Bytes::at(data.cast()).get(size, "data")?)
    };
    Ok(GivenTensor { dtype, shape, bytes })
}

/// The engine's functions.
struct Engine {
    functions: Vec<(String, CString, Callback)>,
    nranks: u32,
}

impl Engine {
    fn new(p: &pld_program_t, program: &Program, options: &pld_check_options_t) -> Result<Self> {
        let callbacks = p.functions.with(options.callbacks, options.ncallbacks)?;
        check_names(program, &callbacks)?;
        let named = |(name, callback): (String, Callback)| {
            let of_c = CString::new(name.as_str()).map_err(|_| Error::invalid(format!("the name {name:?}")))?;
            Ok((name, of_c, callback))
        };
        let functions = callbacks.into_iter().map(named).collect::<Result<_>>()?;
        Ok(Self { functions, nranks: or_default(options.nranks, check::Options::default().nranks) })
    }
}

impl check::Functions for Engine {
    fn call(&self, call: Call, tensors: &mut [check::View], scalars: &[Scalar]) -> Option<Result<(), i32>> {
        // Of two with one name the last one counts, so that options override what a program brings along.
        let (_, name, callback) = self.functions.iter().rfind(|(name, ..)| name == call.name)?;
        let mut copies: SmallVec<[Aligned; 8]> = tensors.iter().map(|view| Aligned::of(view.bytes)).collect();
        let view = |(view, copy): (&check::View, &mut Aligned)| View {
            data: copy.bytes().as_mut_ptr().cast(),
            dtype: view.dtype as u32,
            ndims: view.shape.len() as u32,
            shape: view.shape.as_ptr(),
            strides: view.strides.as_ptr(),
        };
        let views: SmallVec<[View; 8]> = tensors.iter().zip(&mut copies).map(view).collect();
        let scalars: SmallVec<[i64; 8]> = scalars.iter().map(|&scalar| bits(scalar)).collect();
        let context = CallbackContext {
            struct_size: size_of::<CallbackContext>() as u32,
            rank: call.rank,
            nranks: self.nranks,
            core: 0,
            block: call.block,
            blocks: call.blocks,
            launch: call.launch.into(),
            name: name.as_ptr(),
            tensors: views.as_ptr(),
            ntensors: views.len(),
            scalars: scalars.as_ptr(),
            stream: std::ptr::null_mut(),
            nscalars: scalars.len(),
        };
        // SAFETY: the context and all it points to live until the function returns, and nobody else uses the copies.
        let code = unsafe { (callback.function)(&context, callback.user_data) };
        for (view, copy) in tensors.iter_mut().zip(&mut copies) {
            view.bytes.copy_from_slice(copy.bytes());
        }
        Some(if code == 0 { Ok(()) } else { Err(code) })
    }
}

/// A scalar as functions of the engine get it.
fn bits(scalar: Scalar) -> i64 {
    match scalar {
        Scalar::Int(value) => value,
        Scalar::Float(value) => f64::from(value).to_bits() as i64,
    }
}

/// A copy of a tensor's bytes that is aligned as windows are.
struct Aligned {
    memory: Vec<u8>,
    begin: usize,
    size: usize,
}

impl Aligned {
    const ALIGN: usize = 64;

    fn of(bytes: &[u8]) -> Self {
        let memory = vec![0; bytes.len() + Self::ALIGN];
        let begin = memory.as_ptr().addr().wrapping_neg() % Self::ALIGN;
        let mut copy = Self { memory, begin, size: bytes.len() };
        copy.bytes().copy_from_slice(bytes);
        copy
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..][..self.size]
    }
}
