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

/// Forms that take turns.
const FORMS: [Form; 3] = [Form::Task, Form::Host { cores: 1 }, Form::Host { cores: 3 }];

fn interpreted(nranks: u32) {
    for (n, dtype) in DTYPES.into_iter().enumerate() {
        for (m, count) in [0, 1, 2, 7].into_iter().enumerate() {
            case(&calls(nranks, dtype, count), nranks, FORMS[(n + m) % 3], n % 2 == m % 2).interpret(0);
        }
    }
}

#[test]
fn interpreted_1_to_3() {
    [1, 2, 3].into_iter().for_each(interpreted);
}

#[test]
fn interpreted_4() {
    interpreted(4);
}

fn compiled(nranks: u32, counts: &[usize]) {
    let world = world(nranks);
    for (n, dtype) in DTYPES.into_iter().enumerate() {
        for (m, &count) in counts.iter().enumerate() {
            case(&calls(nranks, dtype, count), nranks, FORMS[(n + m) % 3], n % 2 == m % 2).launch(&world);
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
    few_1: 1 [0, 1, 2, 7];
    few_2: 2 [0, 1, 2, 7];
    few_3: 3 [0, 1, 2, 7];
    few_4: 4 [0, 1, 2, 7];
    few_5: 5 [0, 1, 7];
    few_8: 8 [0, 1, 7];
    few_16: 16 [7];
    many_1: 1 [1028, 65537];
    many_2: 2 [1028, 65537];
    many_3: 3 [1028];
    many_4: 4 [1028];
    many_5: 5 [2, 1028];
    many_8: 8 [2, 1028];
    many_16: 16 [1];
}
