use proptest::prelude::*;

use super::*;
use crate::ir::builder::MAX_NESTING;
use crate::ir::op::OpKind;
use crate::ir::print::print;
use crate::ir::syntax::MAX_EXPRESSION_NESTING;

const ALLREDUCE: &str = include_str!("../../../examples/pld/allreduce.pld");

/// A program whose one task holds these lines.
fn task(lines: &str) -> String {
    format!(
        "program p\nentry e(x: tensor[4] f32 inout, w: window[world] i32, me: i32) {{\n  at t {{\n{lines}\n  }}\n}}\n"
    )
}

/// The codes of all mistakes; none if there are none.
fn codes(text: &str) -> Vec<&'static str> {
    parse(text, "hostile.pld").err().unwrap_or_default().iter().map(|m| m.code.0).collect()
}

#[test]
fn keywords_are_sorted() {
    assert!(KEYWORDS.is_sorted(), "the parser looks them up by binary search");
}

#[test]
fn ops_know_where_they_stand() {
    let program = parse(&task("    x[1] = x[0] * 2.0\n      notify w[me] @0 += 1"), "here.pld").expect("a program");
    let place = |wanted: fn(&OpKind) -> bool| {
        let op = program.ops.values().find(|op| wanted(&op.kind)).expect("such an op");
        assert_eq!(program.files[op.loc.file.expect("a file")], "here.pld");
        (op.loc.line, op.loc.column)
    };
    assert_eq!(place(|k| matches!(k, OpKind::Write { .. })), (4, 5));
    assert_eq!(place(|k| matches!(k, OpKind::Read { .. })), (4, 12));
    assert_eq!(place(|k| matches!(k, OpKind::Scalar { .. })), (4, 17), "the operator");
    assert_eq!(place(|k| matches!(k, OpKind::Notify { .. })), (5, 7));
}

#[test]
fn lines_may_end_in_any_way() {
    let read = |text: &str| print(&parse(text, "").expect("a program"));
    assert_eq!(read(&ALLREDUCE.replace('\n', "\r\n")), read(ALLREDUCE));
    assert_eq!(read(ALLREDUCE.trim_end()), read(ALLREDUCE));
    assert_eq!(read(&ALLREDUCE.replace("  ", "\t")), read(ALLREDUCE));
}

#[test]
fn columns_count_characters() {
    let mistakes = parse("program p\nhost () { # é\n  ∑∑ x = 1\n}", "").expect_err("a mistake");
    assert_eq!((mistakes[0].line, mistakes[0].column), (3, 3));
    let shown = mistakes[0].to_string();
    let caret = shown.lines().find(|l| l.trim() == "^").expect("a caret");
    assert_eq!(caret.chars().count(), 4 + 3, "four of indentation, then the column:\n{shown}");
}

