//! Kernels made of statements, without a program that they come from.

use pld::codegen::pto::kernel::{
    Block, Body, Element, Expr, Memory, Operand, Pipe, Slot, SlotData, Stmt, TileName, View,
};
use pld::ir::program::Param;
use pld::ir::{DType, NotifyOp, Program, Tensor, WaitCmp};

use crate::choices::Choices;
use crate::text;

/// The memory of a kernel: tensors `x` and `y`, windows `w` and `sig` of the program of [`text::task`].
pub struct Memories {
    pub program: Program,
    pub x: Tensor,
    pub y: Tensor,
    pub w: Tensor,
    pub sig: Tensor,
}

impl Memories {
    pub fn new() -> Self {
        let program = text::task("");
        let params = &program.entries.values().next().unwrap().params;
        let tensor = |index: usize| match params[index] {
            Param::Tensor(tensor) => tensor,
            Param::Scalar(_) => unreachable!("the first five are tensors"),
        };
        let (x, y, w, sig) = (tensor(0), tensor(1), tensor(2), tensor(4));
        Self { program, x, y, w, sig }
    }
}

pub fn expr(text: &str) -> Expr {
    Expr { text: text.into(), is_operand: true }
}

pub fn element(root: Tensor) -> Element {
    Element { memory: Memory { root, remote: false }, dtype: DType::I32, base: expr("p"), index: expr("0") }
}

pub fn view(name: &str, root: Tensor, remote: bool) -> View {
    View { name: name.into(), memory: Memory { root, remote } }
}

/// Three tiles of 64 bytes; the third one is half of the first one and half of the second one.
pub fn slots() -> Body {
    let mut body = Body::default();
    for (name, offset) in [("a", 0), ("b", 64), ("c", 32)] {
        body.slots.push(SlotData { name: name.into(), dtype: DType::I32, rows: 2, cols: 8, offset });
    }
    body
}

pub fn tile(body: &Body, index: usize) -> TileName {
    let (slot, data): (Slot, &SlotData) = body.slots.iter().nth(index).unwrap();
    TileName { name: data.name.clone(), slot }
}

pub fn compute(unit: Pipe, dst: TileName, operand: TileName) -> Stmt {
    let instruction = if unit == Pipe::V { "TADDS" } else { "scalar_adds" };
    let operands = vec![Operand::Tile(operand), Operand::Value(expr("1"))];
    Stmt::Compute { instruction, unit, dst, operands, flag: None }
}

pub fn notify(root: Tensor) -> Stmt {
    Stmt::Notify { cell: element(root), value: expr("1"), op: NotifyOp::Add }
}

pub fn wait(root: Tensor) -> Stmt {
    Stmt::Wait { cell: element(root), expected: expr("1"), cmp: WaitCmp::Ge, site: 0 }
}

pub fn repeat(body: Block) -> Stmt {
    Stmt::For { index: "i".into(), first: expr("0"), end: expr("2"), advance: expr("++i"), body }
}

pub fn either(then: Block, other: Block) -> Stmt {
    Stmt::If { cond: expr("flag"), then, other }
}

/// Any kernel.
pub fn any(memories: &Memories, choices: &mut Choices) -> Body {
    let mut body = slots();
    let count = choices.between(1, 9);
    body.code = block(&body, memories, choices, count, 2);
    body
}

fn block(body: &Body, memories: &Memories, choices: &mut Choices, count: i64, depth: usize) -> Block {
    (0..count).map(|_| stmt(body, memories, choices, depth)).collect()
}

fn stmt(body: &Body, memories: &Memories, choices: &mut Choices, depth: usize) -> Stmt {
    let root = choices.of(&[memories.x, memories.y, memories.w]);
    let (one, two) = (tile(body, choices.below(3)), tile(body, choices.below(3)));
    match choices.below(if depth > 0 { 14 } else { 11 }) {
        0 | 1 => Stmt::Load { tile: one, from: view("from", root, false) },
        2 | 3 => {
            let remote = root == memories.w && choices.below(2) == 0;
            Stmt::Store { to: view("to", root, remote), tile: one, add: choices.below(3) == 0 }
        }
        4 | 5 => compute(Pipe::V, one, two),
        6 => compute(Pipe::S, one, two),
        7 => Stmt::Read { name: "v".into(), ty: pld::codegen::pto::kernel::Type::I32, from: element(root) },
        8 => Stmt::Put {
            to: view("to", memories.w, true),
            from: view("from", root, false),
            staging: vec![one],
            add: choices.below(3) == 0,
        },
        9 => Stmt::Get { to: view("to", root, false), from: view("from", memories.w, true), staging: vec![one] },
        10 => choices.of(&[notify as fn(Tensor) -> Stmt, wait])(memories.sig),
        11 => {
            let count = choices.between(1, 4);
            repeat(block(body, memories, choices, count, depth - 1))
        }
        12 => {
            let (then, other) = (choices.between(0, 3), choices.between(0, 2));
            either(block(body, memories, choices, then, depth - 1), block(body, memories, choices, other, depth - 1))
        }
        _ => either(vec![Stmt::Return], Vec::new()),
    }
}
