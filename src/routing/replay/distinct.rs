//! How many different values there are among many, in bounded memory: exact up to a few, and then an estimate by
//! HyperLogLog, which is wrong by 3 % on average.

/// More values than these are estimated.
const MOST_EXACT: usize = 64;
/// The bits of a hash that choose a register.
const REGISTER_BITS: u32 = 10;
/// The number of registers.
const REGISTERS: usize = 1 << REGISTER_BITS;

/// Counts different values by their hashes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DistinctCount {
    /// The hashes.
    Exact(Vec<u64>),
    /// For each register, the most leading zeros of its hashes, plus one.
    Estimated(Box<[u8; REGISTERS]>),
}

impl Default for DistinctCount {
    fn default() -> Self {
        DistinctCount::Exact(Vec::new())
    }
}

impl DistinctCount {
    /// Adds the hash of a value.
    pub(super) fn add(&mut self, hash: u64) {
        match self {
            DistinctCount::Exact(known) if known.contains(&hash) => {}
            DistinctCount::Exact(known) if known.len() < MOST_EXACT => known.push(hash),
            DistinctCount::Exact(_) => {
                self.estimate();
                self.add(hash);
            }
            DistinctCount::Estimated(registers) => note(registers, hash),
        }
    }

    /// Adds the values of another count.
    pub(super) fn merge(&mut self, other: Self) {
        match other {
            DistinctCount::Exact(hashes) => hashes.into_iter().for_each(|hash| self.add(hash)),
            DistinctCount::Estimated(others) => {
                self.estimate();
                if let DistinctCount::Estimated(registers) = self {
                    for (own, other) in registers.iter_mut().zip(others.iter()) {
                        *own = (*own).max(*other);
                    }
                }
            }
        }
    }

    /// Whether the count is no estimate.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self, DistinctCount::Exact(_))
    }

    /// The number of different values.
    pub(crate) fn count(&self) -> u64 {
        let registers = match self {
            DistinctCount::Exact(known) => return known.len() as u64,
            DistinctCount::Estimated(registers) => registers,
        };
        let all = REGISTERS as f64;
        let sum: f64 = registers.iter().map(|zeros| (-f64::from(*zeros)).exp2()).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / all) * all * all / sum;
        let empty = registers.iter().filter(|zeros| **zeros == 0).count() as f64;
        // With few values, many registers are empty, and their number says more.
        let corrected = if estimate <= 2.5 * all && empty > 0.0 { all * (all / empty).ln() } else { estimate };
        corrected.round() as u64
    }

    /// Goes over to registers.
    fn estimate(&mut self) {
        if let DistinctCount::Exact(known) = self {
            let mut registers = Box::new([0; REGISTERS]);
            known.iter().for_each(|hash| note(&mut registers, *hash));
            *self = DistinctCount::Estimated(registers);
        }
    }
}

/// Adds a hash to its register.
fn note(registers: &mut [u8; REGISTERS], hash: u64) {
    let index = usize::try_from(hash >> (u64::BITS - REGISTER_BITS)).unwrap_or_default();
    // The bit behind the hash ends the zeros.
    let zeros = ((hash << REGISTER_BITS) | (1 << (REGISTER_BITS - 1))).leading_zeros() + 1;
    if let Some(register) = registers.get_mut(index) {
        *register = (*register).max(u8::try_from(zeros).unwrap_or(u8::MAX));
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use super::*;

    fn counted(values: impl Iterator<Item = u64>) -> DistinctCount {
        let mut count = DistinctCount::default();
        let hasher = foldhash::quality::FixedState::default();
        values.for_each(|value| count.add(hasher.hash_one(value.to_le_bytes())));
        count
    }

    #[test]
    fn few_values_are_counted_and_many_estimated() {
        let few = counted((0..40).chain(0..40));
        assert_eq!((few.count(), few.is_exact()), (40, true));
        for many in [100_u64, 1000, 20_000, 300_000] {
            let count = counted((0..many).chain(0..many));
            let error = count.count().abs_diff(many) * 100 / many;
            assert!(!count.is_exact() && error <= 10, "{many}: {}", count.count());
        }
    }

    #[test]
    fn a_merged_count_is_that_of_all_values() {
        for (first, second) in [(10, 10), (10, 5000), (5000, 10), (5000, 6000)] {
            let mut merged = counted(0..first);
            merged.merge(counted(5..second));
            let all = counted((0..first).chain(5..second));
            assert_eq!((merged.count(), merged.is_exact()), (all.count(), all.is_exact()), "{first} {second}");
        }
    }
}
