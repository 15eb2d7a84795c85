//! `rota kv watch`: what changes of keys with a prefix, in all partitions.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rota_front::place::place_of;
use rota_kv::KvConfig;
use rota_resp::Reply;

use super::moves::addresses;
use super::status::read;
use crate::say::{complain, escaped};
use crate::service::talk::RpcConnection;
use crate::service::where_to::{line, refused};
use crate::service::who::Who;

/// The time that a process waits for changes before it answers that there are none, in milliseconds.
const WAITS: &str = "2000";
/// The time after which a process that says nothing counts as lost.
const PATIENCE: Duration = Duration::from_secs(12);
/// The pause before the next process is asked.
const PAUSE: Duration = Duration::from_millis(100);
/// The number of changes that are asked for at once.
const TOGETHER: &str = "1000";

/// Options of `rota kv watch`.
#[derive(Clone, Debug, clap::Args)]
pub struct WatchOptions {
    /// The keys that begin so; an empty one is all keys
    prefix: String,
    /// The store's file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Go on from this place, or from one of each partition, as in 1=5.1.5.0,2=7.3.7.0 [default: what comes from now on]
    #[arg(long, value_name = "PLACE", value_parser = from)]
    from: Option<Places>,
    /// Only this partition [default: all]
    #[arg(long, value_name = "PARTITION")]
    partition: Option<u16>,
    /// Stop after so many changes, or more where the last ones were made together
    #[arg(long, value_name = "CHANGES", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    who: Who,
}

/// The places to go on from.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Places {
    /// The same in all partitions.
    One(String),
    /// That of each.
    Each(BTreeMap<u16, String>),
}

fn from(text: &str) -> Result<Places, String> {
    let place = |text: &str| match place_of(text.as_bytes()) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!(
            "{text:?}: a place is four numbers with points between, or 0"
        )),
    };
    if !text.contains('=') {
        return Ok(Places::One(place(text)?));
    }
    let mut each = BTreeMap::new();
    for part in text.split(',') {
        let (of, at) = part.split_once('=').unwrap_or_default();
        let of = of.parse::<u16>();
        let of = of.map_err(|_| {
            format!("{part:?}: a partition and its place are needed, as in 1=5.1.5.0")
        })?;
        if each.insert(of, place(at)?).is_some() {
            return Err(format!("partition {of} is named twice"));
        }
    }
    Ok(Places::Each(each))
}

impl WatchOptions {
    /// The place to go on from in a partition; `$` is now.
    fn place(&self, of: u16) -> String {
        let place = match &self.from {
            Some(Places::One(place)) => Some(place),
            Some(Places::Each(each)) => each.get(&of),
            None => None,
        };
        place.map_or_else(|| "$".to_owned(), Clone::clone)
    }
}

/// Says what changes, until it is stopped.
pub fn main(options: &WatchOptions) -> ExitCode {
    let config = match read(&options.config) {
        Ok(config) => config,
        Err(error) => {
            complain(&error);
            return ExitCode::from(2);
        }
    };
    let all = config.kv.partition.iter().map(|partition| partition.id);
    let only = |of: &u16| options.partition.is_none_or(|only| only == *of);
    let partitions: Vec<u16> = all.filter(only).collect();
    if partitions.is_empty() {
        complain(&"there is no such partition");
        return ExitCode::from(2);
    }
    let (ends, ended) = mpsc::channel();
    let left = Arc::new(AtomicU64::new(options.count.unwrap_or(u64::MAX)));
    let config = Arc::new(config);
    for of in partitions {
        let (ends, config) = (ends.clone(), Arc::clone(&config));
        let mut watcher = Watcher {
            of,
            at: options.place(of),
            options: options.clone(),
            left: Arc::clone(&left),
            trimmed: BTreeSet::new(),
            has_complained: false,
        };
        thread::spawn(move || drop(ends.send(watcher.watch(&config))));
    }
    drop(ends);
    // The first that ends, ends all: the others may wait for long.
    match ended.recv() {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => refused(&error),
        Err(_) => refused("its threads have ended"),
    }
}

