//! The handshake, from the first byte of a client to its acceptance or refusal.

use std::sync::Arc;

use rota_daemon::spread::{
    AuthMethod, ByteOrder, Connect, Event, Refusal, Session, SessionError, Settings, Version,
};

use crate::support::{choice, hello, new_session, open, private, pull_all, written};

fn connect_in(session: &mut Session, bytes: &[u8]) -> Connect {
    match session.pull(&mut &bytes[..]) {
        Ok(Some(Event::Connect(connect))) => connect,
        other => panic!("no connect: {other:?}"),
    }
}

fn refused(session: &mut Session, bytes: &[u8]) -> (Refusal, Vec<u8>) {
    match session.pull(&mut &bytes[..]) {
        Err(SessionError::Refused(refusal)) => (refusal, written(session)),
        other => panic!("not refused: {other:?}"),
    }
}

fn with_auth(allowed: &[AuthMethod], required: &[AuthMethod]) -> Session {
    let settings = Settings::new(b"n1").and_then(|settings| settings.auth(allowed, required));
    Session::new(Arc::new(settings.expect("sound settings")))
}

#[test]
fn alice_connects_with_the_bytes_seen_on_a_wire() {
    let mut session = new_session();
    let greeting = [5, 0, 1, 1, 5, 0x61, 0x6c, 0x69, 0x63, 0x65];
    assert_eq!(session.pull(&mut &greeting[..]), Ok(None));
    assert_eq!(
        written(&mut session),
        [0x05, 0x4e, 0x55, 0x4c, 0x4c, 0x20],
        "the offer"
    );
    let connect = connect_in(&mut session, &choice(&["NULL"]));
    assert_eq!(connect.name, Some(private("alice")));
    assert_eq!(connect.methods, [AuthMethod::Null]);
    assert!(connect.membership && !session.is_open());
    let own = session.accept(private("alice")).expect("it waits");
    assert_eq!(own.as_bytes(), b"#alice#n1");
    assert_eq!(session.name(), Some(&own));
    let accepted = [
        1, 5, 0, 1, 9, 0x23, 0x61, 0x6c, 0x69, 0x63, 0x65, 0x23, 0x6e, 0x31,
    ];
    assert_eq!(written(&mut session), accepted);
    assert!(session.is_open());
}

#[test]
fn a_client_may_send_its_choice_before_it_is_asked() {
    let mut session = new_session();
    let both = [hello("alice"), choice(&["NULL"])].concat();
    assert_eq!(connect_in(&mut session, &both).name, Some(private("alice")));
}

#[test]
fn a_client_without_a_name_gets_an_invented_one() {
    let mut session = new_session();
    let both = [hello(""), choice(&["NULL"])].concat();
    assert_eq!(connect_in(&mut session, &both).name, None);
    let own = session.accept(private("r935-12")).expect("it waits");
    assert_eq!(own.as_bytes(), b"#r935-12#n1");
}

#[test]
fn the_longest_names_fit() {
    let settings = Settings::new(b"a-daemon-of-19-chars").map_err(|_| ());
    assert_eq!(settings, Err(()), "20 characters are too many");
    let settings = Settings::new(b"daemon-of-19-charsX").expect("19 characters");
    let mut session = Session::new(Arc::new(settings));
    let both = [hello("0123456789"), choice(&["NULL"])].concat();
    connect_in(&mut session, &both);
    let own = session.accept(private("0123456789")).expect("it waits");
    assert_eq!(own.as_bytes(), b"#0123456789#daemon-of-19-charsX");
    assert_eq!(written(&mut session)[10], 31);
}

#[test]
fn what_follows_a_choice_waits_for_the_verdict() {
    let mut session = new_session();
    let bytes = [hello("alice"), choice(&["NULL"]), b"more".to_vec()].concat();
    let mut input = &bytes[..];
    assert!(session.pull(&mut input).is_ok_and(|event| event.is_some()));
    assert_eq!(session.pull(&mut input), Ok(None));
    assert_eq!(input, b"more", "left with the socket, not buffered");
}

#[test]
fn priority_and_membership_are_read_apart() {
    for (flags, priority, membership) in [(0x10, 1, false), (0x11, 1, true), (0x00, 0, false)] {
        let mut bytes = [hello("alice"), choice(&["NULL"])].concat();
        bytes[3] = flags;
        let connect = connect_in(&mut new_session(), &bytes);
        assert_eq!(
            (connect.priority, connect.membership),
            (priority, membership)
        );
    }
}

#[test]
fn libraries_up_to_3_14_send_no_patch_number_and_are_told_none() {
    let mut session = new_session();
    let connect = connect_in(&mut session, b"\x03\x0e\x01\x05alice");
    assert_eq!(connect.methods, [AuthMethod::Null], "it is not asked");
    assert!(session.accept(private("alice")).is_ok());
    assert_eq!(written(&mut session), b"\x01\x05\x00\x09#alice#n1");
}

#[test]
fn library_3_15_is_told_the_patch_number_and_still_not_asked() {
    let mut session = new_session();
    let connect = connect_in(&mut session, b"\x03\x0f\x02\x01\x05alice");
    assert_eq!(connect.version.to_string(), "3.15.2");
    assert!(session.accept(private("alice")).is_ok());
    assert_eq!(written(&mut session), b"\x01\x05\x00\x01\x09#alice#n1");
}

