use crate::support::{finish, golden, pld, tool};

const COMMANDS: [&str; 11] =
    ["check", "fmt", "print", "graph", "emit", "run", "bench", "spawn", "trace", "info", "completions"];

#[test]
fn help_for_everything() {
    let help = pld("--help").ok();
    golden("help.txt", &help);
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is not in the list");
        let text = pld(&format!("{command} --help")).ok();
        assert!(text.contains("Examples:\n  "), "{command} has no examples");
        golden(&format!("help-{command}.txt"), &text);
    }
    assert!(!help.contains("become-rank"));
}

#[test]
fn no_command_is_a_mistake() {
    let ran = finish(tool::<&str>([]), "");
    assert!(ran.code == Some(2) && ran.stderr.contains("Usage: pld"), "{ran:?}");
    let stderr = pld("chekc x.pld").failed(2);
    assert!(stderr.contains("a similar subcommand exists: 'check'"), "{stderr}");
}

#[test]
fn the_version_is_that_of_the_library() {
    assert_eq!(pld("--version").ok(), format!("pld {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_for_shells() {
    for (shell, word) in [("bash", "complete -F _pld"), ("zsh", "#compdef pld"), ("fish", "complete -c pld")] {
        let script = pld(&format!("completions {shell}")).ok();
        assert!(script.contains(word) && COMMANDS.iter().all(|command| script.contains(command)), "{shell}");
    }
    assert!(pld("completions tcsh").failed(2).contains("bash, elvish, fish, powershell, zsh"));
}
