//! The events of a network, all from one seed.

/// Splitmix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Times are microseconds.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub count: usize,
    pub frame: usize,
    pub window: usize,
    pub batch: usize,
    /// What a link's queue takes, in bytes.
    pub room: usize,
    /// Bytes in a microsecond, by sender.
    pub rate: Vec<u64>,
    pub delay: u64,
    pub messages: Vec<u64>,
    /// Messages have up to so many bytes; all have just so many if `even`.
    pub largest: usize,
    pub even: bool,
    /// A message is submitted at most this long after the one before; 0: all at once.
    pub pace: Vec<u64>,
    /// How long an application takes for a packet; 0: no time.
    pub slow: Vec<u64>,
    /// How often links break.
    pub breaks: usize,
    pub faults_until: u64,
    /// When the view ends.
    pub change_at: Option<u64>,
    /// Who is not in the next.
    pub victim: Option<usize>,
}

impl Plan {
    /// Everybody has as much to send as the others; links of one speed, no faults.
    pub fn calm(count: usize) -> Self {
        Self {
            seed: 1,
            count,
            frame: 1000,
            window: 100_000,
            batch: 8000,
            room: 16_000,
            rate: vec![10; count],
            delay: 50,
            messages: vec![2000; count],
            largest: 900,
            even: true,
            pace: vec![0; count],
            slow: vec![0; count],
            breaks: 0,
            faults_until: 0,
            change_at: None,
            victim: None,
        }
    }

    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let count = 1 + rng.below(8);
        let frame = 100 + rng.below(1900);
        let room = frame + 300 + rng.below(20_000);
        let faults_until = 100 + rng.below(60_000) as u64;
        let changes = count > 2 && rng.chance(40);
        Self {
            seed,
            count,
            frame,
            window: frame * (1 + rng.below(30)),
            batch: 1 + rng.below(20_000),
            room,
            rate: (0..count).map(|_| 1 + rng.below(20) as u64).collect(),
            delay: 1 + rng.below(400) as u64,
            messages: (0..count).map(|_| rng.below(300) as u64).collect(),
            largest: 1 + rng.below(3000),
            even: false,
            pace: (0..count).map(|_| rng.below(3) as u64 * 150).collect(),
            slow: (0..count)
                .map(|_| rng.below(5).saturating_sub(3) as u64 * 300)
                .collect(),
            breaks: if rng.chance(70) { rng.below(40) } else { 0 },
            faults_until,
            change_at: changes.then(|| 7000 + rng.below(40_000) as u64),
            victim: (changes && rng.chance(60)).then(|| rng.below(count)),
        }
    }

    /// How large a message is, in bytes.
    pub fn size(&self, sender: usize, counter: u64) -> usize {
        if self.even {
            return self.largest;
        }
        Rng(self.seed ^ (sender as u64) << 40 ^ counter).below(self.largest + 1)
    }
}
