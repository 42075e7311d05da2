use smallvec::smallvec;

use super::*;
use crate::ir::builder::Builder;
use crate::ir::op::Dims;
use crate::ir::parse::parse;
use crate::ir::types::{Atomic, BinaryOp, DType, Direction, NotifyOp, ScalarType, WaitCmp};

/// A program around one task with a tensor `x`, a window `w`, and a scalar `me`.
fn task(body: impl FnOnce(&mut Builder, Tensor, Tensor, Scalar)) -> Program {
    let mut b = Builder::new("p");
    let (eight, world) = (b.extent_int(8), b.extent_world());
    b.entry_begin("e");
    let x = b.param_tensor("x", DType::F32, smallvec![eight], Direction::InOut).expect("a parameter");
    let w = b.param_window("w", DType::I32, smallvec![world]).expect("a parameter");
    let me = b.param_scalar("me", ScalarType::I32).expect("a parameter");
    b.at_begin("t", Default::default());
    body(&mut b, x, w, me);
    b.task_end();
    b.entry_end();
    b.host();
    b.finish().expect("a program")
}

/// The lines of the task; the whole program must survive being parsed.
fn lines(program: &Program) -> Vec<String> {
    let text = print(program);
    let again = parse(&text, "").unwrap_or_else(|m| panic!("{text}\n{}", m[0]));
    assert_eq!(print(&again), text);
    let lines = text.lines().skip_while(|l| !l.starts_with("  at ")).skip(1).take_while(|l| *l != "  }");
    lines.map(|l| l[4..].to_string()).collect()
}

#[test]
fn code_without_names_reads_like_code_with_names() {
    // The piece of an MoE dispatch as an engine builds it by calls.
    let program = task(|b, x, w, me| {
        let (zero, one, two, three) = (b.int(0), b.int(1), b.int(2), b.int(3));
        let world = b.extent_world();
        let slot = b.array(None, ScalarType::I32, world, zero);
        let t = b.for_begin(zero, three, one);
        let k = b.for_begin(zero, two, one);
        let sum = b.binary(BinaryOp::Add, t, k);
        let eid = b.read(x, &[sum]);
        let eid = b.cast(ScalarType::I32, eid);
        let dst = b.binary(BinaryOp::Div, eid, two);
        let rem = b.binary(BinaryOp::Rem, eid, two);
        let mine = b.binary(BinaryOp::Eq, rem, me);
        b.if_begin(mine);
        let s = b.array_get(slot, dst);
        let scaled = b.binary(BinaryOp::Mul, me, three);
        let row = b.binary(BinaryOp::Add, scaled, s);
        let next = b.binary(BinaryOp::Add, s, one);
        b.array_set(slot, dst, next);
        let region = Region { dst: smallvec![row], src: smallvec![t], shape: smallvec![one] };
        b.put(w, dst, x, Some(region), Atomic::None, Staging::default());
        b.if_end();
        b.for_end();
        b.for_end();
    });
    let expected = "\
a1 = array i32 [world] = 0
for i in 0..3 {
  for j in 0..2 {
    v1 = cast(x[i + j], i32)
    v2 = v1 / 2
    if v1 % 2 == me {
      v3 = a1[v2]
      a1[v2] = v3 + 1
      put w[me * 3 + v3] @v2 <- x[i] [1]
    }
  }
}";
    assert_eq!(lines(&program).join("\n"), expected);
}

#[test]
fn a_read_stays_before_what_could_change_it() {
    let read_then = |between: fn(&mut Builder, Tensor, Tensor, Scalar)| {
        lines(&task(|b, x, w, me| {
            let zero = b.int(0);
            let value = b.read(x, &[zero]);
            between(b, x, w, me);
            b.write(x, &[zero], value);
        }))
    };
    assert_eq!(read_then(|_, _, _, _| {}), ["x[0] = x[0]"]);
    let moved = read_then(|b, _, _, me| {
        let c = b.var(Some("c"), ScalarType::I32, me);
        b.var_set(c, me);
    });
    assert_eq!(moved, ["c = var i32 = me", "c = me", "x[0] = x[0]"], "a variable is no memory");
    let stays: [fn(&mut Builder, Tensor, Tensor, Scalar); 4] = [
        |b, x, _, me| b.write(x, &[me], me),
        |b, _, w, me| b.notify(w, me, &[me], me, NotifyOp::Add),
        |b, _, w, me| b.wait(w, &[me], me, WaitCmp::Ge),
        |b, _, _, me| {
            let zero = b.int(0);
            let cond = b.binary(BinaryOp::Eq, me, zero);
            b.if_begin(cond);
            b.if_end();
        },
    ];
    for between in stays {
        let lines = read_then(between);
        assert_eq!((lines.len(), &*lines[0], &*lines[2]), (3, "v1 = x[0]", "x[0] = v1"), "{lines:?}");
    }
}

