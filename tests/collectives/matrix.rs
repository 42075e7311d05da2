//! All collectives, types, ways to combine, modes, numbers of ranks and counts.

use pld::ir::DType;

use crate::calls::{Call, Form, Kind, case};
use crate::case::world;
use crate::numbers::{COMBINES, DTYPES};

/// All kinds that move elements of a type.
fn kinds(nranks: u32) -> Vec<Kind> {
    let combining = COMBINES.into_iter().flat_map(|op| [Kind::Allreduce(op), Kind::ReduceScatter(op)]);
    let root = nranks as usize / 2;
    combining.chain([Kind::Broadcast { root }, Kind::Allgather, Kind::AllToAll]).collect()
}

/// For each type a program of all kinds in all modes.
pub fn calls(nranks: u32, dtype: DType, count: usize) -> Vec<Call> {
    let modes = |kind: Kind| kind.modes().iter().map(move |&mode| Call { kind, mode, dtype, count });
    kinds(nranks).into_iter().flat_map(modes).collect()
}

#[test]
fn interpreted() {
    for nranks in [1, 2, 3, 4] {
        for (n, dtype) in DTYPES.into_iter().enumerate() {
            for count in [0, 1, 2, 7] {
                for form in [Form::Task, Form::Host { cores: 1 }, Form::Host { cores: 2 }] {
                    case(&calls(nranks, dtype, count), nranks, form, n % 2 == 0).interpret(0);
                }
            }
        }
    }
}

fn compiled(nranks: u32, counts: &[usize]) {
    let world = world(nranks);
    for (n, dtype) in DTYPES.into_iter().enumerate() {
        for (m, &count) in counts.iter().enumerate() {
            let forms = [Form::Task, Form::Host { cores: 1 }, Form::Host { cores: 3 }];
            case(&calls(nranks, dtype, count), nranks, forms[(n + m) % 3], n % 2 == m % 2).launch(&world);
        }
    }
}

macro_rules! compiled {
    ($($name:ident: $nranks:literal $counts:expr;)*) => {$(
        #[test]
        fn $name() {
            compiled($nranks, &$counts);
        }
    )*};
}

compiled! {
    compiled_1: 1 [0, 1, 2, 7, 1028, 65537];
    compiled_2: 2 [0, 1, 2, 7, 1028, 65537];
    compiled_3: 3 [0, 1, 2, 7, 1028];
    compiled_4: 4 [0, 1, 2, 7, 1028];
    compiled_5: 5 [0, 1, 2, 7, 1028];
    compiled_8: 8 [0, 1, 2, 7, 1028];
    compiled_16: 16 [1, 7];
}
