//! A hub with clients of one process, and the deliveries of a ring of one daemon.

mod bounds;
mod unread;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use bytes::Bytes;
use rota_client::protocol::{Hello, Inbox, MAX_REPLY_BYTES, Reply, Request};
use rota_core::contract::{
    Configuration, ConfigurationKind, Delivery, Incarnation, Message, MessageId, NodeId, Process,
    RingId, Time,
};
use rota_core::groups::{ClientName, DaemonName, Directory, GroupName};

use super::Hub;
use crate::access::{Access, Peer};
use crate::config::DaemonConfig;
use crate::door::{Comer, Door, Port};
use crate::seats::ConnectionLimits;
use crate::spread::Settings;
use crate::stream::Stream;

const ME: Process = Process {
    node: NodeId::new(1).expect("not 0"),
    incarnation: Incarnation(7),
};

/// A hub, and all that happens around it.
struct House {
    hub: Hub,
    submitted: u64,
    now: Time,
}

/// The other end of a client's socket.
struct Far {
    socket: UnixStream,
    inbox: Inbox<Reply>,
}

impl House {
    fn new(settings: &str) -> Self {
        let config: DaemonConfig = toml::from_str(settings).expect("settings");
        config.check().expect("good ones");
        let access = Arc::new(Access::new(&[]).expect("no rules"));
        let directory = Directory::new([(ME.node, DaemonName::new("n1").expect("a name"))]);
        let spread = Arc::new(Settings::new(b"n1").expect("a name"));
        let limits = ConnectionLimits::new(config.per_address, config.per_user);
        let door = Door::new(limits).expect("descriptors");
        let hub = Hub::new(door, ME, &config, access, (directory, spread));
        let mut house = Self {
            hub,
            submitted: 0,
            now: rota_net::monotonic(),
        };
        house.hub.deliver(Delivery::Configuration(Configuration {
            kind: ConfigurationKind::Regular(RingId {
                ring_seq: 1,
                rep: ME.node,
                incarnation: ME.incarnation,
            }),
            members: vec![ME],
        }));
        house.settle();
        house
    }

    /// Connects a client; of this user, or the daemon's own.
    fn connect(&mut self, uid: u32) -> Far {
        let (socket, near) = UnixStream::pair().expect("descriptors");
        near.set_nonblocking(true).expect("a socket");
        socket.set_nonblocking(true).expect("a socket");
        let comer = Comer {
            port: Port::Native,
            stream: Stream::Unix(mio::net::UnixStream::from_std(near), None),
            peer: Peer::Local {
                uid,
                gids: Vec::new(),
            },
            seat: None,
            tls: None,
        };
        self.hub.let_in(comer, self.now);
        let inbox = Inbox::new(MAX_REPLY_BYTES);
        Far { socket, inbox }
    }

    /// A client that is let in under this name.
    fn client(&mut self, name: &str, membership: bool) -> Far {
        let mut far = self.connect(nix::unistd::geteuid().as_raw());
        let name = ClientName::new(name).expect("a name");
        far.ask(&Request::Hello(Hello::new(Some(name), membership)));
        self.settle();
        let told = far.take();
        assert!(matches!(told[..], [Reply::Welcome(_)]), "{told:?}");
        far
    }

    /// Handles all that clients have sent.
    fn serve(&mut self) {
        self.now = self.now.after(1_000_000);
        self.hub.serve(self.now).expect("it goes on");
    }

    /// Delivers the next message that the hub submits, if there is one.
    fn deliver(&mut self) -> bool {
        let Some((service, payload)) = self.hub.next_to_submit() else {
            return false;
        };
        let payload = Bytes::copy_from_slice(payload);
        self.submitted += 1;
        let counter = self.submitted;
        self.hub.submitted(counter);
        self.hub.deliver(Delivery::Message(Message {
            id: MessageId {
                process: ME,
                counter,
            },
            service,
            seq: counter,
            index: 0,
            payload,
        }));
        true
    }

    /// All that there is to do is done, but for what only a client can.
    fn settle(&mut self) {
        for _ in 0..4 {
            self.serve();
            while self.hub.has_room() && self.deliver() {}
            self.hub.flush();
        }
    }
}

impl Far {
    fn ask(&mut self, request: &Request) {
        let mut bytes = Vec::new();
        request.encode(&mut bytes).expect("it fits");
        self.socket.write_all(&bytes).expect("there is room");
    }

    /// All that has come.
    fn take(&mut self) -> Vec<Reply> {
        let mut buffer = [0; 64 << 10];
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) => break,
                Ok(bytes) => self.inbox.feed(&buffer[..bytes]),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        std::iter::from_fn(|| self.inbox.pull().expect("the protocol")).collect()
    }
}

fn join(request: u32, name: &str) -> Request {
    let group = GroupName::new(name).expect("a name");
    Request::Join { request, group }
}

fn leave(request: u32, name: &str) -> Request {
    let group = GroupName::new(name).expect("a name");
    Request::Leave { request, group }
}
