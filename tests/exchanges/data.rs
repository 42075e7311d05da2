//! Numbers that depend on all that they are made from, and look random.

/// Mixes numbers into one.
pub fn mix(numbers: &[usize]) -> u64 {
    numbers.iter().fold(0x9E37_79B9_7F4A_7C15, |state, &number| {
        let mut x = (state ^ number as u64).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^= x >> 29;
        x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 32
    })
}

/// The first `count` of a random permutation of `0..n`.
pub fn choose(seed: &[usize], n: usize, count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..n).collect();
    for i in 0..count {
        let j = i + (mix(&[mix(seed) as usize, i]) % (n - i) as u64) as usize;
        all.swap(i, j);
    }
    all.truncate(count);
    all
}

/// Lets a rank fall behind, now and then.
pub fn dawdle(seed: &[usize]) {
    match mix(seed) % 8 {
        0 => std::thread::sleep(std::time::Duration::from_micros(mix(seed) >> 32 & 511)),
        1 => std::thread::yield_now(),
        _ => {}
    }
}
