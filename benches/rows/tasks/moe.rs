//! A layer of a mixture of experts: rows of tokens go to the experts that they are routed to, the experts' rows come
//! back and are summed. `moe_*` in `peers/mpi.c` is the same with MPI: same tokens, same routes, same result.

use std::ffi::c_void;

use half::bf16;
use pld::capi::callback::pld_task_context_t;

use crate::limits;
use crate::rank::{Bench, microseconds};
use crate::row::{LIMIT, VALUE};
use crate::session::{Arg, Executable, Program, World, bool, int, tensor};

/// Routes of a token.
pub const ROUTES: usize = 8;
/// Experts of a rank.
pub const EXPERTS: usize = 16;
/// Elements of a row.
const ELEMENTS: usize = 4096;

const PROGRAM: &str = include_str!("moe.pld");
/// Where the program says how many tokens there are.
const TOKENS: &str = "const T = 128 ";

// The tokens, by position and rank. All results are exact.

/// The expert of a route, of those of all `ranks`: eight different ones for a token.
pub fn expert(ranks: u32, rank: u32, tokens: usize, token: usize, route: usize) -> usize {
    let mixed = (rank * tokens as u32 + token as u32 + 1).wrapping_mul(2_654_435_761);
    let (step, first) = (mixed >> 8 | 1, mixed >> 16);
    step.wrapping_mul(route as u32).wrapping_add(first) as usize % (ranks as usize * EXPERTS)
}

fn element(rank: u32, token: usize, at: usize) -> i8 {
    (((rank as usize * 37 + token * 11 + at * 3) % 251) as i32 - 125) as i8
}

fn scale(rank: u32, token: usize) -> f32 {
    1.0 / (1 << ((token + rank as usize) % 4)) as f32
}

fn weight(rank: u32, token: usize, route: usize) -> f32 {
    (1 + (token + 3 * route + rank as usize) % 8) as f32 / 32.0
}

/// What becomes of a token's element.
fn result(ranks: u32, rank: u32, tokens: usize, token: usize, at: usize) -> f32 {
    let value = f32::from(element(rank, token, at)) * scale(rank, token);
    let routed = |k| weight(rank, token, k) * value * (1 + expert(ranks, rank, tokens, token, k) % 2) as f32;
    (0..ROUTES).map(routed).sum()
}

// The engine's functions, as `engine.c` has them.
unsafe extern "C" {
    fn moe_expert(context: *const pld_task_context_t, user_data: *mut c_void) -> i32;
    fn moe_sum(context: *const pld_task_context_t, user_data: *mut c_void) -> i32;
}

/// The program of a layer, and one rank's data.
struct Layer {
    ranks: u32,
    rank: u32,
    tokens: usize,
    executable: Executable,
    _world: World,
    tensors: [Arg; 7],
    scales: Vec<f32>,
    y: Vec<f32>,
    /// Layers so far.
    epoch: i64,
    /// What the arguments point to.
    _data: (Vec<i8>, Vec<f32>, [Vec<i32>; 2], Vec<bf16>),
}

impl Layer {
    fn new(bench: &Bench, tokens: usize) -> Result<Self, String> {
        Self::in_world(bench, World::join(bench)?, tokens)
    }

