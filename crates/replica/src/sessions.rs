//! Sessions: each command of a client counts once, however often it comes.
//!
//! Sessions are a part of the state: all replicas of a partition have the same, and checkpoints have them, too. And what
//! is known of a session decides whether a command counts; a command of several partitions has to count in all of them,
//! or in none. So nothing that one partition orders alone decides about the commands of another ring:
//!
//! * Sessions begin, are used, and make way by the order of the *common* ring, which all partitions have: a session is
//!   alive in all of them, or in none.
//! * The numbers that are too old are those of *each ring*, by the commands of the session that this ring has ordered:
//!   all partitions that have the ring have heard of the same.
//! * Answers, which differ from partition to partition, are let go by their size. Whether a command was applied is known
//!   without its answer.

use std::collections::BTreeMap;

use rota_multiring::Rank;

/// A client's session.
pub type ClientId = u64;
/// The number of a command in its session, from 1.
pub type Sequence = u64;

/// The number of commands of a session in a ring, the last ones, of which it is known whether they were applied: a
/// client may have as many under way there.
pub const WINDOW: u64 = u64::BITS as u64;
/// The number of sessions at once, at most; the one that was used longest ago in the common ring makes way.
pub const MOST_SESSIONS: usize = 1 << 16;
/// The bytes of all answers, at most. With more, the oldest answers make way, but for the last one.
pub const MOST_BYTES: usize = 64 << 20;

/// The bytes that an answer counts for beside its own, as it is in two trees, which take about as much: the same for
/// all replicas, since it decides which answers are kept.
const COST: usize = 64;
/// The first bytes of sessions in a checkpoint; the last one is the version of the format.
const HEAD: &[u8; 8] = b"rotases\x02";

/// The decision about a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The command is new, and to be applied.
    New,
    /// The command was applied, with this answer.
    Again(Vec<u8>),
    /// The command is older than what is remembered, or its answer is not kept: it may have been applied or not, and is
    /// not applied now.
    Forgotten,
    /// There is no such session: it was given up, or has never begun.
    Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Answer {
    /// The number of the answer, among all answers.
    age: u64,
    bytes: Vec<u8>,
}

/// The commands of a session that a ring has ordered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Window {
    /// The greatest number of a command.
    newest: Sequence,
    /// The commands that were applied: the lowest bit stands for the newest one, the next for the number before.
    applied: u64,
    answers: BTreeMap<Sequence, Answer>,
}

impl Window {
    fn is_too_old(&self, sequence: Sequence) -> bool {
        let back = self.newest.checked_sub(sequence);
        back.is_some_and(|back| back >= WINDOW)
    }

    fn has_applied(&self, sequence: Sequence) -> bool {
        let back = self.newest.checked_sub(sequence);
        back.is_some_and(|back| back < WINDOW && self.applied >> back & 1 == 1)
    }

    fn note(&mut self, sequence: Sequence) {
        if let Some(ahead) = sequence.checked_sub(self.newest) {
            let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
            self.applied = self.applied.checked_shl(ahead).unwrap_or(0);
            self.newest = sequence;
        }
        self.applied |= 1 << (self.newest - sequence).min(WINDOW - 1);
    }

