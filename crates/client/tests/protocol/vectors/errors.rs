//! Bytes that are no frames.

const RING: &[u8] = b"\x09\0\0\0\0\0\0\0\x03\0\x02\x01\0\0\0\0\0\0";
const INDEX: &[u8] = b"\x05\0\0\0\0\0\0\0";

fn framed(parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// A view of `g` on one ring, from its cause on.
fn view(rest: &[u8]) -> Vec<u8> {
    framed(&[b"\x86\x01g", RING, b"\0", INDEX, rest])
}

/// A name, whether a daemon would say it, and the bytes.
pub fn all() -> Vec<(&'static str, bool, Vec<u8>)> {
    let mut all = heads();
    all.extend(fields());
    all.extend(views());
    all.extend(requests());
    all
}

fn heads() -> Vec<(&'static str, bool, Vec<u8>)> {
    vec![
        ("length-zero", true, vec![0; 4]),
        ("length-above-the-limit", true, vec![0xff; 4]),
        ("kind-of-a-client", true, framed(&[b"\x04"])),
        ("kind-unknown", true, framed(&[b"\x92"])),
        ("kind-before-its-body", true, b"\x64\0\0\0\x80".to_vec()),
        ("short-number", true, framed(&[b"\x83\x07\0"])),
        ("short-text", true, framed(&[b"\x8d\x06\0\x09no"])),
        (
            "short-list",
            true,
            framed(&[b"\x8b\x07\0\0\0\xff\xff\xff\xff\x04#a#b"]),
        ),
        ("trailing-byte", true, framed(&[b"\x83\x07\0\0\0\0"])),
        ("trailing-in-excluded", true, framed(&[b"\x90\0"])),
    ]
}

fn fields() -> Vec<(&'static str, bool, Vec<u8>)> {
    let message = |rest: &[u8]| framed(&[b"\x85\x07#bob#n2", rest]);
    let mut many = b"\x04\0\0\0\x65".to_vec();
    many.extend(b"\x01g".repeat(101));
    vec![
        ("service-unknown", true, message(b"\x06\0\0\0\x01\x01gx")),
        ("flags-unknown", true, message(b"\x04\x02\0\0\x01\x01gx")),
        ("destinations-none", true, message(b"\x04\0\0\0\0x")),
        ("destinations-too-many", true, message(&many)),
        (
            "skipped-groups-too-many",
            true,
            framed(&[b"\x8f", &[0; 16], b"\x01\x40\0\0"]),
        ),
        ("name-empty", true, framed(&[b"\x88\0"])),
        ("name-with-a-space", true, framed(&[b"\x88\x03a b"])),
        (
            "name-with-an-exclamation-mark",
            true,
            framed(&[b"\x88\x03a!b"]),
        ),
        ("name-not-ascii", true, framed(&[b"\x88\x03a\xc3\xa4"])),
        ("name-too-long", true, framed(&[b"\x88\x20", &[b'a'; 32]])),
        (
            "name-private-without-a-daemon",
            true,
            message(b"\x04\0\0\0\x01\x02#ax"),
        ),
        (
            "name-private-of-a-long-client",
            true,
            framed(&[b"\x8b\x01\0\0\0\x01\0\0\0\x0e#elevenchars#b"]),
        ),
        ("text-not-utf8", true, framed(&[b"\x8d\x06\0\x01\xff"])),
        ("included-neither", true, framed(&[b"\x91\x02"])),
    ]
}

fn views() -> Vec<(&'static str, bool, Vec<u8>)> {
    let no_node = b"\x09\0\0\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0";
    vec![
        (
            "node-zero",
            true,
            framed(&[b"\x87\x01g", no_node, b"\0", INDEX]),
        ),
        (
            "view-id-flag",
            true,
            framed(&[b"\x87\x01g", RING, b"\x02", INDEX]),
        ),
        (
            "cause-unknown",
            true,
            view(b"\x05\0\x01\0\0\0\x04#a#b\0\0\0\0\0\0\0\0"),
        ),
        (
            "changed-missing",
            true,
            view(b"\x01\0\x01\0\0\0\x04#a#b\0\0\0\0\0\0\0\0"),
        ),
        (
            "changed-by-the-network",
            true,
            view(b"\x04\x04#a#b\x01\0\0\0\x04#a#b\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0"),
        ),
        (
            "sets-of-a-join",
            true,
            view(b"\x01\x04#a#b\x01\0\0\0\x04#a#b\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0"),
        ),
        (
            "sets-without-a-member",
            true,
            view(b"\x04\0\x02\0\0\0\x04#a#b\x04#c#d\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0"),
        ),
        (
            "sets-with-a-member-twice",
            true,
            view(b"\x04\0\x01\0\0\0\x04#a#b\x01\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        ),
        (
            "sets-of-nobody",
            true,
            view(b"\x04\0\x01\0\0\0\x04#a#b\x02\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        ),
        (
            "sets-of-a-stranger",
            true,
            view(b"\x04\0\x01\0\0\0\x04#a#b\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0"),
        ),
        (
            "own-index-beyond",
            true,
            view(b"\x01\x04#a#b\x01\0\0\0\x04#a#b\0\0\0\0\x01\0\0\0"),
        ),
    ]
}

fn requests() -> Vec<(&'static str, bool, Vec<u8>)> {
    vec![
        ("kind-of-a-daemon", false, framed(&[b"\x81"])),
        ("magic", false, framed(&[b"\x01ATOR\x01\0\x03\0\0\0"])),
        ("versions-zero", false, framed(&[b"\x01ROTA\0\0\x03\0\0\0"])),
        (
            "versions-crossed",
            false,
            framed(&[b"\x01ROTA\x03\0\x02\0\0\0"]),
        ),
        (
            "name-of-a-long-client",
            false,
            framed(&[b"\x01ROTA\x01\0\x03\0\0\x0belevenchars"]),
        ),
        ("short-join", false, framed(&[b"\x02\x01\0\0\0\x06order"])),
        ("trailing-behind-bye", false, framed(&[b"\x06\0"])),
    ]
}
