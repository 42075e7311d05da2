//! Documents tell the truth: a block that names a file shows lines of it, a block that changes a program is followed by
//! what the checker says about that, and links lead somewhere. `docs/tutorial` has a page for each step.
//!
//! | block | shows |
//! | --- | --- |
//! | `c file=PATH`, in any language | lines of that file that follow each other, with another indentation if need be |
//! | `diff file=PATH ranks=2`, ... | a change to a program; with the options of a check |
//! | `text finding`, behind a change | findings that it leads to, whole lines of them |
//! | `pld expanded=PATH ranks=2` | lines of what that program is written out as |
//! | `text output=PATH` | what the step prints between 3 ranks; on its own page compared where the steps are run |

#[path = "support/documents.rs"]
mod documents;
#[path = "support/findings.rs"]
mod findings;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use pld::ir::parse::parse;
use pld::ir::print::print;
use pld::passes::expand_collectives::{Target, expand_collectives};

use documents::{bless, read, root};
use findings::{checked, list};

/// Every document, by its path in the project.
fn documents() -> Vec<String> {
    let mut documents = vec!["README.md".to_owned(), "ARCHITECTURE.md".to_owned()];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path: PathBuf = entry.expect("a directory entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path.strip_prefix(root()).expect("a path below").to_str().expect("UTF-8").to_owned());
            }
        }
    }
    documents.sort();
    documents
}

/// A block of code: the line that opens it, without the fence, and what stands in it.
struct Block<'t> {
    info: &'t str,
    body: &'t str,
}

impl<'t> Block<'t> {
    /// The value of `key=value` in the first line.
    fn value(&self, key: &str) -> Option<&'t str> {
        self.info.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    /// The first line behind this word.
    fn rest(&self, word: &str) -> &'t str {
        self.info.split_once(word).map_or("", |(_, rest)| rest.trim())
    }
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (info, after) = after.split_once('\n').expect("a line");
        let (body, after) = match after.strip_prefix("```") {
            Some(after) => ("", after),
            None => after.split_at(after.find("\n```").expect("a closed block") + 1),
        };
        blocks.push(Block { info, body });
        rest = after.strip_prefix("```").unwrap_or(after);
    }
    blocks
}

/// Where these lines follow each other in the file, all indented by as much more or less.
fn find(lines: &[&str], file: &[&str]) -> Option<usize> {
    let margin = |line: &str| line.len() - line.trim_start().len();
    file.windows(lines.len()).position(|window| {
        let (here, there) = (margin(lines[0]), margin(window[0]));
        lines.iter().zip(window).all(|(&line, &at)| {
            let blank = line.is_empty() && at.is_empty();
            blank || line.trim_start() == at.trim_start() && margin(line) + there == margin(at) + here
        })
    })
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).collect()
}

