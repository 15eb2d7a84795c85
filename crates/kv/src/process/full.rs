//! Writes to a partition that has no room for more: those that make nothing larger are taken.

use tokio::time::Instant;

use super::gateway::{Gateway, OrderError};
use crate::map::Map;
use crate::store::{Action, Batch, Operation, Outcome};

/// What has to be known of a key, for a write to it to be taken.
enum Needs {
    /// It has a text of so many bytes, at least.
    Text(usize),
    /// It has these fields, each with so many bytes, at least.
    Fields(Vec<usize>),
}

/// The operation that finds out whether an action makes a key larger, and what it has to find; `None`: the action does
/// in any case.
fn question<'a>(key: &'a [u8], action: &Action<'a>) -> Option<(Operation<'a>, Needs)> {
    let (look, needs) = match action {
        // A key that is not there would be new, also with an empty value.
        Action::Set { value, .. } => (Action::Length, Needs::Text(value.len().max(1))),
        // A number has few digits: counters that are there go on.
        Action::Add(_) => (Action::Length, Needs::Text(1)),
        Action::SetFields(set) => {
            let names = set.iter().map(|(field, _)| *field).collect();
            let bytes = set.iter().map(|(_, value)| value.len()).collect();
            (Action::Fields(names), Needs::Fields(bytes))
        }
        _ => return None,
    };
    Some((Operation::Key(key, look), needs))
}

impl Needs {
    fn are_met(&self, outcome: Option<&Outcome>) -> bool {
        match (self, outcome) {
            (Self::Text(least), Some(Outcome::Number(bytes))) => *bytes >= *least as i64,
            (Self::Fields(least), Some(Outcome::Texts(texts))) => {
                let pairs = least.iter().zip(texts);
                let is_met = |(least, text): (&usize, &Option<bytes::Bytes>)| {
                    text.as_ref().is_some_and(|text| text.len() >= *least)
                };
                least.len() == texts.len() && pairs.into_iter().all(is_met)
            }
            _ => false,
        }
    }
}

/// Refuses a batch that writes more than a full partition has room for. Keys that are there may be given what takes no
/// more: how much they take is asked for first, as it is then.
pub(super) async fn has_room(
    gateway: &Gateway,
    batch: &Batch<'_>,
    (map, until): (&Map, Instant),
) -> Result<(), OrderError> {
    let mut asks = Batch {
        epoch: map.epoch(),
        ..Batch::default()
    };
    let (mut needed, mut lacking) = (Vec::new(), Vec::new());
    for (at, operation) in batch.operations.iter().enumerate() {
        let Operation::Key(key, action) = operation else {
            continue;
        };
        let of = action.grows().then(|| map.of_key(key));
        let Some(of) = of.filter(|of| gateway.peers.is_full(*of)) else {
            continue;
        };
        match question(key, action) {
            Some((operation, needs)) => {
                asks.operations.push(operation);
                needed.push((of, at, needs));
            }
            None => lacking.push((of, at)),
        }
    }
    // The batch is not ordered as it is, so what else lacks room may be found out when the rest of it is.
    if let (true, Some((full, ..))) = (lacking.is_empty(), needed.first()) {
        // What asks does not grow, so this asks for nothing again.
        let found = Box::pin(gateway.order_by(map, &mut asks, until)).await;
        let found = match found {
            // It asks for more than there is room for in an answer.
            Err(OrderError::TooMuch | OrderError::TooLarge) => {
                return Err(OrderError::Full(*full, Vec::new()));
            }
            found => found?.unwrap_or_default(),
        };
        let mut found = found.iter();
        lacking.extend(needed.iter().filter_map(|(of, at, needs)| {
            let outcome = found.next().and_then(|outcomes| outcomes.first());
            (!needs.are_met(outcome)).then_some((*of, *at))
        }));
    }
    let Some((full, _)) = lacking.first().copied() else {
        return Ok(());
    };
    let of_it = lacking.into_iter().filter(|(of, _)| *of == full);
    Err(OrderError::Full(full, of_it.map(|(_, at)| at).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Fault, Life, Only};

    fn is_taken(action: &Action<'_>, found: &Outcome) -> bool {
        let asked = question(b"k", action);
        asked.is_some_and(|(_, needs)| needs.are_met(Some(found)))
    }

    #[test]
    fn what_takes_no_more_than_what_is_there_is_taken() {
        let set = |value| Action::Set {
            value,
            life: Life::Ever,
            only: Only::Always,
            get: false,
        };
        let number = Outcome::Number;
        assert!(is_taken(&set(b"abc"), &number(3)) && is_taken(&set(b""), &number(3)));
        for (value, found) in [
            (&b"abcd"[..], number(3)),
            (b"", number(0)),
            (b"a", Outcome::Fault(Fault::Kind)),
        ] {
            assert!(!is_taken(&set(value), &found), "{value:?}");
        }
        let add = Action::Add(1);
        assert!(is_taken(&add, &number(1)) && !is_taken(&add, &number(0)));
        let texts = |bytes: &[usize]| {
            let text = |bytes: &usize| (*bytes > 0).then(|| vec![b'x'; *bytes].into());
            Outcome::Texts(bytes.iter().map(text).collect())
        };
        let fields = Action::SetFields(vec![(b"f", b"abc"), (b"g", b"a")]);
        assert!(is_taken(&fields, &texts(&[3, 2])));
        for found in [[2, 2], [3, 0], [0, 1]] {
            assert!(!is_taken(&fields, &texts(&found)), "{found:?}");
        }
        assert!(question(b"k", &Action::Append(b"a")).is_none());
    }
}
