use super::*;

fn measured(text: &str) -> Vec<(String, usize, usize)> {
    let found = functions(&blank(text)).into_iter();
    found
        .map(|function| (function.name, function.line, function.lines))
        .collect()
}

fn entry(name: &str, line: usize, lines: usize) -> (String, usize, usize) {
    (name.to_owned(), line, lines)
}

#[test]
fn comments_and_literals_become_spaces_and_lines_stay() {
    let text = "a /* x /* y */\n z */ b // std\n\"st\\\"d\n\" c 'd' b'{' '\\'' 'é' e";
    let code = blank(text);
    assert_eq!(
        code.split_whitespace().collect::<Vec<_>>(),
        ["a", "b", "c", "b", "e"]
    );
    assert_eq!(code.lines().count(), text.lines().count());
    assert_eq!(code.len(), text.len());
}

#[test]
fn raw_strings_end_where_their_hashes_say() {
    let code = blank("x r#\"a \"quoted\" { brace\"# y br\"{\" z r#type");
    assert_eq!(
        code.split_whitespace().collect::<Vec<_>>(),
        ["x", "y", "z", "r#type"]
    );
}

#[test]
fn a_lifetime_is_not_a_character() {
    assert_eq!(
        blank("fn f<'a>(x: &'a str, c: 'x')"),
        "fn f<'a>(x: &'a str, c:    )"
    );
}

#[test]
fn a_word_that_ends_in_a_string_prefix_is_code() {
    assert_eq!(blank("for b in bar \"x\""), "for b in bar    ");
}

#[test]
fn a_function_runs_from_its_fn_to_its_brace() {
    let text = "\n/// Doc.\n#[inline]\npub const fn one(\n    x: u8,\n) -> u8\n{\n    x\n}\n";
    assert_eq!(measured(text), [entry("one", 4, 6)]);
}

#[test]
fn a_one_line_function_has_one_line() {
    assert_eq!(measured("fn f() {}"), [entry("f", 1, 1)]);
}

#[test]
fn braces_in_strings_and_comments_do_not_end_a_function() {
    let text = "fn f() {\n    let s = \"}\"; // }\n    /* } */ let c = '}';\n    let r = r#\"}\"}\"#;\n}\n";
    assert_eq!(measured(text), [entry("f", 1, 5)]);
}

#[test]
fn declarations_and_pointer_types_are_no_functions() {
    let text = "trait T { fn declared(&self, x: [u8; 3]); }\ntype F = fn(u8) -> u8;\nfn real(f: fn()) { f() }\n";
    assert_eq!(measured(text), [entry("real", 3, 1)]);
}

#[test]
fn a_closure_inside_a_call_does_not_end_the_function() {
    let text = "fn f() {\n    g(|| { 1 });\n    if x {\n    }\n}\nfn h() {\n}\n";
    assert_eq!(measured(text), [entry("f", 1, 5), entry("h", 6, 2)]);
}

#[test]
fn a_nested_function_counts_in_both() {
    let text = "fn outer() {\n    fn inner() {\n    }\n}\n";
    assert_eq!(measured(text), [entry("outer", 1, 4), entry("inner", 2, 2)]);
}

#[test]
fn code_under_cfg_test_is_taken_out_and_the_rest_stays() {
    let text = "use a;\n#[cfg(test)]\nextern crate std;\n#[cfg(all(test, unix))]\n#[allow(x)]\nmod tests {\n    use std::fmt;\n}\nstruct S;\n#[cfg(not(test))]\nuse std::kept;\n";
    let code = without_tests(&blank(text));
    assert_eq!(lines_with_word(&code, "std"), [11]);
    assert!(code.contains("struct S;"));
}

#[test]
fn words_are_found_whole_only() {
    let code = blank("#![forbid(unsafe_code)]\n#![no_std]\nuse std::io; use std::fs;\n// unsafe\n");
    assert_eq!(lines_with_word(&code, "unsafe"), Vec::<usize>::new());
    assert_eq!(lines_with_word(&code, "std"), [3]);
}

#[test]
fn test_files_are_known_by_their_names() {
    for path in [
        "crates/a/tests/x.rs",
        "crates/a/src/tests.rs",
        "src/b_test.rs",
        "benches/c.rs",
    ] {
        assert!(is_test_file(path), "{path}");
    }
    for path in [
        "crates/a/src/lib.rs",
        "crates/bench/src/latest.rs",
        "xtask/src/test.rs",
    ] {
        assert!(!is_test_file(path), "{path}");
    }
}
