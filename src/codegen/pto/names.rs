//! Names of variables in C++.

/// Words that mean something else in a kernel: of C++, of the target's compiler, of the instruction set, and of every kernel.
const RESERVED: &[&str] = &[
    "NotifyOp",
    "Signal",
    "WaitCmp",
    "alignas",
    "alignof",
    "and",
    "args",
    "asm",
    "auto",
    "bfloat16_t",
    "block",
    "bool",
    "break",
    "cache_line_t",
    "case",
    "catch",
    "cell",
    "char",
    "class",
    "concept",
    "const",
    "consteval",
    "constexpr",
    "continue",
    "dcci",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dsb",
    "else",
    "enum",
    "event_t",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "get_block_idx",
    "goto",
    "half",
    "if",
    "inline",
    "int",
    "int16_t",
    "int32_t",
    "int64_t",
    "int8_t",
    "linux",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "operator",
    "or",
    "pipe_barrier",
    "pld",
    "private",
    "protected",
    "pto",
    "public",
    "register",
    "reports",
    "requires",
    "return",
    "set_flag",
    "short",
    "signed",
    "sizeof",
    "static",
    "stop",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typename",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "uint8_t",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wait_flag",
    "while",
    "xor",
];

/// The names that are taken, those of inner blocks last.
#[derive(Default)]
pub struct Names {
    taken: Vec<String>,
}

impl Names {
    /// A name like `base` that nothing else has here.
    pub fn take(&mut self, base: &str) -> String {
        let is_free = |name: &str| !RESERVED.contains(&name) && !self.taken.iter().any(|taken| taken == name);
        // A name of capitals may be a macro.
        let base = if base.chars().any(|c| c.is_ascii_lowercase()) { base.to_owned() } else { base.to_lowercase() };
        let name = match is_free(&base) {
            true => base,
            false => (2..).map(|n| format!("{base}_{n}")).find(|name| is_free(name)).expect("numbers do not end"),
        };
        self.taken.push(name.clone());
        name
    }

    /// Begins a block: what is given back to [`Self::leave`].
    pub fn enter(&self) -> usize {
        self.taken.len()
    }

    /// Ends a block: its names are free again.
    pub fn leave(&mut self, mark: usize) {
        self.taken.truncate(mark);
    }
}
