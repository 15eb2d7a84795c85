//! Connects the socket of an async client.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time;

use crate::error::ConnectError;
use crate::tcp;

/// The pause between two attempts while the daemon's queue of connections is full.
const TRY_AGAIN: Duration = Duration::from_millis(10);

type Attempt = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;

/// If the queue of the listener is full, the kernel refuses at once: the attempt is repeated for as long as the caller
/// waits.
pub async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                time::sleep(TRY_AGAIN).await;
            }
            connected => return connected,
        }
    }
}

pub async fn connect_tcp(host: &str, insecure: bool) -> Result<TcpStream, ConnectError> {
    connect_first(tcp::to_try(lookup_host(host).await?, insecure)?).await
}

/// Tries the addresses one behind the other, each soon after the one before, and takes the first that answers: an
/// address without an answer does not hold up the next.
async fn connect_first(addresses: Vec<SocketAddr>) -> Result<TcpStream, ConnectError> {
    let mut rest = addresses.into_iter();
    let mut under_way: Vec<Attempt> = Vec::new();
    let mut failed = tcp::no_address();
    loop {
        if let Some(address) = rest.next() {
            under_way.push(Box::pin(TcpStream::connect(address)));
        } else if under_way.is_empty() {
            return Err(failed.into());
        }
        let ended = next_end(&mut under_way);
        let ended = if rest.len() > 0 {
            time::timeout(tcp::STAGGER, ended).await.ok()
        } else {
            Some(ended.await)
        };
        match ended {
            Some(Ok(stream)) => {
                tcp::prepare(&stream)?;
                return Ok(stream);
            }
            Some(Err(error)) => failed = error,
            None => {}
        }
    }
}

/// The outcome of the first attempt that ends.
async fn next_end(under_way: &mut Vec<Attempt>) -> io::Result<TcpStream> {
    poll_fn(|context| {
        for at in 0..under_way.len() {
            if let Poll::Ready(ended) = under_way[at].as_mut().poll(context) {
                drop(under_way.remove(at));
                return Poll::Ready(ended);
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::tests::{BlackHole, closed_port, open_port};

    #[tokio::test]
    async fn an_address_that_nothing_answers_for_keeps_nobody_from_the_next() {
        let (hole, open) = (BlackHole::new(), open_port());
        let good = open.local_addr().expect("its address");
        let addresses = vec![hole.address, closed_port(), hole.address, good];
        let connecting = time::timeout(Duration::from_secs(10), connect_first(addresses));
        let stream = connecting.await.expect("in time").expect("connected");
        assert_eq!(stream.peer_addr().expect("connected"), good);
        for addresses in [vec![], vec![closed_port(); 2]] {
            let failed = connect_first(addresses).await.expect_err("there is nobody");
            assert!(matches!(failed, ConnectError::Io(_)), "{failed}");
        }
    }
}
