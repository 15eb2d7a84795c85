//! The destinations and the guarantee of a message.

use rota_core::contract::Service;
use rota_core::groups::{GroupName, NameError};

use crate::protocol::{Destination, PrivateName};

/// The destinations, the guarantee and the kind of a message. A plain text does for one destination and the defaults of
/// the client: `client.send("orders", b"hello")`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    to: To,
    pub(crate) service: Option<Service>,
    pub(crate) self_discard: bool,
    pub(crate) kind: u16,
}

/// Most messages have one destination, which needs no memory of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
enum To {
    One(Destination),
    Many(Vec<Destination>),
}

impl Envelope {
    /// To one group, or one client by its private name `#client#daemon`.
    pub fn to(destination: &str) -> Result<Self, NameError> {
        Ok(Self::from(destination.parse::<Destination>()?))
    }

    /// To several, from 1 to 100. A receiver that is in several gets the message once.
    pub fn to_all<T: AsRef<str>>(
        destinations: impl IntoIterator<Item = T>,
    ) -> Result<Self, NameError> {
        let parse = |text: T| text.as_ref().parse::<Destination>();
        let parsed: Result<Vec<_>, _> = destinations.into_iter().map(parse).collect();
        Ok(Self::new(To::Many(parsed?)))
    }

    const fn new(to: To) -> Self {
        Self {
            to,
            service: None,
            self_discard: false,
            kind: 0,
        }
    }

    /// The guarantee that the message asks for; without this call the client's.
    #[must_use]
    pub const fn service(mut self, service: Service) -> Self {
        self.service = Some(service);
        self
    }

    /// The application's number for this kind of message; otherwise 0.
    #[must_use]
    pub const fn kind(mut self, kind: u16) -> Self {
        self.kind = kind;
        self
    }

    /// This client does not want the message back.
    #[must_use]
    pub const fn self_discard(mut self) -> Self {
        self.self_discard = true;
        self
    }

    /// All destinations.
    pub fn destinations(&self) -> &[Destination] {
        match &self.to {
            To::One(destination) => std::slice::from_ref(destination),
            To::Many(destinations) => destinations,
        }
    }
}

impl TryFrom<&str> for Envelope {
    type Error = NameError;

    fn try_from(destination: &str) -> Result<Self, NameError> {
        Self::to(destination)
    }
}

impl From<&Self> for Envelope {
    fn from(envelope: &Self) -> Self {
        envelope.clone()
    }
}

impl From<Destination> for Envelope {
    fn from(destination: Destination) -> Self {
        Self::new(To::One(destination))
    }
}

impl From<GroupName> for Envelope {
    fn from(group: GroupName) -> Self {
        Destination::from(group).into()
    }
}

impl From<PrivateName> for Envelope {
    fn from(client: PrivateName) -> Self {
        Destination::from(client).into()
    }
}
