//! `rota kv get`, `put`, `del`, `scan`, `batch`.

use std::io::{self, BufRead as _};
use std::process::ExitCode;

use rota_resp::{Reply, inline};

use crate::say::{complain, print};
use crate::service::where_to::{Where, line, refused};

/// Options of `rota kv get`.
#[derive(Clone, Debug, clap::Args)]
pub struct GetOptions {
    /// The key
    key: String,
    #[command(flatten)]
    store: Where,
}

/// Options of `rota kv put`.
#[derive(Clone, Debug, clap::Args)]
pub struct PutOptions {
    /// The key
    key: String,
    /// What it is to have
    value: String,
    #[command(flatten)]
    store: Where,
}

/// Options of `rota kv del`.
#[derive(Clone, Debug, clap::Args)]
pub struct DelOptions {
    /// The keys
    #[arg(required = true)]
    keys: Vec<String>,
    #[command(flatten)]
    store: Where,
}

/// Options of `rota kv scan`.
#[derive(Clone, Debug, clap::Args)]
pub struct ScanOptions {
    /// From this key on [default: from the first]
    #[arg(default_value = "")]
    from: String,
    /// To before this key [default: to the last]
    to: Option<String>,
    /// So many keys at most
    #[arg(long, value_name = "KEYS", default_value_t = 1000)]
    limit: u32,
    #[command(flatten)]
    store: Where,
}

/// Options of `rota kv batch`.
#[derive(Clone, Debug, clap::Args)]
pub struct BatchOptions {
    #[command(flatten)]
    store: Where,
}

/// Says what a key has.
pub fn get(options: &GetOptions) -> ExitCode {
    match options.store.ask_one(&["GET", &options.key]) {
        Ok(Reply::Bulk(value)) => {
            line(&[&value]);
            ExitCode::SUCCESS
        }
        Ok(_) => refused(&format!("there is no key {:?}", options.key)),
        Err(error) => refused(&error),
    }
}

/// Gives a key a value.
pub fn put(options: &PutOptions) -> ExitCode {
    match options
        .store
        .ask_one(&["SET", &options.key, &options.value])
    {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => refused(&error),
    }
}

/// Takes keys away.
pub fn del(options: &DelOptions) -> ExitCode {
    let keys = options.keys.iter().map(String::as_str);
    let words: Vec<&str> = ["DEL"].into_iter().chain(keys).collect();
    match options.store.ask_one(&words) {
        Ok(reply) => {
            print(&words_of(&reply));
            ExitCode::SUCCESS
        }
        Err(error) => refused(&error),
    }
}

/// Lists keys, as many at a time as are answered at once.
pub fn scan(options: &ScanOptions) -> ExitCode {
    let to = options.to.as_deref().unwrap_or("+").as_bytes().to_vec();
    let (mut from, mut left) = (options.from.as_bytes().to_vec(), options.limit);
    while left > 0 {
        let limit = left.to_string().into_bytes();
        let words = vec![
            b"RANGE".to_vec(),
            from,
            to.clone(),
            b"LIMIT".to_vec(),
            limit,
        ];
        let entries = match options.store.ask(&[words]).map(|mut replies| replies.pop()) {
            Ok(Some(Reply::Array(entries))) => entries,
            Ok(Some(Reply::Error(error))) | Err(error) => return refused(&error),
            Ok(_) => return refused("the answer is none of a range"),
        };
        let Some(Reply::Array(last)) = entries.last() else {
            break;
        };
        // From behind the last one on.
        from = match last.first() {
            Some(Reply::Bulk(key)) => [&key[..], &[0]].concat(),
            _ => return refused("the answer is none of a range"),
        };
        left = left.saturating_sub(entries.len() as u32);
        for entry in &entries {
            if let Reply::Array(pair) = entry
                && let [Reply::Bulk(key), value] = &pair[..]
            {
                line(&[key, b"\t", words_of(value).as_bytes()]);
            }
        }
    }
    ExitCode::SUCCESS
}

/// Does all lines of the input at once.
pub fn batch(options: &BatchOptions) -> ExitCode {
    let mut commands = vec![vec![b"MULTI".to_vec()]];
    for text in io::stdin().lock().split(b'\n') {
        match text.map(|text| inline::words(&text)) {
            Ok(Some(words)) if words.is_empty() => {}
            Ok(Some(words)) if is_of_transactions(&words[0]) => {
                complain(
                    &"a batch is one transaction: MULTI, EXEC, DISCARD, WATCH and RESET are no part of it",
                );
                return ExitCode::from(2);
            }
            Ok(Some(words)) => commands.push(words),
            Ok(None) => {
                complain(&"quotes that do not end");
                return ExitCode::from(2);
            }
            Err(error) => return refused(&error.to_string()),
        }
    }
    commands.push(vec![b"EXEC".to_vec()]);
    let replies = match options.store.ask(&commands) {
        Ok(replies) => replies,
        Err(error) => return refused(&error),
    };
    let queued = replies.iter().zip(&commands).skip(1);
    for (reply, command) in queued.take(commands.len().saturating_sub(2)) {
        if let Reply::Error(error) = reply {
            let words: Vec<_> = command
                .iter()
                .map(|word| String::from_utf8_lossy(word))
                .collect();
            complain(&format!("{}: {error}", words.join(" ")));
        }
    }
    match replies.last() {
        Some(Reply::Array(done)) => {
            let is_well = !done.iter().any(Reply::is_error);
            done.iter().for_each(|reply| print(&words_of(reply)));
            match is_well {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        // It says itself whether anything was done.
        Some(other) => refused(&words_of(other)),
        None => refused("no answer"),
    }
}

fn is_of_transactions(word: &[u8]) -> bool {
    let words = ["MULTI", "EXEC", "DISCARD", "WATCH", "RESET", "QUIT"];
    words
        .iter()
        .any(|other| word.eq_ignore_ascii_case(other.as_bytes()))
}

/// A reply on a line.
fn words_of(reply: &Reply) -> String {
    match reply {
        Reply::Simple(text) => (*text).to_owned(),
        Reply::Error(text) | Reply::Text(text) => text.clone(),
        Reply::Integer(number) => number.to_string(),
        Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Reply::Null | Reply::NullArray => "(none)".to_owned(),
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
            let items: Vec<String> = items.iter().map(words_of).collect();
            items.join(" ")
        }
        Reply::Map(pairs) => {
            let pair =
                |(key, value): &(Reply, Reply)| format!("{}={}", words_of(key), words_of(value));
            let pairs: Vec<String> = pairs.iter().map(pair).collect();
            pairs.join(" ")
        }
        Reply::Double(number) => number.to_string(),
        Reply::Boolean(yes) => yes.to_string(),
    }
}
