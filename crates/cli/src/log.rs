//! The log of a daemon. It is written in a thread of its own, so that whoever reads it, or does not, keeps
//! neither the ring nor a client waiting.

use std::io::{self, IsTerminal, Write};

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

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

/// The log, until it is dropped: then what waits is written, as far as somebody takes it within a second.
#[derive(Debug)]
pub struct Log {
    lost: ErrorCounter,
    _writer: WorkerGuard,
}

impl Log {
    /// Begins to write what is logged in this process to standard error.
    pub fn start(format: LogFormat) -> Self {
        let (writer, log) = Self::to(io::stderr(), LINES);
        let lines = tracing_subscriber::fmt()
            .with_writer(writer)
            .with_target(false);
        match format {
            LogFormat::Text => lines.with_ansi(io::stderr().is_terminal()).init(),
            LogFormat::Json => lines.json().flatten_event(true).init(),
        }
        log
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

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

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
