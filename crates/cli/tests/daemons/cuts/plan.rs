//! The plan of one connection, drawn from a seed.

use std::time::Duration;

use rota_sim::rng::Rng;

use crate::native::PATIENCE;

/// How a client reaches its daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// A Unix socket, and memory for what it is told.
    Memory,
    /// A Unix socket alone.
    Unix,
    Tcp,
    Tls,
}

impl Transport {
    pub const ALL: [Self; 4] = [Self::Memory, Self::Unix, Self::Tcp, Self::Tls];
}

/// One direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    ToClient,
    ToDaemon,
}

/// How a connection is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Both directions end, as if the other side had closed.
    Close,
    /// One direction ends, and the other goes on.
    Half(Way),
    /// Both sides are told that there is no such connection.
    Reset,
    /// Nothing moves any more for a while; then as [`Self::Reset`].
    Stall,
    /// A piece comes twice, and everything goes on. With TLS only: the others cannot know.
    Repeat(Way),
}

/// What the client does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// Sends, and takes what has come in between.
    Send,
    /// The same, and leaves it to later calls to write.
    Feed,
    /// Sends and receives at the same time, as far as its library has threads or tasks.
    Halves,
}

impl Style {
    /// As programs are told it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Feed => "feed",
            Self::Halves => "halves",
        }
    }
}

/// One round.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub transport: Transport,
    pub cut: Cut,
    /// Whose bytes are counted.
    pub way: Way,
    /// It is cut behind so many bytes.
    pub at: u64,
    /// Or when so long has passed.
    pub within: Duration,
    /// The most bytes that pass at once.
    pub piece: usize,
    /// Of a hundred pieces so many are late.
    pub late: u64,
    pub style: Style,
    /// What the client sends.
    pub messages: u32,
    pub bytes: usize,
    /// The client closes when it has sent all.
    pub closes: bool,
}

impl Plan {
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::split(seed, 0x6375_7473);
        let transport = rng.pick(&Transport::ALL);
        let way = |rng: &mut Rng| rng.pick(&[Way::ToClient, Way::ToDaemon]);
        let cut = match rng.below(10) {
            0..3 => Cut::Close,
            3..5 => Cut::Half(way(&mut rng)),
            5..7 => Cut::Reset,
            7 => Cut::Stall,
            _ if transport == Transport::Tls => Cut::Repeat(way(&mut rng)),
            _ => Cut::Close,
        };
        let style = rng.pick(&[Style::Send, Style::Feed, Style::Halves]);
        // With assertions rustls panics where a record is wrong after its own end: once told, it tells no more.
        let is_wrong = matches!(cut, Cut::Repeat(Way::ToClient));
        let closes = style != Style::Halves && rng.percent(30) && !is_wrong;
        // Some are cut before they are let in.
        let (first, soonest) = if rng.percent(15) { (1, 1) } else { (2000, 15) };
        let largest = if rng.percent(5) { 100_000 } else { 2000 };
        Self {
            seed,
            transport,
            cut,
            way: way(&mut rng),
            at: rng.spread(first, 1 << 20),
            within: Duration::from_millis(rng.spread(soonest, if closes { 400 } else { 100 })),
            piece: rng.spread(1, 1 << 16) as usize,
            late: if rng.percent(30) { rng.below(20) } else { 0 },
            style,
            messages: rng.spread(1, 400) as u32,
            bytes: rng.spread(10, largest) as usize,
            closes,
        }
    }

    /// Cuts that chance hardly makes, or that have shown something.
    pub fn special() -> Vec<Self> {
        let quiet = Self {
            seed: 999_999_001,
            transport: Transport::Tls,
            cut: Cut::Close,
            way: Way::ToClient,
            at: u64::MAX,
            within: Duration::from_millis(150),
            piece: 1 << 16,
            late: 0,
            style: Style::Send,
            messages: 3,
            bytes: 100,
            closes: false,
        };
        // The daemon has read a first part of what a client sends that then closes.
        let torn = Self {
            seed: 999_999_002,
            cut: Cut::Half(Way::ToDaemon),
            way: Way::ToDaemon,
            at: 40_000,
            within: PATIENCE,
            messages: 50,
            bytes: 2000,
            closes: true,
            ..quiet
        };
        let fed = Self {
            seed: 999_999_003,
            style: Style::Feed,
            ..torn
        };
        let half = Self {
            seed: 999_999_004,
            cut: Cut::Half(Way::ToClient),
            ..quiet
        };
        // Nothing more comes to a client whose socket takes nothing more.
        let stuck = Self {
            seed: 999_999_005,
            transport: Transport::Memory,
            way: Way::ToDaemon,
            at: 32_305,
            within: Duration::from_millis(30),
            piece: 649,
            style: Style::Feed,
            messages: 22,
            bytes: 80_859,
            ..half
        };
        vec![quiet, torn, fed, half, stuck]
    }

    /// What others call the client, without its daemon.
    pub fn name(&self) -> String {
        format!("c{}", self.seed)
    }
}