    fn in_world(bench: &Bench, world: World, tokens: usize) -> Result<Self, String> {
        assert!(PROGRAM.contains(TOKENS));
        let program = Program::parse(&PROGRAM.replace(TOKENS, &format!("const T = {tokens} ")))?;
        let (ranks, rank) = (bench.ranks(), bench.rank());
        let executable = world.compile_with(&program, true, &[(c"expert", moe_expert), (c"sum", moe_sum)])?;
        let places = ranks as usize * tokens;
        let routes = || (0..tokens).flat_map(|t| (0..ROUTES).map(move |k| (t, k)));
        let mut x: Vec<i8> = (0..tokens).flat_map(|t| (0..ELEMENTS).map(move |i| element(rank, t, i))).collect();
        let mut scales: Vec<f32> = (0..tokens).map(|t| scale(rank, t)).collect();
        let mut weights: Vec<f32> = routes().map(|(t, k)| weight(rank, t, k)).collect();
        let mut experts: Vec<i32> = routes().map(|(t, k)| expert(ranks, rank, tokens, t, k) as i32).collect();
        let mut histogram = vec![0; ranks as usize * EXPERTS];
        let mut made = vec![bf16::ZERO; places * ELEMENTS];
        let mut y = vec![f32::NAN; tokens * ELEMENTS];
        let (t, k, d) = (tokens as i64, ROUTES as i64, ELEMENTS as i64);
        let tensors = [
            tensor(&mut x, &[t, d]),
            tensor(&mut scales, &[t, 1]),
            tensor(&mut experts, &[t, k]),
            tensor(&mut weights, &[t, k]),
            tensor(&mut histogram, &[i64::from(ranks), EXPERTS as i64]),
            tensor(&mut made, &[places as i64, d]),
            tensor(&mut y, &[t, d]),
        ];
        let data = (x, weights, [experts, histogram], made);
        Ok(Self { ranks, rank, tokens, executable, _world: world, tensors, scales, y, epoch: 0, _data: data })
    }

    /// One layer.
    fn run(&mut self) -> Result<(), String> {
        self.epoch += 1;
        self.launch(true)
    }

    /// A launch of the same program with the same arguments, which does the layer's work or none.
    fn launch(&self, work: bool) -> Result<(), String> {
        let [x, scale, expert, weight, histogram, made, y] = self.tensors;
        let arguments = [x, scale, expert, weight, histogram, made, y, int(self.epoch), bool(work)];
        self.executable.launch(&arguments)
    }

    /// Runs one more layer, with the negatives of the tokens before, and compares what comes out.
    fn check(&mut self) -> Result<(), String> {
        self.scales.iter_mut().for_each(|scale| *scale = -*scale);
        self.y.fill(f32::NAN);
        self.run()?;
        for (i, &value) in self.y.iter().enumerate() {
            let (token, at) = (i / ELEMENTS, i % ELEMENTS);
            let expected = -result(self.ranks, self.rank, self.tokens, token, at);
            if value != expected {
                return Err(format!("rank {}, token {token}: element {at} is {value}, not {expected}", self.rank));
            }
        }
        Ok(())
    }
}

/// One layer a launch, so many of them.
pub fn layer(bench: &Bench, tokens: usize, layers: u32) -> Result<(), String> {
    let (board, rank, times) = (bench.board(), bench.rank(), bench.times(layers));
    let mut layer = Layer::new(bench, tokens)?;
    bench.sample(&mut [(VALUE, &mut || {
        if bench.ranks() == 2 {
            limits::align(board, rank);
        }
        microseconds(times, |_| layer.run())
    })])?;
    layer.check()
}

/// The same in a world with a trace; the limit is the same without.
pub fn traced(bench: &Bench) -> Result<(), String> {
    const TOKENS: usize = 128;
    let (board, rank, times) = (bench.board(), bench.rank(), bench.times(50));
    let mut plain = Layer::new(bench, TOKENS)?;
    let mut traced = Layer::in_world(bench, World::traced(|| World::join(bench))?, TOKENS)?;
    let of = |layer: &mut Layer| {
        limits::align(board, rank);
        microseconds(times, |_| layer.run())
    };
    bench.sample(&mut [(VALUE, &mut || of(&mut traced)), (LIMIT, &mut || of(&mut plain))])?;
    plain.check()?;
    traced.check()
}

/// Percent of a step of 60 layers that its launches take: as long as they take when the program has no work to do.
pub fn launches(bench: &Bench) -> Result<(), String> {
    const LAYERS: u32 = 60;
    let (board, rank, times) = (bench.board(), bench.rank(), bench.times(20_000));
    let mut layer = Layer::new(bench, 128)?;
    bench.sample(&mut [(VALUE, &mut || {
        limits::align(board, rank);
        let with_work = microseconds(LAYERS, |_| layer.run())?;
        let without = microseconds(times, |_| layer.launch(false))?;
        Ok(100.0 * without / with_work)
    })])?;
    layer.check()
}
