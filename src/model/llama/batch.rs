//! What goes into one step: one token of every answer, and a bounded share of the prompts.

/// Divides `budget` tokens among prompts of which `remaining[i]` tokens are unread: equal shares, and what short
/// prompts leave over goes to longer ones. Every share is at least 1 while the budget lasts.
pub(super) fn shares(budget: usize, remaining: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..remaining.len()).collect();
    order.sort_by_key(|&index| remaining[index]);
    let mut shares = vec![0; remaining.len()];
    let mut left = budget;
    for (done, &index) in order.iter().enumerate() {
        let waiting = order.len() - done;
        shares[index] = remaining[index].min(left.div_ceil(waiting));
        left -= shares[index];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_prompts_leave_their_share_to_long_ones() {
        assert_eq!(shares(64, &[1_000]), [64]);
        assert_eq!(shares(64, &[1_000, 4]), [60, 4]);
        assert_eq!(shares(64, &[1_000, 1_000]), [32, 32]);
        assert_eq!(shares(64, &[]), [0; 0]);
        assert_eq!(shares(2, &[5, 5, 5]).iter().sum::<usize>(), 2);
    }

    proptest! {
        #[test]
        fn the_budget_is_used_and_never_exceeded(budget in 1_usize..200, remaining in prop::collection::vec(1_usize..300, 0..20)) {
            let shares = shares(budget, &remaining);
            prop_assert_eq!(shares.iter().sum::<usize>(), budget.min(remaining.iter().sum()));
            prop_assert!(shares.iter().zip(&remaining).all(|(share, remaining)| share <= remaining));
            if budget >= remaining.len() {
                prop_assert!(shares.iter().all(|&share| share > 0), "nobody waits for another's prompt");
            }
        }
    }
}
