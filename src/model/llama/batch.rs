//! The composition of one step: one token of every answer, and a bounded share of the prompts.

use crate::message::Rank;

/// Prompt tokens read in one step, all completions together, while no spoken answer is under way. The number bounds the
/// wait of a new caller or of a cancel. Larger chunks read hardly faster (12.5 against 12.1 ms of one core for a token,
/// measured with 64 and 128).
pub(super) const PROMPT_TOKENS_ALONE: usize = 64;

/// The same while spoken answers are under way: each of them waits this long for its next token. Such steps cost a
/// fifth more for each prompt token, and leave answers at the pace of speech: some 7 tokens a second on two cores.
const PROMPT_TOKENS_BESIDE: usize = 16;

/// Tokens that one running completion has for the batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) rank: Rank,
    /// Tokens that are not in the context yet, `1..`. One token is the next of an answer, or the last of a prompt.
    pub(super) tokens: usize,
}

/// Decides the number of tokens of each completion in the next step. Answers have one each. Prompts share the rest, and
/// a better rank comes before a worse one.
pub(super) fn portions(needs: &[Need]) -> Vec<usize> {
    let mut portions: Vec<_> = needs.iter().map(|need| usize::from(need.tokens == 1)).collect();
    let is_heard = needs.iter().any(|need| need.tokens == 1 && need.rank == Rank::Spoken);
    let mut budget = if is_heard { PROMPT_TOKENS_BESIDE } else { PROMPT_TOKENS_ALONE };
    for rank in [Rank::Spoken, Rank::Written, Rank::Aside] {
        let reading: Vec<_> =
            (0..needs.len()).filter(|&at| needs[at].rank == rank && needs[at].tokens > 1).collect();
        let remaining: Vec<_> = reading.iter().map(|&at| needs[at].tokens).collect();
        for (at, share) in reading.into_iter().zip(shares(budget, &remaining)) {
            portions[at] = share;
            budget -= share;
        }
    }
    portions
}

/// Divides `budget` tokens among prompts of which `remaining[i]` tokens are unread. The shares are equal, except that
/// longer prompts get the tokens that short ones leave over. Every share is at least 1 while the budget lasts.
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
    fn a_prompt_that_is_waited_for_is_read_first_and_delays_no_speech() {
        let need = |rank, tokens| Need { rank, tokens };
        let (spoken, written, aside) = (Rank::Spoken, Rank::Written, Rank::Aside);
        assert_eq!(portions(&[need(aside, 1), need(spoken, 500), need(aside, 500)]), [1, 64, 0]);
        assert_eq!(portions(&[need(spoken, 1), need(written, 500), need(aside, 1)]), [1, 16, 1]);
        assert_eq!(portions(&[need(aside, 500), need(written, 10), need(written, 20)]), [34, 10, 20]);
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
