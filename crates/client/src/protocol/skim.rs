//! Looking at frames of a daemon without reading them whole.

use rota_core::groups::GroupName;

use super::reply::{MESSAGE, TRANSITIONAL, VIEW};

/// The contents of a daemon's frame, as far as a slow client's queue needs them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Skimmed<'a> {
    /// A message.
    Message {
        /// Its destinations, as the frame has them: two messages to the same have the same. See
        /// [`groups_in`].
        to: &'a [u8],
        /// Bytes of its payload.
        payload: usize,
    },
    /// A view or a transitional signal.
    Membership,
    /// An answer, credit, or whatever else.
    Other,
}

/// Looks at a whole frame of a daemon, of which a message's payload may be missing.
pub fn skim(frame: &[u8]) -> Skimmed<'_> {
    match frame.get(4) {
        Some(&VIEW | &TRANSITIONAL) => Skimmed::Membership,
        Some(&MESSAGE) => message(frame).unwrap_or(Skimmed::Other),
        _ => Skimmed::Other,
    }
}

fn message(frame: &[u8]) -> Option<Skimmed<'_>> {
    let length = 4 + u32::from_le_bytes(*frame.first_chunk()?) as usize;
    let sender = usize::from(*frame.get(5)?);
    // Behind the sender: service, flags, the application's kind, the number of destinations.
    let count = 6 + sender + 4;
    let first = count + 1;
    let mut end = first;
    for _ in 0..*frame.get(count)? {
        end += 1 + usize::from(*frame.get(end)?);
    }
    Some(Skimmed::Message {
        to: frame.get(first..end)?,
        payload: length.checked_sub(end)?,
    })
}

/// The groups among the destinations of [`Skimmed::Message`].
pub fn groups_in(mut to: &[u8]) -> impl Iterator<Item = GroupName> + '_ {
    let texts = std::iter::from_fn(move || {
        let (&length, rest) = to.split_first()?;
        let (text, rest) = rest.split_at_checked(usize::from(length))?;
        to = rest;
        Some(text)
    });
    texts.filter_map(|text| GroupName::from_bytes(text).ok())
}
