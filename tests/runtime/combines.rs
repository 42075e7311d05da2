//! Combination of the windows of several ranks, and tensors as one dimension.

use half::{bf16, f16};
use pld::error::{Error, ErrorKind};
use pld::ir::{Combine, DType};
use pld::runtime::{Arg, TensorArg, World, WorldOptions};

use crate::programs::compile;

/// The number that a test gives for an element, which depends on rank and position; small, so that types hold it, and
/// for floats not a dyadic one, so that the order of a sum shows.
fn number(dtype: DType, rank: usize, i: usize) -> f64 {
    let integer = ((i * 7 + rank * 13) % 23) as f64 - if is_signed(dtype) { 9.0 } else { 0.0 };
    if dtype.is_float() { integer * 0.37 + 0.11 } else { integer }
}

fn is_signed(dtype: DType) -> bool {
    !matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64)
}

/// The element of a number, in which integers wrap.
fn encode(dtype: DType, value: f64) -> Vec<u8> {
    match dtype {
        DType::F32 => (value as f32).to_ne_bytes().to_vec(),
        DType::F16 => f16::from_f32(value as f32).to_ne_bytes().to_vec(),
        DType::BF16 => bf16::from_f32(value as f32).to_ne_bytes().to_vec(),
        _ => (value as i128).to_le_bytes()[..dtype.size() as usize].to_vec(),
    }
}

/// The number of an element: an f32 or an integer, both of which an f64 holds here.
fn decode(dtype: DType, bytes: &[u8]) -> f64 {
    match dtype {
        DType::F32 => f32::from_ne_bytes(bytes.try_into().unwrap()).into(),
        DType::F16 => f16::from_ne_bytes(bytes.try_into().unwrap()).into(),
        DType::BF16 => bf16::from_ne_bytes(bytes.try_into().unwrap()).into(),
        _ => {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let shift = 64 - 8 * bytes.len() as u32;
            let bits = u64::from_le_bytes(word) << shift;
            if is_signed(dtype) { (bits as i64 >> shift) as f64 } else { (bits >> shift) as f64 }
        }
    }
}

/// What elements combine to: floats in f32 and rounded once, integers in their own type.
fn combined(op: Combine, to: DType, from: DType, values: impl Iterator<Item = f64>) -> Vec<u8> {
    let step = |value: f64| if from.is_float() { f64::from(value as f32) } else { decode(from, &encode(from, value)) };
    let apply = |a: f64, b: f64| match op {
        Combine::Sum => step(a + b),
        Combine::Prod => step(a * b),
        Combine::Max => a.max(b),
        Combine::Min => a.min(b),
    };
    encode(to, values.reduce(apply).unwrap())
}

/// Launches with one tensor of inputs and one of outputs a rank, and returns the elements of the latter.
struct Launch<'a> {
    text: &'a str,
    nranks: u32,
    from: DType,
    to: DType,
    /// Of a rank's input and output.
    shapes: (&'a [i64], &'a [i64]),
    scalars: &'a [i64],
}

impl Launch<'_> {
    fn run(&self) -> Result<Vec<Vec<Vec<u8>>>, Error> {
        let world = World::create(self.nranks, &WorldOptions::default()).unwrap();
        let exe = compile(self.text, &world, false).unwrap_or_else(|e| panic!("{e}\n{}", self.text));
        let n = self.nranks as usize;
        let count = |shape: &[i64]| shape.iter().product::<i64>() as usize;
        let (given, taken) = (count(self.shapes.0), count(self.shapes.1) * self.to.size() as usize);
        let numbers = (0..n).flat_map(|rank| (0..given).map(move |i| number(self.from, rank, i)));
        let inputs: Vec<u8> = numbers.flat_map(|value| encode(self.from, value)).collect();
        let aligned = |bytes: &[u8]| {
            let mut words = vec![0u64; bytes.len().div_ceil(8)];
            // SAFETY: the words are plain numbers, at least as many bytes.
            unsafe { words.as_mut_ptr().cast::<u8>().copy_from(bytes.as_ptr(), bytes.len()) };
            words
        };
        let (mut inputs, mut outputs) = (aligned(&inputs), aligned(&vec![0x5A; n * taken]));
        let ranked = |shape: &[i64]| [&[n as i64], shape].concat();
        let shapes = [ranked(self.shapes.0), ranked(self.shapes.1)];
        let tensor = |words: &mut Vec<u64>, dtype, shape| {
            Arg::Tensor(TensorArg { data: words.as_mut_ptr().cast(), dtype, shape, strides: None })
        };
        let mut args = vec![tensor(&mut inputs, self.from, &shapes[0]), tensor(&mut outputs, self.to, &shapes[1])];
        args.extend(self.scalars.iter().map(|&value| Arg::Int(value)));
        exe.launch(&args)?;
        let bytes: Vec<u8> = outputs.iter().flat_map(|word| word.to_ne_bytes()).take(n * taken).collect();
        let elements = |rank: &[u8]| rank.chunks(self.to.size() as usize).map(<[u8]>::to_vec).collect();
        Ok(bytes.chunks(taken).map(elements).collect())
    }
}

