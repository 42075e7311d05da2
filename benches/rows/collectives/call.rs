//! One call of a collective: its program, what the ranks give, and what they get.

use crate::rank::{Bench, CPUS, microseconds};
use crate::session::{Arg, Executable, Program, World, bool, int, tensor};

/// The collectives that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    Barrier,
    Allreduce,
    ReduceScatter,
    Broadcast,
    Allgather,
    AllToAll,
    AllToAllV,
}

/// A call of so many ranks. `bytes` are what a rank gives; of an all-reduce and a broadcast, what each has.
#[derive(Clone, Copy)]
pub struct Call {
    pub collective: Collective,
    pub ranks: u32,
    pub bytes: usize,
    /// The algorithm; the library's choice if it is `auto`.
    pub mode: &'static str,
}

impl Collective {
    pub const ALL: [Self; 7] = [
        Self::Barrier,
        Self::Allreduce,
        Self::ReduceScatter,
        Self::Broadcast,
        Self::Allgather,
        Self::AllToAll,
        Self::AllToAllV,
    ];

    /// As programs and `peers/mpi.c` call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Allreduce => "allreduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::Broadcast => "broadcast",
            Self::Allgather => "allgather",
            Self::AllToAll => "all_to_all",
            Self::AllToAllV => "all_to_all_v",
        }
    }
}

/// The longest row of an all-to-all-v, in elements.
const ROW: usize = 256;

impl Call {
    /// `OP/RANKS/BYTES`.
    pub fn name(self) -> String {
        let name = format!("{}/{}", self.collective.name(), self.ranks);
        if self.collective == Collective::Barrier { name } else { format!("{name}/{}", self.bytes) }
    }

    /// What `peers/mpi.c` calls it.
    pub fn series(self) -> String {
        let name = self.collective.name();
        if self.collective == Collective::Barrier { name.to_owned() } else { format!("{name}/{}", self.bytes) }
    }

    fn elements(self) -> usize {
        self.bytes / size_of::<f32>()
    }

    /// Of an all-to-all-v, elements that go to `peer`: half of all go to all alike, the others to rank 0 besides.
    fn sent(self, peer: u32) -> usize {
        let part = self.elements() / 2 / self.ranks as usize;
        if peer == 0 { self.elements() / 2 + part } else { part }
    }

    /// Elements of a row of an all-to-all-v.
    fn row(self) -> usize {
        self.sent(1).min(ROW)
    }

    /// Rows and columns of what a rank gives.
    fn given_shape(self) -> [usize; 2] {
        let (ranks, elements) = (self.ranks as usize, self.elements());
        match self.collective {
            Collective::Barrier => [1, 1],
            Collective::Allreduce | Collective::Broadcast | Collective::Allgather => [1, elements],
            Collective::ReduceScatter | Collective::AllToAll => [ranks, elements / ranks],
            Collective::AllToAllV => [ranks * self.sent(0) / self.row(), self.row()],
        }
    }

    /// Rows and columns of the window.
    fn window_shape(self) -> [usize; 2] {
        match self.collective {
            Collective::Allgather => [self.ranks as usize, self.elements()],
            _ => self.given_shape(),
        }
    }

    /// Elements that a rank gives.
    pub fn given(self) -> usize {
        self.given_shape().iter().product()
    }

    /// Elements of a rank's window.
    pub fn window(self) -> usize {
        self.window_shape().iter().product()
    }

    /// Element `at` of what `rank` gives.
    pub fn value(self, rank: u32, at: usize) -> f32 {
        ((rank as usize * 37 + at * 11) % 251) as f32
    }

    /// Element `at` of the window of `rank` after the call.
    fn expected(self, rank: u32, at: usize) -> f32 {
        let me = rank as usize;
        let part = self.window() / self.ranks as usize;
        let sum = || (0..self.ranks).map(|from| self.value(from, at)).sum();
        match self.collective {
            Collective::Barrier => self.value(rank, at),
            Collective::Allreduce => sum(),
            Collective::ReduceScatter if at / part == me => sum(),
            Collective::ReduceScatter => self.value(rank, at),
            Collective::Broadcast => self.value(0, at),
            Collective::Allgather => self.value((at / part) as u32, at % part),
            Collective::AllToAllV if at % part >= self.sent(rank) => 0.0,
            Collective::AllToAll | Collective::AllToAllV => self.value((at / part) as u32, me * part + at % part),
        }
    }

    /// How many calls take a few milliseconds.
    pub fn times(self, bench: &Bench) -> u32 {
        const SAMPLE: f64 = 4e3;
        let (ranks, bytes) = (f64::from(self.ranks), self.bytes.max(self.window() * size_of::<f32>()) as f64);
        let estimate = if self.ranks > CPUS { ranks * (1.0 + 2e-4 * bytes) } else { 0.2 + 1.5e-4 * bytes };
        bench.times((SAMPLE / estimate).clamp(3.0, 20_000.0) as u32)
    }

