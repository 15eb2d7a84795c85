//! The host's network interfaces.

use std::net::Ipv4Addr;

/// Whether there is an interface with this number. An interface that is made anew gets another one.
pub(crate) fn exists(index: u32) -> bool {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: `name` has room for the longest name of an interface.
    !unsafe { libc::if_indextoname(index, name.as_mut_ptr()) }.is_null()
}

/// The number of the interface that has this address.
pub(crate) fn with_address(address: Ipv4Addr) -> Option<u32> {
    let mut first = std::ptr::null_mut();
    // SAFETY: it writes one pointer, to a list that it allocates, or fails.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return None;
    }
    let mut index = None;
    let mut next: *const libc::ifaddrs = first;
    // SAFETY: each pointer of the list is to an entry of it, or null at its end, and the list lives until it is freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        if address_of(entry) == Some(address) {
            // SAFETY: the name is a string that ends with a zero byte and lives as long as the list.
            let found = unsafe { libc::if_nametoindex(entry.ifa_name) };
            index = (found != 0).then_some(found);
            break;
        }
    }
    // SAFETY: the list is the system's, and nothing points into it any more.
    unsafe { libc::freeifaddrs(first) };
    index
}

/// The address of an entry, if that is one of IPv4.
fn address_of(entry: &libc::ifaddrs) -> Option<Ipv4Addr> {
    // SAFETY: the address is null, or lives as long as the list that the entry is borrowed from.
    let address = unsafe { entry.ifa_addr.as_ref() }?;
    if i32::from(address.sa_family) != libc::AF_INET {
        return None;
    }
    // SAFETY: an address of this family is a `sockaddr_in`.
    let address = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
    Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;

    #[test]
    fn the_interface_of_an_address_is_found_by_its_number() {
        let loopback = sys::interface_index("lo").expect("each host has it");
        assert_eq!(with_address(Ipv4Addr::LOCALHOST), Some(loopback));
        assert!(exists(loopback));
        // For documentation only.
        assert_eq!(with_address(Ipv4Addr::new(192, 0, 2, 1)), None);
        assert!(!exists(u32::MAX / 2));
    }
}
