//! What program text cannot break, and what it would be long to write.

use std::cell::OnceCell;

use super::{domains, range, rules, verify, verify_with};
use crate::ir::extent::Shape;
use crate::ir::*;

/// A program whose entry has the parameters `x: tensor[1, 8] f32 in`, `y: tensor[1, 8] f32 out` and `me: i32`.
struct Fixture {
    b: Builder,
    entry: Entry,
    x: Tensor,
    y: Tensor,
    me: Scalar,
    zero: Scalar,
    row: Shape,
}

impl Fixture {
    fn new() -> Self {
        let mut b = Builder::new("fixture");
        let row: Shape = [b.extent_int(1), b.extent_int(8)].into_iter().collect();
        let entry = b.entry_begin("e");
        let x = b.param_tensor("x", DType::F32, row.clone(), Direction::In).expect("a parameter");
        let y = b.param_tensor("y", DType::F32, row.clone(), Direction::Out).expect("a parameter");
        let me = b.param_scalar("me", ScalarType::I32).expect("a parameter");
        let zero = b.int(0);
        Self { b, entry, x, y, me, zero, row }
    }

    fn load(&mut self) -> Tile {
        self.b.load(self.x, &[self.zero, self.zero], self.row.clone())
    }

    fn store(&mut self, tile: Tile) {
        self.b.store(tile, self.y, &[self.zero, self.zero]);
    }

    /// Ends the entry and dispatches it.
    fn finish(mut self) -> Program {
        self.b.entry_end();
        let (world, end) = (self.b.extent_world(), self.b.world());
        let shape: Shape = [world].into_iter().chain(self.row).collect();
        let xs = self.b.host_tensor("xs", DType::F32, shape.clone(), Direction::In).expect("a parameter");
        let ys = self.b.host_tensor("ys", DType::F32, shape, Direction::Out).expect("a parameter");
        let r = self.b.ranks_begin(self.zero, end);
        let (x, y) = (self.b.slice_rank(xs, r), self.b.slice_rank(ys, r));
        self.b.dispatch(self.entry, r, vec![Operand::Tensor(x), Operand::Tensor(y), Operand::Scalar(r)]);
        self.b.ranks_end();
        self.b.finish().expect("the builder is used well")
    }
}

fn codes(program: &Program) -> Vec<Code> {
    verify(program, Some(2)).into_iter().map(|finding| finding.code).collect()
}

#[test]
fn tasks_depend_on_those_before_them_in_their_entry() {
    let mut f = Fixture::new();
    let text = |program: &Program| verify(program, None).iter().map(ToString::to_string).collect::<String>();
    let first = f.b.at_begin("first", TaskOptions::default());
    let tile = f.load();
    f.store(tile);
    f.b.task_end();
    f.b.at_begin("second", TaskOptions { deps: vec![first], ..TaskOptions::default() });
    f.b.task_end();
    f.b.entry_end();
    f.b.entry_begin("other");
    f.b.at_begin("third", TaskOptions { deps: vec![first], ..TaskOptions::default() });
    f.b.task_end();
    let program = f.finish();
    assert_eq!(codes(&program), [rules::UNUSED_ENTRY.code, rules::DEPENDENCY.code]);
    assert!(text(&program).contains("first is a task of entry e"), "{}", text(&program));

    let mut f = Fixture::new();
    let tile = f.load();
    f.store(tile);
    let itself = Task::from_u32(0);
    f.b.at_begin("first", TaskOptions { deps: vec![itself], ..TaskOptions::default() });
    f.b.task_end();
    let program = f.finish();
    assert!(text(&program).contains("task first does not stand before in this entry"), "{}", text(&program));
}