#[test]
fn a_variable_is_read_before_it_changes() {
    let lines = lines(&task(|b, x, w, me| {
        let c = b.var(None, ScalarType::I32, me);
        let before = b.var_get(c);
        let one = b.int(1);
        let next = b.var_get(c);
        let next = b.binary(BinaryOp::Add, next, one);
        b.var_set(c, next);
        b.notify(w, before, &[me], me, NotifyOp::Set);
        let last = b.var_get(c);
        let at: Dims = smallvec![last];
        b.read(x, &at);
    }));
    assert_eq!(lines, ["c1 = var i32 = me", "v1 = c1", "c1 = c1 + 1", "notify w[me] @v1 = me", "_v1 = x[c1]"]);
}

#[test]
fn a_division_that_may_fail_stays_before_what_others_see() {
    let lines = lines(&task(|b, _, w, me| {
        let (zero, three) = (b.int(0), b.int(3));
        let quotient = b.binary(BinaryOp::Div, three, me);
        let sum = b.binary(BinaryOp::Add, three, me);
        b.notify(w, zero, &[zero], me, NotifyOp::Add);
        b.notify(w, quotient, &[sum], me, NotifyOp::Add);
    }));
    assert_eq!(lines, ["v1 = 3 / me", "notify w[0] @0 += me", "notify w[3 + me] @v1 += me"]);
}

#[test]
fn names_are_kept_and_made_unique() {
    let lines = lines(&task(|b, x, _, me| {
        let (zero, one) = (b.int(0), b.int(1));
        for name in ["acc", "acc", "x", "v1", "acc_2"] {
            let value = b.read(x, &[zero]);
            b.name_scalar(value, name);
        }
        let shared = b.read(x, &[one]);
        let sum = b.binary(BinaryOp::Add, shared, shared);
        b.write(x, &[one], sum);
        let i = b.for_begin(zero, me, one);
        let i = b.name_scalar(i, "i");
        let j = b.for_begin(zero, i, one);
        b.write(x, &[j], sum);
        b.for_end();
        b.for_end();
    }));
    let expected = [
        "acc = x[0]",
        "acc_3 = x[0]",
        "x_2 = x[0]",
        "v1 = x[0]",
        "acc_2 = x[0]",
        "v2 = x[1]",
        "v3 = v2 + v2",
        "x[1] = v3",
        "for i in 0..me { for j in 0..i { x[j] = v3 } }",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn each_op_reads_on_its_own() {
    let program = task(|b, x, w, me| {
        let (zero, one) = (b.int(0), b.int(1));
        b.for_begin(zero, me, one);
        let value = b.read(x, &[zero]);
        let value = b.cast(ScalarType::I32, value);
        b.notify(w, me, &[zero], value, NotifyOp::Add);
        b.for_end();
    });
    let text = Text::new(&program);
    let ops: Vec<String> = program.ops.keys().map(|op| text.op(op)).collect();
    assert_eq!(
        ops,
        ["at t", "for i in 0..me", "x[0]", "cast(x[0], i32)", "notify w[0] @me += cast(x[0], i32)"],
        "what is written inside another op reads as it stands there"
    );
    assert_eq!(op_text(&program, program.ops.keys().next().expect("an op")), "at t");
    let tensors: Vec<String> = program.tensors.keys().map(|t| tensor_type_text(&program, t)).collect();
    assert_eq!(tensors, ["tensor[8] f32", "window[world] i32"]);
}
