//! The questions of processes for entries, and the answers, as bytes.

use bytes::Bytes;

use crate::machine::Position;

/// The bytes that are asked for at once.
pub(super) const MOST_BYTES: u32 = 1 << 20;

/// A question, as four numbers: `u64` each, but for the last one, a `u32`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ask {
    /// The number of a log.
    pub(super) log: u64,
    /// The first position.
    pub(super) from: Position,
    /// The position behind the last.
    pub(super) to: Position,
    /// The number of bytes, about.
    pub(super) most: u32,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Told {
    /// Entries, as the store has them.
    Run(Bytes),
    /// The entries were trimmed: this is the first position that is kept.
    Trimmed(Position),
    /// The process does not have the entries, either.
    Nothing,
    /// The rings of the process's configuration.
    Configuration(Vec<u16>),
}

impl Ask {
    /// The question for the configuration: no log has this number.
    pub(super) const CONFIGURATION: Self = Self {
        log: 0,
        from: 0,
        to: 0,
        most: 0,
    };

    pub(super) fn encode(&self) -> Vec<u8> {
        let numbers = [self.log, self.from, self.to];
        let mut out: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        out.extend(self.most.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = rota_core::bytes::Reader(bytes);
        let ask = Self {
            log: bytes.u64()?,
            from: bytes.u64()?,
            to: bytes.u64()?,
            most: bytes.u32()?,
        };
        bytes.0.is_empty().then_some(ask)
    }
}

impl Told {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Run(run) => [&[0], &run[..]].concat(),
            Self::Trimmed(first) => [&[1], &first.to_le_bytes()[..]].concat(),
            Self::Nothing => vec![2],
            Self::Configuration(rings) => {
                let rings = rings.iter().flat_map(|ring| ring.to_le_bytes());
                [3].into_iter().chain(rings).collect()
            }
        }
    }

    pub(super) fn decode(bytes: Vec<u8>) -> Option<Self> {
        let bytes = Bytes::from(bytes);
        Some(match (bytes.first()?, bytes.len()) {
            (0, _) => Self::Run(bytes.slice(1..)),
            (1, 9) => Self::Trimmed(u64::from_le_bytes(bytes[1..].try_into().ok()?)),
            (2, 1) => Self::Nothing,
            (3, _) => {
                let (rings, rest) = bytes[1..].as_chunks::<2>();
                let rings = rings.iter().map(|ring| u16::from_le_bytes(*ring));
                rest.is_empty()
                    .then(|| Self::Configuration(rings.collect()))?
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::Golden;

    /// The bytes are those of `testdata/golden/processes.txt`.
    #[test]
    fn what_is_said_has_the_bytes_it_always_had() {
        let mut golden = Golden::open(env!("CARGO_MANIFEST_DIR"), "processes");
        let ask = Ask {
            log: 0x0102_0304_0506_0708,
            from: 0x1112,
            to: 0x2122,
            most: 0x3132,
        };
        let bytes = golden.compare("ask", &ask.encode());
        assert_eq!(Ask::decode(&bytes), Some(ask));
        for (name, told) in [
            ("run", Told::Run(Bytes::from_static(b"run"))),
            ("trimmed", Told::Trimmed(0x4142)),
            ("nothing", Told::Nothing),
            ("configuration", Told::Configuration(vec![1, 0x0203])),
        ] {
            let bytes = golden.compare(name, &told.encode());
            assert_eq!(Told::decode(bytes), Some(told));
        }
        golden.finish();
    }
}
