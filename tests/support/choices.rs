//! A stream of random choices, from which programs are made. A shorter or smaller stream makes a simpler program.

pub struct Choices {
    rest: std::vec::IntoIter<u32>,
}

impl Choices {
    pub fn new(choices: Vec<u32>) -> Self {
        Self { rest: choices.into_iter() }
    }

    /// A number below `n`; 0 at the end of the stream.
    pub fn below(&mut self, n: usize) -> usize {
        self.rest.next().unwrap_or(0) as usize % n
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// The numbers below `n`, in some order.
    pub fn permutation(&mut self, n: i64) -> Vec<i64> {
        let mut rest: Vec<i64> = (0..n).collect();
        (0..n).map(|_| rest.remove(self.below(rest.len()))).collect()
    }

    pub fn ended(&self) -> bool {
        self.rest.as_slice().is_empty()
    }
}
