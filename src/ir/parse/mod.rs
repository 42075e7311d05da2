//! Text to programs: a recursive descent parser that builds as it reads.
//!
//! A mistake ends its statement; reading goes on at the next line, so that one run reports several. What could not be
//! read leaves names without a meaning, and these are not reported again.

mod collective;
mod expr;
pub mod mistake;
mod stmt;
mod task;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use super::builder::{self, Builder};
use super::diagnostic::{Code, Diagnostic};
use super::entity::*;
use super::extent::Shape;
use super::lex::{LexMistake, Lexer, Position, Token, clip};
use super::program::{Loc, Program};
use super::syntax::KEYWORDS;
use super::types::{DType, Direction, ScalarType};
use mistake::*;

/// Reads a program; `file` is its name in locations and reports. The program is built, not verified.
pub fn parse(text: &str, file: &str) -> Result<Program, Vec<Diagnostic>> {
    let mut parser = Parser::new(text, file);
    parser.program();
    parser.finish(text)
}

/// A mistake that has been reported.
struct Reported;

type Parsed<T> = Result<T, Reported>;

/// What a name means.
#[derive(Clone, Copy)]
enum Meaning {
    Scalar(Scalar),
    Var(Var),
    Array(Array),
    Tensor(Tensor),
    Tile(Tile),
    Buffer(Buffer),
    Domain(Domain),
    Task(Task),
    Size(Extent),
    /// Its definition is a mistake that has been reported.
    Unknown,
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    at: Position,
    builder: Builder,
    file_name: &'t str,
    file: Option<File>,
    mistakes: Vec<Diagnostic>,
    /// There are too many mistakes; the rest of the text is not read.
    stopped: bool,
    names: HashMap<&'t str, Meaning>,
    /// The names in scope, innermost last.
    scope: Vec<&'t str>,
    /// The ids of the tasks of the entry.
    tasks: Vec<&'t str>,
    entries: HashMap<&'t str, Entry>,
    in_host: bool,
    /// Expressions around the one at hand.
    expressions: usize,
    /// Where the end of an unclosed block was noticed.
    unclosed: Option<Position>,
    /// Tokens read.
    #[cfg(test)]
    steps: usize,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, file_name: &'t str) -> Self {
        let mut parser = Self {
            lexer: Lexer::new(text),
            token: Token::Newline,
            at: Position::default(),
            builder: Builder::default(),
            file_name,
            file: None,
            mistakes: Vec::new(),
            stopped: false,
            names: HashMap::new(),
            scope: Vec::new(),
            tasks: Vec::new(),
            entries: HashMap::new(),
            in_host: false,
            expressions: 0,
            unclosed: None,
            #[cfg(test)]
            steps: 0,
        };
        parser.advance();
        parser
    }

    fn finish(self, text: &str) -> Result<Program, Vec<Diagnostic>> {
        let mut mistakes = self.mistakes;
        if mistakes.is_empty() && !self.stopped {
            match self.builder.finish() {
                Ok(program) => return Ok(program),
                Err(found) => mistakes = found,
            }
        } else {
            // What stands in the wrong place may do so because of another mistake.
            let built = self.builder.mistakes().iter().filter(|m| m.code != builder::MISPLACED);
            mistakes.extend(built.cloned());
        }
        add_snippets(text, &mut mistakes);
        mistakes.truncate(MAX_MISTAKES);
        if self.stopped {
            let (at, message) = (Position::default(), format!("there are more than {MAX_MISTAKES} mistakes"));
            mistakes.push(error(self.file_name, at, TOO_MANY, message, "the rest of the file is not read".into()));
        }
        Err(mistakes)
    }

    // Tokens.

    fn advance(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
        if self.mistakes.len() + self.builder.mistakes().len() > MAX_MISTAKES {
            self.stopped = true;
        }
        if self.stopped {
            self.token = Token::End;
            return;
        }
        (self.at, self.token) = self.lexer.token();
        for (at, found) in self.lexer.take_mistakes() {
            match found {
                LexMistake::Character(c) => {
                    let hint = "names, numbers and the signs of the language are ASCII; # begins a comment";
                    self.report(at, BAD_CHARACTER, format!("{c:?} has no meaning here"), hint);
                }
                LexMistake::Number(hint) => _ = self.report(at, BAD_NUMBER, "malformed number", hint),
                LexMistake::Range(hint) => _ = self.report(at, BAD_NUMBER, "number out of range", hint),
            }
        }
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token, Token::Symbol(s) if s == symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Name(n) if n == word)
    }

    /// Goes past a symbol if it is next.
    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    /// Goes past a word of the language if it is next.
    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    /// The present word is followed by `(`.
    fn next_is_parenthesis(&self) -> bool {
        self.lexer.rest().trim_start_matches([' ', '\t']).starts_with('(')
    }

    /// The present word is followed by `[`.
    fn next_is_bracket(&self) -> bool {
        self.lexer.rest().trim_start_matches([' ', '\t']).starts_with('[')
    }

    fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.unexpected(&format!("{symbol:?}"), "")) }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.unexpected(&format!("{word:?}"), "")) }
    }

    /// Goes to the sign that closes or continues a bracket on a later line, if one does.
    fn skip_newlines_before(&mut self, signs: &[char]) {
        if self.token == Token::Newline && self.lexer.next_line_start().is_some_and(|c| signs.contains(&c)) {
            self.skip_newlines();
        }
    }

    /// Lines may end inside brackets.
    fn skip_newlines(&mut self) {
        while self.token == Token::Newline {
            self.advance();
        }
    }

    /// Items between `open` and `close`, separated by commas.
    fn list(&mut self, open: &str, close: &str, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        self.expect(open)?;
        self.skip_newlines();
        if self.eat(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            self.skip_newlines_before(&[',', ')', ']']);
            if self.eat(close) {
                return Ok(());
            }
            if !self.eat(",") {
                return Err(self.unexpected(&format!("\",\" or {close:?}"), ""));
            }
            self.skip_newlines();
        }
    }

    // Mistakes.

    fn report(&mut self, at: Position, code: Code, message: impl Into<String>, hint: impl Into<String>) -> Reported {
        // One mistake in a line often makes the rest of it meaningless.
        let again = code == UNEXPECTED && self.mistakes.last().is_some_and(|m| m.line == at.line);
        if !self.stopped && !again {
            self.mistakes.push(error(self.file_name, at, code, message.into(), hint.into()));
        }
        Reported
    }

    fn unexpected(&mut self, wanted: &str, hint: &str) -> Reported {
        let message = format!("{wanted} is needed here, not {}", self.token);
        self.report(self.at, UNEXPECTED, message, hint)
    }

    /// Goes to the end of the statement that the mistake is in, past the blocks that it owns.
    fn recover(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.token {
                Token::End => return,
                Token::Newline | Token::Symbol("}") if depth == 0 => return,
                Token::Symbol("{") => depth += 1,
                Token::Symbol("}") => depth -= 1,
                _ => {}
            }
            self.advance();
        }
    }

    /// Goes to the block of a header that has a mistake. No block follows if the line, or a list of parameters, ends
    /// first.
    fn recover_to_block(&mut self, over_lines: bool) -> Parsed<()> {
        while !self.is("{") {
            match self.token {
                Token::End | Token::Symbol("}") | Token::Name("entry" | "host") => return Err(Reported),
                Token::Newline if !over_lines => return Err(Reported),
                _ => self.advance(),
            }
        }
        Ok(())
    }

    /// Goes to the end of a list item that has a mistake.
    fn recover_to_comma(&mut self) -> Parsed<()> {
        let mut depth = 0usize;
        loop {
            match self.token {
                Token::Symbol("," | ")") if depth == 0 => return Ok(()),
                Token::Symbol("{" | "}") | Token::Name("entry" | "host") | Token::End => return Err(Reported),
                Token::Symbol("(" | "[") => depth += 1,
                Token::Symbol(")" | "]") => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.advance();
        }
    }

    // Names.

    /// What is built next stands at `at`.
    fn locate(&mut self, at: Position) {
        self.builder.set_loc(Loc { file: self.file, line: at.line, column: at.column });
    }

    /// The name of a value: a new one, or one that the caller looks up.
    fn name(&mut self, what: &str) -> Parsed<&'t str> {
        match self.token {
            Token::Name(name) if is_reserved(name) => {
                let message = format!("{name:?} is a word of the language and cannot name {what}");
                Err(self.report(self.at, NAME_TAKEN, message, ""))
            }
            Token::Name(name) => {
                self.advance();
                Ok(name)
            }
            _ => Err(self.unexpected(&format!("the name of {what}"), "")),
        }
    }

    /// The name of a program, entry or task: these stand apart from values, so a word of the language will do.
    fn label(&mut self, what: &str) -> Parsed<&'t str> {
        match self.token {
            Token::Name(name) => {
                self.advance();
                Ok(name)
            }
            _ => Err(self.unexpected(&format!("the name of {what}"), "")),
        }
    }

    /// Gives a name a meaning until the end of the block.
    fn bind(&mut self, at: Position, name: &'t str, meaning: Meaning) {
        match self.names.get(name) {
            None => {
                self.names.insert(name, meaning);
                self.scope.push(name);
            }
            Some(Meaning::Unknown) => {}
            Some(&other) => {
                let message = format!("{:?} is already {}", clip(name), self.kind(other));
                self.report(at, NAME_TAKEN, message, "a name has one meaning in its block and the blocks inside");
            }
        }
    }

    fn leave_scope(&mut self, depth: usize) {
        for name in self.scope.drain(depth..) {
            self.names.remove(name);
        }
    }

    /// The meaning of a name that has one.
    fn look_up(&mut self, at: Position, name: &'t str) -> Parsed<Meaning> {
        match self.names.get(name) {
            Some(Meaning::Unknown) => Err(Reported),
            Some(&meaning) => Ok(meaning),
            None => {
                // Among very many names the search would take its time for each mistake.
                let names = self.names.keys().filter(|_| self.names.len() <= 1000);
                let hint = nearest(name, names.chain(KEYWORDS).copied()).map(|n| format!("{n:?} is known"));
                let message = format!("nothing is named {:?}", clip(name));
                Err(self.report(at, UNKNOWN_NAME, message, hint.unwrap_or_default()))
            }
        }
    }

    fn kind(&self, meaning: Meaning) -> &'static str {
        match meaning {
            Meaning::Scalar(_) => "a value",
            Meaning::Var(_) => "a variable",
            Meaning::Array(_) => "an array",
            Meaning::Tensor(t) if self.builder.program().is_window(t) => "a window",
            Meaning::Tensor(_) => "a tensor",
            Meaning::Tile(_) => "a tile",
            Meaning::Buffer(_) => "a window buffer",
            Meaning::Domain(_) => "a domain",
            Meaning::Task(_) => "a task",
            Meaning::Size(_) => "a dimension",
            Meaning::Unknown => "unknown",
        }
    }

    fn wrong_kind(&mut self, at: Position, name: &str, found: Meaning, wanted: &str, hint: &str) -> Reported {
        let message = format!("{:?} is {}; {wanted} is needed here", clip(name), self.kind(found));
        self.report(at, WRONG_KIND, message, hint)
    }

    // Types.

    fn dtype(&mut self) -> Parsed<DType> {
        if let Token::Name(name) = self.token {
            if let Some(dtype) = DType::from_name(name) {
                self.advance();
                return Ok(dtype);
            }
            let hint = nearest(name, DType::ALL.iter().map(|d| d.name())).map(|n| format!("{n:?} is a type"));
            let message = format!("{:?} is no element type", clip(name));
            return Err(self.report(self.at, UNKNOWN_TYPE, message, hint.unwrap_or_default()));
        }
        Err(self.unexpected("an element type", "f32, f16, bf16, i32, ..."))
    }

    fn scalar_type(&mut self) -> Parsed<ScalarType> {
        let at = self.at;
        let dtype = self.dtype()?;
        match ScalarType::from_name(dtype.name()) {
            Some(ty) => Ok(ty),
            None => {
                let message = format!("{dtype} is no scalar type");
                Err(self.report(at, UNKNOWN_TYPE, message, "scalars are i32, i64, f32 or bool"))
            }
        }
    }

    // The program.

    fn program(&mut self) {
        self.skip_newlines();
        if !self.eat_word("program") {
            self.unexpected("\"program\" and a name", "a program begins with the line: program name");
            return;
        }
        let named = self.label("a program");
        self.builder = Builder::new(named.as_ref().unwrap_or(&"unnamed"));
        self.file = (!self.file_name.is_empty()).then(|| self.builder.file(self.file_name));
        if named.is_err() {
            self.recover();
        }
        self.end_of_line();
        let mut host_seen = false;
        loop {
            self.skip_newlines();
            let Token::Name(word) = self.token else {
                match self.token {
                    Token::End => return,
                    Token::Symbol("}") => {
                        self.report(self.at, UNBALANCED, "this closes no block", "");
                        self.advance();
                        continue;
                    }
                    _ => _ = self.unexpected("dim, const, entry or host", ""),
                }
                self.advance();
                self.recover();
                continue;
            };
            if host_seen && matches!(word, "dim" | "const" | "entry" | "host") {
                let message = format!("{word} after the host driver");
                self.report(self.at, OUT_OF_ORDER, message, "a program has one host driver, at its end");
            }
            let parsed = match word {
                "dim" => self.dim(),
                "const" => self.constant(),
                "entry" => self.entry(),
                "host" => {
                    host_seen = true;
                    self.host()
                }
                _ => {
                    let known = nearest(word, ["dim", "const", "entry", "host"]).map(|n| format!("{n:?} is meant?"));
                    Err(self.unexpected("dim, const, entry or host", &known.unwrap_or_default()))
                }
            };
            if parsed.is_err() {
                self.recover();
            }
            self.end_of_line();
        }
    }

    fn end_of_line(&mut self) {
        let ended = matches!(self.token, Token::Newline | Token::End | Token::Symbol("}"));
        if !ended && self.unclosed != Some(self.at) {
            self.unexpected("the end of the line", "");
            self.recover();
        }
    }

    fn dim(&mut self) -> Parsed<()> {
        let at = self.at;
        self.advance();
        let name_at = self.at;
        let name = self.name("a dimension")?;
        if self.names.contains_key(name) {
            self.bind(name_at, name, Meaning::Unknown);
            return Ok(());
        }
        self.locate(at);
        let extent = self.builder.dim(name);
        self.bind(name_at, name, Meaning::Size(extent));
        Ok(())
    }

    fn constant(&mut self) -> Parsed<()> {
        let at = self.at;
        self.advance();
        let name_at = self.at;
        let name = self.name("a constant")?;
        let value = self.expect("=").and_then(|()| self.extent());
        if value.is_err() || self.names.contains_key(name) {
            self.bind(name_at, name, Meaning::Unknown);
            return value.map(drop);
        }
        self.locate(at);
        let extent = self.builder.constant(name, value?);
        self.bind(name_at, name, Meaning::Size(extent));
        Ok(())
    }

    fn entry(&mut self) -> Parsed<()> {
        let at = self.at;
        self.advance();
        let name = self.label("an entry");
        self.locate(at);
        let entry = self.builder.entry_begin(name.as_ref().map_or("unnamed", |n| *n));
        if let Ok(name) = name {
            self.entries.insert(name, entry);
        }
        let parsed = self.function(|p, at, name| p.entry_param(at, name));
        self.locate(at);
        self.builder.entry_end();
        parsed
    }

    fn host(&mut self) -> Parsed<()> {
        let at = self.at;
        self.advance();
        self.locate(at);
        self.builder.host();
        self.in_host = true;
        let parsed = self.function(|p, at, name| p.host_param(at, name));
        self.in_host = false;
        parsed
    }

    /// Parameters and a block.
    fn function(&mut self, param: fn(&mut Self, Position, &'t str) -> Parsed<Option<Meaning>>) -> Parsed<()> {
        let depth = self.scope.len();
        let header = self.list("(", ")", |p| {
            let at = p.at;
            let name = p.name("a parameter")?;
            let meaning = p.expect(":").and_then(|()| param(p, at, name));
            p.bind(at, name, meaning.as_ref().ok().copied().flatten().unwrap_or(Meaning::Unknown));
            meaning.map(drop).or_else(|Reported| p.recover_to_comma())
        });
        let parsed = header.or_else(|Reported| self.recover_to_block(true)).and_then(|()| self.block());
        self.leave_scope(depth);
        for id in std::mem::take(&mut self.tasks) {
            self.names.remove(id);
        }
        parsed
    }

    fn entry_param(&mut self, at: Position, name: &'t str) -> Parsed<Option<Meaning>> {
        if self.eat_word("window") {
            let (shape, dtype) = self.tensor_type()?;
            self.locate(at);
            let tensor = self.builder.param_window(name, dtype, shape);
            return Ok(self.manual_dep(tensor));
        }
        if self.eat_word("tensor") {
            let (shape, dtype) = self.tensor_type()?;
            let direction = self.direction()?;
            self.locate(at);
            let tensor = self.builder.param_tensor(name, dtype, shape, direction);
            return Ok(self.manual_dep(tensor));
        }
        let ty = self.scalar_type()?;
        self.locate(at);
        Ok(self.builder.param_scalar(name, ty).map(Meaning::Scalar))
    }

    fn host_param(&mut self, at: Position, name: &'t str) -> Parsed<Option<Meaning>> {
        if self.eat_word("tensor") {
            let (shape, dtype) = self.tensor_type()?;
            let direction = self.direction()?;
            self.locate(at);
            return Ok(self.builder.host_tensor(name, dtype, shape, direction).map(Meaning::Tensor));
        }
        if self.is_word("window") {
            let message = "a window cannot be passed to the host driver";
            return Err(self.report(self.at, WRONG_KIND, message, "reserve it inside with alloc_window"));
        }
        let ty = self.scalar_type()?;
        self.locate(at);
        Ok(self.builder.host_scalar(name, ty).map(Meaning::Scalar))
    }

    fn tensor_type(&mut self) -> Parsed<(Shape, DType)> {
        Ok((self.shape()?, self.dtype()?))
    }

    fn direction(&mut self) -> Parsed<Direction> {
        if let Token::Name(name) = self.token
            && let Some(direction) = Direction::from_name(name)
        {
            self.advance();
            return Ok(direction);
        }
        Err(self.unexpected("in, out or inout", "a tensor parameter says what is done with it"))
    }
}

fn is_reserved(name: &str) -> bool {
    KEYWORDS.binary_search(&name).is_ok() || DType::from_name(name).is_some()
}
