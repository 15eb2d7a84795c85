//! `GET /metrics`: how the process is, for Prometheus (OpenMetrics text).

use std::convert::Infallible;
use std::fmt::{self, Write as _};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
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
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::facts::Facts;
use super::listen::Server;
use super::local::{Local, bind, listen};
use crate::store::Store;

/// So many ask at once at most.
const MOST_GUESTS: usize = 16;
/// A request and its answer take no longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a listener waits that got an error.
const PAUSE: Duration = Duration::from_millis(50);
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Whom it tells of.
pub(super) struct Of {
    pub(super) server: Arc<Server>,
    pub(super) replica: Arc<Replica<Store>>,
}

/// Answers at an address, until what is returned is dropped.
pub(super) fn open(address: SocketAddr, of: Of) -> io::Result<Local> {
    let listener = bind(address)?;
    Local::start("rota-kv-metrics", move || {
        listen(listener, move |listener| serve(listener, Arc::new(of)));
    })
}

async fn serve(listener: TcpListener, of: Arc<Of>) {
    let room = Arc::new(Semaphore::new(MOST_GUESTS));
    loop {
        let Ok(seat) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
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
        _ if !rota_net::is_meant_for(host, "", &[]) => (
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

/// The text, as it is written.
struct Text(String);

impl Text {
    fn one(&mut self, (name, kind): (&str, &str), help: &str, value: impl fmt::Display) {
        self.head((name, kind), help);
        let end = if kind == "counter" { "_total" } else { "" };
        let _ = writeln!(self.0, "rota_kv_{name}{end} {value}");
    }

    fn gauges(&mut self, gauges: &[(&str, u64, &str)]) {
        for (name, value, help) in gauges {
            self.one((name, "gauge"), help, value);
        }
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
        self.clients(&mut text);
        self.answers(&mut text);
        self.replica(&mut text);
        text.0 + "# EOF\n"
    }

    fn store(&self, text: &mut Text) {
        let (server, gateway) = (&self.server, &self.server.gateway);
        let facts = Facts::of(gateway);
        let flag = |flag: bool| u64::from(flag);
        let gauges = [
            (
                "partition",
                u64::from(gateway.own.0),
                "Which partition this process has.",
            ),
            (
                "open",
                flag(facts.is_open),
                "Its replica has caught up: 0 while it is behind, or gets a state of another one.",
            ),
            ("keys", facts.keys as u64, "Keys of its partition."),
            (
                "keys_ending",
                facts.ending as u64,
                "Of those, how many have an end.",
            ),
            ("bytes", facts.bytes as u64, "What they take, about."),
            (
                "bytes_limit",
                server.most_bytes,
                "With so many it takes no writes.",
            ),
            ("full", flag(facts.is_full), "It has so many."),
            (
                "processes_connected",
                facts.connected as u64,
                "Other processes that it is connected to.",
            ),
            (
                "processes_configured",
                facts.configured as u64,
                "Other processes that there should be.",
            ),
            (
                "answers_waiting",
                facts.waiting as u64,
                "Answers that wait for other partitions.",
            ),
            (
                "clients",
                server.clients.load(SeqCst),
                "Clients that are connected.",
            ),
            ("clients_limit", server.most_clients, "So many may be."),
            (
                "clients_bytes",
                server.held.bytes(),
                "What is kept for clients.",
            ),
        ];
        text.gauges(&gauges);
        Self::slots(&facts, text);
        self.waits(&facts, text);
    }

    fn slots(facts: &Facts, text: &mut Text) {
        let gauges = [
            ("slots", facts.slots as u64, "Slots of its partition."),
            (
                "slots_frozen",
                facts.frozen as u64,
                "Slots, of any partition, that nobody writes to, since they move.",
            ),
            (
                "map_epoch",
                facts.epoch,
                "Grows with each move of slots; one that stays behind is of a process that catches up.",
            ),
        ];
        text.gauges(&gauges);
    }

    fn waits(&self, facts: &Facts, text: &mut Text) {
        text.head(
            ("answers_wait_for", "gauge"),
            "The partitions that they wait for.",
        );
        for partition in self.server.gateway.maps.now().partitions() {
            let waits = u8::from(facts.waits_for.contains(&partition));
            let _ = writeln!(
                text.0,
                "rota_kv_answers_wait_for{{partition=\"{}\"}} {waits}",
                partition.0
            );
        }
    }

    fn clients(&self, text: &mut Text) {
        let server = &self.server;
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