#[test]
fn snippets_stand_in_their_files() {
    let mut wrong = String::new();
    for document in documents() {
        let text = read(&document);
        for block in blocks(&text).iter().filter(|block| !block.info.starts_with("diff ")) {
            let Some(path) = block.value("file") else {
                let code = ["c", "cpp", "python", "pld"].contains(&block.info);
                assert!(!code || !document.starts_with("docs/tutorial/"), "{document}: of no file:\n{}", block.body);
                continue;
            };
            if find(&lines(block.body), &lines(&read(path))).is_none() {
                wrong += &format!("{document}: not in {path}:\n{}", block.body);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The program with a change: lines that go, lines that come, and lines between.
fn changed(program: &str, change: &str) -> String {
    let part = |without: char| -> Vec<&str> {
        let kept = change.lines().filter(|line| !line.starts_with(without));
        kept.map(|line| line.get(1..).unwrap_or_default()).collect()
    };
    let (program, old, new) = (lines(program), part('+'), part('-'));
    let at = program.windows(old.len()).position(|window| window == old);
    let at = at.unwrap_or_else(|| panic!("not in the program:\n{change}"));
    let new: Vec<&str> = [&program[..at], &new, &program[at + old.len()..]].concat();
    new.join("\n") + "\n"
}

#[test]
fn changes_have_the_findings_that_are_shown() {
    let mut shown = 0;
    for document in documents() {
        let text = read(&document);
        let mut right = text.clone();
        let mut change = None;
        for block in blocks(&text) {
            if block.info.starts_with("diff file=") {
                assert!(change.is_none(), "{document}: a change without findings");
                change = Some(block);
            } else if block.info == "text finding" {
                let change: Block = change.take().unwrap_or_else(|| panic!("{document}: findings without a change"));
                let path = change.value("file").expect("a file");
                let name = path.rsplit('/').next().expect("a name");
                let found = match parse(&changed(&read(path), change.body), name) {
                    Ok(program) => list(&checked(&program, change.rest(path))),
                    Err(mistakes) => list(&mistakes),
                };
                shown += 1;
                if block.body.is_empty() || !format!("\n{found}").contains(&format!("\n{}", block.body)) {
                    let (old, new) = (format!("```text finding\n{}```", block.body), "```text finding\n".to_owned());
                    right = right.replacen(&old, &format!("{new}{found}```"), 1);
                }
            }
        }
        assert!(change.is_none(), "{document}: a change without findings");
        bless(&document, &text, &right);
    }
    assert!(shown >= 16, "there are {shown} changes");
}

#[test]
fn expansions_are_what_is_compiled() {
    let mut shown = 0;
    for document in documents() {
        let text = read(&document);
        for block in blocks(&text) {
            let Some(path) = block.value("expanded") else { continue };
            let program = parse(&read(path), path).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
            let nranks = block.value("ranks").map_or(2, |n| n.parse().expect("a number"));
            let expanded = print(&expand_collectives(&program, &Target::new(nranks)).expect("a sound program"));
            shown += 1;
            if block.body.is_empty() || find(&lines(block.body), &lines(&expanded)).is_none() {
                let right = text.replace(
                    &format!("```{}\n{}```", block.info, block.body),
                    &format!("```{}\n{expanded}```", block.info),
                );
                bless(&document, &text, &right);
            }
        }
    }
    assert!(shown >= 1);
}

#[test]
fn every_step_has_a_page() {
    let listing = std::fs::read_dir(root().join("examples/pld")).expect("a folder");
    let names = listing.map(|entry| entry.expect("a directory entry").path());
    let names = names.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    let mut steps: Vec<String> = names.filter(|name| name.starts_with(|c: char| c.is_ascii_digit())).collect();
    steps.sort();
    assert_eq!(steps.len(), 16);
    let index = read("docs/tutorial/README.md");
    for (i, step) in steps.iter().enumerate() {
        assert!(step.starts_with(&format!("{:02}_", i + 1)), "{step}");
        assert!(index.contains(&format!("({step}.md)")), "the index has no {step}");
        let page = read(&format!("docs/tutorial/{step}.md"));
        let source = format!("examples/c/{step}.c");
        let blocks = blocks(&page);
        assert!(blocks.iter().any(|block| block.value("file") == Some(&source)), "{step} shows nothing of {source}");
        assert!(blocks.iter().any(|block| block.value("output") == Some(&source)), "{step} shows no output");
        if let Some(next) = steps.get(i + 1) {
            assert!(page.contains(&format!("]({next}.md)")), "{step} has no link to {next}");
        }
    }
}

#[test]
fn other_documents_show_the_same_output() {
    for document in documents() {
        for block in blocks(&read(&document)) {
            let Some(source) = block.value("output") else { continue };
            let step = Path::new(source).file_stem().and_then(|stem| stem.to_str()).expect("a file");
            let page = read(&format!("docs/tutorial/{step}.md"));
            let same = blocks(&page).iter().any(|of_page| of_page.info == block.info && of_page.body == block.body);
            assert!(same, "{document} and the page show different output of {source}");
        }
    }
}

/// The name of a heading in links.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// A document without its blocks, and without code in its lines.
fn prose(text: &str) -> String {
    let mut inside = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside;
        } else if !inside {
            prose += &line.split('`').step_by(2).collect::<Vec<_>>().join("code");
            prose.push('\n');
        }
    }
    prose
}

fn anchors(document: &str) -> HashSet<String> {
    let mut inside = false;
    let text = read(document);
    let headings = text.lines().filter_map(|line| {
        inside ^= line.starts_with("```");
        let heading = line.trim_start_matches('#').strip_prefix(' ')?;
        (!inside && line.starts_with('#')).then(|| anchor(&heading.replace('`', "")))
    });
    headings.collect()
}

#[test]
fn links_lead_somewhere() {
    let (mut wrong, mut links) = (String::new(), 0);
    for document in documents() {
        let folder = Path::new(&document).parent().expect("a folder");
        let prose = prose(&read(&document));
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            links += 1;
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if path.is_empty() { root().join(&document) } else { root().join(folder).join(path) };
            let found = match heading {
                "" => target.exists(),
                _ => target.is_file() && anchors(target.to_str().expect("UTF-8")).contains(heading),
            };
            if !found {
                wrong += &format!("{document}: {link}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "links to nothing:\n{wrong}");
    assert!(links > 20, "there are {links} links");
}
