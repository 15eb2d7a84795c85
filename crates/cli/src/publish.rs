//! `rota pub`: each line is a message, or all that comes is one.

use std::io::{self, BufRead, BufReader, Read};
use std::process::ExitCode;

use clap::ValueEnum;
use rota_client::{Client, Envelope, Event, RequestError, SendError, Service};

use crate::client::{ClientOptions, Failure};
use crate::format::{self, Format};

/// The most bytes of JSON that a byte of text can take: `\u0000`.
const MOST_ESCAPED: u64 = 6;

/// The most bytes of a line of JSON beside its payload.
const MOST_HEAD: u64 = 64 << 10;

/// Options of `rota pub`.
#[derive(Clone, Debug, clap::Args)]
pub struct PubOptions {
    /// Where each message goes: groups, or clients as #client#daemon
    #[arg(required = true, value_name = "GROUP")]
    groups: Vec<String>,
    /// Which guarantee the messages ask for [default: agreed, or what a line of JSON says]
    #[arg(long, value_name = "SERVICE", value_enum)]
    service: Option<ServiceName>,
    /// What comes by standard input: a message on each line, as text or as JSON, or one message
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Lines)]
    format: Format,
    #[command(flatten)]
    client: ClientOptions,
}

/// The services by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ServiceName {
    Reliable,
    Fifo,
    Causal,
    Agreed,
    Safe,
}

impl From<ServiceName> for Service {
    fn from(name: ServiceName) -> Self {
        match name {
            ServiceName::Reliable => Self::Reliable,
            ServiceName::Fifo => Self::Fifo,
            ServiceName::Causal => Self::Causal,
            ServiceName::Agreed => Self::Agreed,
            ServiceName::Safe => Self::Safe,
        }
    }
}

/// Sends the lines of standard input.
pub fn main(options: &PubOptions) -> ExitCode {
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit(),
    }
}

fn run(options: &PubOptions) -> Result<(), Failure> {
    let envelope = Envelope::to_all(&options.groups).map_err(Failure::misused)?;
    if envelope.destinations().len() > rota_client::protocol::MAX_DESTINATIONS {
        return Err(Failure::misused(SendError::Destinations));
    }
    let service = options.service.map_or(Service::Agreed, Service::from);
    let envelope = envelope.service(service);
    let mut client = options.client.connect(&Client::builder())?;
    let sent = match options.format {
        Format::Raw => send_all(&mut client, &envelope),
        Format::Lines => {
            let most = client.largest_payload() as u64;
            send_lines(&mut client, most, |client, line| {
                send(client, &envelope, line)
            })
        }
        Format::Json => {
            let most = MOST_ESCAPED * client.largest_payload() as u64 + MOST_HEAD;
            let given = options.service.map(Service::from);
            send_lines(&mut client, most, |client, line| {
                send_json(client, &envelope, given, line)
            })
        }
    };
    let sent = sent.and_then(|()| all_sent(&mut client, &options.groups));
    // Lines before a mistake are sent all the same.
    let closed = client.close().map_err(Failure::failed);
    sent.and(closed)
}

/// Sends all that comes as one message.
fn send_all(client: &mut Client, envelope: &Envelope) -> Result<(), Failure> {
    // One byte more shows that it is too long, whatever its length.
    let limit = client.largest_payload() as u64 + 1;
    let mut payload = Vec::new();
    let read = io::stdin().lock().take(limit).read_to_end(&mut payload);
    read.map_err(|error| Failure::failed(format!("standard input: {error}")))?;
    send(client, envelope, &payload)
}

/// Sends the message that a line of JSON is.
fn send_json(
    client: &mut Client,
    envelope: &Envelope,
    service: Option<Service>,
    line: &[u8],
) -> Result<(), Failure> {
    let Some(message) = format::read(line).map_err(Failure::failed)? else {
        return Ok(());
    };
    let mut envelope = envelope.clone().kind(message.kind);
    if let Some(service) = service.or(message.service) {
        envelope = envelope.service(service);
    }
    send(client, &envelope, &message.payload)
}

/// Hands over each line, which has `most` bytes; of a longer one, a few more.
fn send_lines(
    client: &mut Client,
    most: u64,
    mut send: impl FnMut(&mut Client, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // Reads past standard input's own buffer, which does not tell whether it is empty.
    let mut input = BufReader::with_capacity(64 << 10, io::stdin().lock());
    // One byte more shows that a line is too long, whatever its length.
    let limit = most + 2;
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let mut part = input.by_ref().take(limit);
        let read = part.read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::failed(format!("standard input: {error}")))? == 0 {
            break;
        }
        let payload = line.strip_suffix(b"\n").unwrap_or(&line);
        send(client, payload).map_err(|failure| failure.at(format_args!("line {number}")))?;
        // A person who types is not kept waiting, and a program that pipes shares system calls.
        if input.buffer().is_empty() {
            client.flush().map_err(Failure::failed)?;
            // The daemon's events do not wait for the next line, which may take its time.
            take_events(client)?;
        }
    }
    Ok(())
}

/// Waits for credit.
fn send(client: &mut Client, envelope: &Envelope, payload: &[u8]) -> Result<(), Failure> {
    loop {
        match client.feed(envelope, payload) {
            Err(SendError::Unread { .. }) => take_events(client)?,
            sent => return sent.map_err(Failure::failed),
        }
    }
}

/// Takes the events of this client: nobody reads the messages that others send to it.
fn take_events(client: &mut Client) -> Result<(), Failure> {
    while let Some(event) = client.try_recv().map_err(Failure::failed)? {
        if let Event::NotSent { to, code, .. } = event {
            return Err(Failure::failed(format!("not sent to {to}: {code}")));
        }
    }
    Ok(())
}

/// Waits until the daemon has looked at all messages, and said which of them it did not take.
fn all_sent(client: &mut Client, groups: &[String]) -> Result<(), Failure> {
    // The answer comes after what was sent before the question; what it is does not matter.
    let group = groups.iter().find(|name| !name.starts_with('#'));
    let group = group.map_or("any", String::as_str);
    loop {
        match client.members(group) {
            Err(RequestError::Unread { .. }) => take_events(client)?,
            Err(RequestError::Lost(lost)) => return Err(Failure::failed(lost)),
            _ => return take_events(client),
        }
    }
}
