//! Rows in memory, and the same bytes packed: which part of the packed ones lies where.

/// Rows of equal length at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Bytes of a row.
    pub bytes: usize,
    /// Bytes from one row to the next.
    pub stride: usize,
}

/// Whole rows, or a part of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rectangle {
    /// Where it begins in memory, from the first row.
    pub at: usize,
    /// Where it begins in the packed bytes that were asked for.
    pub packed: usize,
    /// Bytes of its rows.
    pub bytes: usize,
    /// Number of its rows.
    pub count: usize,
}

impl Strided {
    /// Where `length` of the packed bytes from `position` on lie: the end of a row, whole rows, the beginning of one.
    pub fn rectangles(&self, position: usize, length: usize) -> impl Iterator<Item = Rectangle> + use<> {
        let Self { bytes, stride } = *self;
        let mut found = [Rectangle::default(); 3];
        if stride == bytes || position / bytes == (position + length).saturating_sub(1) / bytes {
            let at = position / bytes * stride + position % bytes;
            found[0] = Rectangle { at, packed: 0, bytes: length, count: 1 };
            return found.into_iter().take(1);
        }
        let (row, column) = (position / bytes, position % bytes);
        let head = if column == 0 { 0 } else { bytes - column };
        found[0] = Rectangle { at: row * stride + column, packed: 0, bytes: head, count: 1 };
        let first = row + usize::from(column > 0);
        let whole = (length - head) / bytes;
        found[1] = Rectangle { at: first * stride, packed: head, bytes, count: whole };
        let packed = head + whole * bytes;
        found[2] = Rectangle { at: (first + whole) * stride, packed, bytes: length - packed, count: 1 };
        found.into_iter().take(3)
    }

    /// Packs `length` bytes from `position` on.
    ///
    /// # Safety
    /// The rows at `memory` and `length` bytes at `packed` are there, and do not overlap.
    pub unsafe fn gather(&self, memory: *const u8, position: usize, packed: *mut u8, length: usize) {
        for part in self.rectangles(position, length) {
            let (from, to) = (memory.wrapping_add(part.at), packed.wrapping_add(part.packed));
            // SAFETY: the rectangle lies in both.
            unsafe { copy(from, self.stride, to, part.bytes, part.bytes, part.count) };
        }
    }

    /// Writes `packed` to where it lies from `position` on.
    ///
    /// # Safety
    /// The rows at `memory` are there, and do not overlap `packed`.
    pub unsafe fn scatter(&self, memory: *mut u8, position: usize, packed: &[u8]) {
        for part in self.rectangles(position, packed.len()) {
            let (from, to) = (packed.as_ptr().wrapping_add(part.packed), memory.wrapping_add(part.at));
            // SAFETY: the rectangle lies in both.
            unsafe { copy(from, part.bytes, to, self.stride, part.bytes, part.count) };
        }
    }
}

/// # Safety
/// As many rows are there on both sides, and do not overlap.
unsafe fn copy(from: *const u8, from_stride: usize, to: *mut u8, to_stride: usize, bytes: usize, count: usize) {
    for row in 0..count {
        let (from, to) = (from.wrapping_add(row * from_stride), to.wrapping_add(row * to_stride));
        // SAFETY: as the caller says.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_packed_rows_is_found_in_memory() {
        for (bytes, stride, count) in [(5, 5, 4), (5, 9, 4), (1, 3, 7), (20, 32, 1)] {
            let rows = Strided { bytes, stride };
            let memory: Vec<u8> = (0..stride * count).map(|at| at as u8).collect();
            let packed: Vec<u8> = (0..count).flat_map(|row| memory[row * stride..][..bytes].to_vec()).collect();
            for position in 0..=packed.len() {
                for length in 0..=packed.len() - position {
                    let mut gathered = vec![0xff; length];
                    // SAFETY: both are there.
                    unsafe { rows.gather(memory.as_ptr(), position, gathered.as_mut_ptr(), length) };
                    assert_eq!(gathered, packed[position..][..length]);

                    let mut scattered = vec![0xff; memory.len()];
                    // SAFETY: both are there.
                    unsafe { rows.scatter(scattered.as_mut_ptr(), position, &gathered) };
                    for (at, byte) in scattered.into_iter().enumerate() {
                        let index = at / stride * bytes + at % stride;
                        let written = at % stride < bytes && (position..position + length).contains(&index);
                        assert_eq!(byte, if written { memory[at] } else { 0xff }, "{rows:?} {position} {length} {at}");
                    }
                }
            }
        }
    }
}