#[test]
fn library_3_16_chooses() {
    let mut session = new_session();
    let greeting = b"\x03\x10\x00\x01\x05alice";
    assert_eq!(session.pull(&mut &greeting[..]), Ok(None));
    assert_eq!(written(&mut session), b"\x05NULL ");
}

#[test]
fn versions_before_3_1_and_negative_ones_are_refused() {
    for greeting in [[3, 0], [2, 99], [0, 0], [0x85, 0], [5, 0x80]] {
        let told = refused(&mut new_session(), &greeting);
        assert_eq!(told, (Refusal::Version, vec![0xf9]), "{greeting:?}");
    }
    assert_eq!(
        new_session().pull(&mut &[3, 1][..]),
        Ok(None),
        "3.1 is fine"
    );
}

#[test]
fn names_of_eleven_characters_or_with_illegal_ones_are_refused() {
    for name in ["elevenchars", "a#b", "a b", "a\u{7f}", "a\nb", "a\"b"] {
        let told = refused(&mut new_session(), &hello(name));
        assert_eq!(told, (Refusal::IllegalName, vec![0xfb]), "{name:?}");
    }
    // The length alone is enough; the name need not come.
    let told = refused(&mut new_session(), &[5, 0, 1, 1, 200]);
    assert_eq!(told.0, Refusal::IllegalName);
    for name in ["$", "~", "r935-12", "0123456789"] {
        let pulled = new_session().pull(&mut &hello(name)[..]);
        assert_eq!(pulled, Ok(None), "{name}");
    }
}

#[test]
fn a_choice_has_to_name_what_is_offered() {
    let full = "x".repeat(30);
    for methods in [&["IP"][..], &["NULL", "PWORD"], &["null"], &[], &[&full]] {
        let bytes = [hello("alice"), choice(methods)].concat();
        let mut session = new_session();
        let (refusal, told) = refused(&mut session, &bytes);
        assert_eq!((refusal, told.last()), (Refusal::Auth, Some(&0xf7)));
        assert!(session.is_ended(), "{methods:?}");
    }
}

#[test]
fn the_first_empty_name_ends_a_choice() {
    let bytes = [hello("alice"), choice(&["NULL", "", "PWORD"])].concat();
    let connect = connect_in(&mut new_session(), &bytes);
    assert_eq!(connect.methods, [AuthMethod::Null]);
}

#[test]
fn required_methods_are_run_whatever_a_client_chooses() {
    let both = [AuthMethod::Null, AuthMethod::Ip];
    let mut session = with_auth(&both, &[AuthMethod::Ip]);
    let bytes = [hello("alice"), choice(&["NULL"])].concat();
    assert_eq!(connect_in(&mut session, &bytes).methods, both);
    assert_eq!(written(&mut session), b"\x08NULL IP ");
    assert_eq!(session.refuse(Refusal::Auth), Ok(()));
    assert_eq!(written(&mut session), [0xf7]);
}

#[test]
fn an_old_library_is_checked_by_address_where_that_is_offered() {
    let mut session = with_auth(&[AuthMethod::Null, AuthMethod::Ip], &[]);
    let connect = connect_in(&mut session, b"\x03\x0e\x01\x05alice");
    assert_eq!(connect.methods, [AuthMethod::Ip]);
}

#[test]
fn every_refusal_is_one_byte_and_the_last() {
    let codes = [
        (Refusal::Quota, 0xfd),
        (Refusal::IllegalName, 0xfb),
        (Refusal::NotUnique, 0xfa),
        (Refusal::Version, 0xf9),
        (Refusal::Auth, 0xf7),
    ];
    for (refusal, code) in codes {
        let mut session = new_session();
        connect_in(&mut session, &[hello("alice"), choice(&["NULL"])].concat());
        written(&mut session);
        assert_eq!(session.refuse(refusal), Ok(()));
        assert_eq!(written(&mut session), [code], "{refusal}");
        assert!(session.refuse(refusal).is_err(), "once only");
        let mut input = &b"what it still sends"[..];
        assert_eq!(session.pull(&mut input), Ok(None));
        assert!(input.is_empty() && session.buffered() == 0);
    }
}

#[test]
fn a_full_daemon_refuses_before_the_first_byte() {
    let mut session = new_session();
    assert_eq!(session.refuse(Refusal::Quota), Ok(()));
    assert_eq!(written(&mut session), [0xfd]);
    assert_eq!(pull_all(&mut session, &hello("alice")), Ok(vec![]));
}

#[test]
fn verdicts_out_of_turn_change_nothing() {
    assert!(new_session().accept(private("alice")).is_err());
    let mut session = open(ByteOrder::Little);
    assert!(session.accept(private("alice")).is_err());
    assert!(session.refuse(Refusal::Quota).is_err());
    assert!(session.is_open() && session.backlog() == 0);
}

#[test]
fn settings_no_client_would_understand_are_errors() {
    let settings = || Settings::new(b"n1").expect("a legal name");
    for daemon in [&b""[..], b"a b", b"a#b"] {
        assert!(Settings::new(daemon).is_err());
    }
    assert!(settings().auth(&[], &[]).is_err());
    assert!(
        settings()
            .auth(&[AuthMethod::Null], &[AuthMethod::Ip])
            .is_err()
    );
    for (major, minor, patch) in [(2, 9, 9), (5, 128, 0), (200, 0, 0)] {
        let version = Version {
            major,
            minor,
            patch,
        };
        assert!(settings().version(version).is_err());
    }
}
