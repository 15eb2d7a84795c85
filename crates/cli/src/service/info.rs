//! A process's words on itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use rota_resp::Reply;

use super::who::Who;

/// A process that is there answers sooner.
const PATIENCE: Duration = Duration::from_secs(3);

/// The lines of `INFO`.
pub fn ask(address: SocketAddr, who: &Who) -> Result<BTreeMap<String, String>, String> {
    let text = match who.ask(address, PATIENCE, &["INFO"])? {
        Reply::Bulk(text) => String::from_utf8_lossy(&text).into_owned(),
        Reply::Text(text) => text,
        _ => return Err("it says nothing of itself".to_owned()),
    };
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    Ok(fields
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect())
}