#[test]
fn what_a_block_defines_ends_with_it() {
    let mut f = Fixture::new();
    let one = f.b.int(1);
    f.b.at_begin("t", Default::default());
    let below = f.b.binary(BinaryOp::Lt, f.me, one);
    f.b.if_begin(below);
    let tile = f.load();
    let sum = f.b.binary(BinaryOp::Add, f.me, one);
    let array = f.b.array(Some("slots"), ScalarType::I32, f.row[1], one);
    f.b.if_end();
    f.store(tile);
    f.b.write(f.y, &[f.zero, sum], one);
    f.b.array_set(array, f.zero, one);
    let index = f.b.for_begin(f.zero, one, one);
    f.b.for_end();
    f.b.write(f.y, &[f.zero, index], one);
    f.b.task_end();
    assert_eq!(codes(&f.finish()), [rules::UNDEFINED.code; 4]);
}

#[test]
fn a_register_is_defined_before_it_is_read() {
    let mut f = Fixture::new();
    f.b.at_begin("t", Default::default());
    let tile = f.b.tile(DType::F32, f.row.clone());
    f.store(tile);
    f.b.task_end();
    assert_eq!(codes(&f.finish()), [rules::UNDEFINED.code]);
}

#[test]
fn a_register_may_be_overwritten_in_a_block_inside() {
    let mut f = Fixture::new();
    let one = f.b.int(1);
    f.b.at_begin("t", Default::default());
    let acc = f.load();
    let below = f.b.binary(BinaryOp::Lt, f.me, one);
    f.b.if_begin(below);
    let more = f.b.tile_op(TileOp::Add, acc, TileOrScalar::Tile(acc));
    f.b.assign(acc, more);
    f.b.if_end();
    f.store(acc);
    f.b.task_end();
    assert_eq!(codes(&f.finish()), []);
}

#[test]
fn values_belong_to_their_entry() {
    let mut f = Fixture::new();
    f.b.at_begin("t", Default::default());
    let tile = f.load();
    f.store(tile);
    f.b.task_end();
    f.b.entry_end();
    let other = f.b.entry_begin("other");
    f.b.at_begin("t", Default::default());
    f.store(tile);
    f.b.task_end();
    // The fixture ends this entry, and dispatches the first.
    let program = f.finish();
    let found = codes(&program);
    assert_eq!(program.entries[other].name, "other");
    assert_eq!(found, [rules::UNUSED_ENTRY.code, rules::UNDEFINED.code, rules::UNDEFINED.code]);
}

#[test]
fn everything_is_reported_in_source_order() {
    let mut f = Fixture::new();
    let file = f.b.file("moe.cpp");
    let at = |f: &mut Fixture, line| f.b.set_loc(program::Loc { file: Some(file), line, column: 0 });
    at(&mut f, 10);
    f.b.at_begin("t", Default::default());
    at(&mut f, 11);
    let tile = f.load();
    for line in 12..100 {
        at(&mut f, line);
        let offset = f.b.int(line.into());
        f.b.store(tile, f.y, &[f.zero, offset]);
    }
    at(&mut f, 100);
    let flag = f.b.bool(true);
    f.b.write(f.y, &[f.zero, f.zero], flag);
    f.b.task_end();
    let findings = verify(&f.finish(), None);
    let lines: Vec<u32> = findings.iter().map(|d| d.line).collect();
    assert_eq!(lines, (12..=100).collect::<Vec<u32>>());
    assert_eq!(
        findings[0].to_string(),
        "moe.cpp:12: error[PLD-V030]: store writes past the end of y: index 19 of dimension 1\n    \
         store t1 -> y[0, 12]\n        y is tensor[1, 8] f32\n    hint: offset + extent is at most 8"
    );
}

