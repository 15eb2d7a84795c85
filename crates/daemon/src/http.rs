//! Metrics and status over HTTP.
//!
//! The server runs in threads of its own, which ask the daemon for its status at most a few times a second, for any
//! number of requests. A client that is slow, or sends nonsense, holds up one of few threads for a few seconds, and the
//! ring never. `GET /` is a page for people, and `GET /page` what it shows; `GET /metrics` and `GET /status` are for
//! programs, `GET /livez` and `GET /readyz` for probes. Each connection is for one request.

mod health;
mod lobby;
mod page;
mod survey;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::access::Peer;
use crate::control::Control;
use crate::metrics;
use crate::status::DaemonStatus;
use lobby::{HttpConnections, HttpGuest};
use rota_net::Complaints;

/// Connections at one time. With one more, the oldest that has asked for nothing yet is closed; there are at most as
/// many again that are being answered.
const CONNECTIONS: usize = 8;
/// The longest request, in bytes.
const REQUEST_BYTES: usize = 8192;
/// Lines of a request's head.
const HEADERS: usize = 64;
/// The time that a whole connection may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest age of an answer.
const FRESH: Duration = Duration::from_millis(250);

/// Serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Exporter {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Pages {
    control: Control,
    newest: Mutex<Option<(Instant, Arc<DaemonStatus>)>>,
    complaints: Mutex<Complaints>,
    /// Names by which this host may be asked.
    hosts: Vec<String>,
    lobby: Arc<HttpConnections>,
    recent: page::Recent,
    survey: survey::Survey,
}

impl Exporter {
    /// Serves at an address, under these names. `telling`: where clients of this daemon connect, if daemons tell through
    /// each other how they are.
    pub fn start(
        address: SocketAddr,
        hosts: Vec<String>,
        telling: Option<PathBuf>,
        control: Control,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let pages = Arc::new(Pages {
            control,
            newest: Mutex::new(None),
            complaints: Mutex::default(),
            hosts,
            lobby: Arc::new(HttpConnections::new(CONNECTIONS)),
            recent: page::Recent::default(),
            survey: survey::Survey::new(telling),
        });
        thread::Builder::new()
            .name("rota-http".to_owned())
            .spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    match listener.accept() {
                        Ok((stream, _)) => Pages::let_in(&pages, stream),
                        // No descriptors, most often: there will be one again.
                        Err(_) => thread::sleep(FRESH),
                    }
                }
            })?;
        Ok(Self { address, stop })
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Ends the wait for the next connection.
        let _ = TcpStream::connect_timeout(&self.address, FRESH);
    }
}

impl Pages {
    fn let_in(pages: &Arc<Self>, stream: TcpStream) {
        let stream = Arc::new(stream);
        let Some(guest) = pages.lobby.enter(&stream) else {
            return;
        };
        let here = Arc::clone(pages);
        let serve = move || {
            // A client that has gone needs no answer.
            let _ = here.serve(&stream, &guest);
        };
        // Without a thread there is no answer.
        let _ = thread::Builder::new()
            .name("rota-http-peer".to_owned())
            .spawn(serve);
    }

    fn serve(&self, stream: &TcpStream, guest: &HttpGuest) -> io::Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut head = Vec::new();
        let page = read_request(stream, &mut head, until)?;
        guest.asked();
        let (code, kind, body) = match page {
            Ok(Asked { page, .. }) if !page.is_for_all() && !self.may_ask(stream)? => {
                ("403 Forbidden", "text/plain", "not allowed\n".to_owned())
            }
            Ok(Asked { host, .. }) if !is_here(host, &self.hosts) => {
                let text = "ask for an address, localhost, the name of this host or one of `metrics_hosts`\n";
                ("421 Misdirected Request", "text/plain", text.to_owned())
            }
            Ok(Asked { page, .. }) => self.page(page),
            Err(code) => (code, "text/plain", String::new()),
        };
        let head = format!(
            "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n",
            body.len(),
            page::SAFETY
        );
        write_all(stream, head.as_bytes(), until)?;
        write_all(stream, body.as_bytes(), until)?;
        hang_up(stream, until)
    }

    /// Whether the rules allow the peer of this connection to see the status.
    fn may_ask(&self, stream: &TcpStream) -> io::Result<bool> {
        let peer = Peer::at(stream.peer_addr()?.ip().to_canonical());
        let may = self.control.may_ask(&peer);
        if !may {
            let reason = "somebody is not told the metrics: nothing allows it";
            let complaints = self.complaints.lock();
            let mut complaints = complaints.unwrap_or_else(PoisonError::into_inner);
            complaints.say(reason, &peer, &"");
        }
        Ok(may)
    }

    fn page(&self, page: Page) -> Answer {
        match page {
            Page::Live => return health::live(&self.control),
            Page::Ready => return health::ready(&self.control, || self.status()),
            Page::Home => return ("200 OK", "text/html; charset=utf-8", page::PAGE.to_owned()),
            Page::Metrics | Page::Status | Page::Shown => {}
        }
        let Some(status) = self.status() else {
            return ("503 Service Unavailable", "text/plain", String::new());
        };
        match page {
            Page::Metrics => {
                let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                ("200 OK", kind, metrics::text(status))
            }
            Page::Shown => {
                let all = self.survey.all();
                let text = self.recent.show(&status, &all, Instant::now());
                ("200 OK", "application/json", text)
            }
            _ => {
                // Strings and numbers are always JSON.
                let line = serde_json::to_string(&*status).unwrap_or_default();
                ("200 OK", "application/json", line + "\n")
            }
        }
    }

    /// The status of the daemon, at most [`FRESH`] old.
    fn status(&self) -> Option<Arc<DaemonStatus>> {
        let newest = self.newest.lock();
        let mut newest = newest.unwrap_or_else(PoisonError::into_inner);
        if let Some((at, status)) = &*newest
            && at.elapsed() < FRESH
        {
            return Some(Arc::clone(status));
        }
        let status = self.control.status(PATIENCE / 2)?;
        *newest = Some((Instant::now(), Arc::clone(&status)));
        Some(status)
    }
}

