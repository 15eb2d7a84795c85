//! Sessions: each command of a client counts once, however often it comes.
//!
//! Sessions are a part of the state: all replicas of a partition have the same, and checkpoints have them, too. The
//! order of the commands alone decides which of them is given up when there are too many.

use std::collections::BTreeMap;

/// A client's session.
pub type ClientId = u64;
/// The number of a command in its session, from 1.
pub type Sequence = u64;

/// The number of answers of a session that are kept: a client may have as many commands under way.
pub const WINDOW: u64 = 64;
/// The number of sessions at once, at most; the one that was used longest ago makes way.
pub const MOST_SESSIONS: usize = 1 << 16;
/// The bytes of all answers, at most. With more, sessions that were used longest ago make way, and a session that has
/// as much alone forgets its oldest answers.
pub const MOST_BYTES: usize = 64 << 20;

/// The memory of an answer beside its own bytes, about.
const COST: usize = 64;

/// The decision about a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The command is new, and to be applied.
    New,
    /// The command was applied, with this answer.
    Again(Vec<u8>),
    /// The command is older than the answers that are remembered: it may have been applied or not, and is not applied
    /// now.
    Forgotten,
    /// There is no such session: it was given up, or has never begun.
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Session {
    /// The number of its last use, among all uses.
    used: u64,
    /// Answers up to this one are not remembered.
    forgotten: Sequence,
    answers: BTreeMap<Sequence, Vec<u8>>,
    /// The bytes of the answers, with the cost of each.
    bytes: usize,
}

impl Session {
    /// Forgets the oldest answer.
    fn forget_one(&mut self) {
        if let Some((sequence, answer)) = self.answers.pop_first() {
            self.forgotten = self.forgotten.max(sequence);
            self.bytes -= answer.len() + COST;
        }
    }
}

/// All sessions of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sessions {
    of: BTreeMap<ClientId, Session>,
    /// The sessions by their last use.
    by_use: BTreeMap<u64, ClientId>,
    /// The number of uses until now.
    uses: u64,
    /// The bytes of all answers.
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

impl Default for Sessions {
    fn default() -> Self {
        Self::with_room(MOST_SESSIONS, MOST_BYTES)
    }
}

impl Sessions {
    /// No session yet, and room for this number of them, and for answers of this many bytes.
    pub const fn with_room(most: usize, most_bytes: usize) -> Self {
        Self {
            of: BTreeMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            bytes: 0,
            most,
            most_bytes,
        }
    }

    /// The number of sessions.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// The memory of all answers that sessions keep, in bytes, about.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether there is no session.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Begins a session, if it has not begun.
    pub fn open(&mut self, client: ClientId) {
        if !self.of.contains_key(&client)
            && self.of.len() >= self.most
            && let Some((_, oldest)) = self.by_use.first_key_value()
        {
            self.close(*oldest);
        }
        self.of.entry(client).or_default();
        self.touch(client);
    }

    /// Ends a session.
    pub fn close(&mut self, client: ClientId) {
        if let Some(session) = self.of.remove(&client) {
            self.by_use.remove(&session.used);
            self.bytes -= session.bytes;
        }
    }

    fn touch(&mut self, client: ClientId) {
        let Some(session) = self.of.get_mut(&client) else {
            return;
        };
        self.by_use.remove(&session.used);
        self.uses += 1;
        session.used = self.uses;
        self.by_use.insert(self.uses, client);
    }

    /// Decides about a command that was delivered.
    pub fn begin(&mut self, client: ClientId, sequence: Sequence) -> Verdict {
        self.touch(client);
        let Some(session) = self.of.get(&client) else {
            return Verdict::Unknown;
        };
        match session.answers.get(&sequence) {
            Some(answer) => Verdict::Again(answer.clone()),
            None if sequence <= session.forgotten => Verdict::Forgotten,
            None => Verdict::New,
        }
    }

    /// Remembers the answer to a command that was applied.
    pub fn answer(&mut self, client: ClientId, sequence: Sequence, answer: Vec<u8>) {
        let Some(session) = self.of.get_mut(&client) else {
            return;
        };
        let before = session.bytes;
        session.bytes += answer.len() + COST;
        let old = session.answers.insert(sequence, answer);
        session.bytes -= old.map_or(0, |old| old.len() + COST);
        let newest = session.answers.last_key_value();
        let newest = newest.map_or(0, |(newest, _)| *newest);
        let forgotten = newest.saturating_sub(WINDOW);
        session.forgotten = session.forgotten.max(forgotten);
        while session
            .answers
            .first_key_value()
            .is_some_and(|(first, _)| *first <= forgotten)
        {
            session.forget_one();
        }
        self.bytes = self.bytes + session.bytes - before;
        self.make_room(client);
    }

    /// Makes answers give way to others, but not the last one of this client.
    fn make_room(&mut self, client: ClientId) {
        while self.bytes > self.most_bytes {
            let oldest = self.by_use.first_key_value().map(|(_, oldest)| *oldest);
            if let Some(oldest) = oldest.filter(|oldest| *oldest != client) {
                self.close(oldest);
                continue;
            }
            let Some(session) = self.of.get_mut(&client) else {
                return;
            };
            if session.answers.len() < 2 {
                return;
            }
            let before = session.bytes;
            session.forget_one();
            self.bytes = self.bytes + session.bytes - before;
        }
    }

