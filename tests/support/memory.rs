//! Memory with guard bytes around it.

/// Bytes around everything that a program may write.
pub const GUARD: usize = 256;

/// What they are.
pub const GUARD_BYTE: u8 = 0xA5;

/// Bytes, 64-byte aligned, with guards on both sides.
pub struct Memory {
    words: Vec<[u64; 8]>,
    len: usize,
}

impl Memory {
    pub fn new(bytes: &[u8]) -> Self {
        let mut memory = Self { words: vec![[0; 8]; (bytes.len() + 2 * GUARD).div_ceil(64) + 1], len: bytes.len() };
        let all = memory.all();
        all.fill(GUARD_BYTE);
        let start = Self::start(all);
        all[start..start + bytes.len()].copy_from_slice(bytes);
        memory
    }

    fn all(&mut self) -> &mut [u8] {
        let bytes = size_of_val(self.words.as_slice());
        // SAFETY: the words are plain numbers, borrowed for as long as the bytes.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), bytes) }
    }

    fn start(all: &[u8]) -> usize {
        GUARD + (64 - all.as_ptr() as usize % 64) % 64
    }

    pub fn address(&mut self) -> *mut u8 {
        let all = self.all();
        let start = Self::start(all);
        all[start..].as_mut_ptr()
    }

    /// The bytes between the guards, which must be whole.
    pub fn bytes(&mut self) -> Vec<u8> {
        let len = self.len;
        let all = self.all();
        let start = Self::start(all);
        assert!(all[..start].iter().all(|&b| b == GUARD_BYTE), "written in front of the memory");
        assert!(all[start + len..].iter().all(|&b| b == GUARD_BYTE), "written behind the memory");
        all[start..start + len].to_vec()
    }
}
