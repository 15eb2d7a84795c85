//! The messages between processes.

use bytes::Bytes;
use rota_core::bytes::Reader;
use rota_multiring::Place;
use rota_replica::CallError;

use crate::outlook::Signal;
use crate::store::{put_version, take_version};

/// A question or an order of another process. A command is named by its giver and the giver's number for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ask {
    /// Nothing: the asker is there.
    Alive,
    /// A command of the partition is to be ordered, and answered under this number.
    Give(u64, (u64, u64), Bytes),
    /// The same of a command of several partitions, of which this process's is one.
    GiveToAll(u64, (u64, u64), Bytes),
    /// The answer to a command that is ordered for all is wanted under this number.
    Await(u64, (u64, u64)),
    /// Batches that only look are to be answered under this number, as the partition is when all is done that was ordered before.
    Look(u64, Bytes),
    /// Nobody waits for the answer with this number any more.
    GiveUp(u64),
    /// The replica's map of slots is wanted under this number.
    Map(u64),
}

/// An answer or a signal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Tell {
    /// The signal of the replica, and its health.
    Signal(Signal, Health),
    /// A part of an answer, under its number: more parts follow.
    Part(u64, Bytes),
    /// An answer, or the last part of it.
    Answer(u64, Bytes),
    /// There is no answer: the reason tells whether the command may count.
    Failed(u64, Failed),
}

/// The health of a replica.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Health {
    /// The partition has no room for more.
    pub(super) is_full: bool,
    /// The replica takes commands: it does not get another one's state just now.
    pub(super) is_open: bool,
    /// The epoch of its map of slots.
    pub(super) epoch: u64,
    /// The time by the clock of its host.
    pub(super) clock: u64,
}

/// The reason why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failed {
    /// The ring takes no more just now: the command does not count.
    Busy,
    /// The command is too large: it does not count.
    TooLarge,
    /// The replica stops: the command may count or not.
    Stopped,
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Busy => Self::Busy,
            CallError::TooLarge => Self::TooLarge,
            _ => Self::Stopped,
        }
    }
}

fn numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers
        .iter()
        .for_each(|number| out.extend(number.to_le_bytes()));
}

fn pair(bytes: &mut Reader<'_>) -> Option<(u64, u64)> {
    Some((bytes.u64()?, bytes.u64()?))
}