/// Every rank combines a region of the windows of all, from itself on. The rows of the region lie apart.
fn all_from_me(op: Combine, to: DType, from: DType) -> String {
    format!(
        "program combine
entry go(x: tensor[120] {from} in, y: tensor[4, 40] {to} out, data: window[3, 40] {from}, sig: window[1] i32) {{
  at step {{
    me = rank(data)
    whole = flatten data
    put whole @me <- x
    for peer in 0..world {{ notify sig[0] @peer += 1 }}
    wait sig[0] >= world
    get_{op} y[2, 0] <- data[1, 2] @me..(me + world) [2, 37]
  }}
}}
host (xs: tensor[world, 120] {from} in, ys: tensor[world, 4, 40] {to} out) {{
  data_buf = alloc_window [3, 40] {from}
  sig_buf = alloc_window [1] i32
  ranks r in 0..world {{
    data = window data_buf [3, 40] {from}
    sig = window sig_buf [1] i32
    dispatch go(xs[r], ys[r], data, sig) device r
  }}
}}
"
    )
}

#[test]
fn every_type_and_op() {
    const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];
    let alike = DType::ALL.into_iter().filter(|d| *d != DType::Bool && !d.is_storage_only()).map(|d| (d, d));
    let pairs = FLOATS.into_iter().flat_map(|to| FLOATS.map(|from| (to, from))).filter(|(to, from)| to != from);
    for (to, from) in alike.chain(pairs) {
        let untouched = vec![0x5A; to.size() as usize];
        for &op in Combine::ALL {
            let text = all_from_me(op, to, from);
            // With one rank it is a copy, which converts.
            for nranks in [1, 2, 3, 5] {
                let launch = Launch { text: &text, nranks, from, to, shapes: (&[120], &[4, 40]), scalars: &[] };
                let (found, n) = (launch.run().unwrap(), nranks as usize);
                for (rank, i) in (0..n).flat_map(|rank| (0..160).map(move |i| (rank, i))) {
                    let (row, col) = (i / 40, i % 40);
                    let right = if row >= 2 && col < 37 {
                        let element = |peer| decode(from, &encode(from, number(from, peer, (row - 1) * 40 + col + 2)));
                        combined(op, to, from, (0..n).map(|k| element((rank + k) % n)))
                    } else {
                        untouched.clone()
                    };
                    assert_eq!(found[rank][i], right, "{op} {from} to {to}, rank {rank} of {n}, [{row}, {col}]");
                }
            }
        }
    }
}

/// A program with a window `[rows, cols]` of i32 that `xs` fills, in which `body` fills `y`.
fn rows(rows: i64, cols: i64, domain: &str, body: &str) -> String {
    let size = rows * cols;
    let within = if domain.is_empty() { "" } else { " in group" };
    let (device, condition) = match domain.trim_matches(['[', ']']) {
        "" => ("", "true".to_string()),
        list => ("\n  group = domain ", list.split(", ").map(|r| format!("r == {r}")).collect::<Vec<_>>().join(" or ")),
    };
    format!(
        "program rows
entry go(x: tensor[{size}] i32 in, y: tensor[{size}] i32 out, data: window[{rows}, {cols}] i32, sig: window[2] i32,
         a: i64, b: i64) {{
  at step {{
    me = rank(data)
    n = nranks(data)
    whole = flatten data
    put whole @me <- x
    for peer in 0..n {{ notify sig[0] @peer += 1 }}
    wait sig[0] >= n
{body}
  }}
}}
host (xs: tensor[world, {size}] i32 in, ys: tensor[world, {size}] i32 out, a: i64, b: i64) {{{device}{domain}
  data_buf = alloc_window [{rows}, {cols}] i32{within}
  sig_buf = alloc_window [2] i32{within}
  ranks r in 0..world {{
    if {condition} {{
      data = window data_buf [{rows}, {cols}] i32
      sig = window sig_buf [2] i32
      dispatch go(xs[r], ys[r], data, sig, a, b) device r
    }}
  }}
}}
"
    )
}

