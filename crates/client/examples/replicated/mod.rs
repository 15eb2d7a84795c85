//! A state machine that the members of a group have in common: what `store`, `lock` and `matching` are made of. Copies in
//! other languages, in `python/examples`, `clients/go/examples` and `clients/java/examples`, do the same and meet these.
//!
//! Commands are messages of the group, in the one order, *safe*: what one member has been told of, all have. They count only in
//! views with a majority of the copies, so that no two sides of a split go on. In each view the members first agree on a
//! state: each offers what it has, and where offers differ, the newest is sent to all ([`Copy::offered`]).
//!
//! A command has a session and a number, and counts once. What was sent before a connection was lost, is unsure: the state that
//! is agreed on tells which commands count, and the others are sent again.
//!
//! A journal on disk has a checkpoint and the commands behind it: a copy that starts again reads that first. It survives the end of
//! the process; what survives a loss of power is the checkpoint.

#[allow(clippy::duplicate_mod, reason = "a test has all three examples")]
mod journal;
#[allow(clippy::duplicate_mod, reason = "a test has all three examples")]
mod state;

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::io::stdin;
use std::path::PathBuf;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::{Duration, SystemTime};

use rota_client::{
    Backoff, Client, ConnectError, Envelope, Event, Message, Reconnecting, Service, View,
};

use journal::Journal;
use state::State;

const COMMAND: u16 = 1;
const OFFER: u16 = 2;
const STATE: u16 = 3;

/// The time for which a step waits for an event.
const TURN: Duration = Duration::from_millis(10);

/// How often a copy tries to connect when it starts, and the pause between two attempts.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// What the copies have in common.
pub trait Machine: Default {
    /// Does a command of this member, the same at each copy; the answer.
    fn apply(&mut self, sender: &str, command: &str) -> String;
    /// These are the members from here on.
    fn members(&mut self, members: &[String]);
    /// The whole state, as text.
    fn write(&self) -> String;
    /// The opposite.
    fn read(&mut self, text: &str);
    /// What there is to say to the owner of this copy, which is this member.
    fn look(&mut self, me: &str, standing: Standing) -> Option<String>;
    /// A command that the machine itself gives, once, behind what it has said.
    fn reaction(&mut self) -> Option<String> {
        None
    }
}

/// How much a copy knows of what counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// What counts here counts for good.
    Sure,
    /// The members are about to agree.
    Waiting,
    /// There is no connection, or no majority: others may go on.
    Apart,
}

/// What a member has, as it offers it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Offer {
    epoch: u64,
    count: u64,
    digest: String,
}

/// One copy.
pub struct Copy<M> {
    client: Reconnecting,
    me: String,
    group: String,
    majority: usize,
    state: State<M>,
    session: String,
    newest: u64,
    /// Own commands that are not known to count.
    pending: VecDeque<(u64, String)>,
    view: Option<View>,
    /// No signal has said that the view ends.
    regular: bool,
    /// The members of the view have agreed on a state.
    agreed: bool,
    offers: BTreeMap<String, Offer>,
    /// Commands behind the view, until there is a state for them.
    early: Vec<(String, String)>,
    journal: Journal,
}

impl<M: Machine> Copy<M> {
    /// Connects, with what the journal has.
    pub fn start(arguments: &[String]) -> Result<Self, Box<dyn Error>> {
        let [address, name, group, copies, journal] = arguments else {
            return Err("usage: ADDRESS NAME GROUP COPIES JOURNAL".into());
        };
        let mut client = connect(address, name)?;
        let me = client.client().ok_or("no connection")?.name().to_string();
        let since = SystemTime::UNIX_EPOCH.elapsed()?.as_nanos();
        let mut copy = Self {
            client,
            session: format!("{me}/{since:x}.{}", std::process::id()),
            me,
            group: group.clone(),
            majority: copies.parse::<usize>()? / 2 + 1,
            state: State::new(),
            newest: 0,
            pending: VecDeque::new(),
            view: None,
            regular: false,
            agreed: false,
            offers: BTreeMap::new(),
            early: Vec::new(),
            journal: Journal::at(PathBuf::from(journal)),
        };
        if let Some(found) = copy.journal.read()? {
            copy.state.read(&found.snapshot).ok_or("not a state")?;
            for line in found.commands {
                let (sender, command) = line.split_once(' ').ok_or("not a journal")?;
                copy.state.apply(sender, command);
            }
            println!("replayed {}", copy.state.count);
        }
        copy.client.join(group)?;
        Ok(copy)
    }

