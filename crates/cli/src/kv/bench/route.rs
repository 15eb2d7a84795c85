//! The servers of keys.

use std::io;
use std::net::SocketAddr;

use rota_resp::{Reply, slot};

use crate::service::connection::Connection;

/// The way from a key to a server.
#[derive(Clone, Debug)]
pub struct Route {
    /// All servers that are known.
    pub servers: Vec<SocketAddr>,
    /// For each slot, its server among them; none: any server has all keys.
    slots: Vec<u16>,
}

impl Route {
    /// Each of these has all keys.
    pub fn of_servers(servers: &[SocketAddr]) -> Self {
        Self {
            servers: servers.to_vec(),
            slots: Vec::new(),
        }
    }

    /// As a cluster's servers say.
    ///
    /// # Errors
    /// None of them says, or keys belong to nobody.
    pub async fn of_cluster(servers: &[SocketAddr]) -> Result<Self, String> {
        let mut why = String::new();
        for server in servers {
            match Self::ask(*server).await {
                Ok(route) => return Ok(route),
                Err(error) => why = format!("{server}: {error}"),
            }
        }
        Err(format!("CLUSTER SLOTS at {why}"))
    }

    async fn ask(server: SocketAddr) -> Result<Self, String> {
        let failed = |error: io::Error| error.to_string();
        let mut connection = Connection::to(server).await.map_err(failed)?;
        connection.say(&["CLUSTER", "SLOTS"]);
        connection.flush().await.map_err(failed)?;
        let reply = connection.hear().await.map_err(failed)?;
        Self::read(&reply).ok_or_else(|| format!("{reply:?}").chars().take(200).collect())
    }

    /// Ranges, each with its first and last slot, and who has it: first the one that takes writes.
    fn read(reply: &Reply) -> Option<Self> {
        let Reply::Array(ranges) = reply else {
            return None;
        };
        let mut route = Self {
            servers: Vec::new(),
            slots: vec![u16::MAX; usize::from(slot::SLOTS)],
        };
        for range in ranges {
            let Reply::Array(parts) = range else {
                return None;
            };
            let [
                Reply::Integer(from),
                Reply::Integer(to),
                Reply::Array(node),
                ..,
            ] = &parts[..]
            else {
                return None;
            };
            let [Reply::Bulk(host), Reply::Integer(port), ..] = &node[..] else {
                return None;
            };
            let host = std::str::from_utf8(host).ok()?.parse().ok()?;
            let at = route.know(SocketAddr::new(host, u16::try_from(*port).ok()?));
            let range = usize::try_from(*from).ok()?..=usize::try_from(*to).ok()?;
            route.slots.get_mut(range)?.fill(at);
        }
        let is_whole = route.slots.iter().all(|at| *at != u16::MAX);
        is_whole.then_some(route)
    }

    fn know(&mut self, server: SocketAddr) -> u16 {
        let known = self.servers.iter().position(|known| *known == server);
        let at = known.unwrap_or_else(|| {
            self.servers.push(server);
            self.servers.len() - 1
        });
        at as u16
    }

    /// The server that the client with this number asks for a key.
    pub fn of(&self, key: &str, client: u32) -> usize {
        match self.slots.get(usize::from(slot::of(key.as_bytes()))) {
            Some(at) => usize::from(*at),
            None => client as usize % self.servers.len(),
        }
    }

    /// `MOVED slot address`: a slot is somewhere else.
    pub fn moved(&mut self, error: &str) -> Option<()> {
        let mut words = error.split(' ');
        let slot: usize = match words.next()? {
            "MOVED" => words.next()?.parse().ok()?,
            _ => return None,
        };
        let at = self.know(words.next()?.parse().ok()?);
        *self.slots.get_mut(slot)? = at;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_asked_of_whom_the_cluster_names_and_moved_is_followed() {
        let node = |port| {
            Reply::Array(vec![
                Reply::Bulk("127.0.0.1".into()),
                Reply::Integer(port),
                Reply::Bulk("id".into()),
            ])
        };
        let range = |from, to, port| {
            Reply::Array(vec![
                Reply::Integer(from),
                Reply::Integer(to),
                node(port),
                node(9),
            ])
        };
        let whole = Reply::Array(vec![range(0, 8191, 1), range(8192, 16_383, 2)]);
        let mut route = Route::read(&whole).expect("it is whole");
        // The slot of "foo" is 12182 (Redis' documents).
        assert_eq!(route.servers[route.of("foo", 0)].port(), 2);
        assert!(route.moved("MOVED 12182 127.0.0.1:3").is_some());
        assert_eq!(route.servers[route.of("foo", 0)].port(), 3);
        assert!(route.moved("ERR no").is_none());
        assert!(Route::read(&Reply::Array(vec![range(0, 8191, 1)])).is_none());
    }
}
