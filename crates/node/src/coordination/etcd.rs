//! Configurations in etcd, by its gateway for JSON, which every member has at its clients' port.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use ureq::http::{HeaderValue, StatusCode, Uri};
use ureq::tls::TlsConfig;
use ureq::{Agent, Body};

use super::file::EtcdFiles;
use super::login::Login;
use super::reply::Reply;
use super::{Coordination, CoordinationError, EtcdFileError, EtcdLogin, EtcdTls};

/// The time that a member may take to accept a connection.
const CONNECT: Duration = Duration::from_millis(500);

/// The time that a request to a member may take as a whole. A slow disk takes half a second, an election of etcd a
/// second.
const ANSWER: Duration = Duration::from_secs(2);

/// The size of an answer, at most: a configuration of the largest cluster is a few kilobytes.
const MOST_BYTES: u64 = 1 << 20;

/// The length, at most, of the text that is handed on of a reply that is no answer.
const MOST_SAID: usize = 200;

/// The key below which the configurations of a cluster are.
pub fn prefix(cluster: u32) -> String {
    format!("/rota/{cluster}/configurations/")
}

/// Whether this is the name of a member of etcd: `http://HOST:PORT`, or `https://` with TLS.
pub fn is_endpoint(text: &str, with_tls: bool) -> bool {
    let Ok(uri) = text.parse::<Uri>() else {
        return false;
    };
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let is_root = matches!(uri.path(), "" | "/") && uri.query().is_none();
    let has_port = uri.port_u16().is_some_and(|port| port > 0);
    let scheme = if with_tls { "https" } else { "http" };
    uri.scheme_str() == Some(scheme) && has_port && is_root && !authority.contains('@')
}

/// The reply of a member to a login where authentication is off.
const NO_USERS: &str = "authentication is not enabled";

/// The text that every reply about a refused token contains, whatever its status.
const OF_TOKENS: &str = "auth";

/// A hint for the operator, where a member does not know the address that was asked for.
const NO_GATEWAY: &str = " (no JSON gateway answers there: was etcd started with --enable-grpc-gateway=false, or is the address \
                          one for gRPC alone?)";

/// A client of one cluster of etcd.
pub struct Etcd {
    agent: Agent,
    /// Of its members.
    urls: Vec<String>,
    /// The one that answered last.
    current: usize,
    prefix: String,
    files: EtcdFiles,
    login: Option<Login>,
    /// The token that etcd gave this user at the login.
    token: Option<HeaderValue>,
}

/// Why a member has not done what it was asked for.
enum Refusal {
    /// The member does not do that for this user.
    Said(String),
    /// The member cannot be reached, or cannot do it, or has said nothing that can be understood.
    Silence(String),
}

impl Refusal {
    fn text(&self) -> &str {
        match self {
            Self::Said(text) | Self::Silence(text) => text,
        }
    }
}

/// The answer of etcd to a login.
#[derive(Deserialize)]
struct LoggedIn {
    token: String,
}

impl LoggedIn {
    /// The token to show from then on. A token that cannot be shown would be in the way until the node is restarted.
    fn token(self) -> Result<HeaderValue, Refusal> {
        let token = HeaderValue::try_from(self.token).ok();
        let token = token.filter(|token| !token.is_empty());
        token.ok_or_else(|| Refusal::Silence("not an answer of etcd's: no token in it".to_owned()))
    }
}

impl Etcd {
    /// A client that asks these members, `http://HOST:PORT` each, about the configurations of a cluster, without a
    /// user.
    pub fn new(endpoints: &[String], cluster: u32) -> Self {
        Self::with_config(endpoints, cluster, TlsConfig::default())
    }

    /// The same, by TLS (`https://HOST:PORT` each), as a user, or both.
    ///
    /// # Errors
    /// [`EtcdFileError`]: a file that cannot be used.
    pub fn open(
        endpoints: &[String],
        cluster: u32,
        tls: Option<&EtcdTls>,
        login: Option<&EtcdLogin>,
    ) -> Result<Self, EtcdFileError> {
        let mut files = EtcdFiles::new(tls, login);
        let (tls, login) = files.read()?;
        Ok(Self {
            files,
            login,
            ..Self::with_config(endpoints, cluster, tls)
        })
    }

    fn with_config(endpoints: &[String], cluster: u32, tls: TlsConfig) -> Self {
        let url = |endpoint: &String| endpoint.trim_end_matches('/').to_owned();
        Self {
            agent: agent(tls),
            urls: endpoints.iter().map(url).collect(),
            current: 0,
            prefix: prefix(cluster),
            files: EtcdFiles::default(),
            login: None,
            token: None,
        }
    }