/// Status line, kind of the body, and body.
type Answer = (&'static str, &'static str, String);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Page {
    Metrics,
    Status,
    Live,
    Ready,
    /// For people.
    Home,
    /// What that shows.
    Shown,
}

impl Page {
    /// Probes come from wherever the host is watched from, and their answers name no client.
    const fn is_for_all(self) -> bool {
        matches!(self, Self::Live | Self::Ready)
    }
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Asked<'a> {
    page: Page,
    /// The host that it is meant for, if it says so.
    host: Option<&'a [u8]>,
}

/// The request, or the status line of its refusal.
fn read_request<'a>(
    mut stream: &TcpStream,
    head: &'a mut Vec<u8>,
    until: Instant,
) -> io::Result<Result<Asked<'a>, &'static str>> {
    let mut piece = [0; 1024];
    while parse(head).is_none() {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut piece)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            length => head.extend_from_slice(&piece[..length]),
        }
    }
    parse(head).ok_or_else(|| ErrorKind::InvalidData.into())
}

/// `None` while the request is not whole.
fn parse(head: &[u8]) -> Option<Result<Asked<'_>, &'static str>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) if head.len() >= REQUEST_BYTES => {
            return Some(Err("431 Request Header Fields Too Large"));
        }
        Ok(httparse::Status::Partial) => return None,
        Err(_) => return Some(Err("400 Bad Request")),
        Ok(httparse::Status::Complete(_)) => {}
    }
    if request.method != Some("GET") {
        return Some(Err("405 Method Not Allowed"));
    }
    let path = request.path.unwrap_or_default();
    let page = match path.split('?').next() {
        Some("/metrics") => Page::Metrics,
        Some("/status") => Page::Status,
        Some("/") => Page::Home,
        Some("/page") => Page::Shown,
        Some("/livez") => Page::Live,
        Some("/readyz") => Page::Ready,
        _ => return Some(Err("404 Not Found")),
    };
    let mut hosts = request.headers.iter();
    let host = hosts.find(|header| header.name.eq_ignore_ascii_case("host"));
    let host = host.map(|header| header.value);
    Some(Ok(Asked { page, host }))
}

/// Ends the connection so that the answer arrives: closing it with something unread would take it back.
fn hang_up(mut stream: &TcpStream, until: Instant) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let mut rest = [0; 1024];
    for _ in 0..REQUEST_BYTES / rest.len() {
        stream.set_read_timeout(Some(left(until)?))?;
        if stream.read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}

fn write_all(mut stream: &TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(bytes)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            length => bytes = &bytes[length..],
        }
    }
    Ok(())
}

fn left(until: Instant) -> io::Result<Duration> {
    let left = until.checked_duration_since(Instant::now());
    let left = left.filter(|left| !left.is_zero());
    left.ok_or_else(|| ErrorKind::TimedOut.into())
}

/// Whether a request was meant for this host.
fn is_here(host: Option<&[u8]>, configured: &[String]) -> bool {
    let own = nix::unistd::gethostname().unwrap_or_default();
    rota_net::is_meant_for(host, &own.to_string_lossy(), configured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_requests_for_known_pages_are_answered() {
        let whole = |line: &str| {
            let head = format!("{line}\r\nHost: x\r\n\r\n");
            let asked = parse(head.as_bytes())?;
            Some(asked.map(|asked| {
                assert_eq!(asked.host, Some(&b"x"[..]));
                asked.page
            }))
        };
        assert_eq!(whole("GET /metrics HTTP/1.1"), Some(Ok(Page::Metrics)));
        assert_eq!(whole("GET /status?x=1 HTTP/1.0"), Some(Ok(Page::Status)));
        assert_eq!(whole("GET /livez HTTP/1.1"), Some(Ok(Page::Live)));
        assert_eq!(whole("GET /readyz HTTP/1.1"), Some(Ok(Page::Ready)));
        assert_eq!(whole("GET / HTTP/1.1"), Some(Ok(Page::Home)));
        assert_eq!(whole("GET /page HTTP/1.1"), Some(Ok(Page::Shown)));
        assert_eq!(whole("GET /pages HTTP/1.1"), Some(Err("404 Not Found")));
        assert_eq!(
            whole("POST /metrics HTTP/1.1"),
            Some(Err("405 Method Not Allowed"))
        );
        assert_eq!(parse(b"GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
        assert_eq!(parse(b"\x16\x03\x01\x02\x00"), Some(Err("400 Bad Request")));
        let endless = format!("GET /metrics HTTP/1.1\r\nX: {}", "y".repeat(REQUEST_BYTES));
        let refused = Some(Err("431 Request Header Fields Too Large"));
        assert_eq!(parse(endless.as_bytes()), refused);
    }
}
