//! All-to-all of as many rows as the counts say, and not one more.

use pld::check::{self, Schedule};
use pld::error::ErrorKind;
use pld::ir::DType;
use pld::runtime::CompileOptions;

use crate::case::{Case, Tensor, program, world};
use crate::numbers::{DTYPES, Number, encode, given};

/// A number for each pair of ranks.
type Table = Vec<Vec<i64>>;

/// Who sends how many rows to whom, from where to where.
struct Exchange {
    nranks: usize,
    dtype: DType,
    /// Elements of a row.
    width: usize,
    /// Rows of `src` and of `dst`.
    rows: (usize, usize),
    /// By sender and receiver.
    counts: Table,
    /// Where rows begin: by receiver and sender in `dst`, by sender and receiver in `src`.
    offsets: Option<(Table, Table)>,
    /// The type of counts and offsets.
    numbers: DType,
}

impl Exchange {
    /// Lanes of `lane` rows for each pair.
    fn even(nranks: usize, lane: usize, count: impl Fn(usize, usize) -> usize) -> Self {
        let counts = (0..nranks).map(|src| (0..nranks).map(|dst| count(src, dst) as i64).collect()).collect();
        let rows = (lane * nranks, lane * nranks);
        Self { nranks, dtype: DType::I32, width: 3, rows, counts, offsets: None, numbers: DType::I32 }
    }

    /// Rows lie close to each other or with gaps, ranks in another order on each rank.
    fn packed(nranks: usize, gap: usize, count: impl Fn(usize, usize) -> usize) -> Self {
        let mut this = Self::even(nranks, 0, count);
        let place = |me: usize, length: &dyn Fn(usize) -> i64| {
            let (mut offsets, mut end) = (vec![0; nranks], gap as i64);
            for k in 0..nranks {
                let peer = (nranks * 2 + me * 2 - k) % nranks;
                offsets[peer] = end;
                end += length(peer) + gap as i64;
            }
            (offsets, end as usize)
        };
        let counts = &this.counts;
        let all = |length: &dyn Fn(usize, usize) -> i64| -> (Table, usize) {
            let (offsets, ends): (Vec<_>, Vec<_>) = (0..nranks).map(|me| place(me, &|peer| length(me, peer))).unzip();
            (offsets, ends.into_iter().max().expect("there is a rank"))
        };
        let (recv, dst) = all(&|me, peer| counts[peer][me]);
        let (send, src) = all(&|me, peer| counts[me][peer]);
        this.offsets = Some((recv, send));
        this.rows = (src, dst);
        this
    }

    fn place(&self, offsets: Option<&Table>, rows: usize, me: usize, peer: usize) -> i64 {
        offsets.map_or((peer * (rows / self.nranks)) as i64, |offsets| offsets[me][peer])
    }

