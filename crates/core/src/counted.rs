//! Counters of an engine, for people and metrics: numbers with a name and a sentence each.

/// A struct of counters, with a name and a sentence of each.
#[macro_export]
macro_rules! counters {
    ($(#[doc = $about:literal])* $owner:ident: $($(#[doc = $doc:literal])* $name:ident,)*) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $owner {
            $($(#[doc = $doc])* pub $name: u64,)*
        }

        impl $owner {
            /// Adds all counters, by name.
            pub fn add_to(&self, counters: &mut ::alloc::collections::BTreeMap<&'static str, u64>) {
                $(*counters.entry(stringify!($name)).or_default() += self.$name;)*
            }

            /// The sentence that explains a counter to people.
            pub fn help(name: &str) -> Option<&'static str> {
                match name {
                    $(stringify!($name) => Some(concat!($($doc),*)),)*
                    _ => None,
                }
            }
        }
    };
}
