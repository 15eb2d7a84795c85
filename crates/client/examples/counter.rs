//! A replicated counter: `cargo run --example counter -- SOCKET`, several times.
//!
//! Each copy adds one now and then. Additions come in one order, so all copies show the same values. A new copy asks
//! for the value: the others answer with the value at the place of the question, and the new copy adds all later
//! additions itself. When sides of a split meet, the side of the first member is right, and the others ask again.

use std::error::Error;
use std::time::{Duration, Instant};

use rota_client::{Cause, Client, Envelope, Event, Message, PrivateName, View};

const GROUP: &str = "counter";
const ADD: u16 = 1;
const ASK: u16 = 2;
const VALUE: u16 = 3;

struct Copy {
    client: Client,
    me: PrivateName,
    /// Nothing until somebody has told it.
    value: Option<i64>,
    /// The newest question, and what was added since its place in the order.
    asked: i64,
    since: Option<i64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let socket = std::env::args().nth(1).ok_or("usage: counter SOCKET")?;
    let mut client = Client::builder().membership(true).connect(socket)?;
    client.join(GROUP)?;
    let me = client.name();
    let (value, asked, since) = (None, 0, None);
    let mut copy = Copy {
        client,
        me,
        value,
        asked,
        since,
    };
    let mut next = Instant::now();
    loop {
        let wait = next.saturating_duration_since(Instant::now());
        match copy.client.recv_timeout(wait)? {
            Some(Event::View(view)) => copy.on_view(&view)?,
            Some(Event::Message(message)) => copy.on_message(&message)?,
            Some(_) => {}
            None => {
                next += Duration::from_millis(500);
                copy.tell(Envelope::to(GROUP)?.kind(ADD), &[1])?;
            }
        }
    }
}

impl Copy {
    fn on_view(&mut self, view: &View) -> Result<(), Box<dyn Error>> {
        let is_new = match &view.cause {
            Cause::Join(new) => *new == self.me,
            Cause::Network(_) => !view.came_with_me().contains(&&view.members[0]),
            _ => false,
        };
        if is_new && view.members.len() == 1 {
            self.value = Some(0);
        } else if is_new {
            (self.value, self.since) = (None, None);
            self.asked += 1;
            self.tell(Envelope::to(GROUP)?.kind(ASK), &[self.asked])?;
        }
        Ok(())
    }

    fn on_message(&mut self, message: &Message) -> Result<(), Box<dyn Error>> {
        let numbers: Vec<i64> = message.payload.chunks_exact(8).map(number).collect();
        match (message.kind, &numbers[..]) {
            (ADD, [add]) => {
                self.since = self.since.map(|since| since + add);
                self.value = self.value.map(|value| value + add);
                println!("{:?}", self.value);
            }
            (ASK, [asked]) if message.sender == self.me && *asked == self.asked => {
                self.since = Some(0);
            }
            (ASK, [asked]) => {
                if let Some(value) = self.value {
                    self.tell(Envelope::from(message.sender).kind(VALUE), &[*asked, value])?;
                }
            }
            (VALUE, [asked, value]) if *asked == self.asked && self.value.is_none() => {
                self.value = self.since.map(|since| value + since);
            }
            _ => {}
        }
        Ok(())
    }

    fn tell(&mut self, to: Envelope, numbers: &[i64]) -> Result<(), Box<dyn Error>> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        Ok(self.client.send(to, &bytes)?)
    }
}

fn number(bytes: &[u8]) -> i64 {
    bytes.try_into().map_or(0, i64::from_le_bytes)
}
