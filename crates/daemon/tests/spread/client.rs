//! A client's reader of the daemon's bytes, written from the layouts: the other half of a round trip.

use rota_daemon::spread::ByteOrder;

/// A message as a client has received it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Received {
    /// Without the marks of the byte order.
    pub bits: u32,
    pub sender: Vec<u8>,
    pub groups: Vec<Vec<u8>>,
    pub hint: [u8; 4],
    /// Of rejections only.
    pub old_bits: Option<u32>,
    pub data: Vec<u8>,
}

fn name_at(bytes: &[u8]) -> Vec<u8> {
    let slot = &bytes[..32];
    let text: Vec<u8> = slot.iter().copied().take_while(|&byte| byte != 0).collect();
    assert!(slot[text.len()..].iter().all(|&byte| byte == 0), "padding");
    text
}

/// Reads a number in the order its message is in.
pub fn number(order: ByteOrder, bytes: &[u8]) -> u32 {
    let bytes = bytes[..4].try_into().expect("four bytes");
    match order {
        ByteOrder::Little => u32::from_le_bytes(bytes),
        ByteOrder::Big => u32::from_be_bytes(bytes),
    }
}

/// Reads one message off the front of `bytes`.
pub fn receive(bytes: &mut &[u8]) -> Received {
    let order = match u32::from_le_bytes(bytes[..4].try_into().expect("a type")) & 0x8000_0080 {
        0 => ByteOrder::Big,
        0x8000_0080 => ByteOrder::Little,
        other => panic!("half a mark: {other:x}"),
    };
    let bits = number(order, bytes) & !0x8000_0080;
    let mut at = 48;
    let old_bits = (bits & 0x40_0000 != 0).then(|| {
        at += 4;
        number(order, &bytes[48..]) & !0x8000_0080
    });
    let count = number(order, &bytes[36..]) as usize;
    let length = number(order, &bytes[44..]) as usize;
    let groups = (0..count).map(|index| name_at(&bytes[at + 32 * index..]));
    let received = Received {
        bits,
        sender: name_at(&bytes[4..]),
        groups: groups.collect(),
        hint: bytes[40..44].try_into().expect("four bytes"),
        old_bits,
        data: bytes[at + 32 * count..][..length].to_vec(),
    };
    *bytes = &bytes[at + 32 * count + length..];
    received
}

/// The data of a view: its id, the number of sets, and the names in the receiver's own.
pub fn own_set(order: ByteOrder, data: &[u8]) -> ([u32; 3], u32, Vec<Vec<u8>>) {
    let id = [0, 4, 8].map(|at| number(order, &data[at..]));
    let set = &data[20 + number(order, &data[16..]) as usize..];
    let count = number(order, set) as usize;
    let names = (0..count).map(|at| name_at(&set[4 + 32 * at..]));
    (id, number(order, &data[12..]), names.collect())
}
