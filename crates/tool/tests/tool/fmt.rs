use std::fs;
use std::path::PathBuf;

use crate::support::{Folder, examples, finish, golden, pld, tool};

const MESSY: &str = "\
# head

program   x # the name


# about e
entry e(a: tensor[4] f32 in,   # an input
        b: tensor[4] f32 out) {
    # before the task
  at t { # a task

      # first
      for i in 0..4 {  # loop
         b[i] = a[i] # copy
      }

      # last in the block

  }
  # the end of e
}
host (as: tensor[world, 4] f32 in, bs: tensor[world, 4] f32 out) {
  ranks r in 0..world { dispatch e(as[r], bs[r]) device r } # go

}
# tail";

fn formatted(text: &str) -> String {
    finish(tool(["fmt", "-"]), text).ok()
}

#[test]
fn comments_and_blank_lines_stay() {
    let once = formatted(MESSY);
    golden("fmt-messy.pld", &once);
    assert_eq!(formatted(&once), once, "formatting again changes nothing");
    let comments = |text: &str| {
        let mut found: Vec<String> = text.lines().filter_map(|l| Some(l[l.find('#')?..].trim_end().into())).collect();
        found.sort();
        found
    };
    assert_eq!(comments(&once), comments(MESSY));
}

/// Every program text of the project keeps its comments and its meaning, wherever its lines break.
#[test]
fn texts_survive_being_squeezed() {
    for path in program_files() {
        let text = fs::read_to_string(&path).unwrap();
        let squeezed: String = text.lines().map(|line| format!("{}\n", line.trim())).collect();
        assert_eq!(formatted(&squeezed), formatted(&text), "{}", path.display());
    }
}

#[test]
fn examples_are_formatted() {
    let files: Vec<String> = program_files().iter().map(|path| path.to_str().unwrap().into()).collect();
    assert!(files.len() > 15);
    let args = ["fmt".to_string(), "--check".into()].into_iter().chain(files);
    assert_eq!(finish(tool(args), "").ok(), "");
}

fn program_files() -> Vec<PathBuf> {
    fs::read_dir(examples()).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn files_change_in_place_and_only_if_they_can() {
    let folder = Folder::new();
    let (messy, good) = (folder.write("messy.pld", MESSY), folder.write("good.pld", formatted(MESSY)));
    let wrong = folder.write("wrong.pld", "program x # here\nentry {");
    let ran = pld(&format!("fmt --check {good} {messy}"));
    assert_eq!((ran.code, ran.stdout), (Some(1), format!("{messy} is not formatted\n")));
    assert_eq!(fs::read_to_string(&messy).unwrap(), MESSY, "--check changes nothing");

    let stderr = pld(&format!("fmt {wrong} {messy}")).failed(1);
    assert!(stderr.contains("PLD-P003") && stderr.contains("wrong.pld"), "{stderr}");
    assert_eq!(fs::read_to_string(&wrong).unwrap(), "program x # here\nentry {");
    assert_eq!(fs::read_to_string(&messy).unwrap(), formatted(MESSY), "the other one is formatted");
    assert_eq!(pld(&format!("fmt --check {messy}")).ok(), "");
}
