//! What goes into one step: one token of every answer, and a bounded share of the prompts.

/// Prompt tokens read in one step, all completions together, while no answer is under way. The number bounds how
/// long a new caller or a cancel waits. Larger chunks read hardly faster (12.5 against 12.1 ms of one core for a token,
/// measured with 64 and 128).
pub(super) const PROMPT_TOKENS_ALONE: usize = 64;

/// The same while answers are under way: each of them waits this long for its next token. Such steps cost a fifth
/// more for each prompt token, and leaves answers at the pace of speech: some 7 tokens a second on two cores.
const PROMPT_TOKENS_BESIDE: usize = 16;

/// Decides how many tokens of each completion go into the next step, of `needs[i]` that are not in the context yet, `1..`. One
/// token is the next of an answer, or the last of a prompt. Answers have one each; prompts share the rest.
pub(super) fn portions(needs: &[usize]) -> Vec<usize> {
    let mut portions: Vec<_> = needs.iter().map(|&tokens| usize::from(tokens == 1)).collect();
    let budget = if needs.contains(&1) { PROMPT_TOKENS_BESIDE } else { PROMPT_TOKENS_ALONE };
    let reading: Vec<_> = (0..needs.len()).filter(|&at| needs[at] > 1).collect();
    let remaining: Vec<_> = reading.iter().map(|&at| needs[at]).collect();
    for (at, share) in reading.into_iter().zip(shares(budget, &remaining)) {
        portions[at] = share;
    }
    portions
}

/// Divides `budget` tokens among prompts of which `remaining[i]` tokens are unread: equal shares, and what short
/// prompts leave over goes to longer ones. Every share is at least 1 while the budget lasts.
fn shares(budget: usize, remaining: &[usize]) -> Vec<usize> {
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

    #[test]
    fn a_long_prompt_delays_no_answer() {
        assert_eq!(portions(&[500, 1, 10]), [6, 1, 10]);
        assert_eq!(portions(&[500]), [64]);
        assert_eq!(portions(&[]), [0; 0]);
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
