//! `GET /metrics`: the state of the process, for Prometheus (OpenMetrics text).

use std::convert::Infallible;
use std::fmt::{self, Write as _};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::Times;
use crate::local::{Local, bind, listen};

/// The number of requests at once, at most.
const MOST_GUESTS: usize = 16;
/// The time that a request and its answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause of a listener after an error.
const PAUSE: Duration = Duration::from_millis(50);
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The function that writes the metrics of the process.
pub type Tells = Box<dyn Fn(&mut Text) + Send + Sync>;

/// Answers at an address, until the returned value is dropped. `service`: the beginning of the names of all metrics.
///
/// # Errors
/// The system's: nothing listens at the address then.
pub fn open(address: SocketAddr, service: &'static str, tells: Tells) -> io::Result<Local> {
    let listener = bind(address)?;
    let of = Of { service, tells };
    Local::start("rota-metrics", move || {
        listen(listener, move |listener| serve(listener, Arc::new(of)));
    })
}

/// The service, and its metrics.
struct Of {
    service: &'static str,
    tells: Tells,
}

impl Of {
    fn text(&self) -> String {
        let mut text = Text(String::new(), self.service);
        (self.tells)(&mut text);
        text.0 + "# EOF\n"
    }
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

/// The text so far, and the service that all names in it begin with.
#[derive(Debug)]
pub struct Text(String, &'static str);

impl Text {
    /// A text without metrics, of a service.
    #[cfg(test)]
    pub(crate) const fn new(service: &'static str) -> Self {
        Self(String::new(), service)
    }

    /// The text so far.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// A metric with one value. `kind`: `gauge` or `counter`.
    pub fn one(&mut self, (name, kind): (&str, &str), help: &str, value: impl fmt::Display) {
        self.head((name, kind), help);
        let end = if kind == "counter" { "_total" } else { "" };
        let _ = writeln!(self.0, "rota_{}_{name}{end} {value}", self.1);
    }

    /// Several gauges: name, value, and help text.
    pub fn gauges(&mut self, gauges: &[(&str, u64, &str)]) {
        for (name, value, help) in gauges {
            self.one((name, "gauge"), help, value);
        }
    }

    /// Several counters: name, value, and help text.
    pub fn counters(&mut self, counters: &[(&str, u64, &str)]) {
        for (name, value, help) in counters {
            self.one((name, "counter"), help, value);
        }
    }

    /// The head of a metric with several values.
    pub fn head(&mut self, (name, kind): (&str, &str), help: &str) {
        let of = self.1;
        let _ = write!(
            self.0,
            "# TYPE rota_{of}_{name} {kind}\n# HELP rota_{of}_{name} {help}\n"
        );
    }

    /// One value of a metric with several. `of`: its labels, as `name="value"`.
    pub fn value(&mut self, name: &str, of: &str, value: impl fmt::Display) {
        let _ = writeln!(self.0, "rota_{}_{name}{{{of}}} {value}", self.1);
    }

    /// The values of a histogram with a label.
    pub fn histogram(&mut self, name: &str, of: &str, times: &Times) {
        let bucket = format!("{name}_bucket");
        for (end, count) in times.until() {
            self.value(&bucket, &format!("{of},le=\"{end}\""), count);
        }
        let (count, sum) = times.all();
        self.value(&bucket, &format!("{of},le=\"+Inf\""), count);
        self.value(&format!("{name}_sum"), of, sum);
        self.value(&format!("{name}_count"), of, count);
    }
}
