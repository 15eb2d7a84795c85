//! `GET /metrics`: how the process is, for Prometheus (OpenMetrics text).

use std::convert::Infallible;
use std::fmt::{self, Write as _};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rota_replica::Replica;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use super::listen::Server;
use crate::store::Store;

/// So many ask at once at most.
const MOST_GUESTS: usize = 16;
/// A request and its answer take no longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(50);
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whom it tells of.
pub(super) struct Of {
    pub(super) server: Arc<Server>,
    pub(super) replica: Arc<Replica<Store>>,
}

/// See the module's page. Dropping it ends it.
pub(super) struct Metrics {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    pub(super) fn open(address: SocketAddr, of: Of) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        let run = move || {
            LocalSet::new().block_on(&runtime, async {
                match TcpListener::from_std(listener) {
                    Ok(listener) => drop(tokio::task::spawn_local(serve(listener, Arc::new(of)))),
                    Err(error) => tracing::error!(%error, "metrics are not served"),
                }
                while !ends.load(SeqCst) {
                    sleep(LOOK).await;
                }
            });
        };
        let thread = thread::Builder::new().name("rota-kv-metrics".to_owned());
        Ok(Self {
            stop,
            thread: Some(thread.spawn(run)?),
        })
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(listener: TcpListener, of: Arc<Of>) {
    let room = Arc::new(Semaphore::new(MOST_GUESTS));
    loop {
        let Ok(seat) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(LOOK).await;
            continue;
        };
        let of = Arc::clone(&of);
        drop(tokio::task::spawn_local(async move {
            let answer = service_fn(move |request| {
                let of = Arc::clone(&of);
                async move { Ok::<_, Infallible>(answer(&request, &of)) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).keep_alive(false);
            let served = http.serve_connection(TokioIo::new(stream), answer);
            let _ = timeout(PATIENCE, served).await;
            drop(seat);
        }));
    }
}

fn answer(request: &Request<Incoming>, of: &Of) -> Response<Full<Bytes>> {
    let host = request.headers().get(HOST).map(|host| host.as_bytes());
    let (status, text) = match (request.method(), request.uri().path()) {
        _ if !is_here(host) => (
            StatusCode::MISDIRECTED_REQUEST,
            "this is another host\n".to_owned(),
        ),
        (&Method::GET, "/metrics") => (StatusCode::OK, of.text()),
        (&Method::GET, _) => (StatusCode::NOT_FOUND, "there is /metrics\n".to_owned()),
        _ => (
            StatusCode::METHOD_NOT_ALLOWED,
            "GET, and nothing else\n".to_owned(),
        ),
    };
    let kind = match status {
        StatusCode::OK => TEXT,
        _ => "text/plain; charset=utf-8",
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A page in a browser can have a name of its own lead here, and would read what is served: only requests for an address or for `localhost` are
/// answered, and those that name no host, which no browser sends.
fn is_here(host: Option<&[u8]>) -> bool {
    let Some(host) = host else { return true };
    let Ok(host) = std::str::from_utf8(host) else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

/// The text, as it is written.
struct Text(String);

impl Text {
    fn one(&mut self, (name, kind): (&str, &str), help: &str, value: impl fmt::Display) {
        self.head((name, kind), help);
        let end = if kind == "counter" { "_total" } else { "" };
        let _ = writeln!(self.0, "rota_kv_{name}{end} {value}");
    }

    fn head(&mut self, (name, kind): (&str, &str), help: &str) {
        let _ = write!(
            self.0,
            "# TYPE rota_kv_{name} {kind}\n# HELP rota_kv_{name} {help}\n"
        );
    }
}

impl Of {
    fn text(&self) -> String {
        let mut text = Text(String::new());
        self.store(&mut text);
        self.waits(&mut text);
        self.clients(&mut text);
        self.answers(&mut text);
        self.replica(&mut text);
        text.0 + "# EOF\n"
    }

    fn store(&self, text: &mut Text) {
        let gateway = &self.server.gateway;
        let look = |store: &Store| (store.len(), store.ending(), store.bytes());
        let found = gateway.orders.read(look);
        let (keys, ending, bytes) = found.unwrap_or_default();
        let gauge = |name| (name, "gauge");
        let is_open = u8::from(gateway.orders.is_open());
        let partition = gateway.own.0;
        text.one(
            gauge("partition"),
            "Which partition this process has.",
            partition,
        );
        text.one(
            gauge("open"),
            "It takes commands: 0 while it gets a state of another replica.",
            is_open,
        );
        text.one(gauge("keys"), "Keys of its partition.", keys);
        text.one(
            gauge("keys_ending"),
            "Of those, how many have an end.",
            ending,
        );
        text.one(gauge("bytes"), "What they take, about.", bytes);
        text.one(
            gauge("bytes_limit"),
            "With so many it takes no writes.",
            self.server.most_bytes,
        );
        let is_full = u8::from(gateway.is_full.load(SeqCst));
        text.one(gauge("full"), "It has so many.", is_full);
        let up = gateway.links.values().filter(|link| link.is_up()).count();
        text.one(
            gauge("processes_connected"),
            "Other processes that it is connected to.",
            up,
        );
        let all = gateway.links.len();
        text.one(
            gauge("processes_configured"),
            "Other processes that there should be.",
            all,
        );
    }

    fn waits(&self, text: &mut Text) {
        let gateway = &self.server.gateway;
        let gauge = |name| (name, "gauge");
        let (waiting, of) = gateway.desk.waits();
        text.one(
            gauge("answers_waiting"),
            "Answers that wait for other partitions.",
            waiting,
        );
        text.head(
            gauge("answers_wait_for"),
            "The partitions that they wait for.",
        );
        for partition in gateway.map.partitions() {
            let waits = u8::from(of.contains(&partition));
            let _ = writeln!(
                text.0,
                "rota_kv_answers_wait_for{{partition=\"{}\"}} {waits}",
                partition.0
            );
        }
    }

    fn clients(&self, text: &mut Text) {
        let server = &self.server;
        let gauge = |name| (name, "gauge");
        let clients = server.clients.load(SeqCst);
        text.one(gauge("clients"), "Clients that are connected.", clients);
        text.one(
            gauge("clients_limit"),
            "So many may be.",
            server.most_clients,
        );
        text.one(
            gauge("clients_bytes"),
            "What is kept for clients.",
            server.held.bytes(),
        );
        let counted = [
            (
                "connections",
                &server.connections,
                "Clients that have connected.",
            ),
            ("commands", &server.commands, "Commands that were read."),
            (
                "batches",
                &server.batches,
                "What clients had ordered, or looked at, together.",
            ),
            (
                "outcomes_unknown",
                &server.unknown,
                "Of those, how many were told that nobody knows.",
            ),
            (
                "clients_refused",
                &server.refused,
                "Clients that were too many.",
            ),
            (
                "protocol_errors",
                &server.protocol_errors,
                "What could not be read.",
            ),
            (
                "not_let_in",
                &server.not_let_in,
                "Wrong passwords and handshakes, and clients that said nothing of themselves.",
            ),
        ];
        for (name, count, help) in counted {
            text.one((name, "counter"), help, count.load(SeqCst));
        }
    }

    fn answers(&self, text: &mut Text) {
        let help = "How long clients waited for what is only looked at, and for what is ordered.";
        text.head(("answer_seconds", "histogram"), help);
        let gateway = &self.server.gateway;
        for (kind, times) in [("look", &gateway.looked), ("order", &gateway.ordered)] {
            let name = "rota_kv_answer_seconds";
            for (end, count) in times.until() {
                let _ = writeln!(
                    text.0,
                    "{name}_bucket{{kind=\"{kind}\",le=\"{end}\"}} {count}"
                );
            }
            let (count, sum) = times.all();
            let _ = writeln!(
                text.0,
                "{name}_bucket{{kind=\"{kind}\",le=\"+Inf\"}} {count}"
            );
            let _ = writeln!(text.0, "{name}_sum{{kind=\"{kind}\"}} {sum}");
            let _ = writeln!(text.0, "{name}_count{{kind=\"{kind}\"}} {count}");
        }
    }

    fn replica(&self, text: &mut Text) {
        if !self.server.gateway.orders.is_open() {
            // It takes in a state: nobody waits for that.
            return;
        }
        let status = self.replica.status();
        let counts = status.counts;
        let counted = [
            (
                "applied",
                counts.applied,
                "Messages of commands that were applied.",
            ),
            ("applied_bytes", counts.bytes, "Their bytes."),
            (
                "checkpoints",
                counts.checkpoints,
                "States that were written.",
            ),
            (
                "checkpoints_failed",
                counts.checkpoints_failed,
                "States that could not be written.",
            ),
            (
                "recoveries",
                counts.recoveries,
                "How often it began anew with a state of another replica.",
            ),
            (
                "recovered_bytes",
                counts.recovered_bytes,
                "Bytes that came for that.",
            ),
        ];
        for (name, count, help) in counted {
            text.one((name, "counter"), help, count);
        }
        let stopped = u8::from(status.ended.is_some());
        text.one(("stopped", "gauge"), "The replica has stopped.", stopped);
        let waits = status
            .rings
            .map(|rings| rings.waits_for)
            .unwrap_or_default();
        text.head(
            ("waits_for_ring", "gauge"),
            "What has come waits for this ring.",
        );
        for ring in [self.server.gateway.ring, self.server.gateway.global] {
            let is = u8::from(waits.iter().any(|need| need.rank == ring));
            let _ = writeln!(text.0, "rota_kv_waits_for_ring{{ring=\"{}\"}} {is}", ring.0);
        }
    }
}
