//! What is effective, as sections of names and values: for people, and for programs.

use std::fmt;

use serde_json::{Map, Value};

/// Lines of names and values, in sections.
#[derive(Debug, Default)]
pub struct Table {
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    name: String,
    rows: Vec<(String, String)>,
}

impl Table {
    /// Begins a section.
    pub fn section(&mut self, name: &str) {
        self.sections.push(Section {
            name: name.to_owned(),
            rows: Vec::new(),
        });
    }

    /// Adds a line to the section that was begun last.
    pub fn row(&mut self, name: &str, value: impl fmt::Display) {
        if let Some(section) = self.sections.last_mut() {
            section.rows.push((name.to_owned(), value.to_string()));
        }
    }

    /// An object of sections, each an object of values as people see them. A name that comes more than once has a list.
    pub fn to_json(&self) -> Value {
        let section = |section: &Section| (section.name.clone(), section.to_json());
        Value::Object(self.sections.iter().map(section).collect())
    }
}

impl Section {
    fn to_json(&self) -> Value {
        let mut values = Map::new();
        for (name, value) in &self.rows {
            let value = Value::from(value.as_str());
            match values.get_mut(name) {
                None => {
                    values.insert(name.clone(), value);
                }
                Some(Value::Array(list)) => list.push(value),
                Some(first) => *first = Value::Array(vec![first.take(), value]),
            }
        }
        Value::Object(values)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, section) in self.sections.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            writeln!(f, "{gap}[{}]", section.name)?;
            for (name, value) in &section.rows {
                writeln!(f, "{name:<22} {value}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_is_the_same_for_people_and_for_programs() {
        let mut table = Table::default();
        table.section("cluster");
        table.row("cluster", 7);
        table.section("daemon.access");
        for rights in ["connect", "admin", "send *"] {
            table.row("anyone", rights);
        }
        let text = "[cluster]\ncluster                7\n\n[daemon.access]\nanyone                 connect\n\
                    anyone                 admin\nanyone                 send *\n";
        assert_eq!(table.to_string(), text);
        let object = json!({
            "cluster": {"cluster": "7"},
            "daemon.access": {"anyone": ["connect", "admin", "send *"]},
        });
        assert_eq!(table.to_json(), object);
    }
}