/// The watcher of one partition.
struct Watcher {
    of: u16,
    /// Everything up to this place was told.
    at: String,
    options: WatchOptions,
    /// The number of changes that are to be told, of all partitions.
    left: Arc<AtomicU64>,
    /// The processes that do not keep all changes behind the place.
    trimmed: BTreeSet<SocketAddr>,
    has_complained: bool,
}

/// The reason why a process is not asked any more.
enum Lost {
    /// Another process may be asked.
    Process(String),
    /// The process does not keep all changes behind the place.
    Trimmed(String),
    /// The question is wrong.
    All(String),
}

impl Watcher {
    /// Asks one process after the other, each for as long as it answers.
    fn watch(&mut self, config: &KvConfig) -> Result<(), String> {
        let all: Vec<SocketAddr> = addresses(config, Some(self.of)).collect();
        if all.is_empty() {
            let of = self.of;
            return Err(format!(
                "no process of partition {of} has a port for clients"
            ));
        }
        for address in all.iter().cycle() {
            match self.watch_at(*address) {
                Ok(()) => return Ok(()),
                Err(Lost::All(why)) => return Err(format!("partition {}: {why}", self.of)),
                // A process that has begun again keeps less than others.
                Err(Lost::Trimmed(why)) => {
                    self.trimmed.insert(*address);
                    if self.trimmed.len() == all.len() {
                        return Err(format!("partition {}: {why}", self.of));
                    }
                }
                Err(Lost::Process(why)) => {
                    if !self.has_complained {
                        complain(&format!(
                            "partition {}: {why}: another process is asked",
                            self.of
                        ));
                    }
                    self.has_complained = true;
                    thread::sleep(PAUSE);
                }
            }
        }
        Ok(())
    }

    /// Asks a process, until it is lost, or as many changes were told as are wanted.
    fn watch_at(&mut self, address: SocketAddr) -> Result<(), Lost> {
        let mut talk = self.options.who.connect(address, PATIENCE);
        loop {
            let talk = talk.as_mut().map_err(|why| Lost::Process(why.clone()))?;
            let reply = self
                .ask(talk)
                .map_err(|why| Lost::Process(format!("{address}: {why}")))?;
            let (next, places) = match reply {
                Reply::Error(why) => return Err(sorted(why)),
                reply => told(reply).ok_or_else(|| {
                    Lost::Process(format!("{address}: the answer cannot be read"))
                })?,
            };
            if self.at == "$" {
                complain(&format!("partition {}: from {next} on", self.of));
            }
            // What was told does not come again, and nothing is left out: the place counts as soon as lines are there.
            for (place, changes) in places {
                if self.left.load(SeqCst) == 0 {
                    return Ok(());
                }
                for change in &changes {
                    line(&[shown(self.of, &place, change).as_bytes()]);
                }
                self.at = place;
                let count = changes.len() as u64;
                let less = |left: u64| Some(left.saturating_sub(count));
                let _ = self.left.fetch_update(SeqCst, SeqCst, less);
            }
            self.at = next;
            self.trimmed.clear();
            self.has_complained = false;
            if self.left.load(SeqCst) == 0 {
                return Ok(());
            }
        }
    }

    fn ask(&self, talk: &mut RpcConnection) -> Result<Reply, String> {
        let of = self.of.to_string();
        let mut words = vec!["ROTA.CHANGES", &self.options.prefix, "FROM", &self.at];
        words.extend(["PARTITION", &of, "COUNT", TOGETHER]);
        // The place of now is wanted at once.
        if self.at != "$" {
            words.extend(["BLOCK", WAITS]);
        }
        let replies = talk.say(&[words]).map_err(|error| error.to_string())?;
        let reply = replies.into_iter().next();
        reply.ok_or_else(|| "no answer".to_owned())
    }
}

/// A line: partition, place, kind, and what there is more. Keys and values are what clients have made of them.
fn shown(of: u16, place: &str, change: &[Vec<u8>]) -> String {
    let mut text = format!("{of}\t{}", escaped(place));
    for part in change {
        text.push('\t');
        text.push_str(&escaped(part));
    }
    text
}

