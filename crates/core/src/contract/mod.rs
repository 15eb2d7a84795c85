//! The seam between a protocol and the world: the inputs and the outputs of an engine.
//!
//! An [`Engine`] turns submissions into one ordered stream plus configuration changes. The owner of the sockets drives
//! it: `rota-net` in production, the simulator, or a test.
//!
//! # Four kinds of methods
//!
//! * **getters** (`reading`, `next_timer`, `status`) change nothing;
//! * **`handle`** tells the engine what happened;
//! * **commands** (`submit`, and an engine's own by [`Checked::command`]) come from the application;
//! * **polls** (`poll_output`, `poll_delivery`) hand out what the engine wants done.
//!
//! # The caller's law
//!
//! 1. The first input is [`Input::Start`]; `now` never goes backwards.
//! 2. Outputs are carried out strictly in the order in which `poll_output` hands them out. To poll for
//!    the next output is to say that the previous one has left: a driver whose socket would block
//!    keeps the output and does not poll.
//! 3. After every `handle` or `submit`, `poll_output` is called until it says `None`; messages of links that
//!    came together, and answers of disks, may be handed in one after the other before that. While an output is stuck in a full
//!    socket, datagrams of [`Class::Data`], timers and link events may still be handed in; **a token may
//!    not** (thesis §4.2: a participant finishes broadcasting before it processes the next token).
//! 4. After every received burst `reading` is asked again: what to read next is protocol state
//!    (report §III-D), and the answer changes with every burst.
//! 5. `next_timer` is asked after the outputs are drained and deliveries were taken, which may make
//!    one due at once; when that time has come, hand in [`Input::Timer`].
//! 6. `poll_delivery` is called only while the application has room. Deliveries that are not pulled stay in the engine,
//!    which throttles the senders instead of growing.
//!
//! In debug builds [`Checked`], which wraps any engine, checks all of it: of rule 6, which is about the application, that
//! none is asked for while the application hangs. It also checks the size and the order of requests to a disk, that
//! sessions of links ascend and links get no more than they take, and that what has a place in the order is delivered in
//! that order.
//!
//! # The canonical loop
//!
//! ```text
//! engine.handle(now, Input::Start { .. });
//! loop {
//!     while let Some(output) = engine.poll_output() { carry_out(output); }
//!     while application.has_room() && let Some(d) = engine.poll_delivery() { application.take(d); }
//!     let first = engine.reading();                       // ask again after every burst
//!     let event = read(first).or_else(|| read(first.other())).or_else(|| wait_until(engine.next_timer()));
//!     engine.handle(now(), event);
//! }
//! ```

mod checked;
mod delivery;
mod input;
mod link_law;
mod measures;
mod output;
mod pieces;
mod turn_law;
mod types;

pub use checked::Checked;
pub use delivery::{Configuration, ConfigurationKind, Delivery, Message, MessageId, position};
pub use input::{Input, PersistError, StartState};
pub use measures::{Histogram, PeerCounters};
pub use output::{Burst, LogRecord, MOST_PERSISTING, MOST_RECORD, Output, Target, TimerReason};
pub use pieces::{Pieces, PiecesWriter};
pub use types::{
    Channel, Class, Engine, Incarnation, LogId, NodeId, PersistId, Process, RingId, Seq, Service,
    Session, Status, SubmitError, Time, has_majority,
};