    /// Gives a command; its answer comes when it counts.
    pub fn command(&mut self, text: &str) {
        self.newest += 1;
        self.pending.push_back((self.newest, text.to_owned()));
        self.send_command(self.newest, text);
    }

    fn send_command(&mut self, number: u64, text: &str) {
        let bytes = format!("{} {number} {text}", self.session);
        self.send(COMMAND, bytes.as_bytes());
    }

    fn send(&mut self, kind: u16, bytes: &[u8]) {
        if let Ok(envelope) = Envelope::to(&self.group) {
            // Where the connection is lost, the next view makes good for it.
            let _ = self
                .client
                .send(envelope.service(Service::Safe).kind(kind), bytes);
        }
    }

    fn has_majority(&self) -> bool {
        let view = self.view.as_ref();
        view.is_some_and(|view| view.members.len() >= self.majority)
    }

    /// What counts here counts for good.
    fn is_sure(&self) -> bool {
        self.agreed && self.regular && self.has_majority()
    }

    /// Takes the next event, if there is one soon.
    fn step(&mut self) -> Result<(), Box<dyn Error>> {
        match self.client.recv_timeout(TURN)? {
            Some(Event::View(view)) => self.on_view(*view),
            Some(Event::Transitional { .. }) => self.regular = false,
            Some(Event::Message(message)) => self.on_message(&message)?,
            Some(Event::Reconnected(gap)) => {
                println!("reconnected {} bytes unsure", gap.unsettled_bytes);
                self.me = gap.name.to_string();
                (self.view, self.agreed) = (None, false);
            }
            // While there is no connection nothing is sure.
            None if self.client.client().is_none() => (self.view, self.agreed) = (None, false),
            _ => {}
        }
        let standing = match (self.is_sure(), self.has_majority()) {
            (true, _) => Standing::Sure,
            (false, true) => Standing::Waiting,
            (false, false) => Standing::Apart,
        };
        if let Some(news) = self.state.machine.look(&self.me, standing) {
            println!("{news}");
        }
        if let Some(command) = self.state.machine.reaction() {
            self.command(&command);
        }
        Ok(())
    }

    fn on_view(&mut self, view: View) {
        let state = &self.state;
        let (epoch, count, digest) = (state.epoch, state.count, state.digest());
        let offer = format!("{} {epoch} {count} {digest}", view.id);
        self.view = Some(view);
        (self.regular, self.agreed) = (true, false);
        self.offers.clear();
        self.early.clear();
        self.send(OFFER, offer.as_bytes());
    }