    /// Takes the answers that are too old. Returns the ages of these, and their bytes.
    fn take_old(&mut self) -> Vec<(u64, usize)> {
        let oldest = self.newest.saturating_sub(WINDOW - 1);
        let mut old = Vec::new();
        while let Some(first) = self.answers.first_entry()
            && *first.key() < oldest
        {
            let answer = first.remove();
            old.push((answer.age, cost(&answer.bytes)));
        }
        old
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Session {
    /// The number of its last use, among all uses.
    used: u64,
    rings: BTreeMap<Rank, Window>,
}

impl Session {
    fn answers(&self) -> impl Iterator<Item = &Answer> {
        let rings = self.rings.values();
        rings.flat_map(|window| window.answers.values())
    }
}

const fn cost(answer: &[u8]) -> usize {
    answer.len() + COST
}

/// All sessions of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sessions {
    of: BTreeMap<ClientId, Session>,
    /// The sessions by their last use.
    by_use: BTreeMap<u64, ClientId>,
    /// The number of uses until now.
    uses: u64,
    /// The answers that are kept, by age: the client, the ring, and the number of the command.
    by_age: BTreeMap<u64, (ClientId, Rank, Sequence)>,
    /// The number of answers until now.
    given: u64,
    /// The bytes of all answers, with the cost of each.
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
            by_age: BTreeMap::new(),
            given: 0,
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

    /// Begins a session, if it has not begun, as the common ring has ordered.
    pub fn open(&mut self, client: ClientId) {
        if !self.of.contains_key(&client)
            && self.of.len() >= self.most
            && let Some((_, oldest)) = self.by_use.first_key_value()
        {
            self.close(*oldest);
        }
        self.of.entry(client).or_default();
        self.renew(client);
    }

    /// Ends a session, as the common ring has ordered.
    pub fn close(&mut self, client: ClientId) {
        let Some(session) = self.of.remove(&client) else {
            return;
        };
        self.by_use.remove(&session.used);
        for answer in session.answers() {
            self.by_age.remove(&answer.age);
            self.bytes -= cost(&answer.bytes);
        }
    }

    /// A session was used, as the common ring has ordered: those that were used before make way first.
    pub fn renew(&mut self, client: ClientId) {
        let Some(session) = self.of.get_mut(&client) else {
            return;
        };
        self.by_use.remove(&session.used);
        self.uses += 1;
        session.used = self.uses;
        self.by_use.insert(self.uses, client);
    }

    /// Decides about a command that a ring has ordered.
    pub fn begin(&self, client: ClientId, (ring, sequence): (Rank, Sequence)) -> Verdict {
        let Some(session) = self.of.get(&client) else {
            return Verdict::Unknown;
        };
        // A command that was given to another ring before is the same command all the same.
        let mut rings = session.rings.values();
        if let Some(window) = rings.find(|window| window.has_applied(sequence)) {
            let answer = window.answers.get(&sequence);
            return answer.map_or(Verdict::Forgotten, |answer| {
                Verdict::Again(answer.bytes.clone())
            });
        }
        let window = session.rings.get(&ring);
        match window.is_some_and(|window| window.is_too_old(sequence)) {
            true => Verdict::Forgotten,
            false => Verdict::New,
        }
    }

    /// Remembers a command that was applied, which was new, and the answer to it.
    pub fn answer(
        &mut self,
        client: ClientId,
        (ring, sequence): (Rank, Sequence),
        answer: Vec<u8>,
    ) {
        let Some(session) = self.of.get_mut(&client) else {
            return;
        };
        self.given += 1;
        let age = self.given;
        self.bytes += cost(&answer);
        let window = session.rings.entry(ring).or_default();
        window.note(sequence);
        let bytes = answer;
        window.answers.insert(sequence, Answer { age, bytes });
        self.by_age.insert(age, (client, ring, sequence));
        for (age, cost) in window.take_old() {
            self.by_age.remove(&age);
            self.bytes -= cost;
        }
        self.make_room();
    }

    /// Makes the oldest answers give way to others, but not the last one.
    fn make_room(&mut self) {
        while self.bytes > self.most_bytes && self.by_age.len() > 1 {
            let Some((_, (client, ring, sequence))) = self.by_age.pop_first() else {
                return;
            };
            let session = self.of.get_mut(&client);
            let window = session.and_then(|session| session.rings.get_mut(&ring));
            let answer = window.and_then(|window| window.answers.remove(&sequence));
            self.bytes -= answer.map_or(0, |answer| cost(&answer.bytes));
        }
    }

    /// The sessions as bytes, for a checkpoint: those of two replicas with the same sessions are the same.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = HEAD.to_vec();
        put(&mut out, self.uses);
        put(&mut out, self.given);
        put(&mut out, self.of.len() as u64);
        for (client, session) in &self.of {
            put(&mut out, *client);
            put(&mut out, session.used);
            put(&mut out, session.rings.len() as u64);
            for (ring, window) in &session.rings {
                put(&mut out, u64::from(ring.0));
                put_window(&mut out, window);
            }
        }
        out
    }

    /// The sessions that [`Self::encode`] has made into bytes; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = bytes.strip_prefix(HEAD)?;
        let mut sessions = Self {
            uses: take(&mut bytes)?,
            given: take(&mut bytes)?,
            ..Self::default()
        };
        let count = take(&mut bytes)?;
        for _ in 0..count {
            let client = take(&mut bytes)?;
            let session = take_session(&mut bytes)?;
            let is_new = sessions.by_use.insert(session.used, client).is_none();
            let is_sound = is_new && session.used <= sessions.uses;
            for (ring, window) in &session.rings {
                for (sequence, answer) in &window.answers {
                    let of = (client, *ring, *sequence);
                    let is_new = sessions.by_age.insert(answer.age, of).is_none();
                    sessions.bytes += cost(&answer.bytes);
                    (is_new && answer.age <= sessions.given).then_some(())?;
                }
            }
            if !is_sound || sessions.of.insert(client, session).is_some() {
                return None;
            }
        }
        bytes.is_empty().then_some(sessions)
    }
}

fn put_window(out: &mut Vec<u8>, window: &Window) {
    put(out, window.newest);
    put(out, window.applied);
    put(out, window.answers.len() as u64);
    for (sequence, answer) in &window.answers {
        put(out, *sequence);
        put(out, answer.age);
        put(out, answer.bytes.len() as u64);
        out.extend_from_slice(&answer.bytes);
    }
}

fn take_session(bytes: &mut &[u8]) -> Option<Session> {
    let used = take(bytes)?;
    let mut rings = BTreeMap::new();
    for _ in 0..take(bytes)? {
        let ring = Rank(u16::try_from(take(bytes)?).ok()?);
        let is_new = rings.insert(ring, take_window(bytes)?).is_none();
        is_new.then_some(())?;
    }
    Some(Session { used, rings })
}

fn take_window(bytes: &mut &[u8]) -> Option<Window> {
    let mut window = Window {
        newest: take(bytes)?,
        applied: take(bytes)?,
        ..Window::default()
    };
    for _ in 0..take(bytes)? {
        let (sequence, age) = (take(bytes)?, take(bytes)?);
        let length = usize::try_from(take(bytes)?).ok()?;
        let (answer, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        let bytes = answer.to_vec();
        let is_new = window.answers.insert(sequence, Answer { age, bytes });
        // Whoever has an answer has been applied.
        (is_new.is_none() && window.has_applied(sequence)).then_some(())?;
    }
    Some(window)
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
mod tests;
