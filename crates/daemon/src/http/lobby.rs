//! The connections to the HTTP server: the oldest make way for new ones, those without a request first.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Places that are kept free as long as a connection can make way.
const SLACK: usize = 4;
/// A thread whose connection was closed notices that within this time, on a host that is not overloaded beyond use.
const NOTICED: Duration = Duration::from_secs(1);

/// Connections, each of which has a thread.
#[derive(Debug)]
pub(super) struct HttpConnections {
    most: usize,
    inside: Mutex<Inside>,
    /// A connection was closed.
    left: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    newest: u64,
    /// Those that have asked for nothing yet, oldest first.
    silent: VecDeque<(u64, Arc<TcpStream>)>,
    /// Those that are being answered, or do not take their answer.
    asked: VecDeque<(u64, Arc<TcpStream>)>,
    /// All connections that have a thread, also those that were closed and whose thread has not noticed yet.
    count: usize,
}

impl HttpConnections {
    /// At most `most` connections without a request, and twice as many in all.
    pub const fn new(most: usize) -> Self {
        let inside = Inside {
            newest: 0,
            silent: VecDeque::new(),
            asked: VecDeque::new(),
            count: 0,
        };
        Self {
            most,
            inside: Mutex::new(inside),
            left: Condvar::new(),
        }
    }

    /// Enters one more connection, which has its place until the guest is dropped. If there are many, the oldest silent one
    /// is closed for it. While all places are taken by threads that have not noticed yet, this waits for one of them; `None`
    /// if that is in vain.
    pub fn enter(self: &Arc<Self>, stream: &Arc<TcpStream>) -> Option<HttpGuest> {
        let mut inside = self.inside();
        if inside.silent.len() >= self.most
            && let Some((_, oldest)) = inside.silent.pop_front()
        {
            // The shutdown ends the wait of the thread of that connection.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        // Closes one while there is still room for connections whose threads take a moment to notice.
        if inside.count + SLACK >= 2 * self.most
            && let Some((_, oldest)) = inside.asked.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let is_full = |inside: &mut Inside| inside.count >= 2 * self.most;
        let waited = self.left.wait_timeout_while(inside, NOTICED, is_full);
        let (mut inside, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            return None;
        }
        inside.newest += 1;
        inside.count += 1;
        let number = inside.newest;
        inside.silent.push_back((number, Arc::clone(stream)));
        let lobby = Arc::clone(self);
        Some(HttpGuest { lobby, number })
    }

    fn asked(&self, number: u64) {
        let mut inside = self.inside();
        let place = inside.silent.iter().position(|(other, _)| *other == number);
        if let Some(entry) = place.and_then(|place| inside.silent.remove(place)) {
            inside.asked.push_back(entry);
        }
    }

    fn leave(&self, number: u64) {
        let mut inside = self.inside();
        inside.silent.retain(|(other, _)| *other != number);
        inside.asked.retain(|(other, _)| *other != number);
        inside.count -= 1;
        self.left.notify_one();
    }

    /// No step can panic half-way.
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a connection, which is free again when this is dropped, also by a thread that panics.
#[derive(Debug)]
pub(super) struct HttpGuest {
    lobby: Arc<HttpConnections>,
    number: u64,
}

impl HttpGuest {
    /// Notes that the connection has sent its request, and is answered.
    pub fn asked(&self) {
        self.lobby.asked(self.number);
    }
}

impl Drop for HttpGuest {
    fn drop(&mut self) {
        self.lobby.leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    use super::*;

    fn pair(listener: &TcpListener) -> (TcpStream, Arc<TcpStream>) {
        let address = listener.local_addr().expect("it is bound");
        let far = TcpStream::connect(address).expect("it listens");
        (far, Arc::new(listener.accept().expect("one").0))
    }

    fn is_closed(far: &TcpStream) -> bool {
        far.set_nonblocking(true).expect("a socket");
        matches!((&*far).read(&mut [0]), Ok(0))
    }

    #[test]
    fn the_oldest_that_is_silent_makes_way() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let lobby = Arc::new(HttpConnections::new(8));
        let all: Vec<_> = (0..10).map(|_| pair(&listener)).collect();
        let mut guests = vec![lobby.enter(&all[0].1).expect("room")];
        guests[0].asked();
        for (_, near) in &all[1..] {
            guests.push(lobby.enter(near).expect("the second makes way, if any"));
        }
        let closed: Vec<bool> = all.iter().map(|(far, _)| is_closed(far)).collect();
        assert_eq!(closed, (0..10).map(|at| at == 1).collect::<Vec<_>>());
    }

    #[test]
    fn so_does_one_that_does_not_take_its_answer() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let lobby = Arc::new(HttpConnections::new(8));
        let all: Vec<_> = (0..17).map(|_| pair(&listener)).collect();
        let mut guests = Vec::new();
        for (_, near) in &all[..16] {
            let guest = lobby.enter(near).expect("room");
            guest.asked();
            guests.push(guest);
        }
        let closed = all.iter().filter(|(far, _)| is_closed(far)).count();
        assert_eq!(closed, SLACK);
        // Their threads have not noticed: there are no more than twice as many.
        assert!(lobby.enter(&all[16].1).is_none());
        thread::scope(|scope| {
            let late = scope.spawn(|| lobby.enter(&all[16].1).is_some());
            guests.pop();
            assert!(late.join().expect("no panic"));
        });
    }

    #[test]
    fn the_place_of_a_thread_that_panics_is_free_again() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let lobby = Arc::new(HttpConnections::new(8));
        let (_far, near) = pair(&listener);
        for _ in 0..40 {
            let guest = lobby.enter(&near).expect("room");
            let panics = thread::spawn(move || {
                guest.asked();
                std::panic::resume_unwind(Box::new("no line of a panic"));
            });
            panics.join().expect_err("it panics");
        }
        let inside = lobby.inside();
        assert_eq!((inside.count, inside.asked.len()), (0, 0));
    }
}