    fn on_message(&mut self, message: &Message) -> Result<(), Box<dyn Error>> {
        let text = str::from_utf8(&message.payload)?;
        let sender = message.sender.to_string();
        let (first, rest) = text.split_once([' ', '\n']).unwrap_or((text, ""));
        let is_of_view = self
            .view
            .as_ref()
            .is_some_and(|view| view.id.to_string() == first);
        match message.kind {
            COMMAND if self.agreed => self.on_command(&sender, text),
            COMMAND => self.early.push((sender, text.to_owned())),
            OFFER if is_of_view && !self.agreed => self.offered(sender, rest)?,
            STATE if is_of_view && !self.agreed => {
                self.state.read(rest).ok_or("not a state")?;
                self.agree()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// When all members have offered, either all have the same, or the one with the newest sends it to all. Nothing counts
    /// before that has come: who is told that a command counts, knows that all have what it builds on.
    fn offered(&mut self, sender: String, offer: &str) -> Result<(), Box<dyn Error>> {
        let words: Vec<&str> = offer.split(' ').collect();
        let [epoch, count, digest] = words[..] else {
            return Err("not an offer".into());
        };
        let offer = Offer {
            epoch: epoch.parse()?,
            count: count.parse()?,
            digest: digest.to_owned(),
        };
        self.offers.insert(sender, offer);
        let Some(view) = &self.view else {
            return Ok(());
        };
        if !view
            .members
            .iter()
            .all(|member| self.offers.contains_key(&member.to_string()))
        {
            return Ok(());
        }
        let offers = self.offers.iter();
        let newest = offers.max_by_key(|(member, offer)| (offer.epoch, offer.count, *member));
        let (member, newest) = newest.ok_or("a view without members")?;
        if self
            .offers
            .values()
            .all(|offer| offer.digest == newest.digest)
        {
            self.agree()?;
        } else if *member == self.me {
            let state = format!("{}\n{}", view.id, self.state.write());
            self.send(STATE, state.as_bytes());
        }
        Ok(())
    }

    fn agree(&mut self) -> Result<(), Box<dyn Error>> {
        self.agreed = true;
        if self.has_majority()
            && let Some(view) = &self.view
        {
            let ring = view.id.next.unwrap_or(view.id.ring);
            self.state.epoch += ring.ring_seq;
            let members: Vec<String> = view.members.iter().map(ToString::to_string).collect();
            println!("agreed {} of {}", self.state.count, members.len());
            self.state.machine.members(&members);
        }
        self.journal.checkpoint(&self.state.write())?;
        for (sender, text) in std::mem::take(&mut self.early) {
            self.on_command(&sender, &text);
        }
        self.send_again();
        Ok(())
    }

    /// The agreed state tells which own commands count; the others are sent again, in their order.
    fn send_again(&mut self) {
        let last = self.state.last(&self.session);
        if self.is_sure() {
            while self
                .pending
                .front()
                .is_some_and(|(number, _)| *number <= last)
            {
                let known = self.pending.pop_front();
                known
                    .into_iter()
                    .for_each(|(number, _)| println!("ok {number}"));
            }
        }
        for (number, text) in self.pending.clone() {
            if number > last {
                self.send_command(number, &text);
            }
        }
    }

    fn on_command(&mut self, sender: &str, text: &str) {
        // Nobody is told that a command counts which comes where there is no majority: its owner sends it again.
        if !self.has_majority() {
            return;
        }
        let Some((number, answer)) = self.state.apply(sender, text) else {
            return;
        };
        self.journal.append(&format!("{sender} {text}"));
        if self.journal.is_long() {
            // The commands are there: a checkpoint only makes reading them shorter.
            let _ = self.journal.checkpoint(&self.state.write());
        }
        let is_own = text.split(' ').next() == Some(&*self.session);
        if is_own && self.is_sure() && self.pending.front().is_some_and(|(own, _)| *own == number) {
            self.pending.pop_front();
            println!("ok {number} {answer}");
        }
    }

    fn dump(&self) {
        println!(
            "state {} {} {}",
            self.state.count,
            self.state.digest(),
            if self.is_sure() { "sure" } else { "unsure" }
        );
    }
}

/// A daemon may take a while to notice that an earlier copy of the same name has gone.
fn connect(address: &str, name: &str) -> Result<Reconnecting, ConnectError> {
    let builder = Client::builder().name(name).membership(true);
    let mut attempts = 0;
    loop {
        match Reconnecting::connect(address, builder.clone(), Backoff::default()) {
            Err(error) if error.may_pass() && attempts < ATTEMPTS => attempts += 1,
            connected => return connected,
        }
        thread::sleep(PAUSE);
    }
}

/// Runs a copy: lines of the input are commands, and `dump` shows what state it is in. At the end of the input it waits until all its
/// commands count, and closes.
pub fn run<M: Machine>(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let mut copy = Copy::<M>::start(arguments)?;
    let (tell, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in stdin().lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    loop {
        copy.step()?;
        match lines.try_recv() {
            Ok(line) if line == "dump" => copy.dump(),
            Ok(line) => copy.command(&line),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) if copy.pending.is_empty() => break,
            Err(TryRecvError::Disconnected) => {}
        }
    }
    copy.client.close()?;
    Ok(())
}