    fn program(self) -> String {
        let ([x_rows, x_columns], [rows, columns]) = (self.given_shape(), self.window_shape());
        let (call, in_place) = match self.collective {
            Collective::Barrier => ("barrier", true),
            Collective::Allreduce => ("allreduce sum data", true),
            Collective::ReduceScatter => ("reduce_scatter sum data", true),
            Collective::Broadcast => ("broadcast data root 0", true),
            Collective::Allgather => ("allgather data <- x", false),
            Collective::AllToAll => ("all_to_all data <- x", false),
            Collective::AllToAllV => ("all_to_all_v data, received <- x, sent", false),
        };
        let mode = if self.mode == "auto" { String::new() } else { format!(" mode {}", self.mode) };
        let fill = if in_place { "if check { put data @me <- x }" } else { "" };
        format!(
            "
program {name}

entry repeat(x: tensor[{x_rows}, {x_columns}] f32 in, sent: tensor[world] i32 in, y: tensor[{rows}, {columns}] f32 inout,
             received: tensor[world] i32 inout, data: window[{rows}, {columns}] f32, me: i32, times: i32, check: bool) {{
  at calls {{
    {fill}
    for i in 0..times {{
      {call}{mode}
    }}
    if check {{ get y <- data @me }}
  }}
}}

host (x: tensor[{x_rows}, {x_columns}] f32 in, sent: tensor[world] i32 in, y: tensor[{rows}, {columns}] f32 inout,
      received: tensor[world] i32 inout, times: i32, check: bool) {{
  data_buf = alloc_window [{rows}, {columns}] f32
  ranks r in 0..world {{
    data = window data_buf [{rows}, {columns}] f32
    dispatch repeat(x, sent, y, received, data, r, times, check) device r
  }}
}}
",
            name = self.collective.name()
        )
    }
}

/// One rank's side of a call.
pub struct Exchange {
    call: Call,
    rank: u32,
    executable: Executable,
    _world: World,
    tensors: [Arg; 4],
    y: Vec<f32>,
    received: Vec<i32>,
    /// What the other arguments point to.
    _data: (Vec<f32>, Vec<i32>),
}

impl Exchange {
    pub fn new(bench: &Bench, call: Call) -> Result<Self, String> {
        let (rank, ranks) = (bench.rank(), call.ranks);
        let world = World::join(bench)?;
        let executable = world.compile(&Program::parse(&call.program())?, true)?;
        let mut x: Vec<f32> = (0..call.given()).map(|i| call.value(rank, i)).collect();
        let mut y = vec![f32::NAN; call.window()];
        let rows = |elements| if call.collective == Collective::AllToAllV { elements / call.row() } else { 0 };
        let mut sent: Vec<i32> = (0..ranks).map(|peer| rows(call.sent(peer)) as i32).collect();
        let mut received = vec![-1; ranks as usize];
        let shape = |shape: [usize; 2]| shape.map(|extent| extent as i64);
        let counts = [i64::from(ranks)];
        let tensors = [
            tensor(&mut x, &shape(call.given_shape())),
            tensor(&mut sent, &counts),
            tensor(&mut y, &shape(call.window_shape())),
            tensor(&mut received, &counts),
        ];
        Ok(Self { call, rank, executable, _world: world, tensors, y, received, _data: (x, sent) })
    }

    fn launch(&self, times: u32, check: bool) -> Result<(), String> {
        let [x, sent, y, received] = self.tensors;
        self.executable.launch(&[x, sent, y, received, int(i64::from(times)), bool(check)])
    }

    /// Microseconds of one of `times` calls in one launch.
    pub fn measure(&self, times: u32) -> Result<f64, String> {
        Ok(microseconds(1, |_| self.launch(times, false))? / f64::from(times))
    }

    /// Does one more, and compares what comes out.
    pub fn check(&mut self) -> Result<(), String> {
        self.launch(1, true)?;
        self.call.compare(self.rank, &self.y, 0)?;
        if self.call.collective == Collective::AllToAllV {
            let rows = (self.call.sent(self.rank) / self.call.row()) as i32;
            if self.received.iter().any(|&received| received != rows) {
                return Err(format!("rank {} received {:?} rows, not {rows} of each", self.rank, self.received));
            }
        }
        Ok(())
    }
}

impl Call {
    /// Compares `found` with the window of `rank` from element `first` on.
    pub fn compare(self, rank: u32, found: &[f32], first: usize) -> Result<(), String> {
        let wrong = found.iter().enumerate().find(|&(i, &value)| value != self.expected(rank, first + i));
        let Some((i, value)) = wrong else { return Ok(()) };
        let expected = self.expected(rank, first + i);
        Err(format!("rank {rank}: element {} of {} is {value}, not {expected}", first + i, self.name()))
    }
}