impl Ask {
    /// The bytes of what is asked, about.
    pub(super) const fn bytes(&self) -> usize {
        match self {
            Self::Give(.., bytes) | Self::GiveToAll(.., bytes) | Self::Look(_, bytes) => {
                bytes.len()
            }
            Self::Alive | Self::Await(..) | Self::GiveUp(_) | Self::Map(_) => 0,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Alive => out.push(0),
            Self::Give(id, of, command) | Self::GiveToAll(id, of, command) => {
                out.push(if matches!(self, Self::Give(..)) { 1 } else { 5 });
                numbers(&mut out, &[*id, of.0, of.1]);
                out.extend_from_slice(command);
            }
            Self::Await(id, of) => {
                out.push(2);
                numbers(&mut out, &[*id, of.0, of.1]);
            }
            Self::Look(id, pack) => {
                out.push(3);
                numbers(&mut out, &[*id]);
                out.extend_from_slice(pack);
            }
            Self::Map(id) | Self::GiveUp(id) => {
                out.push(if matches!(self, Self::Map(_)) { 4 } else { 6 });
                numbers(&mut out, &[*id]);
            }
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let ask = match bytes.byte()? {
            0 => Self::Alive,
            kind @ (1 | 5) => {
                let (id, of) = (bytes.u64()?, pair(&mut bytes)?);
                let command = Bytes::copy_from_slice(std::mem::take(&mut bytes.0));
                match kind {
                    1 => Self::Give(id, of, command),
                    _ => Self::GiveToAll(id, of, command),
                }
            }
            2 => Self::Await(bytes.u64()?, pair(&mut bytes)?),
            3 => {
                let id = bytes.u64()?;
                Self::Look(id, Bytes::copy_from_slice(std::mem::take(&mut bytes.0)))
            }
            4 => Self::Map(bytes.u64()?),
            6 => Self::GiveUp(bytes.u64()?),
            _ => return None,
        };
        bytes.0.is_empty().then_some(ask)
    }
}

fn put_signal(out: &mut Vec<u8>, signal: Signal) {
    put_version(out, signal.delivered);
    put_version(out, signal.stable);
}

fn take_signal(bytes: &mut Reader<'_>) -> Option<Signal> {
    let delivered: Option<Place> = take_version(bytes)?;
    let stable = take_version(bytes)?;
    Some(Signal { delivered, stable })
}

impl Tell {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Signal(signal, health) => {
                out.push(0);
                put_signal(&mut out, *signal);
                out.extend([health.is_full, health.is_open].map(u8::from));
                numbers(&mut out, &[health.epoch, health.clock]);
            }
            Self::Part(id, answer) | Self::Answer(id, answer) => {
                out.push(if matches!(self, Self::Part(..)) { 3 } else { 1 });
                numbers(&mut out, &[*id]);
                out.extend_from_slice(answer);
            }
            Self::Failed(id, why) => {
                out.push(2);
                numbers(&mut out, &[*id]);
                out.push(*why as u8);
            }
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let tell = match bytes.byte()? {
            0 => {
                let signal = take_signal(&mut bytes)?;
                let health = Health {
                    is_full: bytes.flag()?,
                    is_open: bytes.flag()?,
                    epoch: bytes.u64()?,
                    clock: bytes.u64()?,
                };
                Self::Signal(signal, health)
            }
            kind @ (1 | 3) => {
                let id = bytes.u64()?;
                let answer = Bytes::copy_from_slice(std::mem::take(&mut bytes.0));
                match kind {
                    1 => Self::Answer(id, answer),
                    _ => Self::Part(id, answer),
                }
            }
            2 => {
                let all = [Failed::Busy, Failed::TooLarge, Failed::Stopped];
                let id = bytes.u64()?;
                Self::Failed(id, *all.get(usize::from(bytes.byte()?))?)
            }
            _ => return None,
        };
        bytes.0.is_empty().then_some(tell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::Golden;
    use rota_multiring::Rank;

    #[test]
    fn what_is_said_is_read_as_it_was_and_nothing_else_is() {
        let place = Place {
            round: 1,
            rank: Rank(2),
            instance: 3,
            index: 4,
        };
        let signal = Signal {
            delivered: Some(place),
            stable: None,
        };
        let asks = [
            Ask::Alive,
            Ask::Give(7, (8, 9), Bytes::from_static(b"set")),
            Ask::Await(7, (8, 9)),
            Ask::Look(7, Bytes::from_static(b"look")),
            Ask::Map(7),
            Ask::GiveUp(7),
            Ask::GiveToAll(7, (8, 9), Bytes::from_static(b"set")),
        ];
        for ask in asks {
            assert_eq!(Ask::decode(&ask.encode()), Some(ask));
        }
        let tells = [
            Tell::Signal(
                signal,
                Health {
                    is_full: true,
                    is_open: false,
                    epoch: 9,
                    clock: 10,
                },
            ),
            Tell::Part(5, Bytes::from_static(b"some")),
            Tell::Answer(5, Bytes::from_static(b"done")),
            Tell::Failed(5, Failed::Stopped),
        ];
        for tell in tells {
            let bytes = tell.encode();
            assert_eq!(Tell::decode(&bytes), Some(tell.clone()));
            for at in 0..bytes.len() {
                assert_ne!(Tell::decode(&bytes[..at]), Some(tell.clone()));
            }
        }
        for bytes in [&[][..], &[9], &[0, 0], &[2, 0, 0]] {
            assert_eq!((Ask::decode(bytes), Tell::decode(bytes)), (None, None));
        }
    }

    /// The bytes are those of `testdata/golden/processes.txt`.
    #[test]
    fn what_is_said_has_the_bytes_it_always_had() {
        let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "processes");
        let (id, of) = (0x0102_0304_0506_0708, (0x1112, 0x2122));
        let bytes = Bytes::from_static;
        for (name, ask) in [
            ("alive", Ask::Alive),
            ("give", Ask::Give(id, of, bytes(b"command"))),
            ("give to all", Ask::GiveToAll(id, of, bytes(b"command"))),
            ("await", Ask::Await(id, of)),
            ("look", Ask::Look(id, bytes(b"pack"))),
            ("map", Ask::Map(id)),
            ("give up", Ask::GiveUp(id)),
        ] {
            let bytes = golden.compare(name, &ask.encode());
            assert_eq!(Ask::decode(&bytes), Some(ask));
        }
        let place = Place {
            round: 0x0a0b,
            rank: Rank(0x0c0d),
            instance: 0x1011,
            index: 0x0e0f,
        };
        let signal = Signal {
            delivered: Some(place),
            stable: None,
        };
        let health = Health {
            is_full: true,
            is_open: false,
            epoch: 0x3132,
            clock: 0x4142,
        };
        for (name, tell) in [
            ("signal", Tell::Signal(signal, health)),
            ("part of an answer", Tell::Part(id, bytes(b"some"))),
            ("answer", Tell::Answer(id, bytes(b"done"))),
            ("failed: busy", Tell::Failed(id, Failed::Busy)),
            ("failed: too large", Tell::Failed(id, Failed::TooLarge)),
            ("failed: stopped", Tell::Failed(id, Failed::Stopped)),
        ] {
            let bytes = golden.compare(name, &tell.encode());
            assert_eq!(Tell::decode(&bytes), Some(tell));
        }
        golden.finish();
    }
}
