//! The election of a leader: `cargo run --example leader -- SOCKET [GROUP]`, several times.
//!
//! The first member of the view leads. Views are the same for all members and come at the same place of
//! the order, so all agree without a message. When the network splits, each side has a leader of its own.

use std::error::Error;

use rota_client::{Client, Event};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let socket = arguments.next().ok_or("usage: leader SOCKET [GROUP]")?;
    let group = arguments.next().unwrap_or_else(|| "leader".to_owned());
    let mut client = Client::builder().membership(true).connect(socket)?;
    client.join(&group)?;
    loop {
        if let Event::View(view) = client.recv()? {
            let leader = view.members[0];
            if leader == client.name() {
                println!("view {}: I lead {}", view.id, view.members.len());
            } else {
                println!("view {}: {leader} leads {}", view.id, view.members.len());
            }
        }
    }
}
