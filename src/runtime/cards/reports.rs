//! What kernels tell the host: a report a block, in memory of the card, as `pld_kernel.hpp` lays it out.

use crate::codegen::cpu::abi::Fault;
use crate::ir::builder::MAX_RANK;

/// Reports of a stream, on which kernels run one after another: block `b` writes the one with number `b % REPORTS`.
pub(super) const REPORTS: usize = 64;

/// A report.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    state: i32,
    site: u32,
    kind: u32,
    dim: u32,
    operand: u32,
    cmp: i32,
    expected: i32,
    actual: i32,
    cell: u64,
    offsets: [i64; MAX_RANK],
    extents: [i64; MAX_RANK],
}

const _: () = assert!(size_of::<Report>() == 192);

/// Bytes of a stream's reports.
pub(super) const BYTES: usize = REPORTS * size_of::<Report>();

/// A block waits, and has waited for long, or was stopped in it.
const WAITS: i32 = 2;

/// A block has found a mistake.
const FAULT: i32 = 1;

/// A cell that a block waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waits {
    /// Address of the cell.
    pub(super) cell: u64,
    /// The value that it is compared with.
    pub(super) expected: i32,
    /// 0: equal, 1: greater or equal.
    pub(super) cmp: u32,
    /// The op.
    pub(super) site: u32,
}

/// The reports of a stream.
pub(super) struct Reports(Vec<u8>);

impl Reports {
    /// Reports of so many streams that all say nothing.
    pub(super) fn new(streams: usize) -> Self {
        Self(vec![0; streams * BYTES])
    }

    /// The memory of a stream's reports, to be filled.
    pub(super) fn of_stream(&mut self, stream: usize) -> &mut [u8] {
        &mut self.0[stream * BYTES..][..BYTES]
    }

    fn all(&self) -> impl Iterator<Item = Report> {
        // SAFETY: a report consists of numbers, for which all bytes are valid.
        self.0
            .chunks_exact(size_of::<Report>())
            .map(|bytes| unsafe { bytes.as_ptr().cast::<Report>().read_unaligned() })
    }

    /// The first mistake that a block has found.
    pub(super) fn fault(&self) -> Option<Fault> {
        let fault = |r: Report| {
            let Report { site, kind, dim, operand, offsets, extents, .. } = r;
            Fault { site, kind, dim, operand, offsets, extents }
        };
        self.all().find(|report| report.state == FAULT).map(fault)
    }

    /// The first cell that a block waits for.
    pub(super) fn waits(&self) -> Option<Waits> {
        let waits = |r: Report| Waits { cell: r.cell, expected: r.expected, cmp: r.cmp as u32, site: r.site };
        self.all().find(|report| report.state == WAITS).map(waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::cpu::abi::NO_FAULT;

    #[test]
    fn reports_are_read_as_kernels_write_them() {
        let mut reports = Reports::new(2);
        assert!(reports.fault().is_none() && reports.waits().is_none());
        let mut put = |stream: usize, block: usize, words: &[(usize, i64)]| {
            let part = &mut reports.of_stream(stream)[block * size_of::<Report>()..];
            for &(at, value) in words {
                let size = if at < 32 { 4 } else { 8 };
                part[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            }
        };
        // state, site, cmp, expected, actual, cell
        put(0, 63, &[(0, 2), (4, 7), (20, 1), (24, -5), (28, 9), (32, 0x1_0000_0040)]);
        // state, site, kind, dim, operand; the offsets begin at 40, the extents at 104
        put(1, 3, &[(0, 1), (4, 11), (8, 1), (12, 2), (16, 1), (40, -3), (48, 1 << 40), (104, 64), (160, 5)]);
        assert_eq!(reports.waits(), Some(Waits { cell: 0x1_0000_0040, expected: -5, cmp: 1, site: 7 }));
        let fault = reports.fault().unwrap();
        let mut expected = Fault { site: 11, kind: 1, dim: 2, operand: 1, ..NO_FAULT };
        (expected.offsets[0], expected.offsets[1]) = (-3, 1 << 40);
        (expected.extents[0], expected.extents[7]) = (64, 5);
        assert_eq!(format!("{fault:?}"), format!("{expected:?}"));
    }
}
