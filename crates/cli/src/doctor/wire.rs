//! The datagrams of `rota doctor`.

use rota_core::bytes::Reader;

/// The first bytes of each. No datagram of a daemon begins so.
const MAGIC: &[u8; 16] = b"rota doctor v1\0\0";

/// Bytes of the head: magic, cluster, sender, receiver, kind.
const HEAD: usize = 16 + 4 + 2 + 2 + 1;

/// Bytes of a question and of an answer: equal, so that nobody gets more out of a node than was put in.
pub const SPOKEN_BYTES: usize = HEAD + 60;

const DATA: u8 = 1;
const QUESTION: u8 = 2;
const ANSWER: u8 = 3;

/// A datagram, from a node to another or, as data, to all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    pub cluster: u32,
    pub from: u16,
    /// 0: all.
    pub to: u16,
    pub body: Body,
}

/// The contents of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// As data of daemons: small, or as large as theirs.
    Data { full: bool },
    /// To be answered at once.
    Question(Question),
    /// To a question.
    Answer(Answer),
}

/// A question, which says how much data its sender has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Question {
    /// The sender's clock, in nanoseconds since 1970.
    pub asked: i64,
    pub small_sent: u32,
    pub full_sent: u32,
}

/// The answer, which repeats the question.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    pub question: Question,
    /// The answering node's clock when the question came, and when the answer left.
    pub heard: i64,
    pub told: i64,
    /// Data of the asking node that has arrived.
    pub small_arrived: u32,
    pub full_arrived: u32,
    /// How long the answering host has stood still at most, in microseconds.
    pub pause_us: u32,
    /// How much of its time was given to others, in thousandths.
    pub stolen_permille: u32,
}

impl Datagram {
    /// The bytes; data has `size` of them, if that is enough for a head.
    pub fn to_bytes(self, size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(size.max(SPOKEN_BYTES));
        bytes.extend(MAGIC);
        bytes.extend(self.cluster.to_le_bytes());
        bytes.extend(self.from.to_le_bytes());
        bytes.extend(self.to.to_le_bytes());
        match self.body {
            Body::Data { full } => {
                bytes.push(DATA);
                bytes.push(u8::from(full));
                bytes.resize(size.max(bytes.len()), 0);
            }
            Body::Question(question) => {
                bytes.push(QUESTION);
                question.put(&mut bytes);
                bytes.resize(SPOKEN_BYTES, 0);
            }
            Body::Answer(answer) => {
                bytes.push(ANSWER);
                answer.question.put(&mut bytes);
                bytes.extend(answer.heard.to_le_bytes());
                bytes.extend(answer.told.to_le_bytes());
                for number in [
                    answer.small_arrived,
                    answer.full_arrived,
                    answer.pause_us,
                    answer.stolen_permille,
                ] {
                    bytes.extend(number.to_le_bytes());
                }
                bytes.resize(SPOKEN_BYTES, 0);
            }
        }
        bytes
    }

    /// `None` if these are not the bytes of one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader(bytes.strip_prefix(MAGIC)?);
        let (cluster, from, to) = (rest.u32()?, rest.u16()?, rest.u16()?);
        let body = match rest.byte()? {
            DATA => Body::Data {
                full: rest.byte()? != 0,
            },
            QUESTION if bytes.len() == SPOKEN_BYTES => Body::Question(Question::read(&mut rest)?),
            ANSWER if bytes.len() == SPOKEN_BYTES => Body::Answer(Answer {
                question: Question::read(&mut rest)?,
                heard: i64::from_le_bytes(rest.take()?),
                told: i64::from_le_bytes(rest.take()?),
                small_arrived: rest.u32()?,
                full_arrived: rest.u32()?,
                pause_us: rest.u32()?,
                stolen_permille: rest.u32()?,
            }),
            _ => return None,
        };
        Some(Self {
            cluster,
            from,
            to,
            body,
        })
    }
}

impl Question {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.asked.to_le_bytes());
        out.extend(self.small_sent.to_le_bytes());
        out.extend(self.full_sent.to_le_bytes());
    }

    fn read(rest: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            asked: i64::from_le_bytes(rest.take()?),
            small_sent: rest.u32()?,
            full_sent: rest.u32()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [Datagram; 4] {
        let question = Question {
            asked: -5,
            small_sent: 7,
            full_sent: u32::MAX,
        };
        let answer = Answer {
            question,
            heard: i64::MAX,
            told: i64::MIN,
            small_arrived: 1,
            full_arrived: 2,
            pause_us: 3,
            stolen_permille: 4,
        };
        [
            Body::Data { full: false },
            Body::Data { full: true },
            Body::Question(question),
            Body::Answer(answer),
        ]
        .map(|body| Datagram {
            cluster: 7,
            from: 1,
            to: 0x0203,
            body,
        })
    }

    #[test]
    fn a_datagram_comes_back_as_it_was_and_an_answer_is_no_larger_than_its_question() {
        for datagram in all() {
            let bytes = datagram.to_bytes(1472);
            assert_eq!(Datagram::from_bytes(&bytes), Some(datagram));
            let expected = match datagram.body {
                Body::Data { .. } => 1472,
                _ => SPOKEN_BYTES,
            };
            assert_eq!(bytes.len(), expected);
        }
    }

    #[test]
    fn what_is_cut_short_or_of_another_kind_is_nothing() {
        for datagram in all() {
            let bytes = datagram.to_bytes(0);
            for length in 0..bytes.len() {
                assert_eq!(Datagram::from_bytes(&bytes[..length]), None, "{length}");
            }
            let mut other = bytes.clone();
            other[HEAD - 1] = 9;
            assert_eq!(Datagram::from_bytes(&other), None);
            other[0] ^= 1;
            assert_eq!(Datagram::from_bytes(&other), None);
        }
    }
}
