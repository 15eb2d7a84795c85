//! A client in bytes, written out by hand: nothing here uses the code under test to make them.

use std::sync::Arc;

use rota_daemon::spread::{
    ByteOrder, Event, GroupName, Name, PrivateName, Request, Session, SessionError, Settings,
};

pub const AGREED: u32 = 0x10;
pub const SAFE: u32 = 0x20;
pub const JOIN: u32 = 0x1_0000;
pub const LEAVE: u32 = 0x2_0000;
pub const DISCONNECT: u32 = 0x4_0000;

/// The greeting of library 5.0.1 with membership, and this name.
pub fn hello(name: &str) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("a short name");
    [&[5, 0, 1, 1, length], name.as_bytes()].concat()
}

/// The choice of methods, each in its 30 bytes.
pub fn choice(methods: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0; 90];
    for (slot, method) in bytes.chunks_mut(30).zip(methods) {
        slot[..method.len()].copy_from_slice(method.as_bytes());
    }
    bytes
}

pub fn slot(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(32, 0);
    bytes
}

pub fn word(order: ByteOrder, value: u32) -> [u8; 4] {
    match order {
        ByteOrder::Little => value.to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    }
}

pub fn marked(order: ByteOrder, value: u32) -> [u8; 4] {
    match order {
        ByteOrder::Little => (value | 0x8000_0080).to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    }
}

/// A message as a client of this order writes it.
#[derive(Clone, Debug)]
pub struct Frame {
    pub order: ByteOrder,
    pub bits: u32,
    pub sender: String,
    pub groups: Vec<String>,
    pub mess_type: u16,
    pub data: Vec<u8>,
}

impl Frame {
    pub fn new(order: ByteOrder, bits: u32, groups: &[&str], data: &[u8]) -> Self {
        Self {
            order,
            bits,
            sender: "#alice#n1".to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            mess_type: 0x1234,
            data: data.to_vec(),
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let (order, groups, data) = (self.order, self.groups.len(), self.data.len());
        let mut bytes = self.header(groups as u32, data as u32);
        for group in &self.groups {
            bytes.extend(slot(group));
        }
        assert_eq!(bytes.len(), 48 + 32 * groups);
        bytes.extend_from_slice(&self.data);
        assert!(matches!(order, ByteOrder::Little | ByteOrder::Big));
        bytes
    }

    /// The header alone, claiming what it likes.
    pub fn header(&self, groups: u32, data: u32) -> Vec<u8> {
        let mut bytes = marked(self.order, self.bits).to_vec();
        bytes.extend(slot(&self.sender));
        bytes.extend(word(self.order, groups));
        bytes.extend(marked(self.order, u32::from(self.mess_type) << 8));
        bytes.extend(word(self.order, data));
        bytes
    }
}

pub const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

pub fn settings(order: ByteOrder) -> Arc<Settings> {
    let settings = Settings::new(b"n1").expect("a legal name");
    Arc::new(settings.order(order))
}

pub fn new_session() -> Session {
    Session::new(settings(ByteOrder::Little))
}

/// A session of `#alice#n1` that is open, and has nothing left to send.
pub fn open(order: ByteOrder) -> Session {
    open_as(order, "alice", true)
}

pub fn open_as(order: ByteOrder, name: &str, membership: bool) -> Session {
    let mut session = Session::new(settings(order));
    let mut bytes = hello(name);
    bytes[3] = u8::from(membership);
    bytes.extend(choice(&["NULL"]));
    let event = session.pull(&mut &bytes[..]).expect("a good greeting");
    assert!(matches!(event, Some(Event::Connect(_))), "{event:?}");
    session.accept(private(name)).expect("it waits for this");
    written(&mut session);
    session
}

/// Everything there is to send, taken as a socket would.
pub fn written(session: &mut Session) -> Vec<u8> {
    let bytes = session.chunks().flatten().copied().collect();
    session.sent(session.backlog());
    bytes
}

/// All events in these bytes.
pub fn pull_all(session: &mut Session, mut bytes: &[u8]) -> Result<Vec<Event>, SessionError> {
    let mut events = Vec::new();
    while let Some(event) = session.pull(&mut bytes)? {
        events.push(event);
    }
    Ok(events)
}

/// The one request in these bytes.
pub fn request_in(bytes: &[u8]) -> Result<Request, SessionError> {
    let mut events = pull_all(&mut open(ByteOrder::Little), bytes)?;
    match (events.pop(), events.as_slice()) {
        (Some(Event::Request(request)), []) => Ok(request),
        other => panic!("not one request: {other:?}"),
    }
}

pub fn private(name: &str) -> PrivateName {
    PrivateName::new(name.as_bytes()).expect("a legal name")
}

pub fn group(name: &str) -> GroupName {
    GroupName::new(name.as_bytes()).expect("a legal name")
}

pub fn name(name: &str) -> Name {
    Name::new(name.as_bytes()).expect("a legal name")
}
