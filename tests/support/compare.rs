//! Generated code and the interpreter, side by side.

use half::{bf16, f16};
use pld::check::{self, Fault, Schedule};
use pld::codegen::cpu::abi::Exit;
use pld::ir::extent::Known;
use pld::ir::print::{op_text, print};
use pld::ir::program::{BufferSize, Param};
use pld::ir::{DType, Extent, Program, Severity};
use pld::verify::verify;

use crate::ranks::{Arg, Options, Outcome, Ranks};

/// The verifier has nothing against a program. Only such programs are compiled.
///
/// Nor does the interpreter know sizes without a value, such as `0 / 0`: legal where they may never be reached.
pub fn is_valid(program: &Program, nranks: u32) -> bool {
    let known = Known { world: Some(i64::from(nranks)), dims: &[] };
    let extents = &program.extents;
    let all = (0..extents.len() as u32).map(Extent::from_u32);
    all.filter(|&e| !extents.is_dynamic(e)).all(|e| extents.eval(e, known).is_some())
        && verify(program, Some(nranks)).iter().all(|finding| finding.severity == Severity::Warning)
}

/// What the language says that a program leaves.
enum Meaning {
    /// In every order: in the simplest one and in another one, or in the former alone if the order matters.
    Memory(Vec<check::Outcome>),
    /// One of these mistakes: of two tasks that no edge orders, either one's may come first.
    Fault(Vec<Fault>),
}

fn interpret(program: &Program, nranks: u32, args: &[Arg], dims: &[i64]) -> Meaning {
    let args: Vec<check::Arg> = args
        .iter()
        .map(|arg| match arg {
            Arg::Ranked(parts) => check::Arg::Ranked(parts.clone()),
            Arg::Bits(bits) => check::Arg::Bits(*bits),
        })
        .collect();
    let options = check::Options { nranks, dims, args: &args, ..check::Options::default() };
    let run = |schedule| check::run(program, &options, &schedule).expect("the arguments fit");
    let simplest = run(Schedule::Choices(Vec::new()));
    if simplest.fault.is_some() {
        let others = (0..16).map(|seed| run(Schedule::Random(seed)));
        return Meaning::Fault([simplest].into_iter().chain(others).filter_map(|outcome| outcome.fault).collect());
    }
    let other = run(Schedule::Random(0));
    let matters = !other.findings.is_empty();
    Meaning::Memory([simplest].into_iter().chain((!matters).then_some(other)).collect())
}

/// Runs a program both ways, in every manner of compilation: the same memory, or the same fault.
pub fn assert_same(program: &Program, nranks: u32, args: &[Arg], dims: &[i64]) {
    let text = || print(program);
    let meaning = interpret(program, nranks, args, dims);
    let default = Options::default();
    for options in [default, Options { each: true, ..default }, Options { shaken: true, ..default }] {
        let ranks = Ranks::compile(program, nranks, options);
        let outcome = ranks.launch(args, dims, &[], &[]);
        match &meaning {
            Meaning::Memory(outcomes) => {
                assert!(outcome.exits.iter().all(|&e| e == 0), "{:?} {:?}\n{}", outcome.exits, outcome.faults, text());
                outcomes.iter().for_each(|meant| assert_same_memory(program, meant, &outcome));
            }
            Meaning::Fault(faults) => {
                let at = outcome.exits.iter().position(|&e| e == Exit::Fault as i32);
                let at = at.unwrap_or_else(|| panic!("{faults:?} is not found\n{}", text()));
                let found = &outcome.faults[at];
                let site = &ranks.code[if options.each { at } else { 0 }].sites[found.site as usize];
                let same = |fault: &Fault| {
                    (&*site.text, found.kind, found.dim, found.operand)
                        == (&*op_text(program, fault.op), fault.kind as u32, fault.dim, fault.operand)
                        && found.offsets.starts_with(&fault.offsets)
                        && found.extents.starts_with(&fault.extents)
                };
                assert!(faults.iter().any(same), "{}: {found:?}, not {faults:?}\n{}", site.text, text());
            }
        }
    }
}

fn assert_same_memory(program: &Program, meaning: &check::Outcome, outcome: &Outcome) {
    let host = program.host.as_ref().unwrap();
    for (number, &param) in host.params.iter().enumerate() {
        if let (Param::Tensor(tensor), check::Arg::Ranked(parts)) = (param, &meaning.args[number]) {
            let data = &program.tensors[tensor];
            for (rank, (a, b)) in outcome.args[number].iter().zip(parts).enumerate() {
                same_elements(program, data.dtype, a, b, &format!("{} of rank {rank}", data.name.as_ref().unwrap()));
            }
        }
    }
    let layout = pld::passes::plan_windows::plan_windows(program, outcome.windows.len() as u32).unwrap();
    for (buffer, data) in &program.buffers {
        let place = layout.buffers[buffer];
        let BufferSize::Shape(dtype, _) = data.size else { panic!("{} has no type", data.name) };
        for (rank, (a, b)) in outcome.windows.iter().zip(&meaning.windows).enumerate() {
            let range = place.offset..place.offset + place.bytes;
            same_elements(program, dtype, &a[range.clone()], &b[range], &format!("{} of rank {rank}", data.name));
        }
    }
}

/// Equal numbers; any two NaNs are equal.
fn same_elements(program: &Program, dtype: DType, a: &[u8], b: &[u8], what: &str) {
    let float = |bytes: &[u8]| match dtype {
        DType::F32 => Some(f32::from_ne_bytes(bytes.try_into().unwrap())),
        DType::F16 => Some(f16::from_ne_bytes(bytes.try_into().unwrap()).to_f32()),
        DType::BF16 => Some(bf16::from_ne_bytes(bytes.try_into().unwrap()).to_f32()),
        _ => None,
    };
    assert_eq!(a.len(), b.len(), "{what}");
    let size = dtype.size() as usize;
    for (i, (x, y)) in a.chunks(size).zip(b.chunks(size)).enumerate() {
        let same = match (float(x), float(y)) {
            (Some(x), Some(y)) => x == y || x.is_nan() && y.is_nan(),
            _ => x == y,
        };
        assert!(
            same,
            "element {i} of {what} is {x:?} ({:?}), not {y:?} ({:?})\n{}",
            float(x),
            float(y),
            print(program)
        );
    }
}
