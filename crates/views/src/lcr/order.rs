//! The order ≺ of LCR: by vector clocks, and among concurrent packets the larger index first.
//!
//! A packet's **place** is the part of its sender's clock that the order looks at: for each member with a
//! smaller index, up to which of that member's packets the sender had passed on before it sent this one;
//! and last, its own number. So member `i` has places of `i + 1` entries.
//!
//! This is one order: a packet of `i` goes to `j > i` without passing the end of the ring, so a packet that `j` had
//! passed on before its own arrives at the last member before that, and a packet that it had not, after it. ≺ is the
//! order in which the last member passes packets on.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::Held;
use rota_core::mutants::{self, Mutant};

/// Whether the packet of member `a.0` with place `a.1` comes before that of `b.0` with place `b.1`.
pub fn precedes(a: (usize, &[u64]), b: (usize, &[u64])) -> bool {
    let ((a_sender, a_place), (b_sender, b_place)) = (a, b);
    if mutants::on(Mutant::L02) && a_sender != b_sender {
        // Numbers alone, as if they meant the same at all members.
        return (entry(a_place, a_sender), a_sender) < (entry(b_place, b_sender), b_sender);
    }
    if a_sender > b_sender {
        // Concurrent packets: the larger index first.
        entry(b_place, b_sender) > entry(a_place, b_sender)
    } else {
        let own = entry(a_place, a_sender);
        let seen = entry(b_place, a_sender);
        if a_sender == b_sender {
            own < seen
        } else {
            own <= seen
        }
    }
}

/// An entry of a place; one that a peer left out counts as 0.
fn entry(place: &[u64], member: usize) -> u64 {
    place.get(member).copied().unwrap_or(0)
}

/// The first of some packets, each the oldest of its sender. The search looks at each: members are few, and places that
/// contradict each other (only a broken peer sends such) do no harm here.
pub fn first<'a>(heads: impl Iterator<Item = (usize, &'a [u64])>) -> Option<usize> {
    heads
        .reduce(|first, next| if precedes(next, first) { next } else { first })
        .map(|(sender, _)| sender)
}

/// Puts packets into the order ≺.
pub fn arrange(held: &mut Vec<Held>) {
    held.sort_by_key(|held| held.packet.id);
    let mut queues: Vec<VecDeque<Held>> = Vec::new();
    for held in held.drain(..) {
        match queues.last_mut() {
            Some(queue) if queue[0].packet.id.sender == held.packet.id.sender => {
                queue.push_back(held);
            }
            _ => queues.push(VecDeque::from([held])),
        }
    }
    let at = |queues: &[VecDeque<Held>], sender: usize| {
        queues
            .iter()
            .position(|queue| usize::from(queue[0].packet.id.sender) == sender)
    };
    while let Some(sender) = first(queues.iter().map(|queue| {
        let head = &queue[0];
        (usize::from(head.packet.id.sender), &head.place[..])
    })) {
        let Some(index) = at(&queues, sender) else {
            break;
        };
        held.extend(queues[index].pop_front());
        if queues[index].is_empty() {
            queues.remove(index);
        }
    }
}
