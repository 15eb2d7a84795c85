//! The commands about the connection itself, which change no key.

use bytes::Bytes;
use rota_resp::{Reply, Version};

use crate::command::{Entry, error, find, is, number, syntax, wrong_count};
use crate::glob;

/// The version of Redis whose behaviour clients may expect.
const REDIS_VERSION: &str = "7.2.0";

/// The identity of a client, as it describes itself.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Identity {
    /// The number of its connection.
    pub id: u64,
    /// The name that it gave itself.
    pub name: Bytes,
    /// The protocol that it speaks.
    pub version: Version,
    /// It reads the state of a near replica, which may be old.
    pub reads_near: bool,
}

/// Handles `HELLO [version [AUTH user password] [SETNAME name]]`. Returns the user and the password, if they were
/// given.
pub fn hello(
    identity: &mut Identity,
    arguments: &[Bytes],
) -> Result<Option<(Bytes, Bytes)>, Reply> {
    let mut login = None;
    let Some((version, mut rest)) = arguments.split_first() else {
        return Ok(login);
    };
    let version = match number(version) {
        Ok(2) => Version::Resp2,
        Ok(3) => Version::Resp3,
        Ok(_) => return Err(error("NOPROTO unsupported protocol version")),
        Err(_) => {
            return Err(error(
                "ERR Protocol version is not an integer or out of range",
            ));
        }
    };
    let mut name = None;
    while let Some((word, behind)) = rest.split_first() {
        rest = match behind {
            [user, password, rest @ ..] if is(word, "AUTH") => {
                login = Some((user.clone(), password.clone()));
                rest
            }
            [given, rest @ ..] if is(word, "SETNAME") => {
                name = Some(checked_name(given)?);
                rest
            }
            _ => {
                let word = String::from_utf8_lossy(word);
                return Err(error(&format!("ERR Syntax error in HELLO option '{word}'")));
            }
        };
    }
    identity.version = version;
    identity.name = name.unwrap_or_else(|| identity.name.clone());
    Ok(login)
}

/// The reply to `HELLO`.
pub fn welcome(identity: &Identity, is_cluster: bool) -> Reply {
    let text = |text: &str| Reply::from(text);
    let protocol = match identity.version {
        Version::Resp2 => 2,
        Version::Resp3 => 3,
    };
    Reply::Map(vec![
        (text("server"), text("redis")),
        (text("version"), text(REDIS_VERSION)),
        (text("proto"), Reply::Integer(protocol)),
        (text("id"), Reply::Integer(identity.id as i64)),
        (
            text("mode"),
            text(if is_cluster { "cluster" } else { "standalone" }),
        ),
        (text("role"), text("master")),
        (text("modules"), Reply::Array(Vec::new())),
    ])
}

fn checked_name(name: &Bytes) -> Result<Bytes, Reply> {
    match name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        true => Ok(name.clone()),
        false => Err(error(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        )),
    }
}

/// Handles `CLIENT`.
pub fn client(identity: &mut Identity, arguments: &[Bytes]) -> Reply {
    let Some((word, rest)) = arguments.split_first() else {
        return wrong_count("client");
    };
    match rest {
        [] if is(word, "ID") => Reply::Integer(identity.id as i64),
        [] if is(word, "GETNAME") => match identity.name.is_empty() {
            true => Reply::Null,
            false => Reply::Bulk(identity.name.clone()),
        },
        [name] if is(word, "SETNAME") => match checked_name(name) {
            Ok(name) => {
                identity.name = name;
                Reply::OK
            }
            Err(reply) => reply,
        },
        [_, _] if is(word, "SETINFO") => Reply::OK,
        [how] if is(word, "NO-EVICT") || is(word, "NO-TOUCH") => match how {
            how if is(how, "ON") || is(how, "OFF") => Reply::OK,
            _ => syntax(),
        },
        [] if is(word, "INFO") || is(word, "LIST") => {
            let name = String::from_utf8_lossy(&identity.name).into_owned();
            let resp = match identity.version {
                Version::Resp2 => 2,
                Version::Resp3 => 3,
            };
            Reply::Text(format!("id={} name={name} db=0 resp={resp}\n", identity.id))
        }
        _ => {
            let word = String::from_utf8_lossy(word);
            error(&format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. Try CLIENT HELP."
            ))
        }
    }
}

fn about(entry: &Entry) -> Reply {
    let flags = entry.flags.iter().map(|flag| Reply::Simple(flag));
    Reply::Array(vec![
        Reply::from(entry.name),
        Reply::Integer(entry.arity),
        Reply::Set(flags.collect()),
        Reply::Integer(entry.first),
        Reply::Integer(entry.last),
        Reply::Integer(entry.step),
        Reply::Set(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
    ])
}

/// Handles `COMMAND`.
pub fn command(table: &'static [Entry], arguments: &[Bytes]) -> Reply {
    let Some((word, rest)) = arguments.split_first() else {
        return Reply::Array(table.iter().map(about).collect());
    };
    match rest {
        [] if is(word, "COUNT") => Reply::Integer(table.len() as i64),
        [] if is(word, "LIST") => {
            Reply::Array(table.iter().map(|entry| Reply::from(entry.name)).collect())
        }
        // There are no texts about the commands here.
        _ if is(word, "DOCS") => Reply::Map(Vec::new()),
        [] if is(word, "INFO") => Reply::Array(table.iter().map(about).collect()),
        names if is(word, "INFO") => {
            let about = |name: &Bytes| find(table, name).map_or(Reply::NullArray, about);
            Reply::Array(names.iter().map(about).collect())
        }
        [name, arguments @ ..] if is(word, "GETKEYS") => keys(table, name, arguments),
        _ => {
            let word = String::from_utf8_lossy(word);
            error(&format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. Try COMMAND HELP."
            ))
        }
    }
}

fn keys(table: &'static [Entry], name: &[u8], arguments: &[Bytes]) -> Reply {
    let Some(entry) = find(table, name) else {
        return error("ERR Invalid command specified");
    };
    if !entry.takes(arguments.len() + 1) {
        return error("ERR Invalid number of arguments specified for command");
    }
    let keys: Vec<Reply> = entry.keys(arguments).cloned().map(Reply::Bulk).collect();
    match keys.is_empty() {
        true => error("ERR The command has no key arguments"),
        false => Reply::Array(keys),
    }
}

/// Handles `CONFIG GET`: some clients ask for settings before they begin.
pub fn config(arguments: &[Bytes]) -> Reply {
    let Some((word, names)) = arguments
        .split_first()
        .filter(|(_, names)| !names.is_empty())
    else {
        return wrong_count("config");
    };
    if !is(word, "GET") {
        return error("ERR settings are in the configuration file");
    }
    let settings = [
        ("save", ""),
        ("appendonly", "yes"),
        ("maxmemory-policy", "noeviction"),
        ("databases", "1"),
    ];
    let is_asked = |(name, _): &&(&str, &str)| {
        let name = name.as_bytes();
        let like = |asked: &Bytes| glob::matches(&asked.to_ascii_lowercase(), name);
        names.iter().any(like)
    };
    let pair = |(name, value): &(&str, &str)| (Reply::from(*name), Reply::from(*value));
    Reply::Map(settings.iter().filter(is_asked).map(pair).collect())
}
