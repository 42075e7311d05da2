//! Collectives in plain shared memory, as `ideal.c` has them: a limit of the rows.

use super::call::{Call, Collective};
use crate::rank::{Bench, CPUS, microseconds};

/// As `ideal.c` has it.
#[repr(C)]
struct Team {
    rank: u32,
    ranks: u32,
    crowded: u32,
    round: u32,
    stride: usize,
    input: usize,
    output: usize,
    memory: *mut u8,
}

unsafe extern "C" {
    fn pld_bench_ideal(team: *mut Team, collective: u32, bytes: usize, times: u32);
}

/// What is in front of a rank's input: its flags.
const PAGE: usize = 4096;

/// One rank of an ideal collective.
pub struct Ideal {
    team: Team,
    call: Call,
    collective: u32,
}

impl Ideal {
    /// Rank's part of `call`; `None` if there is no ideal of it.
    pub fn new(bench: &Bench, call: Call) -> Result<Option<Self>, String> {
        let Some(collective) = number(call.collective) else { return Ok(None) };
        let pages = |elements: usize| (elements * size_of::<f32>()).next_multiple_of(PAGE);
        let (input, output) = (PAGE, PAGE + pages(call.given()));
        let stride = output + pages(call.window());
        let memory = bench.shared_memory(stride * bench.ranks() as usize)?;
        let crowded = u32::from(bench.ranks() > CPUS);
        let team = Team { rank: bench.rank(), ranks: bench.ranks(), crowded, round: 0, stride, input, output, memory };
        let mut ideal = Self { team, call, collective };
        let rank = bench.rank();
        ideal.floats(input, call.given()).iter_mut().enumerate().for_each(|(i, x)| *x = call.value(rank, i));
        Ok(Some(ideal))
    }

    /// Microseconds of one of `times` calls.
    pub fn measure(&mut self, times: u32) -> f64 {
        let run = |_| {
            // SAFETY: the memory is laid out as the team says, and all ranks do the same.
            unsafe { pld_bench_ideal(&mut self.team, self.collective, self.call.bytes, times) };
            Ok::<_, std::convert::Infallible>(())
        };
        let Ok(time) = microseconds(1, run);
        time / f64::from(times)
    }

    /// Compares the result of the last call with what it should be.
    pub fn check(&mut self) -> Result<(), String> {
        let (call, rank, output) = (self.call, self.team.rank, self.team.output);
        let (first, length) = match call.collective {
            Collective::Barrier => return Ok(()),
            Collective::ReduceScatter => {
                let part = call.window() / call.ranks as usize;
                (rank as usize * part, part)
            }
            // The root's input is its output.
            Collective::Broadcast if rank == 0 => return Ok(()),
            _ => (0, call.window()),
        };
        call.compare(rank, self.floats(output, length), first).map_err(|e| format!("the limit is wrong: {e}"))
    }

    fn floats(&mut self, at: usize, elements: usize) -> &mut [f32] {
        // SAFETY: inside this rank's memory, which no other rank uses outside of a call.
        unsafe {
            let begin = self.team.memory.add(self.team.rank as usize * self.team.stride + at);
            std::slice::from_raw_parts_mut(begin.cast(), elements)
        }
    }
}

/// The order of `ideal.c`.
fn number(collective: Collective) -> Option<u32> {
    Some(match collective {
        Collective::Barrier => 0,
        Collective::Allreduce => 1,
        Collective::ReduceScatter => 2,
        Collective::Broadcast => 3,
        Collective::Allgather => 4,
        Collective::AllToAll => 5,
        Collective::AllToAllV => return None,
    })
}
