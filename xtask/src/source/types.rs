//! Structs and their fields, and whose methods stand in a file.

use super::words;

/// A struct with named fields.
#[derive(Debug, PartialEq, Eq)]
pub struct Struct {
    /// Its name, without a path.
    pub name: String,
    /// How many fields it has.
    pub fields: usize,
    /// A field is a column of a format or an option of a command: it is read or written as a whole by what it derives.
    pub is_format: bool,
}

/// What such a struct derives.
const FORMATS: [&str; 4] = ["Serialize", "Deserialize", "Args", "Parser"];

/// All structs with named fields in blanked code.
pub fn structs(code: &str) -> Vec<Struct> {
    let mut found = Vec::new();
    let mut previous: Option<(usize, &str)> = None;
    for (at, word) in words(code) {
        if let Some((keyword, "struct")) = previous
            && let Some(fields) = fields(&code[at + word.len()..])
        {
            let before = &code[..keyword];
            let from = before.rfind([';', '{', '}']).map_or(0, |at| at + 1);
            let mut attributes = words(&before[from..]);
            found.push(Struct {
                name: word.to_owned(),
                fields,
                is_format: attributes.any(|(_, word)| FORMATS.contains(&word)),
            });
        }
        previous = Some((at, word));
    }
    found
}

/// The names of all types that blanked code defines.
pub fn types(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut previous = None;
    for (_, word) in words(code) {
        if matches!(previous, Some("struct" | "enum" | "union")) {
            found.push(word.to_owned());
        }
        previous = Some(word);
    }
    found
}

/// How many fields have a colon behind their name. `None`: they have no names.
fn fields(behind: &str) -> Option<usize> {
    let bytes = behind.as_bytes();
    let open = bytes
        .iter()
        .position(|byte| matches!(byte, b'{' | b';' | b'('))?;
    if bytes[open] != b'{' {
        return None;
    }
    let (mut depth, mut fields) = (0_usize, 0);
    for (at, byte) in bytes.iter().enumerate().skip(open + 1) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' if depth == 0 => return Some(fields),
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            b':' if depth == 0 => {
                let is_path = bytes[at - 1] == b':' || bytes.get(at + 1) == Some(&b':');
                fields += usize::from(!is_path);
            }
            _ => {}
        }
    }
    None
}

/// The names of types that have methods of their own in blanked code, each once.
pub fn types_with_methods(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in words(code) {
        // `-> impl Trait` and `(impl Trait)` are no items.
        let before = code[..at].trim_end().as_bytes().last();
        let is_item = before.is_none_or(|byte| matches!(byte, b'}' | b'{' | b';' | b']'));
        if word == "impl"
            && is_item
            && let Some(name) = type_of(&code[at + word.len()..])
            && !found.contains(&name)
        {
            found.push(name);
        }
    }
    found
}

/// Whose methods come behind this `impl`, unless they are those of a trait.
fn type_of(behind: &str) -> Option<String> {
    let head = &behind[..behind.find('{')?];
    let head = without_generics(head.trim_start());
    let head = head.split(" where").next()?.trim();
    let mut names = words(head);
    if names.any(|(_, word)| matches!(word, "for" | "dyn")) {
        return None;
    }
    let path = head.split('<').next()?;
    let (_, name) = words(path).last()?;
    Some(name.to_owned())
}

/// Without the parameters that stand in front.
fn without_generics(head: &str) -> &str {
    if !head.starts_with('<') {
        return head;
    }
    let bytes = head.as_bytes();
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' => {
                depth -= 1;
                if depth == 0 {
                    return &head[at + 1..];
                }
            }
            _ => {}
        }
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(code: &str) -> Vec<(String, usize, bool)> {
        let all = structs(code).into_iter();
        all.map(|of| (of.name, of.fields, of.is_format)).collect()
    }

    #[test]
    fn fields_have_one_colon_each() {
        let code = "struct A<T: B> { pub a: Vec<x::Y>, b: [u8; 4], c: Box<dyn Fn(u8) -> T>, }\n\
            struct B(u8); struct C;\n#[derive(Debug, clap::Args)] pub struct D where { #[arg(x)] d: u8 }";
        let wanted = [("A", 3, false), ("D", 1, true)];
        let wanted = wanted.map(|(name, fields, is_format)| (name.to_owned(), fields, is_format));
        assert_eq!(counts(code), wanted);
    }

    #[test]
    fn methods_of_a_type_are_not_those_of_a_trait() {
        let code = "impl<A: Fn() -> u8, B> x::Y<A> { fn a() -> impl Z { } }\nimpl Y { }\n\
            impl<A> From<A> for Y { }\nimpl dyn T { }\nimpl W where u8: Z { fn a(b: impl Z) {} }";
        assert_eq!(types_with_methods(code), ["Y", "W"]);
    }
}