    /// Reads certificates and password again if their files have changed, as they are replaced while nodes run. Where the
    /// new ones cannot be used, those of before are.
    fn refresh(&mut self) {
        match self.files.read_again() {
            None => {}
            Some(Ok((tls, login))) => {
                tracing::info!("the files for etcd have changed and were read again");
                (self.agent, self.login, self.token) = (agent(tls), login, None);
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "what was in the files for etcd before is used on");
            }
        }
    }

    /// All keys of the cluster: from the first one, and before the second.
    fn range(&self) -> [String; 2] {
        let parent = self.prefix.trim_end_matches('/');
        // All keys behind the slash: `0` is the character after it.
        [self.prefix.clone(), format!("{parent}0")]
    }

    /// Keys sort as their numbers do.
    fn key(&self, number: u64) -> String {
        format!("{}{number:020}", self.prefix)
    }

    /// Stores the wanted configuration where there is none, and reads the stored one otherwise; all in one step.
    ///
    /// Nothing is stored unless the configuration before is there: a node that asks for the next one has known it, and
    /// it was stored then. So an etcd that has lost its data chooses nothing. And the first one is stored only where
    /// there is none at all: its key may have been deleted as one of the oldest, and then a node that has lost all
    /// stores would found the cluster anew without a word, and stop where the old keys begin. (Of a range etcd compares
    /// each key that is there. For an empty range it compares a key that was never created.)
    fn transaction(&self, number: u64, wanted: &Bytes) -> Value {
        let key = BASE64_STANDARD.encode(self.key(number));
        let mut nothing = json!({
            "key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"
        });
        let mut compare = Vec::new();
        if number > 1 {
            let before = BASE64_STANDARD.encode(self.key(number - 1));
            compare.push(json!({
                "key": before, "target": "CREATE", "result": "GREATER", "create_revision": "0"
            }));
        } else {
            let [from, to] = self.range().map(|key| BASE64_STANDARD.encode(key));
            (nothing["key"], nothing["range_end"]) = (from.into(), to.into());
        }
        compare.push(nothing);
        let value = BASE64_STANDARD.encode(wanted);
        json!({
            "compare": compare,
            "success": [{ "request_put": { "key": key, "value": value } }],
            "failure": [{ "request_range": { "key": key } }],
        })
    }

    /// The reply of one member to the transaction `body`. After a refused token this logs in once more.
    fn ask_one(&mut self, url: &str, body: &[u8]) -> Result<Reply, Refusal> {
        let had_token = self.token.is_some();
        match self.ask_as_user(url, body) {
            Err(refusal) if had_token && refusal.text().contains(OF_TOKENS) => {
                self.token = None;
                self.ask_as_user(url, body)
            }
            said => said,
        }
    }

    fn ask_as_user(&mut self, url: &str, body: &[u8]) -> Result<Reply, Refusal> {
        if self.token.is_none() {
            self.token = self.log_in(url)?;
        }
        self.post(&format!("{url}/v3/kv/txn"), self.token.as_ref(), body)
    }

    /// The token of this node; `None` where no user is needed.
    fn log_in(&self, url: &str) -> Result<Option<HeaderValue>, Refusal> {
        let Some(Login { user, password }) = &self.login else {
            return Ok(None);
        };
        let body = json!({ "name": user, "password": password }).to_string();
        let said = self.post(
            &format!("{url}/v3/auth/authenticate"),
            None,
            body.as_bytes(),
        );
        match said {
            Ok(answer) => LoggedIn::token(answer).map(Some),
            Err(Refusal::Said(text)) if text.contains(NO_USERS) => Ok(None),
            Err(Refusal::Said(text)) => Err(Refusal::Said(format!("user {user}: {text}"))),
            Err(silence) => Err(silence),
        }
    }

    fn post<T: DeserializeOwned>(
        &self,
        url: &str,
        token: Option<&HeaderValue>,
        body: &[u8],
    ) -> Result<T, Refusal> {
        let mut request = self.agent.post(url);
        request = request.header("content-type", "application/json");
        if let Some(token) = token {
            request = request.header("authorization", token);
        }
        let sent = request.send(body);
        let mut answer = sent.map_err(|error| Refusal::Silence(error.to_string()))?;
        let status = answer.status();
        let said = read(answer.body_mut())?;
        if !status.is_success() {
            let text = String::from_utf8_lossy(&said);
            let text: String = text.chars().take(MOST_SAID).collect();
            let mut text = format!("{status}: {}", text.trim());
            if status == StatusCode::NOT_FOUND {
                text += NO_GATEWAY;
            }
            return Err(match status.is_client_error() {
                true => Refusal::Said(text),
                false => Refusal::Silence(text),
            });
        }
        let answer = serde_json::from_slice(&said);
        answer.map_err(|error| Refusal::Silence(format!("not an answer of etcd's: {error}")))
    }
}

