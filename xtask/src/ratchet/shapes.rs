//! Fields of structs, and how many files have methods of one type.

use std::collections::{BTreeMap, BTreeSet};

use super::Lengths;
use crate::source;

/// What was seen of all files.
#[derive(Debug, Default)]
pub(super) struct Shapes {
    /// How many fields a struct has, by file and name.
    fields: BTreeMap<(String, String), usize>,
    /// Where types are defined, by name.
    defined: BTreeMap<String, BTreeSet<String>>,
    /// The files with methods of a type, by its name.
    methods: BTreeMap<String, BTreeSet<String>>,
}

impl Shapes {
    /// Takes in a file.
    pub fn look(&mut self, path: &str, text: &str) {
        if source::is_test_file(path) {
            return;
        }
        let code = source::without_tests(&source::blank(text));
        for found in source::structs(&code) {
            if !found.is_format {
                let most = self.fields.entry((path.to_owned(), found.name));
                let most = most.or_default();
                *most = found.fields.max(*most);
            }
        }
        for name in source::types(&code) {
            self.defined
                .entry(name)
                .or_default()
                .insert(path.to_owned());
        }
        for name in source::types_with_methods(&code) {
            self.methods
                .entry(name)
                .or_default()
                .insert(path.to_owned());
        }
    }

    /// Adds what was counted.
    pub fn measure(&self, lengths: &mut Lengths) {
        for ((path, name), fields) in &self.fields {
            lengths.insert(("fields".to_owned(), format!("{path}::{name}")), *fields);
        }
        for (name, files) in &self.methods {
            for file in files {
                let Some(home) = self.home(name, file) else {
                    continue;
                };
                let key = ("impls".to_owned(), format!("{home}::{name}"));
                *lengths.entry(key).or_default() += 1;
            }
        }
    }

    /// Where the type is defined whose methods stand in a file: of several of that name the nearest.
    fn home(&self, name: &str, file: &str) -> Option<&String> {
        let in_common = |path: &&String| {
            let both = path.split('/').zip(file.split('/'));
            both.take_while(|(one, other)| one == other).count()
        };
        self.defined.get(name)?.iter().max_by_key(in_common)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_count_for_the_nearest_type_of_their_name() {
        let mut shapes = Shapes::default();
        for (path, text) in [
            ("a/b/one.rs", "struct S { a: u8, b: u8 }\nimpl S {}"),
            ("a/b/more.rs", "impl S {}\nimpl Default for S {}"),
            ("a/c/two.rs", "pub enum S {}\nimpl S {}"),
            ("a/c/tests.rs", "impl S {}"),
            ("a/c/three.rs", "#[cfg(test)] mod tests { impl S {} }"),
        ] {
            shapes.look(path, text);
        }
        let mut lengths = Lengths::new();
        shapes.measure(&mut lengths);
        let of = |kind: &str, name: &str| lengths.get(&(kind.to_owned(), name.to_owned()));
        assert_eq!(of("fields", "a/b/one.rs::S"), Some(&2));
        assert_eq!(of("impls", "a/b/one.rs::S"), Some(&2));
        assert_eq!(of("impls", "a/c/two.rs::S"), Some(&1));
        assert_eq!(lengths.len(), 3);
    }
}
