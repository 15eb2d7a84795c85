//! Datagrams that came while this process stood still.

use rota_core::contract::Class;

use super::Sockets;

/// Bursts that are dropped in one go: more than a receive buffer holds.
const FORGOTTEN_AT_ONCE: usize = 1 << 16;

impl Sockets {
    /// Reads all bursts that wait, and drops them; says how many they were. Later ones are left.
    pub fn forget(&mut self) -> u64 {
        let mut forgotten = 0;
        for class in [Class::Data, Class::Token] {
            for _ in 0..FORGOTTEN_AT_ONCE {
                let Ok(Some(_)) = self.read(class) else { break };
                forgotten += 1;
            }
        }
        forgotten
    }
}
