//! What is found. `docs/diagnostics.md` explains each with an example, and a test holds the two together.

use crate::ir::{Code, Severity};
use crate::verify::rules::{Rule, rules};

rules! {
    // Memory.
    OVERLAPPING_WRITES = "PLD-C001" Error "overlapping-writes": "Two ranks write one place of a window, and nothing orders them";
    EARLY_READ = "PLD-C002" Error "early-read": "A place of a window may be read before what belongs there has arrived";
    EARLY_REUSE = "PLD-C003" Error "early-reuse": "A place of a window may be overwritten before its readers are done";
    MISSING_EDGE = "PLD-C004" Error "missing-edge": "Two tasks of one rank use one place, and nothing orders them";
    UNORDERED_PUTS = "PLD-C005" Error "unordered-puts": "A task uses a place at another rank while its own transfer there may still be under way";
    UNDRAINED = "PLD-C006" Error "undrained": "A remote_store of an earlier task may land after the notify that stands for it";
    FAULT = "PLD-C007" Error "fault": "An op is outside its bounds, divides by zero, steps backward, or finds that something required does not hold when it runs";
    UNSTABLE = "PLD-C008" Warning "unstable": "The result depends on the schedule";
    CALLBACK = "PLD-C009" Error "callback": "A function of the engine returned other than 0";

    // Signals.
    DEADLOCK = "PLD-C010" Error "deadlock": "Ranks wait for each other in a circle";
    LOST_SIGNAL = "PLD-C011" Error "lost-signal": "A wait is never satisfied: nobody is left who notifies its cell";
    STALE_SIGNAL = "PLD-C012" Error "stale-signal": "A wait is satisfied by what an earlier launch or an earlier call has left";
    OVERWRITTEN_SIGNAL = "PLD-C013" Error "overwritten-signal": "A notify may set a cell before what another one set has been seen";
    MISSED_VALUE = "PLD-C014" Error "missed-value": "A wait for equality may miss the value: the cell may have moved on";
    AMBIGUOUS_COUNTER = "PLD-C015" Error "ambiguous-counter": "A counter tells how many have arrived, and is taken for which";
    UNRESTORED_SIGNAL = "PLD-C016" Warning "unrestored-signal": "A launch leaves a signal cell other than it found it, and the next one expects the same";
    WAITERS = "PLD-C017" Error "waiters": "More tasks of a rank have deferred waits at the same time than the target allows";
}
