//! Requests of clients, and the errors where they cannot be read.

use bytes::Bytes;
use rota_resp::{Limits, ProtocolError, Request, Requests};

fn all(requests: &mut Requests) -> Result<Vec<Vec<String>>, ProtocolError> {
    let mut all = Vec::new();
    while let Some(request) = requests.next()? {
        let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
        all.push(request.arguments().iter().map(text).collect());
    }
    Ok(all)
}

/// In one go, and byte by byte.
fn read(bytes: &[u8]) -> Result<Vec<Vec<String>>, ProtocolError> {
    let mut requests = Requests::new(Limits::default());
    requests.push(bytes);
    let at_once = all(&mut requests);
    let mut requests = Requests::new(Limits::default());
    let mut one_by_one = Ok(Vec::new());
    for byte in bytes {
        requests.push(&[*byte]);
        match (&mut one_by_one, all(&mut requests)) {
            (Ok(before), Ok(more)) => before.extend(more),
            (one_by_one, Err(error)) => *one_by_one = Err(error),
            (Err(_), Ok(_)) => panic!("it has failed"),
        }
    }
    assert_eq!(at_once.is_err(), one_by_one.is_err(), "{bytes:?}");
    if at_once.is_ok() {
        assert_eq!(at_once, one_by_one, "{bytes:?}");
    }
    at_once
}

#[test]
fn requests_are_read_however_they_come() {
    assert_eq!(
        read(b"*1\r\n$4\r\nPING\r\nSET a 'b c'\r\n\r\n*0\r\n*-1\r\n*2\r\n$0\r\n\r\n$2\r\n\r\n\r\nGET x\n"),
        Ok(vec![
            vec!["PING".to_owned()],
            ["SET", "a", "b c"].map(str::to_owned).to_vec(),
            ["", "\r\n"].map(str::to_owned).to_vec(),
            ["GET", "x"].map(str::to_owned).to_vec(),
        ])
    );
    let mut out = Vec::new();
    Request::write(&["SET", "key", "\0\r\n"], &mut out);
    let read = read(&out).expect("a request");
    assert_eq!(read, [["SET", "key", "\0\r\n"].map(str::to_owned)]);
}

#[test]
fn what_cannot_be_read_is_said_as_redis_says_it() {
    for (bytes, said) in [
        ("*x\r\n", "invalid multibulk length"),
        ("*1048577\r\n", "invalid multibulk length"),
        ("*1\r\n$x\r\n", "invalid bulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        ("*1\r\n$536870913\r\n", "invalid bulk length"),
        ("*1\r\n:1\r\n", "expected '$', got ':'"),
        ("SET \"a\r\n", "unbalanced quotes in request"),
    ] {
        let error = read(bytes.as_bytes()).expect_err(bytes);
        assert_eq!(error.to_string(), format!("Protocol error: {said}"));
    }
    for (begin, error) in [
        ("", ProtocolError::Line),
        ("*", ProtocolError::CountLine),
        ("*1\r\n$", ProtocolError::LengthLine),
    ] {
        let mut bytes = begin.as_bytes().to_vec();
        bytes.resize(bytes.len() + (65 << 10), b'1');
        assert_eq!(read(&bytes), Err(error));
    }
}

#[test]
fn who_has_not_logged_in_may_say_little() {
    let mut requests = Requests::before_login(Limits::default());
    requests.push(b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n");
    assert_eq!(all(&mut requests).expect("a request").len(), 1);
    requests.push(b"*11\r\n");
    assert_eq!(requests.next(), Err(ProtocolError::CountBeforeLogin));
    let mut requests = Requests::before_login(Limits::default());
    requests.push(b"*1\r\n$16385\r\n");
    assert_eq!(requests.next(), Err(ProtocolError::LengthBeforeLogin));
    let mut requests = Requests::before_login(Limits::default());
    requests.log_in(true);
    requests.push(b"*11\r\n");
    assert_eq!(requests.next(), Ok(None));
}

#[test]
fn memory_grows_with_what_has_come() {
    let mut requests = Requests::new(Limits::default());
    requests.push(b"*1048576\r\n$536870912\r\nabc");
    assert_eq!(requests.next(), Ok(None));
    assert!(requests.waiting_bytes() < 100);
    let mut requests = Requests::new(Limits {
        request_bytes: 1000,
        ..Limits::default()
    });
    requests.push(b"*3\r\n$400\r\n");
    requests.push(&[b'x'; 400]);
    requests.push(b"\r\n$600\r\n");
    assert_eq!(requests.next(), Ok(None));
    assert!(requests.waiting_bytes() < 2_000);
    // The rest is thrown away as it comes, and the next request is read.
    for _ in 0..60 {
        requests.push(&[b'y'; 10]);
        assert_eq!(requests.next(), Ok(None));
        assert!(requests.waiting_bytes() < 2_000);
    }
    requests.push(b"\r\n$3\r\nend\r\nPING\r\n");
    let large = requests.next().expect("it is read").expect("it is whole");
    assert!(large.is_too_large());
    assert_eq!(large.bytes(), 400);
    let next = requests.next().expect("it is read").expect("it is whole");
    assert_eq!((next.is_too_large(), next.arguments().len()), (false, 1));
}

#[test]
fn what_is_too_large_is_thrown_away_wherever_it_is_cut() {
    let limits = Limits {
        argument_bytes: 10,
        ..Limits::default()
    };
    let mut sent = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$11\r\n\r\n012345678\r\n".to_vec();
    sent.extend(b"*1\r\n$4\r\nPING\r\n");
    for cut in 0..sent.len() {
        let mut requests = Requests::new(limits);
        let mut read = Vec::new();
        for part in [&sent[..cut], &sent[cut..]] {
            requests.push(part);
            while let Some(request) = requests.next().expect("it can be read") {
                read.push((request.is_too_large(), request.into_arguments()));
            }
        }
        let expected = [
            (true, vec![Bytes::from("SET")]),
            (false, vec![Bytes::from("PING")]),
        ];
        assert_eq!(read, expected, "cut at {cut}");
    }
    let mut requests = Requests::new(limits);
    requests.push(b"*1\r\n$536870913\r\n");
    assert_eq!(requests.next(), Err(ProtocolError::Length));
}
