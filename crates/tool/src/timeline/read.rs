//! Reads the file that the library writes: see its `docs/tracing.md`.

use std::collections::HashMap;

use serde_json::Value;

use super::{Launch, Notify, Part, Span, Task, Wait};

/// The launches of a trace, in the order in which they began; or the number of the line that is none of a trace, and why.
pub fn read(text: &str) -> Result<Vec<Launch>, String> {
    let lines = text.strip_prefix('[').ok_or("this is no trace: it does not begin with a list")?.lines();
    let mut events = Vec::new();
    for (index, line) in lines.enumerate() {
        let line = line.trim().trim_end_matches(',');
        if line.is_empty() || line == "]" {
            continue;
        }
        let event: Value = serde_json::from_str(line).map_err(|e| format!("line {}: {e}", index + 1))?;
        events.push(event);
    }
    let mut reader = Reader::default();
    events.iter().try_for_each(|event| reader.launch(event))?;
    reader.sort();
    events.iter().try_for_each(|event| reader.notify(event))?;
    reader.notifies.values_mut().for_each(|notifies| notifies.sort_by_key(|notify| notify.at));
    let mut ends = HashMap::new();
    for event in events.iter().filter(|event| event["ph"] == "e" && event["cat"] == "wait") {
        ends.insert((number(event, "pid")?, id(event)), nanoseconds(event, "ts")?);
    }
    events.iter().try_for_each(|event| reader.task(event))?;
    events.iter().try_for_each(|event| reader.wait(event, &ends))?;
    Ok(reader.launches)
}

#[derive(Default)]
struct Reader {
    launches: Vec<Launch>,
    /// Of each rank, its parts by time: span, and index of the launch.
    parts: HashMap<u32, Vec<(Span, usize)>>,
    /// By the rank that is told, and the cell.
    notifies: HashMap<(u32, String), Vec<Notify>>,
}

impl Reader {
    fn launch(&mut self, event: &Value) -> Result<(), String> {
        if event["ph"] != "X" || event["cat"] != "launch" {
            return Ok(());
        }
        let (program, launch) = (string(event, "name"), event["args"]["launch"].as_u64().unwrap_or(0));
        let (rank, span) = (number(event, "pid")? as u32, span(event)?);
        let fits = |other: &Launch| {
            other.program == program && other.number == launch && other.parts.iter().all(|part| part.rank != rank)
        };
        match self.launches.iter_mut().rev().find(|other| fits(other)) {
            Some(found) => found.parts.push(Part { rank, span }),
            None => {
                let parts = vec![Part { rank, span }];
                self.launches.push(Launch { program, number: launch, parts, ..Launch::default() });
            }
        }
        Ok(())
    }

    fn sort(&mut self) {
        for launch in &mut self.launches {
            launch.parts.sort_by_key(|part| part.rank);
        }
        self.launches.sort_by_key(|launch| launch.span().begin);
        for (index, launch) in self.launches.iter().enumerate() {
            for part in &launch.parts {
                self.parts.entry(part.rank).or_default().push((part.span, index));
            }
        }
        self.parts.values_mut().for_each(|parts| parts.sort_by_key(|(span, _)| span.begin));
    }

    /// The launch that a rank was in.
    fn at(&mut self, rank: u32, time: u64) -> Option<&mut Launch> {
        let parts = self.parts.get(&rank)?;
        let next = parts.partition_point(|(span, _)| span.begin <= time);
        let (span, index) = *parts.get(next.checked_sub(1)?)?;
        (time <= span.end).then(|| &mut self.launches[index])
    }

    fn notify(&mut self, event: &Value) -> Result<(), String> {
        if event["ph"] != "i" || event["cat"] != "notify" {
            return Ok(());
        }
        let args = &event["args"];
        let notify = Notify {
            rank: number(event, "pid")? as u32,
            core: number(event, "tid")? as u32,
            at: nanoseconds(event, "ts")?,
            line: string(args, "line"),
        };
        self.notifies.entry((number(args, "peer")? as u32, string(args, "cell"))).or_default().push(notify);
        Ok(())
    }

    fn task(&mut self, event: &Value) -> Result<(), String> {
        if event["ph"] != "X" || event["cat"] != "task" {
            return Ok(());
        }
        let args = &event["args"];
        let task = Task {
            rank: number(event, "pid")? as u32,
            core: number(event, "tid")? as u32,
            span: span(event)?,
            name: string(event, "name"),
            line: string(args, "line"),
            written: args["written"].as_u64().unwrap_or(0),
            read: args["read"].as_u64().unwrap_or(0),
        };
        if let Some(launch) = self.at(task.rank, task.span.begin) {
            launch.tasks.push(task);
        }
        Ok(())
    }

    fn wait(&mut self, event: &Value, ends: &HashMap<(u64, String), u64>) -> Result<(), String> {
        if event["ph"] != "b" || event["cat"] != "wait" {
            return Ok(());
        }
        let args = &event["args"];
        let (rank, begin) = (number(event, "pid")?, nanoseconds(event, "ts")?);
        let Some(&end) = ends.get(&(rank, id(event))) else { return Ok(()) };
        let (rank, cell) = (rank as u32, string(args, "cell"));
        let notifies = self.notifies.get(&(rank, cell.clone())).map_or(&[][..], Vec::as_slice);
        let until = notifies.partition_point(|notify| notify.at <= end);
        let wait = Wait {
            rank,
            core: number(event, "tid")? as u32,
            span: Span { begin, end: end.max(begin) },
            op: string(event, "name"),
            task: string(args, "task"),
            cell,
            line: string(args, "line"),
            notify: until.checked_sub(1).map(|last| notifies[last].clone()),
        };
        if let Some(launch) = self.at(rank, begin) {
            launch.waits.push(wait);
        }
        Ok(())
    }
}

fn id(event: &Value) -> String {
    event["id2"]["local"].as_str().unwrap_or_default().into()
}

fn string(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_default().into()
}

fn number(object: &Value, field: &str) -> Result<u64, String> {
    object[field].as_u64().ok_or_else(|| format!("{field} is missing in {object}"))
}

/// Microseconds of the file.
fn nanoseconds(object: &Value, field: &str) -> Result<u64, String> {
    let time = object[field].as_f64().ok_or_else(|| format!("{field} is missing in {object}"))?;
    Ok((time * 1000.0).round() as u64)
}

fn span(event: &Value) -> Result<Span, String> {
    let (begin, length) = (nanoseconds(event, "ts")?, nanoseconds(event, "dur")?);
    Ok(Span { begin, end: begin + length })
}