    /// The tensors: `x` is sent, `y` is the window before and after, with a row around what may be written.
    fn tensors(&self) -> Vec<Tensor> {
        let (p, row) = (self.nranks, self.width * self.dtype.size() as usize);
        let rank = |salt: usize, rows: usize| -> Vec<Vec<u8>> {
            (0..p).map(|rank| given(self.dtype, salt, rank, 0..rows * self.width)).collect()
        };
        let x = rank(1, self.rows.0);
        let before = rank(40, self.rows.1 + 2);
        let mut after = before.clone();
        let (recv, send) = (self.offsets.as_ref().map(|o| &o.0), self.offsets.as_ref().map(|o| &o.1));
        for (dst, after) in after.iter_mut().enumerate() {
            for (src, x) in x.iter().enumerate() {
                let from = self.place(send, self.rows.0, src, dst);
                let to = self.place(recv, self.rows.1, dst, src);
                // Where the exchange is refused, nothing is compared.
                let bytes = |first: i64| -> Option<std::ops::Range<usize>> {
                    let end = first.checked_add(self.counts[src][dst])?;
                    Some(usize::try_from(first).ok()? * row..usize::try_from(end).ok()? * row)
                };
                if let (Some(from), Some(to)) = (bytes(from), bytes(to + 1))
                    && let (Some(from), Some(to)) = (x.get(from), after.get_mut(to))
                {
                    to.copy_from_slice(from);
                }
            }
        }
        let numbers = |values: &[Vec<i64>]| -> Vec<Vec<u8>> {
            let encoded = |values: &Vec<i64>| {
                let mut bytes = Vec::new();
                values.iter().for_each(|&value| encode(self.numbers, Number::Int(value), &mut bytes));
                bytes
            };
            values.iter().map(encoded).collect()
        };
        let received: Table = (0..p).map(|dst| (0..p).map(|src| self.counts[src][dst]).collect()).collect();
        let tensor = |name: &str, dtype: DType, shape: &[usize], before: Vec<Vec<u8>>, after: Vec<Vec<u8>>| {
            let shape = shape.iter().map(|&extent| extent as i64).collect();
            Tensor { name: name.into(), dtype, shape, before, after, tolerance: 0.0 }
        };
        let same = |name: &str, values: &[Vec<i64>]| tensor(name, self.numbers, &[p], numbers(values), numbers(values));
        let mut tensors = vec![
            tensor("x", self.dtype, &[self.rows.0, self.width], x.clone(), x),
            tensor("y", self.dtype, &[self.rows.1 + 2, self.width], before, after),
            same("counts", &self.counts),
            tensor("got", self.numbers, &[p], numbers(&vec![vec![-7; p]; p]), numbers(&received)),
        ];
        if let Some((recv, send)) = &self.offsets {
            tensors.extend([same("to", recv), same("off", send)]);
        }
        tensors
    }

    /// In a task, on a slice of a window.
    fn in_task(&self, mode: &str) -> Case {
        let tensors = self.tensors();
        let param = |tensor: &Tensor, axis: &str| {
            let shape = &format!("{:?}", tensor.shape)[1..];
            let direction = if ["y", "got"].contains(&&*tensor.name) { "inout" } else { "in" };
            format!("{}: tensor[{axis}{shape} {} {direction}", tensor.name, tensor.dtype)
        };
        let params = |axis: &str| tensors.iter().map(|tensor| param(tensor, axis)).collect::<Vec<_>>().join(", ");
        let args: Vec<String> = tensors.iter().map(|tensor| format!("{}[r]", tensor.name)).collect();
        let window = format!("[{}, {}] {}", self.rows.1 + 2, self.width, self.dtype);
        let (to, off) = if self.offsets.is_some() { (", to", ", off") } else { ("", "") };
        let text = format!(
            "program rows
entry e({}, w: window{window}, me: i32) {{
  at exchange {{
    put w @me <- y
    rows = slice w[1, 0] [{}, {}]
    all_to_all_v rows, got{to} <- x, counts{off} mode {mode}
    get y <- w @me
  }}
}}
host ({}) {{
  w_buf = alloc_window {window}
  ranks r in 0..world {{
    w = window w_buf {window}
    dispatch e({}, w, r) device r
  }}
}}
",
            params(""),
            self.rows.1,
            self.width,
            params("world, "),
            args.join(", ")
        );
        Case { text, nranks: self.nranks as u32, tensors }
    }

