//! What a sample is, which samples count, and what is said of them.
//!
//! Virtual CPUs move: the trip of a cache line between the two changes severalfold from one second to the next, and with
//! it every latency. So each sample carries the raw trip just before and just after it. Samples during which it changed
//! are dropped, and so are those taken in another state of the machine than most of the run.

/// How far two trips may be apart to count as the same state of the machine.
pub const TOLERANCE: f64 = 0.30;

/// One measured value, and the raw one-way trips of a cache line before and after it, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub value: f64,
    pub before: f64,
    pub after: f64,
}

/// Median and range of the samples that count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub runs: usize,
}

fn close(a: f64, b: f64) -> bool {
    a.max(b) <= a.min(b) * (1.0 + TOLERANCE)
}

impl Sample {
    /// The machine stayed as it was.
    fn steady(&self) -> bool {
        close(self.before, self.after)
    }

    /// The machine was in the state in which a trip takes `usual`.
    fn counts(&self, usual: f64) -> bool {
        self.steady() && close(self.before, usual) && close(self.after, usual)
    }
}

/// The trip in the state that the machine was in most of the time: the median over steady samples.
pub fn usual_trip<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Option<f64> {
    let trips = samples.into_iter().filter(|s| s.steady()).map(|s| (s.before + s.after) / 2.0);
    Some(summarize(trips)?.median)
}

/// What the samples taken in the usual state say; `None` if there are none.
pub fn evaluate(samples: &[Sample], usual: f64) -> Option<Summary> {
    summarize(samples.iter().filter(|s| s.counts(usual)).map(|s| s.value))
}

/// Median (the lower one of an even number) and range; `None` of nothing.
fn summarize(values: impl IntoIterator<Item = f64>) -> Option<Summary> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let (&min, &max) = (values.first()?, values.last()?);
    Some(Summary { median: values[(values.len() - 1) / 2], min, max, runs: values.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(value: f64, before: f64, after: f64) -> Sample {
        Sample { value, before, after }
    }

    #[test]
    fn median_and_range() {
        assert_eq!(summarize([3.0, 1.0, 2.0]), Some(Summary { median: 2.0, min: 1.0, max: 3.0, runs: 3 }));
        assert_eq!(summarize([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.0);
        assert_eq!(summarize([]), None);
    }

    #[test]
    fn a_sample_during_which_the_machine_changed_is_dropped() {
        let samples = [sample(1.0, 0.050, 0.064), sample(9.0, 0.050, 0.066), sample(8.0, 0.250, 0.055)];
        assert_eq!(evaluate(&samples, 0.055), Some(Summary { median: 1.0, min: 1.0, max: 1.0, runs: 1 }));
    }

    #[test]
    fn a_sample_in_another_state_is_dropped() {
        let near = [sample(1.0, 0.05, 0.05), sample(2.0, 0.06, 0.06), sample(3.0, 0.055, 0.05)];
        let far = [sample(10.0, 0.24, 0.25), sample(11.0, 0.25, 0.25)];
        let usual = usual_trip(near.iter().chain(&far)).unwrap();
        assert_eq!(usual, 0.06);
        assert_eq!(evaluate(&far, usual), None);
        assert_eq!(evaluate(&near, usual).unwrap().runs, 3);
    }

    #[test]
    fn the_usual_state_is_that_of_most_samples() {
        let far = [sample(10.0, 0.24, 0.25), sample(11.0, 0.25, 0.25), sample(12.0, 0.26, 0.26)];
        let changing = [sample(1.0, 0.05, 0.25); 9];
        let near = [sample(1.0, 0.05, 0.05)];
        assert_eq!(usual_trip(far.iter().chain(&changing).chain(&near)), Some(0.245));
        assert_eq!(usual_trip(&changing), None);
    }
}
