//! Whose turn it is: contestants in another order in each round, and in the same orders in every run.
//!
//! Each finds caches, heaps and clocks as the one before it left them. Where all rounds go round in one order, that is the same one each
//! time but for the first of a round; so the order is shuffled.

/// What is added to the state of splitmix64 for each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The order of a round's contestants, by their indices.
pub fn of_round(round: usize, contestants: usize) -> Vec<usize> {
    // Seeded by the round (splitmix64): mixed, as else each round would have the next one's numbers but for the first.
    let mut state = mix((round as u64).wrapping_add(STEP));
    let mut random = |below: usize| {
        state = state.wrapping_add(STEP);
        usize::try_from(mix(state) % below as u64).unwrap_or_default()
    };
    let mut order: Vec<usize> = (0..contestants).collect();
    for last in (1..contestants).rev() {
        order.swap(last, random(last + 1));
    }
    order
}

fn mix(state: u64) -> u64 {
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each takes one turn a round, and none follows the same one in most of them.
    #[test]
    fn none_always_follows_the_same_one() {
        for rounds in [7, 11, 15] {
            for contestants in 3..9 {
                let mut follows = vec![vec![0; contestants]; contestants];
                let mut first = vec![0; contestants];
                let mut before = None;
                for round in 0..rounds {
                    let order = of_round(round, contestants);
                    let mut sorted = order.clone();
                    sorted.sort_unstable();
                    assert!(sorted.into_iter().eq(0..contestants));
                    first[order[0]] += 1;
                    for index in order {
                        if let Some(before) = before {
                            follows[index][before] += 1;
                        }
                        before = Some(index);
                    }
                }
                let most = follows.iter().flatten().chain(&first).max();
                assert!(most <= Some(&(rounds * 3 / 4)), "{most:?} of {rounds}, {contestants} contestants");
            }
        }
        assert_eq!(of_round(3, 5), of_round(3, 5));
        assert_eq!((of_round(0, 0), of_round(9, 1)), (vec![], vec![0]));
    }
}