    /// In the host driver, where all operands are windows.
    fn in_host(&self, mode: &str, cores: usize) -> Case {
        let mut tensors = self.tensors();
        // A view begins where its window does.
        let row = self.width * self.dtype.size() as usize;
        let y = &mut tensors[1];
        y.shape[0] -= 1;
        y.before.iter_mut().chain(&mut y.after).for_each(|part| drop(part.drain(..row)));
        let ty = |tensor: &Tensor| format!("{:?} {}", tensor.shape, tensor.dtype);
        let param = |tensor: &Tensor, axis: &str, direction: &str| {
            let shape = &format!("{:?}", tensor.shape)[1..];
            format!("{}: tensor[{axis}{shape} {} {direction}", tensor.name, tensor.dtype)
        };
        let list =
            |one: &dyn Fn(&Tensor) -> String, between: &str| tensors.iter().map(one).collect::<Vec<_>>().join(between);
        let windows = list(&|t| format!("w_{}: window{}", t.name, ty(t)), ", ");
        let args = list(&|t| format!("{}[r]", t.name), ", ") + ", " + &list(&|t| format!("w_{}", t.name), ", ");
        let params = |axis: &str, direction: &str| list(&|t| param(t, axis, direction), ", ");
        let (to, off) = if self.offsets.is_some() { (", w_to", ", w_off") } else { ("", "") };
        let text = format!(
            "program rows
entry publish({}, {windows}, me: i32) {{
  at publish {{
    {}
  }}
}}
entry consume({}, {windows}, me: i32) {{
  at consume {{
    {}
  }}
}}
host ({}) {{
  {}
  {}
  rows = window w_y_buf [{}, {}] {}
  ranks r in 0..world {{ dispatch publish({args}, r) device r }}
  all_to_all_v rows, w_got{to} <- w_x, w_counts{off} mode {mode} cores {cores}
  ranks r in 0..world {{ dispatch consume({args}, r) device r }}
}}
",
            params("", "in"),
            list(&|t| format!("put w_{0} @me <- {0}", t.name), "\n    "),
            params("", "out"),
            list(&|t| format!("get {0} <- w_{0} @me", t.name), "\n    "),
            params("world, ", "inout"),
            list(&|t| format!("w_{}_buf = alloc_window {}", t.name, ty(t)), "\n  "),
            list(&|t| format!("w_{0} = window w_{0}_buf {1}", t.name, ty(t)), "\n  "),
            self.rows.1,
            self.width,
            self.dtype,
        );
        Case { text, nranks: self.nranks as u32, tensors }
    }

    fn launch(&self) {
        let world = world(self.nranks as u32);
        for mode in ["auto", "mesh", "direct"] {
            self.in_task(mode).launch(&world);
            self.in_host(mode, 1 + self.width % 4).launch(&world);
        }
    }

    fn interpret(&self) {
        for mode in ["mesh", "direct"] {
            self.in_task(mode).interpret(5);
            self.in_host(mode, 1).interpret(5);
            self.in_host(mode, 2).interpret(0);
        }
    }
}

/// Counts that no two pairs share, some of them zero.
fn uneven(nranks: usize, most: usize) -> impl Fn(usize, usize) -> usize {
    move |src, dst| (src * nranks + dst * 3 + src * src) % (most + 1)
}

#[test]
fn few_ranks_interpreted() {
    for p in [1, 2, 3] {
        Exchange { numbers: DType::I64, ..Exchange::even(p, 4, uneven(p, 4)) }.interpret();
        Exchange::packed(p, 2, uneven(p, 3)).interpret();
    }
}

#[test]
fn any_number_of_ranks() {
    for p in [1, 2, 3, 4, 5, 8, 16] {
        Exchange::even(p, 7, uneven(p, 7)).launch();
        Exchange { numbers: DType::I64, ..Exchange::packed(p, p % 3, uneven(p, 9)) }.launch();
    }
}

#[test]
fn all_types_and_widths() {
    for (n, dtype) in DTYPES.into_iter().enumerate() {
        let width = [1, 2, 3, 64, 129, 1000][n];
        Exchange { dtype, width, ..Exchange::even(3, 5, uneven(3, 5)) }.launch();
        Exchange { dtype, width, ..Exchange::packed(4, 1, uneven(4, 5)) }.launch();
    }
}

/// C22: only five ranks have something to say; and nobody.
#[test]
fn c22_empty_messages() {
    Exchange::even(64, 1, |src, _| usize::from(src < 5)).launch();
    Exchange::even(4, 2, |_, _| 0).launch();
    Exchange::packed(4, 0, |_, _| 0).launch();
}

/// C25: a rank that gets nothing, one that sends nothing, and one that does both alone.
#[test]
fn c25_a_rank_that_gets_nothing() {
    Exchange::even(4, 4, |src, dst| if dst == 2 { 0 } else { 1 + src }).launch();
    Exchange::packed(4, 1, |src, dst| if dst == 2 { 0 } else { 1 + src }).launch();
    Exchange::packed(3, 0, |src, dst| if src == 1 { 0 } else { 1 + dst }).launch();
}

