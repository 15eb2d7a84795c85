//! The process of a service that is asked, and the output of answers.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use rota_resp::Reply;

use super::who::Who;
use crate::say::{complain, failed};

/// Which process.
#[derive(Clone, Debug, clap::Args)]
pub struct Where {
    /// Any process, where clients of Redis' protocol connect
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6379")]
    connect: SocketAddr,
    /// How long an answer may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    patience: u64,
    #[command(flatten)]
    who: Who,
}

impl Where {
    /// The time that an answer may take.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.patience.max(1))
    }

    /// The answers to commands, on a connection of their own.
    pub fn ask(&self, commands: &[Vec<Vec<u8>>]) -> Result<Vec<Reply>, String> {
        let mut talk = self.who.connect(self.connect, self.patience())?;
        let replies = talk.say(commands);
        replies.map_err(|error| format!("{}: {error}", self.connect))
    }

    /// The same of one; an error is one here, too.
    pub fn ask_one(&self, words: &[&str]) -> Result<Reply, String> {
        self.who.ask(self.connect, self.patience(), words)
    }

    /// A connection on which who asks has said who it is.
    pub fn connect(&self) -> Result<super::talk::RpcConnection, String> {
        self.who.connect(self.connect, self.patience())
    }
}

/// It was not done, and why.
pub fn refused(what: &str) -> ExitCode {
    complain(&what);
    ExitCode::FAILURE
}

/// Prints bytes as they are, and a line's end.
pub fn line(parts: &[&[u8]]) {
    let mut out = io::stdout().lock();
    let bytes = [&parts.concat()[..], b"\n"].concat();
    if let Err(error) = out.write_all(&bytes).and_then(|()| out.flush()) {
        failed(&error);
    }
}
