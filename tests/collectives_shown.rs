//! `docs/collectives.md` tells the truth: what its first program is written out as, and how launches fail.

#[path = "support/documents.rs"]
mod documents;

use std::time::Duration;

use pld::ir::Program;
use pld::ir::parse::parse;
use pld::ir::print::print;
use pld::passes::expand_collectives::{Target, expand_collectives};
use pld::runtime::{CompileOptions, Executable, World, WorldOptions};

use documents::{bless, read};

const DOCUMENT: &str = "docs/collectives.md";

fn parsed(text: &str) -> Program {
    parse(text, "collectives.md").unwrap_or_else(|mistakes| panic!("{}", mistakes[0]))
}

/// What stands between `begin` and `end`, and what stands before and behind.
fn between<'t>(text: &'t str, begin: &str, end: &str) -> Option<(&'t str, &'t str, &'t str)> {
    let at = text.find(begin)? + begin.len();
    let (inside, _) = text[at..].split_once(end)?;
    Some((&text[..at], inside, &text[at + inside.len()..]))
}

/// The document, with what its first program is written out as.
fn with_expansion(document: &str) -> String {
    let (_, first, _) = between(document, "```pld\n", "```").expect("a program");
    let (before, _, behind) = between(document, "```pld expanded ranks=2\n", "```").expect("what it is written out as");
    let expanded = expand_collectives(&parsed(first), &Target::new(2)).expect("a sound program").into_owned();
    format!("{before}{}{behind}", print(&expanded))
}

/// Launches the program with two ranks: the message.
fn failure(text: &str) -> String {
    let options = WorldOptions { timeout: Duration::from_secs(20), ..WorldOptions::default() };
    let world = World::create(2, &options).expect("a world");
    let executable = Executable::compile(&parsed(text), &world, &CompileOptions::default()).expect("a sound program");
    executable.launch(&[]).expect_err("it fails").to_string()
}

/// Its words in any order: it is open which rank is the first to notice.
fn words(message: &str) -> Vec<&str> {
    let mut words: Vec<&str> = message.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    words.retain(|word| !word.is_empty());
    words.sort_unstable();
    words
}

/// The document, with how its launches fail.
fn with_failures(document: &str) -> String {
    let (mut right, mut rest, mut shown) = (String::new(), document, 0);
    while let Some((before, program, behind)) = between(rest, "```pld launch ranks=2\n", "```") {
        let (to_message, message, behind) = between(behind, "```text\n", "```").expect("the message follows");
        let is = format!("{}\n", failure(program));
        let message = if words(message) == words(&is) { message } else { &is };
        right += &format!("{before}{program}{to_message}{message}");
        (rest, shown) = (behind, shown + 1);
    }
    assert_eq!(shown, 2);
    right + rest
}

#[test]
fn what_is_shown_is_what_happens() {
    let document = read(DOCUMENT);
    let right = with_failures(&with_expansion(&document));
    bless(DOCUMENT, &document, &right);
}
