//! What the printer and the parser of program text agree on.

use super::types::BinaryOp;

/// Widest line that holds more than one statement or parameter.
pub const LINE_WIDTH: usize = 100;

/// Most expressions inside one another that the parser reads: well above what the printer nests.
pub const MAX_EXPRESSION_NESTING: usize = 200;

/// How tightly an expression binds, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    /// `a or b`
    Or,
    /// `a and b`
    And,
    /// `not a`
    Not,
    /// `a < b`; does not chain.
    Comparison,
    /// `a + b`
    Sum,
    /// `a * b`
    Product,
    /// `-a`
    Unary,
    /// Names, literals, elements, calls, and everything in parentheses.
    Primary,
}

impl Precedence {
    /// The next tighter level.
    pub fn tighter(self) -> Self {
        use Precedence::*;
        match self {
            Or => And,
            And => Not,
            Not => Comparison,
            Comparison => Sum,
            Sum => Product,
            Product => Unary,
            Unary | Primary => Primary,
        }
    }
}

impl BinaryOp {
    /// How tightly the op binds as an infix; none for those that are written as calls.
    pub fn precedence(self) -> Option<Precedence> {
        use BinaryOp::*;
        match self {
            Or => Some(Precedence::Or),
            And => Some(Precedence::And),
            Eq | Ne | Lt | Le | Gt | Ge => Some(Precedence::Comparison),
            Add | Sub => Some(Precedence::Sum),
            Mul | Div | Rem => Some(Precedence::Product),
            Min | Max => None,
        }
    }
}
