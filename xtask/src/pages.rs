//! What pages say of the code and can be looked up there: files, the items behind the glossary's nouns, and the counters
//! that are watched. A page that is checked cannot send its reader to something that was renamed since.

mod counters;
mod glossary;
mod paths;

pub use counters::check as counters;
pub use glossary::check as glossary;
pub use paths::check as paths;

/// The paragraphs, list items, rows of tables and headings of a page, each with its first line, counted from one; no
/// fenced code.
fn blocks(page: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    // The lines of the block so far; empty if the next line begins one.
    let mut open = false;
    let mut fenced = false;
    for (index, line) in page.lines().enumerate() {
        let text = line.trim_start();
        if text.starts_with("```") {
            (fenced, open) = (!fenced, false);
        } else if fenced || text.is_empty() {
            open = false;
        } else if let Some((_, block)) = blocks.last_mut().filter(|_| open && !begins_block(text)) {
            block.push('\n');
            block.push_str(line);
        } else {
            blocks.push((index + 1, line.to_owned()));
            open = true;
        }
    }
    blocks
}

/// Whether a line without its indent is a row, a heading or the first of a list item.
fn begins_block(text: &str) -> bool {
    let number = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_numbered = number.len() < text.len() && number.starts_with(". ");
    is_numbered
        || ["|", "#", "* ", "- "]
            .iter()
            .any(|mark| text.starts_with(mark))
}

/// The parts of a text between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_items_and_paragraphs_are_blocks_and_code_is_none() {
        let page = "# A\none\ntwo\n\n* three\n  four\n12. five\n| six |\n| seven |\n```text\neight\n```\nnine\n";
        let all = [
            (1, "# A\none\ntwo"),
            (5, "* three\n  four"),
            (7, "12. five"),
            (8, "| six |"),
            (9, "| seven |"),
            (13, "nine"),
        ];
        let all = all.map(|(line, text)| (line, text.to_owned()));
        assert_eq!(blocks(page), all);
    }

    #[test]
    fn what_is_between_backticks_is_quoted() {
        let all: Vec<&str> = quoted("a `b` c `d\ne`, f").collect();
        assert_eq!(all, ["b", "d\ne"]);
    }
}
