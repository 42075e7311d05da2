//! What fences come where, shown on small kernels.

use pld::codegen::pto::Target;
use pld::codegen::pto::check_fences::check;
use pld::codegen::pto::effects::Rules;
use pld::codegen::pto::fences::insert;
use pld::codegen::pto::kernel::{Block, Body, Fence, Pipe, Stmt, Type};

use super::bodies::{Memories, compute, either, element, notify, repeat, slots, tile, view, wait};

/// A letter a statement; fences as text between them, loops in brackets and branches in braces.
fn shown(block: &Block) -> String {
    let words = block.iter().map(|stmt| match stmt {
        Stmt::Fence(Fence::Barrier(pipe)) => format!("barrier({pipe:?})"),
        Stmt::Fence(Fence::Order { from, to }) => format!("{from:?}->{to:?}"),
        Stmt::Fence(Fence::InvalidateCache) => "dcci".into(),
        Stmt::Fence(Fence::Drain) => "dsb".into(),
        Stmt::Load { .. } => "LOAD".into(),
        Stmt::Store { .. } => "STORE".into(),
        Stmt::Compute { unit, .. } => format!("COMPUTE/{unit:?}"),
        Stmt::Read { .. } => "READ".into(),
        Stmt::Put { .. } => "PUT".into(),
        Stmt::Get { .. } => "GET".into(),
        Stmt::Notify { .. } => "NOTIFY".into(),
        Stmt::Wait { .. } => "WAIT".into(),
        Stmt::Return => "RETURN".into(),
        Stmt::For { body, .. } => format!("[ {} ]", shown(body)),
        Stmt::If { then, other, .. } => format!("{{ {} | {} }}", shown(then), shown(other)),
        stmt => unreachable!("{stmt:?}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The kernel with its fences, for `target`.
fn fenced_for(target: Target, code: impl FnOnce(&Memories, &Body) -> Block) -> String {
    let memories = Memories::new();
    let mut body = slots();
    body.code = code(&memories, &body);
    let rules = Rules { program: &memories.program, target };
    insert(&mut body, &rules);
    assert_eq!(check("k", &body, &rules), Ok(()));
    shown(&body.code)
}

fn fenced(code: impl FnOnce(&Memories, &Body) -> Block) -> String {
    fenced_for(Target::A2A3, code)
}

fn read(root: pld::ir::Tensor) -> Stmt {
    Stmt::Read { name: "v".into(), ty: Type::I32, from: element(root) }
}

#[test]
fn units_wait_for_each_other_where_they_touch_the_same_bytes() {
    let code = |m: &Memories, body: &Body| {
        let [a, b] = [0, 1].map(|index| tile(body, index));
        vec![
            Stmt::Load { tile: a.clone(), from: view("x", m.x, false) },
            compute(Pipe::V, b.clone(), a.clone()),
            compute(Pipe::V, b.clone(), b.clone()),
            compute(Pipe::S, b.clone(), b.clone()),
            Stmt::Store { to: view("y", m.y, false), tile: b, add: false },
        ]
    };
    let a2a3 = "LOAD Mte2->V COMPUTE/V barrier(V) COMPUTE/V V->S COMPUTE/S S->Mte3 STORE barrier(All)";
    assert_eq!(fenced_for(Target::A2A3, code), a2a3);
    // The vector unit of an A5 waits for itself.
    assert_eq!(fenced_for(Target::A5, code), a2a3.replace("barrier(V) ", ""));
}

#[test]
fn tiles_that_share_bytes_are_the_same_and_others_are_not() {
    let load = |m: &Memories, body: &Body, index| Stmt::Load { tile: tile(body, index), from: view("x", m.x, false) };
    let pair = |second| fenced(|m, body| vec![load(m, body, 0), load(m, body, second)]);
    assert_eq!(pair(1), "LOAD LOAD barrier(All)");
    assert_eq!(pair(2), "LOAD barrier(Mte2) LOAD barrier(All)");
}

#[test]
fn a_loop_waits_for_its_last_turn_and_only_once_for_what_came_before() {
    let sum = |m: &Memories, body: &Body| {
        let [a, b] = [0, 1].map(|index| tile(body, index));
        vec![
            Stmt::Load { tile: b.clone(), from: view("x", m.x, false) },
            repeat(vec![Stmt::Load { tile: a.clone(), from: view("x", m.x, false) }, compute(Pipe::V, b, a)]),
        ]
    };
    assert_eq!(fenced(sum), "LOAD [ V->Mte2 LOAD Mte2->V COMPUTE/V ] barrier(All)");
    let sends = |m: &Memories, body: &Body| {
        let store = Stmt::Store { to: view("y", m.y, false), tile: tile(body, 0), add: false };
        let load = Stmt::Load { tile: tile(body, 1), from: view("y", m.y, false) };
        vec![store, repeat(vec![load])]
    };
    assert_eq!(fenced(sends), "STORE Mte3->Mte2 [ barrier(Mte2) LOAD ] barrier(All)");
}

#[test]
fn what_a_branch_did_is_waited_for_behind_it() {
    let code = |m: &Memories, body: &Body| {
        let load = |index| Stmt::Load { tile: tile(body, index), from: view("x", m.x, false) };
        vec![either(vec![load(0)], vec![load(1)]), compute(Pipe::V, tile(body, 0), tile(body, 0))]
    };
    assert_eq!(fenced(code), "{ LOAD | LOAD } Mte2->V COMPUTE/V barrier(All)");
}

#[test]
fn a_notify_publishes_what_was_written() {
    let put = |m: &Memories, body: &Body| Stmt::Put {
        to: view("w", m.w, true),
        from: view("x", m.x, false),
        staging: vec![tile(body, 0)],
        add: false,
    };
    // The fences around puts are outside of the loop, those of notifies inside.
    let push = |m: &Memories, body: &Body| vec![repeat(vec![put(m, body)]), repeat(vec![notify(m.sig)])];
    assert_eq!(fenced(push), "[ PUT ] barrier(All) dcci barrier(All) dsb [ barrier(All) NOTIFY ]");
    // Nothing of a kernel's own memory is published.
    let own = |m: &Memories, body: &Body| {
        vec![Stmt::Store { to: view("y", m.y, false), tile: tile(body, 0), add: false }, notify(m.sig)]
    };
    assert_eq!(fenced(own), "STORE barrier(All) NOTIFY");
    // A kernel publishes at its end what went to others.
    let silent = |m: &Memories, body: &Body| vec![put(m, body), either(vec![Stmt::Return], Vec::new())];
    let published = "barrier(All) dcci barrier(All) dsb";
    assert_eq!(fenced(silent), format!("PUT {{ {published} RETURN |  }} {published}"));
}

#[test]
fn scalars_read_what_others_have_written() {
    // After a wait, windows; once for all reads.
    let waits = |m: &Memories, _: &Body| vec![read(m.w), wait(m.sig), read(m.x), repeat(vec![read(m.w)])];
    assert_eq!(fenced(waits), "READ WAIT READ dcci [ READ ]");
    let stores = |m: &Memories, body: &Body| {
        let store = Stmt::Store { to: view("y", m.y, false), tile: tile(body, 0), add: false };
        vec![store, read(m.x), read(m.y)]
    };
    assert_eq!(fenced(stores), "STORE READ Mte3->S dcci READ");
}

#[test]
fn a_kernel_without_a_fence_is_refused_with_the_statements() {
    let memories = Memories::new();
    let mut body = slots();
    let op = Stmt::Op { text: "acc = load x[0] [2, 8]".into(), place: "sum.pld:7".into() };
    let load = Stmt::Load { tile: tile(&body, 0), from: view("x_view", memories.x, false) };
    body.code =
        vec![op, load, compute(Pipe::V, tile(&body, 1), tile(&body, 0)), Stmt::Fence(Fence::Barrier(Pipe::All))];
    let rules = Rules { program: &memories.program, target: Target::A5 };
    assert_eq!(
        check("sum", &body, &rules).unwrap_err().message,
        "kernel sum lacks a fence between TLOAD(a, x_view) of 'acc = load x[0] [2, 8]', sum.pld:7 and TADDS(b, a, 1) of \
         'acc = load x[0] [2, 8]', sum.pld:7: nothing makes the later unit wait for the earlier one"
    );
    let late = vec![Stmt::Fence(Fence::Barrier(Pipe::All)), Stmt::Fence(Fence::Drain), notify(memories.sig)];
    let message = check("sum", &Body { code: late, ..slots() }, &rules).unwrap_err().message;
    assert!(message.contains("TNOTIFY(p)") && message.ends_with("not all units wait right before it"), "{message}");
    let bare = check("sum", &Body { code: vec![notify(memories.sig)], ..slots() }, &rules).unwrap_err().message;
    assert!(bare.contains("between the beginning and TNOTIFY(p)"), "{bare}");
}
