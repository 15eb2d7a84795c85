//! The log of a daemon. It is written in a thread of its own, so that whoever reads it, or does not, keeps
//! neither the ring nor a client waiting.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::str::FromStr;

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, Registry, fmt, reload};

/// Lines that may wait to be written; more are dropped.
const LINES: usize = 4096;

/// How a log is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object on a line, with all fields.
    Json,
}

/// Which lines are written: from which level on, for all targets and for each that has a level of its own. A target is a
/// crate or a module.
#[derive(Clone, Debug)]
pub struct Levels(Targets);

impl Default for Levels {
    fn default() -> Self {
        Self(Targets::new().with_default(LevelFilter::INFO))
    }
}

impl FromStr for Levels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |error: &dyn Display| {
            format!(
                "log = {text:?}: {error}; it is a level (off, error, warn, info, debug, trace), and levels of targets, as in \
                 \"info,rota_net=debug\""
            )
        };
        if text.trim().is_empty() {
            return Err(wrong(&"it is empty"));
        }
        text.parse().map(Self).map_err(|error| wrong(&error))
    }
}

/// Changes the levels of a log that is being written.
#[derive(Clone, Debug)]
pub struct LevelsHandle(reload::Handle<Targets, Registry>);

impl LevelsHandle {
    /// Has these levels from here on.
    pub fn set(&self, levels: Levels) {
        // The log of a process stays as long as that.
        let _ = self.0.reload(levels.0);
    }
}

/// The log, until it is dropped: then what waits is written, as far as somebody takes it within a second.
#[derive(Debug)]
pub struct Log {
    lost: ErrorCounter,
    _writer: WorkerGuard,
}

impl Log {
    /// Begins to write what is logged in this process to standard error, with the usual levels.
    pub fn start(format: LogFormat) -> (Self, LevelsHandle) {
        let (writer, log) = Self::to(io::stderr(), LINES);
        let (levels, handle) = reload::Layer::new(Levels::default().0);
        let lines = fmt::layer().with_writer(writer).with_target(false);
        let colours = io::stderr().is_terminal() && may_colour(std::env::var_os("NO_COLOR"));
        let lines = match format {
            LogFormat::Text => lines.with_ansi(colours).boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        tracing_subscriber::registry()
            .with(levels)
            .with(lines)
            .init();
        (log, LevelsHandle(handle))
    }

    fn to(out: impl Write + Send + 'static, lines: usize) -> (NonBlocking, Self) {
        let builder = NonBlockingBuilder::default().thread_name("rota-log");
        let (writer, guard) = builder.lossy(true).buffered_lines_limit(lines).finish(out);
        let lost = writer.error_counter();
        let log = Self {
            lost,
            _writer: guard,
        };
        (writer, log)
    }

    /// The number of lines that were dropped because nobody took those before.
    pub fn lost(&self) -> impl Fn() -> u64 + Send + 'static {
        let lost = self.lost.clone();
        move || lost.dropped_lines() as u64
    }
}

/// Whether a terminal may be coloured: `NO_COLOR`, with anything in it, says no (no-color.org).
pub fn may_colour(no_color: Option<OsString>) -> bool {
    no_color.is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn levels_are_one_for_all_and_others_for_targets() {
        for good in [
            "info",
            "warn,rota_net=debug",
            "off",
            "rota_daemon::tls=trace,error",
        ] {
            assert!(good.parse::<Levels>().is_ok(), "{good}");
        }
        for wrong in ["", " ", "info,rota_net=loud", "rota_net=debug=trace"] {
            let error = wrong.parse::<Levels>().expect_err(wrong);
            assert!(error.contains("rota_net=debug"), "{error}");
        }
        let levels: Levels = "warn,rota_net=debug".parse().expect("levels");
        let is_written = |target, level| levels.0.would_enable(target, &level);
        assert!(is_written("rota_net::links::door", tracing::Level::DEBUG));
        assert!(!is_written("rota_node", tracing::Level::INFO));
    }

    #[test]
    fn no_color_says_that_there_are_none() {
        assert!(may_colour(None) && may_colour(Some("".into())));
        assert!(!may_colour(Some("1".into())) && !may_colour(Some("0".into())));
    }

    #[test]
    fn what_nobody_takes_is_dropped_and_counted() {
        let (out, mut reader) = UnixStream::pair().expect("descriptors");
        let (mut writer, log) = Log::to(out, 4);
        let lost = log.lost();
        let line = [b'x'; 1 << 20];
        // The socket takes less than one of them, the queue four.
        for _ in 0..20 {
            writer.write_all(&line).expect("it never waits");
        }
        assert!((14..=16).contains(&lost()), "{}", lost());
        let taken = 20 - lost();
        let reading = std::thread::spawn(move || {
            let mut bytes = 0;
            let mut piece = vec![0; 1 << 20];
            while bytes < taken << 20 {
                bytes += reader.read(&mut piece).expect("it is connected") as u64;
            }
        });
        reading.join().expect("all others arrive");
    }
}
