//! Max-min fair shares (FastCast figure 4, lines 34 to 47).

use alloc::vec::Vec;

use crate::mutants::{self, Mutant};

/// The rate at which member `me` may send, in bits per second, if member `i` wants to send `requirements[i]` and every
/// member's link takes in `capacity`.
///
/// The fullest link of those that `me` sends to is that of the other member that requires least, as no member takes in
/// what it sends itself; so `me` shares with all others but that one. The remainder of the division by the number of
/// members that get less than they require is left over. The order of two members with the same requirement makes no
/// difference to anybody.
///
/// # Panics
/// If there is no member `me`.
pub fn max_min(requirements: &[u64], me: usize, capacity: u64) -> u64 {
    let mine = requirements[me];
    let mut sharing: Vec<u64> = requirements.to_vec();
    sharing.swap_remove(me);
    sharing.sort_unstable();
    let least = sharing.first().copied();
    if !sharing.is_empty() {
        sharing.remove(0);
    }
    if mutants::on(Mutant::B05) && least.is_some_and(|least| mine <= least) {
        return mine;
    }
    let at = sharing.partition_point(|&other| other < mine);
    sharing.insert(at, mine);
    mine.min(level(&sharing, capacity))
}

/// The rate of the members that require more than they get. `ascending` is not empty.
fn level(ascending: &[u64], capacity: u64) -> u64 {
    let mut left = capacity;
    for (at, &requirement) in ascending.iter().enumerate() {
        let each = left / (ascending.len() - at) as u64;
        if requirement > each {
            return each;
        }
        left -= requirement;
    }
    u64::MAX
}
