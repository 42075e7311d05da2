//! Places where the runtime may hold a rank up, in code that is made for that.

use crate::ir::{Op, OpKind};

use super::function::Function;

impl Function<'_, '_> {
    /// The runtime may hold the rank up here.
    pub fn stop(&mut self) {
        if self.unit.binding.shaken {
            self.call(self.unit.hooks.stop as *const u8, None, &[self.frame]);
        }
    }

    /// The same, in front of an op that others may see or that sees others.
    pub fn stop_before(&mut self, op: Op) {
        if let OpKind::Put { .. }
        | OpKind::Get { .. }
        | OpKind::GetReduce { .. }
        | OpKind::RemoteStore { .. }
        | OpKind::RemoteLoad { .. }
        | OpKind::Notify { .. } = self.program().ops[op].kind
        {
            self.stop();
        }
    }
}
