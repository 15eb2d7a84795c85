//! What a file has: items, fields and variants.

use super::blank;

/// Whether a file has an item, a field or a variant of this name.
pub fn defines(text: &str, name: &str) -> bool {
    let code = without_imports(&blank(text));
    let name = name.rsplit("::").next().unwrap_or(name);
    code.lines().any(|line| {
        let line = line.trim();
        is_item(line, name) || is_part(line, name)
    })
}

/// Blanked code without what it imports, and exports again.
fn without_imports(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut imports = false;
    for line in code.lines() {
        imports |= without_visibility(line.trim()).starts_with("use ");
        if !imports {
            kept.push_str(line);
        }
        kept.push('\n');
        imports &= !line.contains(';');
    }
    kept
}

fn without_visibility(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else {
        return line;
    };
    let rest = match rest.strip_prefix('(') {
        Some(limited) => limited.split_once(')').map_or("", |(_, rest)| rest),
        None => rest,
    };
    rest.strip_prefix(' ').unwrap_or(line)
}

/// What follows `name` if the text begins with it as a whole word.
fn behind<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(name)?;
    let goes_on = rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_');
    (!goes_on).then_some(rest)
}

/// Whether a line has the keyword of an item right before the name.
fn is_item(line: &str, name: &str) -> bool {
    let kinds = [
        "fn", "struct", "enum", "trait", "mod", "const", "static", "type", "union",
    ];
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).any(|pair| {
        let [kind, word] = pair else { return false };
        kinds.contains(kind) && behind(word, name).is_some()
    })
}

/// Whether a line is a field or a variant.
fn is_part(line: &str, name: &str) -> bool {
    let Some(rest) = behind(without_visibility(line), name) else {
        return false;
    };
    let is_field = rest.starts_with(": ");
    let is_type = name.starts_with(|letter: char| letter.is_ascii_uppercase());
    let is_variant = rest.is_empty()
        || [",", "(", " {", " = "]
            .iter()
            .any(|mark| rest.starts_with(mark));
    is_field || is_type && is_variant
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "//! Packet, and gone: a word.\n\
        use other::{\n    Foreign,\n    Second,\n};\npub use one::Exported;\n\
        pub struct Packet {\n    pub seq: u64,\n    pub(super) life: Life,\n}\n\
        enum Kind {\n    Plain,\n    Tuple(u8),\n    Named { gone: u8 },\n    Valued = 3,\n}\n\
        impl Packet {\n    pub(crate) const fn update(self: Gone) {\n        call_of(self);\n        Self::Unknown;\n    }\n}\n\
        const MOST: u8 = 1;\n";

    #[test]
    fn items_fields_and_variants_are_defined() {
        for name in [
            "Packet",
            "seq",
            "life",
            "Kind",
            "Plain",
            "Kind::Tuple",
            "Named",
            "Valued",
            "update",
            "MOST",
        ] {
            assert!(defines(FILE, name), "{name}");
        }
    }

    #[test]
    fn items_are_found_by_their_whole_name() {
        let text = "pub(crate) fn on_timer() {}\n// fn in_a_comment() {}\n";
        assert!(defines(text, "on_timer") && !defines(text, "on_time"));
        assert!(!defines(text, "in_a_comment"));
    }

    #[test]
    fn what_is_imported_called_or_said_is_not_defined() {
        for name in [
            "Foreign", "Second", "Exported", "Pack", "call_of", "Unknown", "word", "Gone", "MO",
        ] {
            assert!(!defines(FILE, name), "{name}");
        }
    }
}
