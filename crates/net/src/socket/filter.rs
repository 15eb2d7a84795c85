//! BPF programs that drop datagrams before anybody is woken for them.

use std::net::{IpAddr, SocketAddr};

const fn return_at_most(bytes: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: bytes,
    }
}

pub(super) const RETURN_NOTHING: libc::sock_filter = return_at_most(0);
const RETURN_ALL: libc::sock_filter = return_at_most(u32::MAX);

/// A BPF program that drops what comes from `own` and takes everything else. A UDP socket's filter
/// sees a datagram from its UDP header on; the IP header is reached with an offset of its own.
pub(super) fn own_filter(own: SocketAddr) -> Vec<libc::sock_filter> {
    const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
    const JUMP_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let (source_at, octets) = match own.ip() {
        IpAddr::V4(ip) => (12, ip.octets().to_vec()),
        IpAddr::V6(ip) => (8, ip.octets().to_vec()),
    };
    let mut tests = vec![(LOAD_HALF, 0, u32::from(own.port()))];
    for (index, word) in octets.as_chunks::<4>().0.iter().enumerate() {
        let at = libc::SKF_NET_OFF
            .cast_unsigned()
            .wrapping_add(source_at + 4 * index as u32);
        tests.push((LOAD_WORD, at, u32::from_be_bytes(*word)));
    }
    let mut program = Vec::new();
    for (index, (load, at, wanted)) in tests.iter().enumerate() {
        // A test that fails jumps over the remaining tests and the dropping return.
        let over = (2 * (tests.len() - index - 1) + 1) as u8;
        program.push(libc::sock_filter {
            code: *load,
            jt: 0,
            jf: 0,
            k: *at,
        });
        program.push(libc::sock_filter {
            code: JUMP_EQUAL,
            jt: 0,
            jf: over,
            k: *wanted,
        });
    }
    program.push(RETURN_NOTHING);
    program.push(RETURN_ALL);
    program
}