/// More distinct cells than are compared one by one.
#[test]
fn signals_of_many_cells_are_compared_by_their_hull() {
    for (waited, expected) in [(99, vec![]), (100, vec![rules::NEVER_NOTIFIED.code])] {
        let mut b = Builder::new("cells");
        let shape: Shape = [b.extent_int(200)].into_iter().collect();
        let entry = b.entry_begin("e");
        let sig = b.param_window("sig", DType::I32, shape.clone()).expect("a parameter");
        let me = b.param_scalar("me", ScalarType::I32).expect("a parameter");
        let (zero, one) = (b.int(0), b.int(1));
        b.at_begin("t", Default::default());
        for cell in 0..100 {
            let cell = b.int(cell);
            b.notify(sig, me, &[cell], one, NotifyOp::Add);
        }
        let waited = b.int(waited);
        b.wait(sig, &[waited], one, WaitCmp::Ge);
        b.task_end();
        b.entry_end();
        let buffer = b.alloc_window("buf", DType::I32, shape.clone());
        let world = b.world();
        let r = b.ranks_begin(zero, world);
        let view = b.window(buffer, DType::I32, shape);
        b.dispatch(entry, r, vec![Operand::Tensor(view), Operand::Scalar(r)]);
        b.ranks_end();
        assert_eq!(codes(&b.finish().expect("the builder is used well")), expected);
    }
}

/// What the scalars of a program can be, by their names.
#[test]
fn scalars_have_the_values_of_their_definitions() {
    let text = "program ranges

dim n

entry e(x: tensor[8] u8 in, y: tensor[8] i64 out, w: window[world, 8] f32, me: i32, next: i32, any: i32) {
  at t {
    byte = x[0]
    own = rank(w)
    last = world - 1 - me
    masked = any % 8
    folded = clamp(any, -3, 5)
    half = byte / 2
    back = cast(cast(byte, f32), i32)
    wrapped = any + 1
    chosen = select(any > 0, me, byte)
    decided = select(me < world, 1, any)
    c = var i32 = 0
    read = c
    for i in 2..11 step 4 {
      twice = i * 2
      y[0] = twice + byte + own + last + masked + folded + half + back + wrapped + chosen + decided + read + next
    }
    for down in any..0 {
      y[1] = down
    }
    w[0, 0] = 1.0
  }
}

host (xs: tensor[world, 8] u8 in, ys: tensor[world, 8] i64 out, ns: tensor[n] u8 in, any: i32) {
  buf = alloc_window [world, 8] f32
  ranks r in 0..world {
    w = window buf [world, 8] f32
    dispatch e(xs[r], ys[r], w, r, (r + 1) % world, any) device r
  }
}
";
    let program = parse::parse(text, "ranges.pld").unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
    assert_eq!(verify(&program, Some(4)), []);
    let ranges = range::Ranges::new(&program, &domains::Domains::new(&program, Some(4)), Some(4));
    let of = |name: &str| {
        let mut named = program.scalars.iter().filter(|(_, data)| data.name.as_deref() == Some(name));
        let interval = ranges.of(named.next().expect("a scalar of this name").0);
        (interval.min, interval.max)
    };
    let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
    let expected = [
        ("me", (0, 3)),
        ("next", (0, 3)),
        ("any", (low, high)),
        ("byte", (0, 255)),
        ("own", (0, 3)),
        ("last", (0, 3)),
        ("masked", (-7, 7)),
        ("folded", (-3, 5)),
        ("half", (0, 127)),
        ("back", (low, high)),
        ("wrapped", (low, high)),
        ("chosen", (0, 255)),
        ("decided", (1, 1)),
        ("read", (low, high)),
        ("i", (2, 10)),
        ("twice", (4, 20)),
        ("down", (low, -1)),
    ];
    for (name, interval) in expected {
        assert_eq!(of(name), interval, "{name}");
    }
}

/// Most programs are right, and finding that out costs no text.
#[test]
fn a_right_program_is_not_printed() {
    let texts = [
        include_str!("../../examples/pld/allreduce.pld"),
        include_str!("../../examples/pld/06_put_get.pld"),
        include_str!("../../tests/filetests/verify/moe_dispatch.pld"),
        include_str!("../../tests/filetests/verify/world_of_one.pld"),
    ];
    for text in texts {
        let program = parse::parse(text, "right.pld").unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
        let printed = OnceCell::new();
        assert_eq!(verify_with(&program, Some(1), &printed), []);
        assert!(printed.get().is_none(), "{}", program.name);
    }
}