/// Whether another process may know better.
fn sorted(why: String) -> Lost {
    if why.starts_with("TRIMMED ") {
        return Lost::Trimmed(why);
    }
    let is_of_all = [
        "NOPERM ",
        "WRONGPASS ",
        "NOAUTH ",
        "ERR unknown command",
        "ERR the prefix",
    ];
    match is_of_all.iter().any(|word| why.starts_with(word)) {
        true => Lost::All(why),
        false => Lost::Process(why),
    }
}

/// The changes at a place: the words of each.
type At = (String, Vec<Vec<Vec<u8>>>);

/// The place to go on from, and the changes at each place. `None`: it is no answer to that.
fn told(reply: Reply) -> Option<(String, Vec<At>)> {
    let [_, next, places] = list(reply)?.try_into().ok()?;
    let place = |place: Reply| {
        let [place, changes] = list(place)?.try_into().ok()?;
        let changes = list(changes)?.into_iter().map(change);
        Some((text(&place)?, changes.collect::<Option<Vec<_>>>()?))
    };
    let places = list(places)?.into_iter().map(place);
    Some((text(&next)?, places.collect::<Option<Vec<_>>>()?))
}

fn list(reply: Reply) -> Option<Vec<Reply>> {
    match reply {
        Reply::Array(all) => Some(all),
        _ => None,
    }
}

fn text(reply: &Reply) -> Option<String> {
    match reply {
        Reply::Bulk(bytes) => String::from_utf8(bytes.to_vec()).ok(),
        _ => None,
    }
}

/// The words of a change. A value that is too large to be told is left out.
fn change(reply: Reply) -> Option<Vec<Vec<u8>>> {
    let word = |reply: Reply| match reply {
        Reply::Bulk(bytes) => Some(bytes.to_vec()),
        Reply::Integer(number) => Some(number.to_string().into_bytes()),
        Reply::Array(pairs) => {
            let pairs = pairs.as_chunks::<2>().0.iter();
            let pair = |pair: &[Reply; 2]| match pair {
                [Reply::Bulk(field), Reply::Bulk(value)] => {
                    Some([field, &b"="[..], value].concat())
                }
                _ => None,
            };
            Some(pairs.map(pair).collect::<Option<Vec<_>>>()?.join(&b' '))
        }
        _ => None,
    };
    let words = list(reply)?.into_iter();
    let words = words.filter(|word| *word != Reply::Null).map(word);
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_of_all_partitions_or_of_each() {
        assert_eq!(from("5.1.5.0"), Ok(Places::One("5.1.5.0".to_owned())));
        let each = [(1, "0".to_owned()), (2, "7.3.7.0".to_owned())];
        assert_eq!(from("1=0,2=7.3.7.0"), Ok(Places::Each(each.into())));
        for wrong in ["", "5", "x=0", "1=", "1=0,1=0", "1=0,", "1=0;2=0", "$"] {
            assert!(from(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_value_forges_no_line_and_no_part_of_one() {
        let change = |key: &[u8], value: &[u8]| [b"set", key, value].map(<[u8]>::to_vec);
        let forged = change(b"k\t1", b"v\n1\t9.9.9.9\tset\tk\tforged\x1b[A");
        assert_eq!(
            shown(1, "5.1.5.0", &forged),
            "1\t5.1.5.0\tset\tk\\t1\tv\\n1\\t9.9.9.9\\tset\\tk\\tforged\\x1b[A"
        );
    }

    #[test]
    fn an_answer_is_read_and_nothing_else_is_one() {
        let bulk = |text: &str| Reply::from(text);
        let set = Reply::Array(vec![bulk("set"), bulk("k"), Reply::Null]);
        let place = Reply::Array(vec![bulk("5.1.5.0"), Reply::Array(vec![set])]);
        let reply = |places| Reply::Array(vec![Reply::Integer(1), bulk("7.1.7.0"), places]);
        let words = vec![vec![b"set".to_vec(), b"k".to_vec()]];
        let expected = ("7.1.7.0".to_owned(), vec![("5.1.5.0".to_owned(), words)]);
        assert_eq!(told(reply(Reply::Array(vec![place]))), Some(expected));
        for wrong in [
            Reply::Null,
            reply(Reply::Null),
            reply(Reply::Array(vec![Reply::Null])),
        ] {
            assert_eq!(told(wrong), None);
        }
    }
}
