//! Native clients, as the tests use them.

use std::time::{Duration, Instant};

use rota_client::{Builder, Client, ConnectionLost, Event, Message, PrivateName, View};

use crate::cluster::Cluster;

/// Nothing in these tests takes longer, unless it hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What clients of the tests are built with.
pub fn builder(name: &str) -> Builder {
    Client::builder().name(name).timeout(PATIENCE)
}

/// A client of daemon `id`, without membership.
pub fn client(cluster: &Cluster, id: u16, name: &str) -> Client {
    let client = builder(name).connect(cluster.socket(id));
    client.expect("the daemon lets it in")
}

/// A client of daemon `id`, with membership.
pub fn member(cluster: &Cluster, id: u16, name: &str) -> Client {
    let client = builder(name).membership(true).connect(cluster.socket(id));
    client.expect("the daemon lets it in")
}

/// The next event, in time.
pub fn next(client: &mut Client) -> Event {
    let event = client.recv_timeout(PATIENCE);
    event.expect("it is connected").expect("it comes in time")
}

/// The next event, which is a message.
pub fn next_message(client: &mut Client) -> Message {
    match next(client) {
        Event::Message(message) => message,
        other => panic!("{other:?} is no message"),
    }
}

/// The next message, as text.
pub fn next_text(client: &mut Client) -> String {
    String::from_utf8_lossy(&next_message(client).payload).into_owned()
}

/// The next event, which is a view.
pub fn next_view(client: &mut Client) -> View {
    match next(client) {
        Event::View(view) => *view,
        other => panic!("{other:?} is no view"),
    }
}

/// How the connection of a client ends, whatever comes before.
pub fn end_of(client: &mut Client) -> ConnectionLost {
    let until = Instant::now() + PATIENCE;
    loop {
        match client.recv_timeout(PATIENCE) {
            Ok(Some(_)) if Instant::now() < until => {}
            Ok(_) => panic!("it is still connected"),
            Err(lost) => return lost,
        }
    }
}

/// Names as text.
pub fn names<'a>(members: impl IntoIterator<Item = &'a PrivateName>) -> Vec<String> {
    members.into_iter().map(ToString::to_string).collect()
}

/// Waits until these daemons, and no others, are of one configuration.
pub fn meet(cluster: &Cluster, daemons: &[u16]) {
    let mut clients: Vec<Client> = daemons
        .iter()
        .map(|id| {
            let mut client = member(cluster, *id, "early");
            client.join("meet").expect("it joins");
            client
        })
        .collect();
    let all = |event| matches!(event, Event::View(view) if view.members.len() == daemons.len());
    for client in &mut clients {
        while !all(next(client)) {}
    }
    for client in clients {
        client.close().expect("the daemon closes");
    }
}
