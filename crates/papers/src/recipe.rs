//! How our figure is obtained, as `docs/papers/claims.csv` has it: words of the form `key=value`, the first of which is
//! `get=WHAT`.

use std::collections::BTreeMap;

/// The keys that a recipe may have.
const KEYS: [&str; 19] = [
    "get", "rate", "pw", "aw", "over", "pick", "ratio", "system", "senders", "payload", "nodes",
    "latency", "loss", "distance", "service", "protocol", "opw", "network", "leveling",
];

/// A recipe.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Recipe {
    words: BTreeMap<String, String>,
}

impl Recipe {
    /// Reads a recipe.
    ///
    /// # Errors
    /// A word that is none, or a key that does not exist.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = BTreeMap::new();
        for word in text.split_whitespace() {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| format!("`{word}` is not of the form key=value"))?;
            if !KEYS.contains(&key) {
                return Err(format!("`{key}` is no key of a recipe"));
            }
            words.insert(key.to_owned(), value.to_owned());
        }
        Ok(Self { words })
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.words.get(key).map(String::as_str)
    }

    /// What is obtained.
    pub fn what(&self) -> &str {
        self.get("get").unwrap_or_default()
    }

    /// The value of a key, as a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.parse().ok()
    }

    /// The values of `over=KEY:A|B|C`: one recipe for each; itself if it has none.
    pub fn spread(&self) -> Vec<Self> {
        let Some((key, values)) = self.get("over").and_then(|over| over.split_once(':')) else {
            return vec![self.clone()];
        };
        let with = |value: &str| {
            let mut one = self.clone();
            one.words.remove("over");
            one.words.insert(key.to_owned(), value.to_owned());
            one
        };
        values.split('|').map(with).collect()
    }

    /// The same with one value more, or another.
    pub fn with(&self, key: &str, value: &str) -> Self {
        let mut other = self.clone();
        other.words.insert(key.to_owned(), value.to_owned());
        other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_spread_over_its_values() {
        let recipe = Recipe::parse("get=latency rate=480 over=loss:1|5 pick=max");
        let recipe = recipe.expect("a recipe");
        let all = recipe.spread();
        let losses: Vec<_> = all.iter().map(|one| one.number("loss")).collect();
        assert_eq!(losses, [Some(1.0), Some(5.0)]);
        assert_eq!(all[0].what(), "latency");
        assert_eq!(all[1].number("rate"), Some(480.0));
    }

    #[test]
    fn a_key_that_does_not_exist_is_no_recipe() {
        assert!(Recipe::parse("get=latency rat=480").is_err());
        assert!(Recipe::parse("latency").is_err());
    }
}
