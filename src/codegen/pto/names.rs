//! Names of variables in C++.

/// Words that mean something else in a kernel: of C++, of the target's compiler, and of every kernel.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bfloat16_t",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "concept",
    "const",
    "consteval",
    "constexpr",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
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
    "pld",
    "private",
    "protected",
    "pto",
    "public",
    "register",
    "reports",
    "requires",
    "return",
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
