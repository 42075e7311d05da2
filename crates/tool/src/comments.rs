//! Puts the comments and blank lines of a text into its printed form, which has none.
//!
//! The two texts have about the same words in the same order. A comment stays before the word that it stood before or, if
//! it ended a line of code, behind the one that it stood behind.

/// Something of the source that is no code.
enum Extra<'t> {
    /// A line without anything.
    Blank,
    /// A comment on a line of its own.
    Line(&'t str),
    /// A comment that ends a line of code, and the room before it.
    Trailing(usize, &'t str),
}

/// `printed` with the comments and single blank lines of `text`.
pub fn with_comments(text: &str, printed: &str) -> String {
    let (source, printed_words) = (words(text), words(printed));
    let pairs = pairs(&source, &printed_words);
    let lines: Vec<&str> = printed.lines().collect();
    let mut before: Vec<Vec<Extra>> = (0..=lines.len()).map(|_| Vec::new()).collect();
    let mut behind: Vec<Vec<(usize, &str)>> = vec![Vec::new(); lines.len()];

    for (next, extra) in extras(text) {
        match extra {
            Extra::Trailing(room, comment) => {
                // Behind the last word that both have; best one that closes no block, which may get a line of its own.
                let mut words = pairs.iter().rev().skip_while(|pair| pair.0 >= next);
                let last = words.clone().next();
                let on_line = |pair: &&(usize, usize)| source[pair.0].0 == source[next - 1].0;
                let word = words.by_ref().take_while(on_line).find(|pair| source[pair.0].1 != "}").or(last);
                behind[word.map_or(0, |pair| printed_words[pair.1].0)].push((room, comment));
            }
            extra => {
                let word = pairs.iter().find(|pair| pair.0 >= next);
                before[word.map_or(lines.len(), |pair| printed_words[pair.1].0)].push(extra);
            }
        }
    }

    let mut out = Text::default();
    for (index, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        // What stands before the end of a block belongs to the block.
        let indent = if line.trim_start().starts_with('}') { indent + 2 } else { indent };
        before[index].iter().for_each(|extra| out.extra(indent, extra));
        match behind[index].as_slice() {
            [] => out.line(line),
            // Neighbours may stand in a column, so the room before it stays.
            [(room, comment)] => out.line(&format!("{line}{}{comment}", " ".repeat(*room))),
            comments => {
                comments.iter().for_each(|(_, comment)| out.extra(indent, &Extra::Line(comment)));
                out.line(line);
            }
        }
    }
    before[lines.len()].iter().for_each(|extra| out.extra(0, extra));
    out.finish()
}

/// Lines, without blank ones where they separate nothing.
#[derive(Default)]
struct Text {
    lines: Vec<String>,
}

impl Text {
    fn extra(&mut self, indent: usize, extra: &Extra) {
        match extra {
            Extra::Blank => self.line(""),
            Extra::Line(comment) | Extra::Trailing(_, comment) => {
                self.line(&format!("{}{comment}", " ".repeat(indent)))
            }
        }
    }

    fn line(&mut self, line: &str) {
        let last = self.lines.last().map(String::as_str);
        let separates = last.is_some_and(|last| !last.is_empty() && !opens(last));
        if line.is_empty() && !separates {
            return;
        }
        if line.trim_start().starts_with('}') && last == Some("") {
            self.lines.pop();
        }
        self.lines.push(line.into());
    }

    fn finish(mut self) -> String {
        while self.lines.last().is_some_and(String::is_empty) {
            self.lines.pop();
        }
        self.lines.push(String::new());
        self.lines.join("\n")
    }
}

/// The line begins a block.
fn opens(line: &str) -> bool {
    code_and_comment(line).0.trim_end().ends_with('{')
}

/// A comment begins at `#`, which means nothing else.
fn code_and_comment(line: &str) -> (&str, Option<&str>) {
    match line.find('#') {
        Some(at) => (&line[..at], Some(line[at..].trim_end())),
        None => (line, None),
    }
}

/// The spaces at the end of some code, at least one.
fn room_behind(code: &str) -> usize {
    (code.len() - code.trim_end().len()).max(1)
}

/// The words and signs of a text, each with its line from 0.
fn words(text: &str) -> Vec<(usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut rest = code_and_comment(line).0.trim_start();
        while let Some(first) = rest.chars().next() {
            let len = if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
            let (word, behind) = rest.split_at(len);
            words.push((number, word));
            rest = behind.trim_start();
        }
    }
    words
}

/// What of a text is no code, each with the number of the word that follows.
fn extras(text: &str) -> Vec<(usize, Extra<'_>)> {
    let mut extras = Vec::new();
    let mut next = 0;
    for line in text.lines() {
        let (code, comment) = code_and_comment(line);
        next += words(code).len();
        match comment {
            None if code.trim().is_empty() => extras.push((next, Extra::Blank)),
            None => {}
            Some(comment) if code.trim().is_empty() => extras.push((next, Extra::Line(comment))),
            Some(comment) => extras.push((next, Extra::Trailing(room_behind(code), comment))),
        }
    }
    extras
}

/// The longest list of words that both texts have in this order, by number: Myers' greedy way through the grid of both,
/// by the number of words that only one has.
fn pairs(a: &[(usize, &str)], b: &[(usize, &str)]) -> Vec<(usize, usize)> {
    let (n, m) = (a.len() as isize, b.len() as isize);
    let most = n + m;
    // How far into `a` one gets on each diagonal.
    let mut reach = vec![0isize; 2 * most as usize + 3];
    let at = |diagonal: isize| (diagonal + most + 1) as usize;
    let mut history = Vec::new();
    let differences = (0..=most).find(|&d| {
        history.push(reach.clone());
        (-d..=d).step_by(2).any(|diagonal| {
            let down = diagonal == -d || diagonal != d && reach[at(diagonal - 1)] < reach[at(diagonal + 1)];
            let mut x = if down { reach[at(diagonal + 1)] } else { reach[at(diagonal - 1)] + 1 };
            while x < n && x - diagonal < m && a[x as usize].1 == b[(x - diagonal) as usize].1 {
                x += 1;
            }
            reach[at(diagonal)] = x;
            x >= n && x - diagonal >= m
        })
    });
    let mut pairs = Vec::new();
    let (mut x, mut y) = (n, m);
    for d in (0..=differences.unwrap_or(0)).rev() {
        let (reach, diagonal) = (&history[d as usize], x - y);
        let down = diagonal == -d || diagonal != d && reach[at(diagonal - 1)] < reach[at(diagonal + 1)];
        let before = if d == 0 {
            0
        } else if down {
            diagonal + 1
        } else {
            diagonal - 1
        };
        let (from_x, from_y) = if d == 0 { (0, 0) } else { (reach[at(before)], reach[at(before)] - before) };
        while x > from_x && y > from_y {
            (x, y) = (x - 1, y - 1);
            pairs.push((x as usize, y as usize));
        }
        (x, y) = (from_x, from_y);
    }
    pairs.reverse();
    pairs
}
