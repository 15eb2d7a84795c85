//! Events of clients, as words of a story. A client has two letters, its process and its own.
//!
//! ```text
//! ax: +g              asks to join g; -g to leave it, --g is told that it left
//! ax: g@5ab/1=ax+ax   is given view 5ab/1 of g, of ax alone, as ax joined
//! ax: g@5ab/2=axbx+bx ... as bx joined; ax-bx bx left, ax~bx bx disconnected
//! ax: g@9a/1=ax:ax    ... of ax, by the network, and the set of ax; sets are separated by |
//! ax: g!5ab/2         a transition that ends view 5ab/2 of g
//! ax: ?a1             sends its process's first message to g; ?a1>g,h to g and h; ?a1~ wants no copy
//! ax: a1              is given it
//! ax: gone            disconnects
//! ax: out             is told that its process is in no view; in that it is back, in... that it has missed something
//! ```
//!
//! A message is agreed unless a letter says otherwise (`?a1s`), which counts for its deliveries, as its
//! groups do. `a1#ff` is another payload, `a1>h` other groups.

use std::collections::BTreeMap;

use rota_check::event::{Cause, ClientEvent, ClientSaw, Gid, GroupView, Post};
use rota_core::contract::MessageId;

use super::story::{conf, process, service};

/// The messages that were sent.
pub type Posts = BTreeMap<MessageId, Post>;

pub fn event(posts: &mut Posts, client: &str, word: &str) -> ClientEvent {
    ClientEvent {
        client: client.to_owned(),
        saw: saw(posts, word),
    }
}

fn saw(posts: &mut Posts, word: &str) -> ClientSaw {
    if word == "gone" {
        return ClientSaw::Disconnect;
    }
    match word {
        "out" => return ClientSaw::Excluded,
        "in" => return ClientSaw::Included { missed: false },
        "in..." => return ClientSaw::Included { missed: true },
        _ => {}
    }
    if let Some(sent) = word.strip_prefix('?') {
        let discard = sent.ends_with('~');
        let post = post(posts, sent.trim_end_matches('~'));
        posts.insert(post.message, post.clone());
        return ClientSaw::Send { post, discard };
    }
    if let Some((group, rest)) = word.split_once('@') {
        return ClientSaw::View(view(group, rest));
    }
    if let Some((group, ends)) = word.split_once('!') {
        return ClientSaw::Transition {
            group: group.to_owned(),
            gid: gid(ends),
        };
    }
    let group = word.trim_start_matches(['+', '-']).to_owned();
    match word.len() - group.len() {
        0 => ClientSaw::Deliver(post(posts, word)),
        2 => ClientSaw::SelfLeave(group),
        _ if word.starts_with('+') => ClientSaw::Join(group),
        _ => ClientSaw::Leave(group),
    }
}

fn gid(text: &str) -> Gid {
    let (name, index) = text.split_once('/').expect("an index");
    Gid {
        conf: conf(name).id,
        index: index.parse().expect("a number"),
    }
}

fn view(group: &str, text: &str) -> GroupView {
    let (id, rest) = text.split_once('=').expect("members");
    let at = rest.find(['+', '-', '~', ':']).expect("a cause");
    let cause = match &rest[at..=at] {
        "+" => Cause::Join,
        "-" => Cause::Leave,
        "~" => Cause::Disconnect,
        _ => Cause::Network,
    };
    let sets = rest[at + 1..].split('|').filter(|set| !set.is_empty());
    GroupView {
        group: group.to_owned(),
        gid: gid(id),
        cause,
        members: names(&rest[..at]),
        vs_sets: sets.map(names).collect(),
    }
}

fn names(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters
        .chunks(2)
        .map(|name| name.iter().collect())
        .collect()
}

fn post(posts: &Posts, text: &str) -> Post {
    let (text, groups) = text.split_once('>').unwrap_or((text, ""));
    let (text, hash) = text.split_once('#').unwrap_or((text, "0"));
    let number = text[1..].trim_end_matches(char::is_alphabetic);
    let message = MessageId {
        process: process(text),
        counter: number.parse().expect("a counter"),
    };
    let letter = text[1 + number.len()..].chars().next();
    let known = posts.get(&message);
    let groups = match (groups, known) {
        ("", Some(known)) => known.groups.clone(),
        ("", None) => vec!["g".to_owned()],
        (groups, _) => groups.split(',').map(str::to_owned).collect(),
    };
    Post {
        message,
        groups,
        service: service(letter)
            .or(known.map(|known| known.service))
            .unwrap_or(rota_core::contract::Service::Agreed),
        hash: u64::from_str_radix(hash, 16).expect("hexadecimal"),
    }
}