/// C27: large capacities, small counts; then one rank gets everything.
#[test]
fn c27_counts_far_below_capacity() {
    let wide = |exchange: Exchange| Exchange { dtype: DType::I8, width: 7168, ..exchange };
    let one = |_: usize, _: usize| 1;
    for mode in ["auto", "mesh"] {
        wide(Exchange::even(8, 16, one)).in_task(mode).launch(&world(8));
        wide(Exchange::packed(8, 3, |_, dst| if dst == 3 { 16 } else { 0 })).in_task(mode).launch(&world(8));
    }
}

/// All ranks end with an error that names what is too much and what it is compared with.
fn assert_refused(exchange: &Exchange, numbers: [&str; 2]) {
    for case in [exchange.in_task("mesh"), exchange.in_task("direct"), exchange.in_host("auto", 1)] {
        for unchecked in [false, true] {
            let options = CompileOptions { unchecked, ..CompileOptions::default() };
            let executable = case.compile(&world(case.nranks), &options);
            for _ in 0..2 {
                let error = case.launched(&executable).unwrap_err();
                assert_eq!(error.kind, ErrorKind::OutOfBounds, "{error}");
                assert!(numbers.iter().all(|number| error.message.contains(number)), "{error}");
            }
        }
        let args: Vec<check::Arg> =
            case.tensors.iter().map(|tensor| check::Arg::Ranked(tensor.before.clone())).collect();
        let options = check::Options { nranks: case.nranks, args: &args, ..check::Options::default() };
        let outcome = check::run(&program(&case.text), &options, &Schedule::Random(1)).unwrap();
        let told = outcome.findings.first().expect("a finding").to_string();
        assert!(outcome.fault.is_some() && numbers.iter().all(|number| told.contains(number)), "{told}");
    }
}

#[test]
fn counts_over_capacity_or_negative() {
    let with = |src: usize, dst: usize, count: i64| {
        let mut exchange = Exchange::even(3, 4, |_, _| 2);
        exchange.counts[src][dst] = count;
        exchange
    };
    assert_refused(&with(1, 2, 5), [" is 5", "which is 4"]);
    assert_refused(&with(2, 2, 5), [" is 5", "which is 4"]);
    assert_refused(&with(0, 1, 1 << 30), ["is 1073741824", "which is 4"]);
    let long = Exchange { numbers: DType::I64, ..with(0, 1, 1 << 32) };
    assert_refused(&long, ["is 4294967296", "which is 4"]);
    assert_refused(&with(0, 1, -1), [" is -1", ">= 0"]);
    // More than the receiver has room for, and than the sender has.
    let packed = |src: usize, dst: usize, count: i64| {
        let mut exchange = Exchange::packed(3, 0, |_, _| 2);
        exchange.counts[src][dst] = count;
        exchange
    };
    assert_refused(&packed(0, 1, 7), ["is 7", "which is"]);
    assert_refused(&packed(0, 1, -3), ["is -3", ">= 0"]);
    let mut outside = Exchange::packed(2, 0, |_, _| 1);
    outside.offsets.as_mut().unwrap().0[1][0] = -1;
    assert_refused(&outside, ["is -1", ">= 0"]);
    let mut outside = Exchange::packed(2, 0, |_, _| 1);
    outside.offsets.as_mut().unwrap().1[1][0] = 2;
    assert_refused(&outside, ["is 1", "which is 0"]);
}

fn c12(p: usize) -> Exchange {
    Exchange { dtype: DType::F32, width: 64, ..Exchange::even(p, 4, |_, dst| p - dst) }
}

/// Vector C12, for so many ranks.
pub fn c12_in_task(nranks: u32) -> Case {
    c12(nranks as usize).in_task("auto")
}

#[test]
fn c12_and_d16() {
    [2, 3, 4].into_iter().for_each(|p| c12(p).launch());
}