fn read(body: &mut Body) -> Result<Vec<u8>, Refusal> {
    let read = body.with_config().limit(MOST_BYTES).read_to_vec();
    read.map_err(|error| Refusal::Silence(error.to_string()))
}

/// A client for HTTP with connections of its own.
fn agent(tls: TlsConfig) -> Agent {
    let config = Agent::config_builder()
        .tls_config(tls)
        .timeout_connect(Some(CONNECT))
        .timeout_global(Some(ANSWER))
        .http_status_as_error(false)
        .max_redirects(0)
        // Members are asked directly, whatever proxy the environment names.
        .proxy(None)
        .build();
    config.new_agent()
}

impl Coordination for Etcd {
    fn ask(&mut self, number: u64, wanted: &Bytes) -> Result<Bytes, CoordinationError> {
        self.refresh();
        let body = self.transaction(number, wanted).to_string();
        let (mut said, mut is_refused) = (Vec::new(), false);
        for _ in 0..self.urls.len() {
            let url = self.urls[self.current].clone();
            let reply = self.ask_one(&url, body.as_bytes());
            is_refused |= matches!(reply, Err(Refusal::Said(_)));
            let reply = reply.map_err(|refusal| refusal.text().to_owned());
            match reply.and_then(|reply| reply.chosen(wanted)) {
                Ok(Some(chosen)) => return Ok(chosen),
                Ok(None) if number <= 1 => {
                    return Err(CoordinationError::Founded(self.prefix.clone()));
                }
                Ok(None) => {
                    let before = self.key(number.saturating_sub(1));
                    return Err(CoordinationError::Forgotten(before));
                }
                Err(error) => said.push(format!("{url}: {error}")),
            }
            self.current = (self.current + 1) % self.urls.len();
        }
        let said = said.join("; ");
        Err(match is_refused {
            true => CoordinationError::Refused(said),
            false => CoordinationError::Unreachable(said),
        })
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd")
            .field("urls", &self.urls)
            .field("prefix", &self.prefix)
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_named_by_host_and_port() {
        for good in [
            "http://127.0.0.1:2379",
            "http://[::1]:2379/",
            "http://etcd-1.example:2379",
        ] {
            assert!(is_endpoint(good, false), "{good}");
            let with_tls = good.replace("http:", "https:");
            assert!(is_endpoint(&with_tls, true), "{with_tls}");
            assert!(!is_endpoint(good, true) && !is_endpoint(&with_tls, false));
        }
        for bad in [
            "",
            "127.0.0.1:2379",
            "http://127.0.0.1",
            "http://127.0.0.1:0",
            "https://127.0.0.1:2379",
            "http://root:secret@127.0.0.1:2379",
            "http://127.0.0.1:2379/v3",
            "http://127.0.0.1:2379/?a=b",
            "ftp://127.0.0.1:2379",
        ] {
            assert!(!is_endpoint(bad, false), "{bad}");
        }
    }

    #[test]
    fn keys_sort_as_their_numbers_do() {
        let etcd = Etcd::new(&[], 7);
        assert_eq!(etcd.key(1), "/rota/7/configurations/00000000000000000001");
        let keys = [9, 10, 11_000, u64::MAX].map(|number| etcd.key(number));
        assert!(keys.is_sorted());
        let [from, to] = etcd.range();
        assert!(keys.iter().all(|key| (&from..&to).contains(&key)));
        assert!(!(from..to).contains(&Etcd::new(&[], 70).key(1)));
    }

    #[test]
    fn a_token_that_cannot_be_shown_is_none() {
        let logged_in = |text: &str| {
            let answer: LoggedIn = serde_json::from_str(text).unwrap();
            answer.token()
        };
        assert!(logged_in(r#"{"token":"sssvIpwfnLAcWAQH.9"}"#).is_ok());
        for bad in [r#"{"token":""}"#, r#"{"token":"a\r\nb: c"}"#] {
            assert!(matches!(logged_in(bad), Err(Refusal::Silence(_))), "{bad}");
        }
    }
}
