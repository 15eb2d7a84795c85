//! The sequences of messages that were delivered in each view.

use super::{Begins, Stay, Uniform};

/// Positions and messages.
type Sequence = Vec<(u64, u32)>;

/// Finds all deliveries of any process in each view, by position.
pub(super) fn find(uniform: &mut Uniform<'_>) {
    let again = (0..).zip(&uniform.views);
    let again = again.filter_map(|(number, view)| match view.begins {
        Begins::Again { first } => Some((first, number)),
        _ => None,
    });
    let again: Vec<(u32, u32)> = again.collect();
    let mut sequences: Vec<Sequence> = vec![Vec::new(); uniform.views.len()];
    for stay in &uniform.stays {
        // Comparison with other processes shows to which of the two ends the stay belongs.
        let open = stay.next.is_none() && again.iter().any(|(first, _)| *first == stay.view);
        if !open {
            add(&mut sequences[stay.view as usize], whole(uniform, stay));
        }
    }
    for (first, number) in again {
        share(uniform, &mut sequences, (first, number));
        settle(uniform, &mut sequences, (first, number));
    }
    for (view, sequence) in uniform.views.iter_mut().zip(sequences) {
        view.sequence = sequence;
    }
}

fn whole(uniform: &Uniform<'_>, stay: &Stay) -> Sequence {
    let places = uniform.deliveries(stay);
    places
        .map(|(_, place)| (place.position, place.message))
        .collect()
}

fn add(sequence: &mut Sequence, more: Sequence) {
    sequence.extend(more);
    // Members deliver nearly the same: duplicates are not kept.
    sequence.sort_unstable();
    sequence.dedup();
}

/// Messages that a process delivered before it was told that it is excluded belong to both ends of the view: all
/// members held them.
fn share(uniform: &Uniform<'_>, sequences: &mut [Sequence], (first, number): (u32, u32)) {
    for stay in &uniform.stays {
        let Some(excluded) = stay
            .excluded
            .filter(|_| [first, number].contains(&stay.view))
        else {
            continue;
        };
        let early = uniform.deliveries(stay).filter(|(at, _)| *at < excluded);
        let early: Sequence = early
            .map(|(_, place)| (place.position, place.message))
            .collect();
        add(&mut sequences[first as usize], early.clone());
        add(&mut sequences[number as usize], early);
    }
}

/// A process that came to no further view may have been on the way to either end.
fn settle(uniform: &mut Uniform<'_>, sequences: &mut [Sequence], (first, number): (u32, u32)) {
    let stays = uniform.views[first as usize].stays.clone();
    for at in stays {
        let stay = &uniform.stays[at as usize];
        if stay.next.is_some() {
            continue;
        }
        let mine = whole(uniform, stay);
        let begins = |view: u32| sequences[view as usize].starts_with(&mine);
        let view = if !begins(first) && begins(number) {
            number
        } else {
            first
        };
        add(&mut sequences[view as usize], mine);
        if view != first {
            uniform.stays[at as usize].view = view;
            uniform.views[first as usize]
                .stays
                .retain(|stay| *stay != at);
            uniform.views[view as usize].stays.push(at);
        }
    }
    let stays = &uniform.stays;
    uniform.views[number as usize]
        .stays
        .sort_by_key(|stay| stays[*stay as usize].process);
}