    /// The sessions as bytes, for a checkpoint: those of two replicas with the same sessions are the same.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.uses);
        put(&mut out, self.of.len() as u64);
        for (client, session) in &self.of {
            put(&mut out, *client);
            put(&mut out, session.used);
            put(&mut out, session.forgotten);
            put(&mut out, session.answers.len() as u64);
            for (sequence, answer) in &session.answers {
                put(&mut out, *sequence);
                put(&mut out, answer.len() as u64);
                out.extend_from_slice(answer);
            }
        }
        out
    }

    /// The sessions that [`Self::encode`] has made into bytes; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = bytes;
        let mut sessions = Self {
            uses: take(&mut bytes)?,
            ..Self::default()
        };
        let count = take(&mut bytes)?;
        for _ in 0..count {
            let client = take(&mut bytes)?;
            let mut session = Session {
                used: take(&mut bytes)?,
                forgotten: take(&mut bytes)?,
                ..Session::default()
            };
            for _ in 0..take(&mut bytes)? {
                let sequence = take(&mut bytes)?;
                let length = usize::try_from(take(&mut bytes)?).ok()?;
                let (answer, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                session.bytes += length + COST;
                session.answers.insert(sequence, answer.to_vec());
            }
            sessions.bytes += session.bytes;
            let is_new = sessions.by_use.insert(session.used, client).is_none();
            let is_sound = is_new && session.used <= sessions.uses;
            if !is_sound || sessions.of.insert(client, session).is_some() {
                return None;
            }
        }
        bytes.is_empty().then_some(sessions)
    }
}

fn put(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(sessions: &mut Sessions, client: ClientId, sequence: Sequence) -> Verdict {
        let verdict = sessions.begin(client, sequence);
        if verdict == Verdict::New {
            sessions.answer(client, sequence, vec![sequence as u8]);
        }
        verdict
    }

    #[test]
    fn a_command_counts_once() {
        let mut sessions = Sessions::default();
        assert_eq!(apply(&mut sessions, 7, 1), Verdict::Unknown);
        sessions.open(7);
        assert_eq!(apply(&mut sessions, 7, 1), Verdict::New);
        assert_eq!(apply(&mut sessions, 7, 3), Verdict::New);
        assert_eq!(apply(&mut sessions, 7, 1), Verdict::Again(vec![1]));
        assert_eq!(
            apply(&mut sessions, 7, 2),
            Verdict::New,
            "another ring was slower"
        );
        sessions.open(7);
        assert_eq!(apply(&mut sessions, 7, 3), Verdict::Again(vec![3]));
        for sequence in 4..=3 + WINDOW {
            assert_eq!(apply(&mut sessions, 7, sequence), Verdict::New);
        }
        assert_eq!(apply(&mut sessions, 7, 3), Verdict::Forgotten);
        assert_eq!(apply(&mut sessions, 7, 4), Verdict::Again(vec![4]));
        sessions.close(7);
        assert_eq!(apply(&mut sessions, 7, 4), Verdict::Unknown);
        assert!(sessions.is_empty());
    }

    #[test]
    fn who_was_used_longest_ago_makes_way() {
        let mut sessions = Sessions::with_room(3, MOST_BYTES);
        (1..=3).for_each(|client| sessions.open(client));
        assert_eq!(apply(&mut sessions, 1, 1), Verdict::New);
        sessions.open(4);
        assert_eq!(apply(&mut sessions, 2, 1), Verdict::Unknown);
        assert_eq!(apply(&mut sessions, 1, 1), Verdict::Again(vec![1]));
        assert_eq!(sessions.len(), 3);
    }

    /// The replicas forget the same answers, also where one begins with a checkpoint: it follows from the answers
    /// alone.
    #[test]
    fn answers_make_way_for_others_by_their_size() {
        let mut sessions = Sessions::with_room(10, 300);
        (1..=3).for_each(|client| sessions.open(client));
        let mut answer = |client, sequence, length| {
            assert_eq!(sessions.begin(client, sequence), Verdict::New);
            sessions.answer(client, sequence, vec![0; length]);
            let known: usize = sessions.of.values().map(|session| session.bytes).sum();
            assert_eq!(known, sessions.bytes);
            let mut clients: Vec<_> = sessions.of.keys().copied().collect();
            clients.sort_unstable();
            (clients, sessions.bytes)
        };
        assert_eq!(answer(1, 1, 40), (vec![1, 2, 3], 40 + COST));
        assert_eq!(answer(2, 1, 40), (vec![1, 2, 3], 80 + 2 * COST));
        // The third session was used longest ago, and has nothing; the first comes then.
        assert_eq!(answer(2, 2, 30), (vec![2], 70 + 2 * COST));
        assert_eq!(answer(2, 3, 90), (vec![2], 120 + 2 * COST));
        assert_eq!(answer(2, 4, 200), (vec![2], 200 + COST));
        assert_eq!(sessions.begin(2, 3), Verdict::Forgotten);
        assert_eq!(sessions.begin(2, 4), Verdict::Again(vec![0; 200]));
        let kept = Sessions::decode(&sessions.encode()).expect("sessions");
        assert_eq!((kept.bytes, kept.of), (sessions.bytes, sessions.of));
    }

    #[test]
    fn a_checkpoint_has_them_and_nothing_else_is_taken_for_them() {
        let mut sessions = Sessions::default();
        for client in [9, 2, 5] {
            sessions.open(client);
            (1..=70).for_each(|sequence| {
                apply(&mut sessions, client, sequence * client);
            });
        }
        let bytes = sessions.encode();
        assert_eq!(Sessions::decode(&bytes), Some(sessions));
        for at in 0..bytes.len() {
            assert_eq!(Sessions::decode(&bytes[..at]), None, "{at}");
        }
        assert_eq!(Sessions::decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(Sessions::decode(&[0xff; 64]), None);
    }
}
