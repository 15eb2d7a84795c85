//! A room for people: `cargo run --example chat -- SOCKET NAME ROOM`, once for each of them.
//!
//! Two threads, two halves: one reads lines, the other shows events. All members see the same lines in the same order,
//! with each arrival and departure at the same place between them.

use std::error::Error;
use std::io::stdin;
use std::thread;

use rota_client::{Cause, Client, Event, Receiver};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, name, room] = &arguments[..] else {
        return Err("usage: chat SOCKET NAME ROOM".into());
    };
    let client = Client::builder().name(name).membership(true);
    let (mut sender, receiver) = client.connect(&**socket)?.split();
    let shown = thread::spawn(move || show(receiver));
    sender.join(room)?;
    for line in stdin().lines() {
        sender.send(&**room, line?.as_bytes())?;
    }
    // The room tells us that we have left when all our lines have been said.
    sender.leave(room)?;
    sender.close()?;
    shown.join().map_err(|_| "the other half failed".into())
}

fn show(mut receiver: Receiver) {
    loop {
        match receiver.recv() {
            Ok(Event::Message(message)) => {
                let text = String::from_utf8_lossy(&message.payload);
                println!("{}: {text}", message.sender.client);
            }
            Ok(Event::View(view)) => {
                let what = match &view.cause {
                    Cause::Join(who) => format!("{who} is here"),
                    Cause::Leave(who) => format!("{who} has left"),
                    Cause::Disconnect(who) => format!("{who} is gone"),
                    Cause::Network(sets) => format!("the network: {} sides", sets.len()),
                };
                println!("* {what}; now {:?}", view.members);
            }
            Ok(_) => {}
            Err(lost) => return println!("* {lost}"),
        }
    }
}
