//! `include/pld.h` is what `src/capi` says: `PLD_TEST_BLESS=1` writes it, without the variable it must be current.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The files of `src/capi` that declare something, in the order of the header.
const NOUNS: &[&str] = &[
    "status",
    "version",
    "info",
    "dtype",
    "program",
    "dim",
    "entry",
    "task",
    "scalar",
    "control",
    "tensor",
    "tile",
    "transfer",
    "signal",
    "collective",
    "domain",
    "host",
    "param",
    "callback",
    "log",
    "world",
    "resident",
    "arg",
    "executable",
    "run",
    "check",
];

#[test]
fn header_is_current() {
    let path = root().join("include/pld.h");
    let header = header();
    if std::env::var_os("PLD_TEST_BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("include/ exists");
        fs::write(&path, &header).expect("the header is writable");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let differs = committed.lines().zip(header.lines()).find(|(a, b)| a != b);
    assert!(
        committed == header,
        "include/pld.h is not current (first difference: {differs:?}); PLD_TEST_BLESS=1 cargo test --test header"
    );
}

#[test]
fn every_file_with_declarations_is_in_the_header() {
    let module = read("src/capi/mod.rs");
    let mut public: Vec<&str> =
        module.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let mut nouns = NOUNS.to_vec();
    public.sort_unstable();
    nouns.sort_unstable();
    assert_eq!(public, nouns);
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn header() -> String {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml")).expect("cbindgen.toml");
    let sources = NOUNS.iter().map(|noun| root().join(format!("src/capi/{noun}.rs")));
    let builder = sources.fold(cbindgen::Builder::new().with_config(config), cbindgen::Builder::with_src);
    let mut bytes = Vec::new();
    builder.generate().expect("declarations").write(&mut bytes);
    let generated = String::from_utf8(bytes).expect("a header in UTF-8");
    let (declarations, guard) = generated.trim_end().rsplit_once("\n#endif").expect("an include guard");
    let (declarations, inline) = (sections(declarations), read("src/capi/inline.h"));
    let text = format!("{declarations}\n{inline}\n{}\n#endif{guard}\n", locations(&generated));
    let version = env!("CARGO_PKG_VERSION");
    let parts: Vec<&str> = version.split('.').collect();
    tidy(&text)
        .replace("@VERSION@", version)
        .replace("@MAJOR@", parts[0])
        .replace("@MINOR@", parts[1])
        .replace("@PATCH@", parts[2])
}

/// With a section for the functions of each file, which begins with what the file says that it is about.
fn sections(declarations: &str) -> String {
    let sources = NOUNS.iter().map(|noun| read(&format!("src/capi/{noun}.rs")));
    let titles: HashMap<String, String> =
        sources.filter_map(|source| Some((first_function(&source)?, title(&source)))).collect();
    let (mut text, mut rest) = (String::new(), declarations);
    let mut is_open = false;
    while let Some((before, behind)) = rest.split_once("\nPLD_API") {
        let name = behind.split('(').next().and_then(|head| head.rsplit([' ', '*', '\n']).next()).expect("a name");
        match titles.get(name).zip(before.rfind("\n/**")) {
            Some((title, comment)) => {
                let end = if is_open { "\n/** \\} */\n" } else { "" };
                text +=
                    &format!("{}{end}\n/** \\name {title}\n    \\{{ */\n{}", &before[..comment], &before[comment..]);
                is_open = true;
            }
            None => text += before,
        }
        text += "\nPLD_API";
        rest = behind;
    }
    let (last, end) = rest.split_once(";\n").expect("the last function");
    format!("{text}{last};\n\n/** \\}} */\n{end}")
}

fn first_function(source: &str) -> Option<String> {
    let (_, function) = source.split_once("pub extern \"C\" fn ")?;
    Some(function.split_once('(')?.0.to_owned())
}

/// What a file says that it is about.
fn title(source: &str) -> String {
    let line = source.lines().next().and_then(|line| line.strip_prefix("//! ")).expect("a file says what it is about");
    line.trim_end_matches('.').replace('`', "")
}

/// Writes pointers as `type *name`, in declarations.
fn tidy(text: &str) -> String {
    let mut tidied = String::new();
    for line in text.lines() {
        let declares = !line.trim_start().starts_with(['*', '/', '#']);
        let line = if declares { line.replace(" * ", " *") } else { line.into() };
        tidied.push_str(&line);
        tidied.push('\n');
    }
    tidied
}

/// A macro for every builder call, which records where it stands.
fn locations(header: &str) -> String {
    let mut macros = String::from(
        "/* Builder calls record where they stand, so that mistakes are reported with file and line. */\n\
         #ifndef PLD_NO_LOCATIONS\n",
    );
    for name in NOUNS.iter().flat_map(|noun| builder_calls(&read(&format!("src/capi/{noun}.rs")))) {
        let declaration = header.split_once(&format!("{name}(")).map(|(_, rest)| rest).unwrap_or_default();
        let alone = declaration.split_once(')').is_some_and(|(parameters, _)| !parameters.contains(','));
        let (parameters, rest) = if alone { ("p", "") } else { ("p, ...", ", __VA_ARGS__") };
        writeln!(macros, "#define {name}({parameters}) {name}(pld_loc(p, __FILE__, __LINE__){rest})")
            .expect("a string");
    }
    macros.push_str("#endif\n");
    macros
}

/// The functions of a file that add to a program: those that are made with `build`, directly or by a helper, as all
/// that take a program to change except its finish and `pld_loc`.
fn builder_calls(source: &str) -> Vec<String> {
    let functions = source.split("pub extern \"C\" fn ").skip(1);
    let calls = functions.filter_map(|function| {
        let (name, rest) = function.split_once('(')?;
        let builds = rest.trim_start().starts_with("p: Option<&mut pld_program_t>");
        (builds && !["pld_program_finish", "pld_loc"].contains(&name)).then(|| name.to_owned())
    });
    calls.collect()
}
