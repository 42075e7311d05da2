//! Collectives in two levels, on hosts that are made up: what becomes of a call does not ask whether memory is mapped.

use pld::ir::{Combine, DType};

use crate::calls::{Call, Form, Kind, case};
use crate::case::world;
use crate::matrix::calls;
use crate::numbers::DTYPES;

const FORMS: [Form; 3] = [Form::Task, Form::Host { cores: 1 }, Form::Host { cores: 3 }];

fn compiled(nranks: u32, ranks_per_host: u32, counts: &[usize]) {
    let world = world(nranks);
    for (n, dtype) in DTYPES.into_iter().enumerate() {
        for (m, &count) in counts.iter().enumerate() {
            let case = case(&calls(nranks, dtype, count), nranks, FORMS[(n + m) % 3], n % 2 == m % 2);
            case.on_hosts(ranks_per_host).launch(&world);
        }
    }
}

macro_rules! compiled {
    ($($name:ident: $nranks:literal on $ranks_per_host:literal each $counts:expr;)*) => {$(
        #[test]
        fn $name() {
            compiled($nranks, $ranks_per_host, &$counts);
        }
    )*};
}

compiled! {
    two_hosts_of_one: 2 on 1 each [0, 1, 2, 7, 1028];
    two_hosts_of_two: 4 on 2 each [0, 1, 2, 7, 1028];
    three_hosts_of_two: 6 on 2 each [0, 1, 7, 1028];
    two_hosts_of_three: 6 on 3 each [7];
    hosts_of_two_and_of_one: 5 on 2 each [1, 7];
}

#[test]
fn interpreted() {
    for (nranks, ranks_per_host) in [(2, 1), (4, 2), (3, 2)] {
        for (n, dtype) in DTYPES.into_iter().enumerate() {
            case(&calls(nranks, dtype, [0, 7][n % 2]), nranks, FORMS[n % 3], n % 2 == 0)
                .on_hosts(ranks_per_host)
                .interpret(0);
        }
    }
}

/// More than goes between hosts at once, and in two steps.
#[test]
fn many_elements() {
    let kinds = [
        Kind::Allreduce(Combine::Sum),
        Kind::ReduceScatter(Combine::Max),
        Kind::Broadcast { root: 1 },
        Kind::Allgather,
    ];
    for (nranks, ranks_per_host, count) in [(6, 2, 65_537), (4, 2, 550_001)] {
        let world = world(nranks);
        for dtype in [DType::F32, DType::BF16] {
            let call = |kind| Call { kind, mode: "hierarchical", dtype, count };
            let calls = kinds.map(call);
            case(&calls, nranks, Form::Host { cores: 2 }, true).on_hosts(ranks_per_host).launch(&world);
        }
    }
}
