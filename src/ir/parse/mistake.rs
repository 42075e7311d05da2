//! The mistakes that a text can have, and how they are reported.

use crate::ir::diagnostic::{Code, Diagnostic, Severity};
use crate::ir::lex::Position;

/// A character that begins no token.
pub const BAD_CHARACTER: Code = Code("PLD-P001");
/// A number that is malformed or out of range.
pub const BAD_NUMBER: Code = Code("PLD-P002");
/// Something else is needed here.
pub const UNEXPECTED: Code = Code("PLD-P003");
/// A block is not closed, or closed twice.
pub const UNBALANCED: Code = Code("PLD-P004");
/// Expressions are nested too deeply.
pub const NESTED: Code = Code("PLD-P005");
/// A name that nothing has.
pub const UNKNOWN_NAME: Code = Code("PLD-P006");
/// A name of something that cannot stand here.
pub const WRONG_KIND: Code = Code("PLD-P007");
/// An assignment to what never changes.
pub const IMMUTABLE: Code = Code("PLD-P008");
/// A name that is taken, or a word of the language.
pub const NAME_TAKEN: Code = Code("PLD-P009");
/// A type that does not exist, or not here.
pub const UNKNOWN_TYPE: Code = Code("PLD-P010");
/// A transfer with only some of its offsets and shape.
pub const PARTIAL_REGION: Code = Code("PLD-P011");
/// A declaration out of order.
pub const OUT_OF_ORDER: Code = Code("PLD-P012");
/// More mistakes than are reported.
pub const TOO_MANY: Code = Code("PLD-P013");

/// All of them.
pub const CODES: [Code; 13] = [
    BAD_CHARACTER,
    BAD_NUMBER,
    UNEXPECTED,
    UNBALANCED,
    NESTED,
    UNKNOWN_NAME,
    WRONG_KIND,
    IMMUTABLE,
    NAME_TAKEN,
    UNKNOWN_TYPE,
    PARTIAL_REGION,
    OUT_OF_ORDER,
    TOO_MANY,
];

/// Most mistakes that are reported of one text.
pub const MAX_MISTAKES: usize = 50;

/// Longest source line that a report shows.
const MAX_SNIPPET: usize = 200;

/// A mistake at a place; its source line is added at the end.
pub(super) fn error(file: &str, at: Position, code: Code, message: String, hint: String) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code,
        file: file.into(),
        line: at.line,
        column: at.column,
        message,
        snippet: String::new(),
        notes: Vec::new(),
        hint,
    }
}

/// Puts mistakes in order and shows the source line of each.
pub(super) fn add_snippets(text: &str, mistakes: &mut [Diagnostic]) {
    mistakes.sort_by_key(|m| (m.line, m.column));
    let mut lines = text.split('\n').zip(1u32..).peekable();
    for mistake in mistakes {
        while lines.next_if(|(_, number)| *number < mistake.line).is_some() {}
        if let Some((line, number)) = lines.peek()
            && *number == mistake.line
            && mistake.column as usize <= MAX_SNIPPET
        {
            // One character each, so that the caret stays below its column.
            let shown = line.trim_end().chars().take(MAX_SNIPPET);
            mistake.snippet = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
        }
    }
}

/// The name that is most like `name`, if one is alike enough to be meant.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 40;
    if name.len() > LONGEST {
        return None;
    }
    let most = 1 + name.len() / 4;
    known
        .into_iter()
        .filter(|k| k.len().abs_diff(name.len()) <= most && k.len() <= LONGEST)
        .map(|k| (distance(name.as_bytes(), k.as_bytes()), k))
        .filter(|(d, k)| *d <= most && *d < k.len())
        .min()
        .map(|(_, k)| k)
}

/// Number of bytes to insert, remove, replace, or swap with their neighbour.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let mut best = (last[j - 1] + usize::from(a[i - 1] != b[j - 1])).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_meant() {
        let known = ["notify", "signal", "peer", "me", "x"];
        assert_eq!(nearest("notfy", known), Some("notify"));
        assert_eq!(nearest("sginal", known), Some("signal"), "neighbours swapped");
        assert_eq!(nearest("peers", known), Some("peer"));
        assert_eq!(nearest("y", known), None, "nothing in common");
        assert_eq!(nearest("destination", known), None);
    }
}
