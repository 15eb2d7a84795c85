//! The two clients of the Rust library.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rota_client::{AsyncClient, Builder, Client, ConnectionLost, Event, Receiver, SendError, Tls};

use super::plan::{Plan, Style};
use super::puppet::{Log, Order, Puppet, payload};
use crate::native::{PATIENCE, builder};

/// So many messages are fed before they are written.
const GATHERED: u32 = 8;

/// So many events are taken between two messages: there may always be more.
const TAKEN: u32 = 100;

/// For threads.
pub struct Blocking;

/// For tokio.
pub struct Async;

impl Puppet for Blocking {
    fn play(&mut self, order: &Order) -> Log {
        watched(order, |order| {
            let mut log = Log::default();
            match configured(order).connect(order.address.as_str()) {
                Ok(client) => play(client, &order.plan, &mut log),
                Err(error) => log.refused = Some(error.to_string()),
            }
            log
        })
    }
}

impl Puppet for Async {
    fn play(&mut self, order: &Order) -> Log {
        watched(order, |order| {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().expect("a runtime");
            let mut log = Log::default();
            runtime.block_on(async {
                let builder = configured(order);
                match AsyncClient::connect_as(&builder, order.address.as_str()).await {
                    Ok(client) => play_async(client, &order.plan, &mut log).await,
                    Err(error) => log.refused = Some(error.to_string()),
                }
            });
            log
        })
    }
}

/// In a thread of its own, which may hang.
fn watched(order: &Order, act: impl FnOnce(&Order) -> Log + Send + 'static) -> Log {
    let (tell, told) = mpsc::channel();
    let order = order.clone();
    let plan = order.plan;
    thread::spawn(move || {
        // Nobody listens any more if it has taken too long.
        let _ = tell.send(act(&order));
    });
    let log = told.recv_timeout(PATIENCE);
    log.unwrap_or_else(|_| panic!("it hangs, or has failed: {plan:?}"))
}

fn configured(order: &Order) -> Builder {
    let [ca, certificate, key] = &order.files;
    let tls = Tls::with_certificate(ca, certificate, key).expect("good files");
    builder(&order.plan.name()).tls(tls.server_name("daemon.example"))
}

impl Log {
    fn take(&mut self, event: Event) {
        match event {
            Event::Message(message) => self.hear(&message.sender.to_string(), &message.payload),
            other => self.wrong = Some(format!("{other:?}")),
        }
    }

    /// Whether a message was taken; if not, that has to be because of the end of the connection.
    fn send(&mut self, number: u32, sent: Result<(), SendError>) -> bool {
        match sent {
            Ok(()) => self.sent = number,
            Err(SendError::Lost(_)) => return false,
            Err(error) => self.wrong = Some(error.to_string()),
        }
        true
    }
}

fn play(mut client: Client, plan: &Plan, log: &mut Log) {
    if client.join("g").is_ok() {
        if plan.style == Style::Halves {
            return play_halves(client, plan, log);
        }
        for number in 1..=plan.messages {
            let payload = payload(plan, number);
            let sent = match plan.style {
                Style::Feed => client.feed("g", &payload),
                _ => client.send("g", &payload),
            };
            if !log.send(number, sent) {
                break;
            }
            if number % GATHERED == 0 && client.flush().is_err() {
                break;
            }
            for _ in 0..TAKEN {
                let Ok(Some(event)) = client.try_recv() else {
                    break;
                };
                log.take(event);
            }
        }
        if plan.closes && log.sent == plan.messages {
            log.closed = Some(client.close().map_err(|lost| lost.to_string()));
            return;
        }
    }
    listen(|| client.recv(), log);
}

fn play_halves(client: Client, plan: &Plan, log: &mut Log) {
    let (mut sender, mut receiver): (_, Receiver) = client.split();
    let plan = *plan;
    let sending = thread::spawn(move || {
        let mut log = Log::default();
        for number in 1..=plan.messages {
            let sent = sender.send("g", &payload(&plan, number));
            if !log.send(number, sent) {
                break;
            }
        }
        log
    });
    listen(|| receiver.recv(), log);
    let sent = sending.join().expect("no panic");
    log.sent = sent.sent;
    log.wrong = log.wrong.take().or(sent.wrong);
}

/// Takes all there is, to the end, behind which nothing may come.
fn listen(mut recv: impl FnMut() -> Result<Event, ConnectionLost>, log: &mut Log) {
    loop {
        match recv() {
            Ok(event) => log.take(event),
            Err(lost) => {
                log.lost = Some(lost.to_string());
                break;
            }
        }
    }
    if let Ok(event) = recv() {
        log.wrong = Some(format!("behind the end: {event:?}"));
    }
}

async fn play_async(mut client: AsyncClient, plan: &Plan, log: &mut Log) {
    if client.join("g").await.is_ok() {
        for number in 1..=plan.messages {
            let payload = payload(plan, number);
            let sent = match plan.style {
                Style::Feed => client.feed("g", &payload).await,
                _ => client.send("g", &payload).await,
            };
            if !log.send(number, sent) {
                break;
            }
            if number % GATHERED == 0 && client.flush().await.is_err() {
                break;
            }
            if plan.style == Style::Halves {
                // One that is cancelled loses nothing.
                let moment = Duration::from_micros(200);
                for _ in 0..TAKEN {
                    let Ok(Ok(event)) = tokio::time::timeout(moment, client.recv()).await else {
                        break;
                    };
                    log.take(event);
                }
            }
            for _ in 0..TAKEN {
                let Ok(Some(event)) = client.try_recv() else {
                    break;
                };
                log.take(event);
            }
        }
        if plan.closes && log.sent == plan.messages {
            log.closed = Some(client.close().await.map_err(|lost| lost.to_string()));
            return;
        }
    }
    loop {
        match client.recv().await {
            Ok(event) => log.take(event),
            Err(lost) => {
                log.lost = Some(lost.to_string());
                break;
            }
        }
    }
    if let Ok(event) = client.recv().await {
        log.wrong = Some(format!("behind the end: {event:?}"));
    }
}
