//! The socket at which operators ask for the nodes of the cluster, and have them changed. Only the daemon's own user, and
//! root, can connect.

use std::fmt::Display;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::request::{MemberReply, MemberRequest};
use crate::control::{Control, NotAnswered};
use crate::door::listen_for_owner;

/// The longest request, in bytes.
const MOST_BYTES: u64 = 4096;
/// The time that an operator's program may take to say what it wants, or to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time after which the daemon gives a change up that is not made.
const ANSWER: Duration = Duration::from_secs(15);
/// The time that answers have to be written once the daemon stops.
const FAREWELL: Duration = Duration::from_secs(1);
/// Connections at one time; more are turned away with a reason.
const MOST: usize = 8;

/// The path of this socket, beside a daemon's admin socket.
pub fn members_socket(admin: &Path) -> PathBuf {
    let mut path = admin.as_os_str().to_owned();
    path.push(".members");
    PathBuf::from(path)
}

/// Answers until it is dropped.
#[derive(Debug)]
pub(super) struct Desk {
    path: PathBuf,
    state: State,
}

/// What the threads share.
#[derive(Clone, Debug, Default)]
struct State {
    stop: Arc<AtomicBool>,
    /// Connections.
    open: Arc<AtomicUsize>,
    /// Requests whose answers are not written yet.
    unanswered: Arc<AtomicUsize>,
}

/// One more of what is counted, as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn one(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl Desk {
    /// Listens at this path.
    pub fn open(path: PathBuf, control: Control) -> io::Result<Self> {
        let listener = listen_for_owner(&path)?;
        let state = State::default();
        let its_state = state.clone();
        let thread = thread::Builder::new().name("rota-operator".to_owned());
        thread.spawn(move || serve(&listener, &control, &its_state))?;
        Ok(Self { path, state })
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        // Ends the wait for the next connection.
        let _ = UnixStream::connect(&self.path);
        let _ = fs::remove_file(&self.path);
        // The process may end next: whoever has an answer gets it.
        let until = Instant::now() + FAREWELL;
        while self.state.unanswered.load(Ordering::Acquire) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn serve(listener: &UnixListener, control: &Control, state: &State) {
    while !state.stop.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            // No descriptors, most often: there will be one again.
            thread::sleep(Duration::from_millis(250));
            continue;
        };
        if state.open.load(Ordering::Relaxed) >= MOST {
            // The socket has room for a line. A program that has gone needs none.
            let _ = say(&stream, &not_done(&NotAnswered::Many));
            continue;
        }
        let (control, open) = (control.clone(), Counted::one(&state.open));
        let unanswered = Arc::clone(&state.unanswered);
        let answer = move || {
            // A program that has gone needs no answer.
            let _ = answer(&stream, &control, &unanswered);
            drop(open);
        };
        let thread = thread::Builder::new().name("rota-operator-1".to_owned());
        // Without a thread there is no answer.
        let _ = thread.spawn(answer);
    }
}

/// Reads one request, a line of JSON, and answers with another.
fn answer(stream: &UnixStream, control: &Control, unanswered: &Arc<AtomicUsize>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(MOST_BYTES)).read_line(&mut line)?;
    let _unanswered = Counted::one(unanswered);
    let reply = match serde_json::from_str::<MemberRequest>(&line) {
        Ok(request) => control
            .members(request, ANSWER)
            .unwrap_or_else(|why| not_done(&why)),
        Err(error) => not_done(&format_args!("not a request: {error}")),
    };
    say(stream, &reply)
}

fn say(mut stream: &UnixStream, reply: &MemberReply) -> io::Result<()> {
    // Strings and numbers are always JSON.
    let mut text = serde_json::to_string(reply).unwrap_or_default();
    text.push('\n');
    stream.write_all(text.as_bytes())
}

fn not_done(why: &dyn Display) -> MemberReply {
    MemberReply {
        text: why.to_string(),
        ..MemberReply::default()
    }
}