fn launch(text: &str, nranks: u32, size: usize, a: i64, b: i64) -> Result<Vec<Vec<i32>>, Error> {
    let (from, to, shape) = (DType::I32, DType::I32, &[size as i64][..]);
    let launch = Launch { text, nranks, from, to, shapes: (shape, shape), scalars: &[a, b] };
    let int = |bytes: &Vec<u8>| i32::from_ne_bytes(bytes.as_slice().try_into().unwrap());
    Ok(launch.run()?.iter().map(|rank| rank.iter().map(int).collect()).collect())
}

fn given(rank: usize, i: usize) -> i32 {
    number(DType::I32, rank, i) as i32
}

const UNTOUCHED: i32 = 0x5A5A_5A5A;

/// The order shows in no result of integers, but who takes part does.
#[test]
fn some_peers_of_a_domain() {
    for (domain, ranks) in [
        ("", vec![0, 1, 2, 3, 4]),
        ("[3, 0, 4, 1]", vec![3, 0, 4, 1]),
        ("[1, 3]", vec![1, 3]),
        ("[4, 2, 0]", vec![4, 2, 0]),
    ] {
        let n = ranks.len();
        let text = rows(1, 40, domain, "    out = flatten y\n    get_sum out <- whole @a..b");
        let fixed = rows(1, 40, domain, "    get_sum y <- whole @1..3");
        for (first, count) in (0..n).flat_map(|first| (1..=n).map(move |count| (first, count))) {
            let found = launch(&text, 5, 40, first as i64, (first + count) as i64).unwrap();
            for (rank, found) in found.iter().enumerate() {
                let right = |i| (first..first + count).map(|peer| given(ranks[peer % n], i)).sum::<i32>();
                let right = |i| if ranks.contains(&rank) { right(i) } else { UNTOUCHED };
                assert_eq!(*found, (0..40).map(right).collect::<Vec<_>>(), "{domain} {first} {count} rank {rank}");
            }
        }
        let found = launch(&fixed, 5, 40, 0, 0).unwrap();
        let right = |i| given(ranks[1], i) + given(ranks[2 % n], i);
        assert_eq!(found[ranks[0]], (0..40).map(right).collect::<Vec<_>>(), "{domain} 1..3");
    }
}

#[test]
fn parts_of_rows() {
    let bodies = [
        "    out = flatten y\n    get_sum out[7] <- whole[a * 10 + b] @0..world [23]",
        "    part = slice data[a, b] [2, 4]
    for row in 0..2 {
      get_sum y[7 + row * 10] <- whole[(a + row) * 10 + b] @0..world [4]
    }
    get_sum part <- part @me..(me + 1)",
        "    get_max data[me, 1] <- data[me, 1] @0..world [1, 5]\n    get y <- whole @me",
        "    get_min data[me, 0] <- data[me, 0] @me..(me + world) [b, 3]\n    get y <- whole @me",
    ];
    let (n, size) = (3, 60);
    for (number, body) in bodies.iter().enumerate() {
        let text = rows(6, 10, "", body);
        let (a, b) = (2, if number == 3 { 1 } else { 3 });
        let found = launch(&text, 3, size, a, b).unwrap();
        let sum = |i: usize| (0..n).map(|rank| given(rank, i)).sum::<i32>();
        for (rank, found) in found.iter().enumerate() {
            let right = |i: usize| {
                let (row, col) = (i / 10, i % 10);
                let values = (0..n).map(|peer| given(peer, i));
                match number {
                    0 if (7..30).contains(&i) => sum(i - 7 + 23),
                    1 if (7..11).contains(&i) => sum(i - 7 + 23),
                    1 if (17..21).contains(&i) => sum(i - 17 + 33),
                    0 | 1 => UNTOUCHED,
                    2 if row == rank && (1..6).contains(&col) => values.max().unwrap(),
                    3 if row == rank && col < 3 => values.min().unwrap(),
                    _ => given(rank, i),
                }
            };
            assert_eq!(*found, (0..size).map(right).collect::<Vec<_>>(), "body {number}, rank {rank}");
        }
    }
}

/// Regions whose rows lie apart on either side, of sizes that are known when it runs.
#[test]
fn rows_that_lie_apart() {
    let body = "    get_sum data[3, 1] <- data[0, 2] @0..world [a, b]
    notify sig[1] @me += 1
    get y <- whole @me";
    for (height, width) in [(0, 4), (1, 1), (3, 5), (2, 8), (3, 0), (1, 8)] {
        let found = launch(&rows(6, 10, "", body), 4, 60, height, width).unwrap();
        for (rank, found) in found.iter().enumerate() {
            let right = |i: usize| {
                let (row, col) = ((i / 10) as i64 - 3, (i % 10) as i64 - 1);
                if (0..height).contains(&row) && (0..width).contains(&col) {
                    return (0..4).map(|peer| given(peer, i - 30 + 1)).sum();
                }
                given(rank, i)
            };
            assert_eq!(*found, (0..60).map(right).collect::<Vec<_>>(), "[{height}, {width}], rank {rank}");
        }
    }
}

