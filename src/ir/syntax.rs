//! What the printer and the parser of program text agree on.

use super::types::BinaryOp;

/// Widest line that holds more than one statement or parameter.
pub const LINE_WIDTH: usize = 100;

/// Most expressions inside one another that the parser reads: well above what the printer nests.
pub const MAX_EXPRESSION_NESTING: usize = 200;

/// Words with a meaning of their own in program text, which cannot be names; sorted. (Words that are only looked for
/// where no name can stand, such as `out` or `step`, are free.)
pub const KEYWORDS: &[&str] = &[
    "add",
    "agree",
    "all_to_all",
    "all_to_all_v",
    "allgather",
    "alloc_window",
    "allreduce",
    "and",
    "array",
    "at",
    "barrier",
    "broadcast",
    "cast",
    "clamp",
    "col_max",
    "col_sum",
    "const",
    "copy",
    "defer_wait",
    "dim",
    "dispatch",
    "div",
    "domain",
    "else",
    "entry",
    "extern",
    "false",
    "flatten",
    "for",
    "full",
    "get",
    "get_max",
    "get_min",
    "get_prod",
    "get_sum",
    "host",
    "host_task",
    "if",
    "inf",
    "load",
    "manual",
    "max",
    "min",
    "mul",
    "nan",
    "not",
    "notify",
    "or",
    "program",
    "put",
    "ranks",
    "reduce_scatter",
    "remote_load",
    "remote_store",
    "require",
    "row_max",
    "row_sum",
    "select",
    "slice",
    "spmd",
    "store",
    "sub",
    "true",
    "var",
    "wait",
    "window",
    "world",
];

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
