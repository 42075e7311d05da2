//! The mutants that are not found, and why.

/// A mutant that is not found.
pub struct Survivor {
    pub mutant: &'static str,
    pub why: Why,
}

pub enum Why {
    /// It means the same, because of this.
    Equivalent(#[allow(dead_code, reason = "for the reader")] &'static str),
    /// It means something else, but this is out of reach.
    #[allow(dead_code, reason = "none at present")]
    Missed(#[allow(dead_code, reason = "for the reader")] &'static str),
}

const fn equivalent(mutant: &'static str, because: &'static str) -> Survivor {
    Survivor { mutant, why: Why::Equivalent(because) }
}

pub const TWO_COUNTERS: &[Survivor] = &[
    equivalent("free: no_dep [consumed]", "deps order the tasks that share it"),
    equivalent(
        "free: wait consumed[peer] >= epoch - 1 => wait consumed[peer] == epoch - 1",
        "no peer consumes more than has been pushed",
    ),
    equivalent(
        "free: wait consumed[peer] >= epoch - 1 => wait consumed[(peer + 1) % world] >= epoch - 1",
        "all cells are waited for, in another order",
    ),
    equivalent("free: wait consumed[peer] >= epoch - 1 in task push", "push begins with what free has ended with"),
    equivalent("push: no_dep [hidden]", "deps order the tasks that share it"),
    equivalent("push: no_dep [ready]", "deps order the tasks that share it"),
    equivalent("push: notify ready[me] @peer += 1 in a loop of its own, behind", "all puts come before all notifies"),
    equivalent(
        "push: notify ready[me] @peer += 1 in task consume",
        "consume comes after push, and notifies before it waits",
    ),
    equivalent("consume: without deps [push]", "push writes what consume reads"),
    equivalent("consume: no_dep [hidden]", "deps order the tasks that share it"),
    equivalent("consume: no_dep [ready]", "deps order the tasks that share it"),
    equivalent("consume: no_dep [consumed]", "deps order the tasks that share it"),
    equivalent(
        "consume: wait ready[src] >= epoch => wait ready[src] == epoch",
        "no source pushes again before its rows are consumed",
    ),
    equivalent("consume: wait ready[src] >= epoch in a loop of its own, before", "all waits come before all loads"),
    equivalent(
        "consume: wait ready[src] >= epoch in task push",
        "push waits when it has pushed, and consume comes after it",
    ),
    equivalent(
        "consume: notify consumed[me] @src += 1 => notify consumed[(me + 1) % world] @src += 1",
        "the sources wait for all cells: it does not matter which is whose",
    ),
    equivalent(
        "consume: notify consumed[me] @src += 1 before store t -> y[src, 0]",
        "the rows are in the tile already",
    ),
    equivalent(
        "consume: notify consumed[me] @src += 1 in a loop of its own, behind",
        "all loads come before all notifies",
    ),
];

pub const PHASES: &[Survivor] = &[
    equivalent("tell: no_dep [recv_counts]", "deps order the tasks that share it"),
    equivalent("tell: no_dep [announced]", "deps order the tasks that share it"),
    equivalent(
        "tell: notify announced[me] @peer += 1 in a loop of its own, behind",
        "all puts come before all notifies",
    ),
    equivalent("push: no_dep [recv]", "deps order the tasks that share it"),
    equivalent("push: no_dep [arrived]", "deps order the tasks that share it"),
    equivalent(
        "push: notify arrived[me] @peer += 1 in a loop of its own, behind",
        "all puts of the block come before all its notifies",
    ),
    equivalent("plan: without deps [tell]", "tell notifies the cells that plan waits for"),
    equivalent("plan: no_dep [recv_counts]", "deps order the tasks that share it"),
    equivalent("plan: no_dep [announced]", "deps order the tasks that share it"),
    equivalent("plan: wait announced[src] >= epoch in a loop of its own, before", "all waits come before all reads"),
    equivalent(
        "plan: wait announced[src] >= epoch in a loop of its own, first of all",
        "all waits come before all reads",
    ),
    equivalent("combine: without deps [push]", "push notifies the cells that combine waits for"),
    equivalent("combine: no_dep [recv]", "deps order the tasks that share it"),
    equivalent("combine: no_dep [arrived]", "deps order the tasks that share it"),
    equivalent(
        "combine: wait arrived[src] >= epoch * BLOCKS in a loop of its own, before",
        "all waits come before all loads",
    ),
    equivalent(
        "combine: wait arrived[src] >= epoch * BLOCKS in a loop of its own, first of all",
        "all waits come before all loads",
    ),
];

pub const CREDITS: &[Survivor] = &[
    equivalent(
        "exchange: notify credits[src, 0] @me += -1 behind for src in 0..world",
        "the credits are taken back before the next barrier looks at them",
    ),
    equivalent(
        "exchange: notify credits[src, 0] @me += -1 behind for src in 0..world (again)",
        "the credits are taken back before the next launch looks at them",
    ),
];

pub const MOE: &[Survivor] = &[
    equivalent("route: no_dep [counts]", "deps order the tasks that share it"),
    equivalent("route: no_dep [counted]", "deps order the tasks that share it"),
    equivalent(
        "route: notify counted[me, 0] @dst += 1 in a loop of its own, behind",
        "all puts come before all notifies",
    ),
    equivalent("push: no_dep [recv_x]", "deps order the tasks that share it"),
    equivalent("push: no_dep [recv_scale]", "deps order the tasks that share it"),
    equivalent("push: no_dep [recv_weight]", "deps order the tasks that share it"),
    equivalent("push: no_dep [recv_route]", "deps order the tasks that share it"),
    equivalent("push: no_dep [arrived]", "deps order the tasks that share it"),
    equivalent("place: without deps [routed]", "route notifies the cells that place waits for"),
    equivalent("place: no_dep [counts]", "deps order the tasks that share it"),
    equivalent("place: no_dep [counted]", "deps order the tasks that share it"),
    equivalent("place: no_dep [first]", "deps order the tasks that share it"),
    equivalent(
        "place: wait counted[src, 0] >= epoch => wait counted[src, 0] == epoch",
        "no source counts again before it has its answers, which come after place",
    ),
    equivalent(
        "place: wait counted[src, 0] >= epoch behind total = var i32 = 0",
        "the variable has nothing to do with it",
    ),
    equivalent("receive: without deps [pushed]", "push notifies the cells that receive waits for"),
    equivalent("receive: no_dep [arrived]", "deps order the tasks that share it"),
    equivalent("expert: without deps [placed]", "place writes what the experts read"),
    equivalent("expert: no_dep [counts]", "deps order the tasks that share it"),
    equivalent("expert: no_dep [recv_x]", "deps order the tasks that share it"),
    equivalent("expert: no_dep [recv_scale]", "deps order the tasks that share it"),
    equivalent("expert: no_dep [recv_weight]", "deps order the tasks that share it"),
    equivalent("expert: no_dep [first]", "deps order the tasks that share it"),
    equivalent("expert: no_dep [y]", "deps order the tasks that share it"),
    equivalent("answer: without deps [answers]", "the experts write what answer reads"),
    equivalent("answer: no_dep [counts]", "deps order the tasks that share it"),
    equivalent("answer: no_dep [recv_route]", "deps order the tasks that share it"),
    equivalent("answer: no_dep [first]", "deps order the tasks that share it"),
    equivalent("answer: no_dep [y]", "deps order the tasks that share it"),
    equivalent("answer: no_dep [routed_y]", "deps order the tasks that share it"),
    equivalent("answer: no_dep [returned]", "deps order the tasks that share it"),
    equivalent("gather: without deps [answered]", "answer notifies the cells that gather waits for"),
    equivalent("gather: no_dep [returned]", "deps order the tasks that share it"),
    equivalent("combine: no_dep [routed_y]", "deps order the tasks that share it"),
];

pub const CONTEXT_PARALLEL: &[Survivor] = &[
    equivalent("await_consumed: no_dep [consumed]", "deps order the tasks that share it"),
    equivalent("publish: no_dep [tails]", "deps order the tasks that share it"),
    equivalent("publish: no_dep [ready]", "deps order the tasks that share it"),
    equivalent(
        "await_ready: without deps [published]",
        "publish notifies the cells that await_ready waits for, and writes what consume reads",
    ),
    equivalent("await_ready: no_dep [ready]", "deps order the tasks that share it"),
    equivalent("consume: no_dep [tails]", "deps order the tasks that share it"),
    equivalent("consume: no_dep [consumed]", "deps order the tasks that share it"),
];

pub const TENSOR_PARALLEL: &[Survivor] = &[
    equivalent("scatter: no_dep [parts]", "deps order the tasks that share it"),
    equivalent("scatter: no_dep [scattered]", "deps order the tasks that share it"),
    equivalent(
        "scatter: notify scattered[half, me] @owner += 1 in a loop of its own, behind",
        "all puts come before all notifies",
    ),
    equivalent("await_parts: without deps [sent]", "scatter notifies the cells that await_parts waits for"),
    equivalent("await_parts: no_dep [scattered]", "deps order the tasks that share it"),
    equivalent("reduce: no_dep [parts]", "deps order the tasks that share it"),
    equivalent("reduce: no_dep [total]", "deps order the tasks that share it"),
    equivalent("reduce: no_dep [reduced]", "deps order the tasks that share it"),
    equivalent(
        "reduce: notify reduced[half, me] @peer += 1 in a loop of its own, behind",
        "all puts come before all notifies",
    ),
    equivalent("await_total: without deps [added]", "reduce notifies the cells that await_total waits for"),
    equivalent("await_total: no_dep [reduced]", "deps order the tasks that share it"),
    equivalent("collect: no_dep [total]", "deps order the tasks that share it"),
];