/// A flat tensor is the same memory: of a window and of a packed slice, made inside a task or before it.
#[test]
fn flat_tensors_are_the_same_memory() {
    let text = "program flat
entry go(x: tensor[24] i32 in, y: tensor[24] i32 out, data: window[2, 3, 4] i32, sig: window[1] i32, a: i64) {
  outer = flatten data
  back = slice data[1, 0, 0] [1, 3, 4]
  inner = flatten back
  at fill {
    put outer @(rank(data)) <- x
    part = slice outer[2] [5]
    v = part[3]
    part[3] = v + 100
    t = load inner[a] [2]
    t = add t, 1000
    store t -> inner[a]
    w = data[1, 2, 3]
    inner[0] = w + 10000
    again = flatten part
    again[0] = 7
    get y <- outer @(rank(data))
  }
}
host (xs: tensor[world, 24] i32 in, ys: tensor[world, 24] i32 out, a: i64, b: i64) {
  data_buf = alloc_window [2, 3, 4] i32
  sig_buf = alloc_window [1] i32
  ranks r in 0..world {
    data = window data_buf [2, 3, 4] i32
    sig = window sig_buf [1] i32
    dispatch go(xs[r], ys[r], data, sig, a) device r
  }
}
";
    for (rank, found) in launch(text, 2, 24, 4, 0).unwrap().iter().enumerate() {
        let mut right: Vec<i32> = (0..24).map(|i| given(rank, i)).collect();
        right[5] += 100;
        right[16] += 1000;
        right[17] += 1000;
        right[12] = right[23] + 10000;
        right[2] = 7;
        assert_eq!(*found, right, "rank {rank}");
    }
}

#[test]
fn peers_and_regions_outside() {
    let failed = |op: &str, domain: &str, a: i64, b: i64| {
        let text = rows(4, 10, domain, &format!("    if me == 1 {{\n      {op}\n    }}"));
        let error = launch(&text, 4, 40, a, b).unwrap_err();
        assert_eq!(error.kind, ErrorKind::OutOfBounds, "{error}");
        let place = format!("\n    {op}\n    at step (rows.pld:12), launch 1 of 'rows'");
        error.message.strip_suffix(&place).unwrap_or_else(|| panic!("{error}")).to_string()
    };
    let peers = |domain, a, b| failed("get_sum y <- whole @a..b", domain, a, b);
    assert_eq!(peers("", 4, 5), "rank 1: peer 4 is outside the world of 4 ranks");
    assert_eq!(peers("", -1, 0), "rank 1: peer -1 is outside the world of 4 ranks");
    assert_eq!(peers("", -1, 3), "rank 1: peers -1..3 are not a round of the world of 4 ranks");
    assert_eq!(peers("", 3, 8), "rank 1: peers 3..8 are not a round of the world of 4 ranks");
    assert_eq!(peers("", 2, 2), "rank 1: peers 2..2 are not a round of the world of 4 ranks");
    let (low, high) = (i64::MIN, i64::MAX);
    assert_eq!(peers("", 2, low), format!("rank 1: peers 2..{low} are not a round of the world of 4 ranks"));
    assert_eq!(peers("", high, low), format!("rank 1: peer {high} is outside the world of 4 ranks"));
    assert_eq!(peers("[3, 1]", 1, 4), "rank 1: peers 1..4 are not a round of the domain of 2 ranks");

    let region = |op, a, b| failed(op, "", a, b);
    assert_eq!(
        region("get_sum y[a] <- whole[b] @0..world [10]", 31, 0),
        "rank 1: a region of [10] at [31] reaches outside y (tensor[40] i32) in dimension 0"
    );
    assert_eq!(
        region("get_sum y[a] <- whole[b] @0..world [10]", 0, 31),
        "rank 1: a region of [10] at [31] reaches outside whole (window[4 * 10] i32) in dimension 0"
    );
    assert_eq!(
        region("get_sum data[0, a] <- data[b, 0] @0..world [2, 5]", 5, 3),
        "rank 1: a region of [2, 5] at [3, 0] reaches outside data (window[4, 10] i32) in dimension 0"
    );
}
