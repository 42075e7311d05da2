//! Collectives, and what ranks require of each other.

use super::mistake::*;
use super::{Parsed, Parser};
use crate::ir::collective::{AllToAllV, Collective, CollectiveKind};
use crate::ir::entity::{Scalar, Tensor};
use crate::ir::lex::{Position, Token};
use crate::ir::types::{BinaryOp, Combine, Mode};

impl Parser<'_> {
    pub(super) fn collective(&mut self, at: Position, verb: &str) -> Parsed<()> {
        self.advance();
        let kind = match verb {
            "barrier" => {
                CollectiveKind::Barrier { window: if self.eat_word("of") { Some(self.tensor()?) } else { None } }
            }
            "allreduce" => {
                let op = self.combine()?;
                CollectiveKind::Allreduce { op, data: self.tensor()? }
            }
            "reduce_scatter" => {
                let op = self.combine()?;
                CollectiveKind::ReduceScatter { op, data: self.tensor()? }
            }
            "broadcast" => {
                let data = self.tensor()?;
                self.expect_word("root")?;
                CollectiveKind::Broadcast { data, root: self.expression()? }
            }
            "all_to_all_v" => CollectiveKind::AllToAllV(self.all_to_all_v(at)?),
            _ => {
                let dst = self.tensor()?;
                self.expect("<-")?;
                let src = self.tensor()?;
                if verb == "allgather" {
                    CollectiveKind::Allgather { dst, src }
                } else {
                    CollectiveKind::AllToAll { dst, src }
                }
            }
        };
        let mut collective = Collective::new(kind);
        loop {
            if self.eat_word("mode") {
                collective.mode = self.mode()?;
            } else if self.eat_word("cores") {
                collective.cores = self.cores()?;
            } else if self.eat_word("signal") {
                collective.signal = Some(self.tensor()?);
            } else {
                break;
            }
        }
        self.locate(at);
        self.builder.collective(collective);
        Ok(())
    }

    /// `dst, recv_counts <- src, send_counts`, with the offsets of the rows behind the counts on both sides or on none.
    fn all_to_all_v(&mut self, at: Position) -> Parsed<AllToAllV> {
        let (dst, recv_counts, recv_offsets) = self.rows()?;
        self.expect("<-")?;
        let (src, send_counts, send_offsets) = self.rows()?;
        if recv_offsets.is_some() != send_offsets.is_some() {
            let hint = "give both, or neither: then the rows are divided evenly among the ranks";
            return Err(self.report(at, UNEXPECTED, "only one side of this all_to_all_v has offsets", hint));
        }
        Ok(AllToAllV { dst, recv_counts, src, send_counts, offsets: recv_offsets.zip(send_offsets) })
    }

    fn rows(&mut self) -> Parsed<(Tensor, Tensor, Option<Tensor>)> {
        let rows = self.tensor()?;
        self.expect(",")?;
        let counts = self.tensor()?;
        let offsets = if self.is(",") {
            self.advance();
            Some(self.tensor()?)
        } else {
            None
        };
        Ok((rows, counts, offsets))
    }

    fn combine(&mut self) -> Parsed<Combine> {
        self.choice(Combine::from_name, "sum, prod, max or min")
    }

    fn mode(&mut self) -> Parsed<Mode> {
        self.choice(Mode::from_name, "auto, mesh, direct, ring, two_phase or hierarchical")
    }

    fn choice<T>(&mut self, meaning: fn(&str) -> Option<T>, what: &str) -> Parsed<T> {
        let found = match self.token {
            Token::Name(word) => meaning(word),
            _ => None,
        };
        let Some(found) = found else { return Err(self.unexpected(what, "")) };
        self.advance();
        Ok(found)
    }

    fn cores(&mut self) -> Parsed<i64> {
        let at = self.at;
        let cores = self.extent()?;
        match self.builder.program().extents.constant(cores) {
            Some(cores) => Ok(cores),
            None => Err(self.report(at, UNEXPECTED, "cores takes a number", "cores 4")),
        }
    }

    pub(super) fn require(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let (cmp, a, b) = self.comparison()?;
        let peer = if self.is("@") { Some(self.peer()?) } else { None };
        self.locate(at);
        self.builder.require(cmp, a, b, peer);
        Ok(())
    }

    pub(super) fn agree(&mut self, at: Position) -> Parsed<()> {
        self.advance();
        let label = self.label("a call")?;
        let condition_at = self.at;
        let (cmp, theirs, mine) = self.comparison()?;
        if cmp != BinaryOp::Eq {
            return Err(self.report(
                condition_at,
                UNEXPECTED,
                "ranks agree on what is equal",
                "agree label theirs == 1 @peer",
            ));
        }
        let peer = self.peer()?;
        self.locate(at);
        self.builder.agree(label, theirs, mine, peer);
        Ok(())
    }

    fn comparison(&mut self) -> Parsed<(BinaryOp, Scalar, Scalar)> {
        let a = self.side()?;
        let cmp = match self.token {
            Token::Symbol(sign) => BinaryOp::ALL.iter().copied().find(|c| c.is_comparison() && c.name() == sign),
            _ => None,
        };
        let Some(cmp) = cmp else { return Err(self.unexpected("a comparison", "require rows <= room")) };
        self.advance();
        Ok((cmp, a, self.side()?))
    }
}
