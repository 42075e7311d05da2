//! Program text as tokens, one at a time: every character is looked at once.

use std::fmt;

/// A line and column, from 1; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) line: u32,
    pub(super) column: u32,
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'t> {
    /// A name or a word of the language.
    Name(&'t str),
    /// An integer without sign.
    Int(u64),
    /// A float without sign.
    Float(f32),
    /// Punctuation.
    Symbol(&'static str),
    /// The end of a line: statements end here.
    Newline,
    /// The end of the text.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(name) => write!(f, "{:?}", clip(name)),
            Token::Int(value) => write!(f, "{value}"),
            Token::Float(value) => write!(f, "{value:?}"),
            Token::Symbol(symbol) => write!(f, "{symbol:?}"),
            Token::Newline => f.write_str("the end of the line"),
            Token::End => f.write_str("the end of the file"),
        }
    }
}

/// A name as far as a message shows it.
pub(super) fn clip(name: &str) -> &str {
    name.char_indices().nth(40).map_or(name, |(end, _)| &name[..end])
}

/// What is wrong with a token.
#[derive(Debug, PartialEq)]
pub(super) enum LexMistake {
    /// Characters that begin no token.
    Character(char),
    /// A malformed number; what to write instead.
    Number(&'static str),
    /// A number that no value has.
    Range(&'static str),
}

/// Longest first, so that the first match is the right one.
const SYMBOLS: &[&str] = &[
    "->", "<-", "<=", ">=", "==", "!=", "+=", "..", "(", ")", "[", "]", "{", "}", ",", ":", "=", "<", ">", "+", "-",
    "*", "/", "%", "@",
];

/// Reads tokens off a text.
pub(super) struct Lexer<'t> {
    rest: &'t str,
    position: Position,
    mistakes: Vec<(Position, LexMistake)>,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rest: text, position: Position { line: 1, column: 1 }, mistakes: Vec::new() }
    }

    /// What follows the last token.
    pub(super) fn rest(&self) -> &'t str {
        self.rest
    }

    /// The first character of the next lines that is more than space or comment.
    pub(super) fn next_line_start(&self) -> Option<char> {
        let mut lines = self.rest.lines().map(|line| line.trim_start_matches([' ', '\t', '\r']));
        lines.find(|line| !line.is_empty() && !line.starts_with('#')).and_then(|line| line.chars().next())
    }

    /// The mistakes since the last call.
    pub(super) fn take_mistakes(&mut self) -> Vec<(Position, LexMistake)> {
        std::mem::take(&mut self.mistakes)
    }

    /// The next token, and where it begins.
    pub(super) fn token(&mut self) -> (Position, Token<'t>) {
        loop {
            self.take_while(|c| matches!(c, ' ' | '\t' | '\r'));
            let start = self.position;
            let Some(first) = self.rest.chars().next() else { return (start, Token::End) };
            let token = match first {
                '\n' => {
                    self.rest = &self.rest[1..];
                    self.position = Position { line: start.line.saturating_add(1), column: 1 };
                    Token::Newline
                }
                '#' => {
                    self.take_while(|c| c != '\n');
                    continue;
                }
                'a'..='z' | 'A'..='Z' | '_' => Token::Name(self.take_while(is_word)),
                '0'..='9' => self.number(),
                '.' if !self.rest.starts_with("..") => {
                    self.take_while(|c| c == '.' || is_word(c));
                    self.mistakes.push((start, LexMistake::Number("write a digit before the point: 0.5")));
                    Token::Float(0.0)
                }
                _ => match SYMBOLS.iter().find(|s| self.rest.starts_with(**s)) {
                    Some(symbol) => {
                        self.take(symbol.len());
                        Token::Symbol(symbol)
                    }
                    None => {
                        self.take_while(|c| !c.is_ascii() || c == first);
                        self.mistakes.push((start, LexMistake::Character(first)));
                        continue;
                    }
                },
            };
            return (start, token);
        }
    }

    fn take(&mut self, len: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        let width = taken.chars().count();
        self.position.column = self.position.column.saturating_add(u32::try_from(width).unwrap_or(u32::MAX));
        taken
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let len = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        self.take(len)
    }

    fn number(&mut self) -> Token<'t> {
        let (start, text) = (self.position, self.rest);
        let mut mistake = None;
        let mut len = self.take_while(|c| c.is_ascii_digit()).len();
        let mut is_float = false;
        // In `0..n` the points belong to the range.
        if self.rest.starts_with('.') && !self.rest.starts_with("..") {
            is_float = true;
            self.take(1);
            let digits = self.take_while(|c| c.is_ascii_digit()).len();
            len += 1 + digits;
            if digits == 0 {
                mistake = Some(LexMistake::Number("write a digit after the point: 1.0"));
            }
        }
        if self.rest.starts_with(['e', 'E']) {
            let sign = usize::from(self.rest[1..].starts_with(['+', '-']));
            if self.rest[1 + sign..].starts_with(|c: char| c.is_ascii_digit()) {
                is_float = true;
                self.take(1 + sign);
                len += 1 + sign + self.take_while(|c| c.is_ascii_digit()).len();
            }
        }
        if !self.take_while(is_word).is_empty() {
            mistake = Some(LexMistake::Number("put a space between a number and a word; integers are decimal"));
        }
        let text = &text[..len];
        let token = if is_float {
            let value = text.parse::<f32>().unwrap_or(0.0);
            if value.is_infinite() {
                mistake.get_or_insert(LexMistake::Range("the largest f32 is 3.4028235e38; write inf for infinity"));
            }
            Token::Float(value)
        } else {
            Token::Int(text.parse().unwrap_or_else(|_| {
                mistake.get_or_insert(LexMistake::Range("integers have 64 bits, the largest is 9223372036854775807"));
                0
            }))
        };
        self.mistakes.extend(mistake.map(|m| (start, m)));
        token
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens with their columns, and what is wrong with them.
    fn tokens(text: &str) -> (Vec<(u32, Token<'_>)>, Vec<LexMistake>) {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            let (at, token) = lexer.token();
            if token == Token::End {
                return (found, lexer.take_mistakes().into_iter().map(|(_, m)| m).collect());
            }
            found.push((at.column, token));
        }
    }

    #[test]
    fn points_belong_to_numbers_or_ranges() {
        use Token::*;
        assert_eq!(tokens("0..n").0, [(1, Int(0)), (2, Symbol("..")), (4, Name("n"))]);
        assert_eq!(tokens("1.5..2").0, [(1, Float(1.5)), (4, Symbol("..")), (6, Int(2))]);
        assert_eq!(tokens("2e3 2e 2.0e-1").0[0], (1, Float(2000.0)));
        assert_eq!(tokens("2e").1.len(), 1, "an exponent has digits");
        assert_eq!(tokens("1.").1.len(), 1);
        assert_eq!(tokens("1.x").1.len(), 1);
    }

    #[test]
    fn the_longest_symbol_wins() {
        use Token::*;
        let symbols = ["<-", "-", "<=", "<", "=", "==", "+=", "->", "..", "@"];
        let text = symbols.join(" ");
        let found: Vec<Token> = tokens(&text).0.into_iter().map(|(_, token)| token).collect();
        assert_eq!(found, symbols.map(Symbol));
        assert_eq!(tokens("a<-b").0.len(), 3);
    }

    #[test]
    fn what_has_no_meaning_is_skipped_at_once() {
        let (found, mistakes) = tokens("a $$$ b \u{e9}\u{e8} c # $\nd");
        let names: Vec<(u32, Token)> = found.into_iter().filter(|(_, t)| *t != Token::Newline).collect();
        assert_eq!(
            names,
            [(1, Token::Name("a")), (7, Token::Name("b")), (12, Token::Name("c")), (1, Token::Name("d"))]
        );
        assert_eq!(mistakes, [LexMistake::Character('$'), LexMistake::Character('\u{e9}')]);
    }
}