#[test]
fn numbers_have_limits() {
    let fine = ["9223372036854775807", "-9223372036854775808", "3.4e38", "1e-50", "-inf", "nan"];
    for number in fine {
        assert_eq!(codes(&task(&format!("v = cast({number}, f32)"))), Vec::<&str>::new(), "{number}");
    }
    let digits = "9".repeat(1 << 20);
    let wrong =
        ["9223372036854775808", "-9223372036854775809", "18446744073709551616", "3.5e38", "1.", "1.x", "12ab", ".5"];
    for number in wrong.into_iter().chain([digits.as_str()]) {
        assert_eq!(codes(&task(&format!("v = {number}"))), ["PLD-P002"], "{}", clip(number));
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = 200_000;
    for (open, close) in [("(", ")"), ("-", ""), ("x[", "]"), ("min(0, ", ")"), ("0 + (", ")"), ("cast(", ", i32)")] {
        let text = task(&format!("x[0] = {}0{}", open.repeat(deep), close.repeat(deep)));
        assert_eq!(codes(&text), ["PLD-P005"], "{open}");
        let text = task(&format!("x[0] = {}", open.repeat(deep)));
        assert_eq!(codes(&text), ["PLD-P005"], "{open} unclosed");
    }
    let text = task(&format!("c = var bool = {}true", "not ".repeat(deep)));
    assert_eq!(codes(&text), ["PLD-P005"]);
    for block in ["if true {\n", "at t {\n", "if true {} else {", "{"] {
        let found = codes(&task(&block.repeat(deep)));
        assert!(!found.is_empty() && found.len() < 5, "{block}: {found:?}");
    }
    for (verb, range) in [("for", "0..4 step 2"), ("ranks", "0..world")] {
        let loops: String = (0..deep).map(|i| format!("{verb} k{i} in {range} {{\n")).collect();
        assert_eq!(codes(&task(&loops)), ["PLD-P004", "PLD-B007"], "{verb}");
    }
    let found = codes(&task(&format!("if true {{}}{}", " else if true {}".repeat(deep))));
    assert_eq!(found, ["PLD-B007"]);
}

#[test]
fn what_is_within_the_limits_parses_and_prints() {
    let levels = MAX_EXPRESSION_NESTING - 2;
    let text = task(&format!("x[0] = {}x[0]{}", "-(".repeat(levels / 2), ")".repeat(levels / 2)));
    let program = parse(&text, "").unwrap_or_else(|m| panic!("{}", m[0]));
    let once = print(&program);
    assert_eq!(print(&parse(&once, "").expect("its own print")), once);
    // The entry and its task are blocks too.
    let levels = MAX_NESTING - 2;
    let text = task(&format!("{}x[0] = 1.0{}", "if me == 0 {\n".repeat(levels), "\n}".repeat(levels)));
    assert_eq!(codes(&text), Vec::<&str>::new());
    let text = task(&format!("{}x[0] = 1.0{}", "if me == 0 {\n".repeat(levels + 1), "\n}".repeat(levels + 1)));
    assert_eq!(codes(&text), ["PLD-B007"]);
}

#[test]
fn a_small_stack_is_enough() {
    let (blocks, calls) = (MAX_NESTING - 2, MAX_EXPRESSION_NESTING - 2);
    let value = format!("{}0.0{}", "max(x[0], ".repeat(calls), ")".repeat(calls));
    let text = task(&format!("{}x[0] = {value}{}", "if me == 0 {\n".repeat(blocks), "\n}".repeat(blocks)));
    let thread = std::thread::Builder::new().stack_size(512 << 10);
    let print_it = move || print(&parse(&text, "").unwrap_or_else(|m| panic!("{}", m[0])));
    let printed = thread.spawn(print_it).expect("a thread").join().expect("no overflow");
    assert!(printed.lines().count() > 2 * blocks);
}

#[test]
fn sizes_are_bounded() {
    let sum = vec!["world"; 100_000].join(" + ");
    assert!(codes(&format!("program p\nconst A = {sum}\n")).contains(&"PLD-B007"));
    let doubling: String = (1..200).map(|i| format!("const a{i} = a{} + a{}\n", i - 1, i - 1)).collect();
    assert!(codes(&format!("program p\nconst a0 = world\n{doubling}")).contains(&"PLD-B007"));
    let renaming: String = (1..10_000).map(|i| format!("const a{i} = a{}\n", i - 1)).collect();
    assert!(codes(&format!("program p\nconst a0 = world\n{renaming}")).contains(&"PLD-B007"));
}

#[test]
fn a_long_sum_prints_in_pieces() {
    let sum = vec!["x[0]"; 10_000].join(" + ");
    let once = print(&parse(&task(&format!("x[1] = {sum}")), "").expect("a program"));
    let again = print(&parse(&once, "").expect("its own print"));
    assert_eq!(again, once);
    assert!(once.lines().count() > 100, "the sum is split over lines");
}

#[test]
fn strange_characters_are_mistakes() {
    for text in ["\0", "\u{7f}", "$", "é", "\u{202e}", "\"", "\\", "~", "&&", "||", "!", "?"] {
        let found = codes(&task(&format!("x[0] = 1.0 {text} 2.0")));
        assert_eq!(found, ["PLD-P001"], "{text:?}");
    }
    assert_eq!(codes(&"\0".repeat(1 << 20)), ["PLD-P001"]);
    assert_eq!(codes(&task(&format!("# {}\0\u{fffd}", "x".repeat(1 << 20)))), Vec::<&str>::new());
    let mistakes = parse(&task(&format!("{}$", " ".repeat(1 << 20))), "").expect_err("a mistake");
    assert_eq!(mistakes[0].column, (1 << 20) + 1);
    assert!(mistakes[0].to_string().len() < 1000, "a long line is not shown");
}

#[test]
fn the_number_of_reports_is_bounded() {
    let found = codes(&task(&"x[0] = nothing\n".repeat(10_000)));
    assert_eq!(found.len(), MAX_MISTAKES + 1);
    assert_eq!(found[MAX_MISTAKES], "PLD-P013");
    let found = codes(&format!("program p\n{}", "}\n".repeat(10_000)));
    assert_eq!(found.len(), MAX_MISTAKES + 1);
}

#[test]
fn reading_takes_linear_time() {
    let shapes: [fn(usize) -> String; 10] = [
        |n| task(&"x[0] = x[1] + 2.0\n".repeat(n)),
        |n| task(&"x[0] = x[1 + 2.0\n".repeat(n)),
        |n| task(&format!("x[0] = {}", "(".repeat(n))),
        |n| task(&format!("x[0] = {}1", "1 + ".repeat(n))),
        |n| task(&"if true {\n".repeat(n)),
        |n| task(&(0..n).map(|i| format!("v{i} = x[0]\n")).collect::<String>()),
        |n| format!("program p\n{}", "entry e(".repeat(n)),
        |n| format!("program p\n{}", "{".repeat(n)),
        |n| format!("program p\n{}", "$ ".repeat(n)),
        |n| format!("program p\nhost () {{\n{}", "dispatch e(1, 2) device 0\n".repeat(n)),
    ];
    for (number, shape) in shapes.iter().enumerate() {
        let steps = |n: usize| {
            let text = shape(n);
            let mut parser = Parser::new(&text, "");
            parser.program();
            parser.steps
        };
        let (once, twice) = (steps(1000), steps(2000));
        assert!(twice <= 2 * once + 100, "shape {number}: {once} steps become {twice}");
    }
}

#[test]
fn every_part_of_a_program_is_read_without_panic() {
    for end in 0..ALLREDUCE.len() {
        _ = parse(&ALLREDUCE[..end], "");
        _ = parse(&ALLREDUCE[end..], "");
    }
}

#[test]
fn every_damage_to_a_program_is_read_without_panic() {
    for at in 0..ALLREDUCE.len() {
        for damage in ["", "{", "}", "(", "]", "\n", "=", "9", " entry "] {
            _ = parse(&format!("{}{damage}{}", &ALLREDUCE[..at], &ALLREDUCE[at + 1..]), "");
        }
    }
}

proptest! {
    #[test]
    fn any_words_are_read_without_panic(words in proptest::collection::vec(0usize..64, 0..200)) {
        const SOUP: &[&str] = &[
            "program", "entry", "host", "at", "for", "if", "else", "ranks", "in", "step", "dispatch", "device", "x",
            "y", "v", "t", "e", "1", "2.5", "(", ")", "[", "]", "{", "}", ",", ":", "=", "==", "<", ">=", "+", "-",
            "*", "->", "<-", "@", "+=", "..", "\n", "\n", "\n", "load", "store", "put", "get", "notify", "wait",
            "tensor", "window", "f32", "i32", "var", "array", "slice", "full", "add", "cast", "min", "not", "and",
            "world", "alloc_window", "const",
        ];
        let text: Vec<&str> = words.iter().map(|w| SOUP[*w]).collect();
        for head in ["", "program p\n", "program p\nentry e(x: tensor[4] f32 in, v: i32) {\nat t {\nt = load x[0] [4]\n"] {
            if let Ok(program) = parse(&format!("{head}{}", text.join(" ")), "") {
                let once = print(&program);
                let again = parse(&once, "").map_err(|m| TestCaseError::fail(format!("{once}\n{}", m[0])))?;
                prop_assert_eq!(print(&again), once);
            }
        }
    }
}
