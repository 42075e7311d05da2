//! Expressions, sizes, places.

use super::mistake::*;
use super::{Meaning, Parsed, Parser, is_reserved};
use crate::ir::entity::{Extent, Scalar, Tensor};
use crate::ir::extent::Shape;
use crate::ir::lex::{Position, Token};
use crate::ir::op::Dims;
use crate::ir::syntax::{MAX_EXPRESSION_NESTING, Precedence};
use crate::ir::types::{BinaryOp, UnaryOp};

impl<'t> Parser<'t> {
    /// Any scalar expression.
    pub(super) fn expression(&mut self) -> Parsed<Scalar> {
        self.nested(|p| p.infix(Precedence::Or))
    }

    /// Reads something that stands inside another expression.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.expressions == MAX_EXPRESSION_NESTING {
            let message = format!("more than {MAX_EXPRESSION_NESTING} expressions inside one another");
            return Err(self.report(self.at, NESTED, message, "name a part of it on a line of its own"));
        }
        self.expressions += 1;
        let parsed = read(self);
        self.expressions -= 1;
        parsed
    }

    /// Operands joined by operators that bind at least as tightly as `least`.
    fn infix(&mut self, least: Precedence) -> Parsed<Scalar> {
        let mut left = self.prefix(least)?;
        let mut compared = false;
        while let Some((op, level)) = self.operator().filter(|(_, level)| *level >= least) {
            if op.is_comparison() && std::mem::replace(&mut compared, true) {
                return Err(self.unexpected("one comparison", "join comparisons with and: a < b and b < c"));
            }
            let at = self.at;
            self.advance();
            self.skip_newlines();
            let right = self.infix(level.tighter())?;
            self.locate(at);
            left = self.builder.binary(op, left, right);
        }
        if self.is("<-") {
            return Err(self.unexpected("an operator", "to compare with a negative put a space between < and -"));
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(BinaryOp, Precedence)> {
        let (Token::Symbol(text) | Token::Name(text)) = self.token else { return None };
        let op = BinaryOp::from_name(text)?;
        op.precedence().map(|level| (op, level))
    }

    fn prefix(&mut self, least: Precedence) -> Parsed<Scalar> {
        let at = self.at;
        let op = match self.token {
            Token::Symbol("-") => UnaryOp::Neg,
            Token::Name("not") if least <= Precedence::Not => UnaryOp::Not,
            Token::Name("not") => return Err(self.unexpected("a number", "put parentheses around not")),
            _ => return self.primary(),
        };
        self.advance();
        let operand = match (op, self.token) {
            (UnaryOp::Not, _) => self.nested(|p| p.infix(Precedence::Not))?,
            // The one integer whose magnitude is none.
            (UnaryOp::Neg, Token::Int(value)) if value == i64::MIN.unsigned_abs() => {
                self.advance();
                return Ok(self.builder.int(i64::MIN));
            }
            (UnaryOp::Neg, _) => self.nested(|p| p.prefix(Precedence::Unary))?,
        };
        self.locate(at);
        Ok(self.builder.unary(op, operand))
    }

    /// One side of a comparison.
    pub(super) fn side(&mut self) -> Parsed<Scalar> {
        self.nested(|p| p.infix(Precedence::Sum))
    }

    /// A literal, name, element, call, or anything in parentheses.
    pub(super) fn primary(&mut self) -> Parsed<Scalar> {
        let at = self.at;
        match self.token {
            Token::Int(value) => {
                let Ok(value) = i64::try_from(value) else {
                    let hint = "integers have 64 bits, the largest is 9223372036854775807";
                    return Err(self.report(at, BAD_NUMBER, "number out of range", hint));
                };
                self.advance();
                Ok(self.builder.int(value))
            }
            Token::Float(value) => {
                self.advance();
                Ok(self.builder.float(value))
            }
            Token::Symbol("(") => {
                self.advance();
                self.skip_newlines();
                let inner = self.expression()?;
                self.skip_newlines_before(&[')']);
                self.expect(")")?;
                Ok(inner)
            }
            Token::Name("rank") if self.next_is_parenthesis() => self.word("rank"),
            Token::Name("nranks") if self.next_is_parenthesis() => self.word("nranks"),
            Token::Name(word) if is_reserved(word) => self.word(word),
            Token::Name(name) => {
                self.advance();
                self.named(at, name)
            }
            _ => Err(self.unexpected("a value", "")),
        }
    }

    /// A literal or call that begins with a word of the language.
    fn word(&mut self, word: &'t str) -> Parsed<Scalar> {
        let at = self.at;
        let literal = match word {
            "true" | "false" => Some(self.builder.bool(word == "true")),
            "inf" => Some(self.builder.float(f32::INFINITY)),
            "nan" => Some(self.builder.float(f32::NAN)),
            "world" => Some(self.builder.world()),
            _ => None,
        };
        if let Some(literal) = literal {
            self.advance();
            return Ok(literal);
        }
        match word {
            "cast" => {
                self.advance();
                self.expect("(")?;
                self.skip_newlines();
                let value = self.expression()?;
                self.expect(",")?;
                self.skip_newlines();
                let ty = self.scalar_type()?;
                self.skip_newlines_before(&[')']);
                self.expect(")")?;
                self.locate(at);
                Ok(self.builder.cast(ty, value))
            }
            "min" | "max" => {
                let [a, b] = self.arguments(word)?;
                self.locate(at);
                Ok(self.builder.binary(if word == "min" { BinaryOp::Min } else { BinaryOp::Max }, a, b))
            }
            "clamp" => {
                let [x, low, high] = self.arguments(word)?;
                self.locate(at);
                let raised = self.builder.binary(BinaryOp::Max, x, low);
                Ok(self.builder.binary(BinaryOp::Min, raised, high))
            }
            "select" => {
                let [cond, then, other] = self.arguments(word)?;
                self.locate(at);
                Ok(self.builder.select(cond, then, other))
            }
            "rank" | "nranks" => {
                self.advance();
                self.expect("(")?;
                let window = self.tensor()?;
                self.expect(")")?;
                self.locate(at);
                Ok(if word == "rank" { self.builder.rank(window) } else { self.builder.nranks(window) })
            }
            _ => Err(self.unexpected("a value", "")),
        }
    }

    fn arguments<const N: usize>(&mut self, function: &str) -> Parsed<[Scalar; N]> {
        self.advance();
        let at = self.at;
        let mut arguments = Dims::new();
        self.list("(", ")", |p| {
            arguments.push(p.expression()?);
            Ok(())
        })?;
        let count = arguments.len();
        <[Scalar; N]>::try_from(arguments.as_slice()).map_err(|_| {
            let message = format!("{function} takes {N} arguments, not {count}");
            self.report(at, UNEXPECTED, message, "")
        })
    }

    fn named(&mut self, at: Position, name: &'t str) -> Parsed<Scalar> {
        match self.look_up(at, name)? {
            Meaning::Scalar(scalar) => Ok(scalar),
            Meaning::Size(extent) => Ok(self.builder.size(extent)),
            Meaning::Var(var) => {
                self.locate(at);
                Ok(self.builder.var_get(var))
            }
            Meaning::Array(array) if self.is("[") => {
                let index = self.array_index(name)?;
                self.locate(at);
                Ok(self.builder.array_get(array, index))
            }
            Meaning::Tensor(tensor) if self.is("[") => {
                let offsets = self.offsets()?;
                self.locate(at);
                Ok(self.builder.read(tensor, &offsets))
            }
            found @ (Meaning::Array(_) | Meaning::Tensor(_)) => {
                Err(self.wrong_kind(at, name, found, "a value", "an element is written with its index: a[i]"))
            }
            found => Err(self.wrong_kind(at, name, found, "a value", "")),
        }
    }

    /// `[i]`
    pub(super) fn array_index(&mut self, name: &str) -> Parsed<Scalar> {
        let at = self.at;
        match self.offsets()?.as_slice() {
            &[index] => Ok(index),
            more => {
                let message = format!("array {name:?} has one index, not {}", more.len());
                Err(self.report(at, UNEXPECTED, message, ""))
            }
        }
    }

    /// `[i, j]`
    pub(super) fn offsets(&mut self) -> Parsed<Dims> {
        let mut offsets = Dims::new();
        self.list("[", "]", |p| {
            offsets.push(p.expression()?);
            Ok(())
        })?;
        Ok(offsets)
    }

    /// The rank after an `@`.
    pub(super) fn peer(&mut self) -> Parsed<Scalar> {
        self.expect("@")?;
        if self.is("-") {
            return Err(self.unexpected("a rank", "put parentheses around an expression"));
        }
        self.primary()
    }

    /// The name of a tensor, window or slice.
    pub(super) fn tensor(&mut self) -> Parsed<Tensor> {
        let at = self.at;
        let name = self.name("a tensor or window")?;
        match self.look_up(at, name)? {
            Meaning::Tensor(tensor) => Ok(tensor),
            found => Err(self.wrong_kind(at, name, found, "a tensor or window", "")),
        }
    }

    /// `x[i, j]`
    pub(super) fn place(&mut self) -> Parsed<(Tensor, Dims)> {
        Ok((self.tensor()?, self.offsets()?))
    }

    /// A size, which is constant during a launch.
    pub(super) fn extent(&mut self) -> Parsed<Extent> {
        let at = self.at;
        let scalar = self.expression()?;
        self.locate(at);
        self.builder.extent(scalar).ok_or(super::Reported)
    }

    /// `[n, D]`, of sizes.
    pub(super) fn shape(&mut self) -> Parsed<Shape> {
        let mut shape = Shape::new();
        self.list("[", "]", |p| {
            shape.push(p.extent()?);
            Ok(())
        })?;
        Ok(shape)
    }
}
