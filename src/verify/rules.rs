//! The one list of rules. `docs/diagnostics.md` explains each with an example, and a test holds the two together.

use crate::ir::{Code, Severity};

/// A rule of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its code, which never changes and is never used again for another rule.
    pub code: Code,
    /// A short name.
    pub name: &'static str,
    /// Whether a program that breaks it is refused.
    pub severity: Severity,
    /// What breaks it, in one line.
    pub about: &'static str,
}

macro_rules! rules {
    ($($rule:ident = $code:literal $severity:ident $name:literal: $about:literal;)*) => {
        $(
            #[doc = concat!($about, ".")]
            pub const $rule: Rule =
                Rule { code: Code($code), name: $name, severity: Severity::$severity, about: $about };
        )*

        /// Every rule of this list, by code.
        pub const RULES: &[Rule] = &[$($rule),*];
    };
}

pub(crate) use rules;

rules! {
    // Structure.
    SCOPE = "PLD-V001" Error "scope": "An op stands where it is not allowed";
    UNDEFINED = "PLD-V002" Error "undefined": "A value is used outside the block that defines it, or before it is defined";
    NO_HOST = "PLD-V003" Error "no-host": "The program has no host driver";
    NO_DISPATCH = "PLD-V004" Warning "no-dispatch": "The host driver dispatches nothing";
    UNUSED_ENTRY = "PLD-V005" Warning "unused-entry": "An entry is never dispatched";

    // Types and shapes.
    OPERANDS = "PLD-V010" Error "operand-types": "Scalar operands have types that do not go together";
    NOT_BOOL = "PLD-V011" Error "not-bool": "A condition is not a bool";
    NOT_INTEGER = "PLD-V012" Error "not-integer": "An offset, size, index, peer, step or signal value is not an integer";
    CONVERSION = "PLD-V013" Error "conversion": "A value does not convert to the type that it is written to";
    LITERAL = "PLD-V014" Warning "literal-range": "An integer literal does not fit the type that it is used as";
    STORAGE_ONLY = "PLD-V015" Error "storage-only": "A float of 8 bits is read, written or filled as an element";
    TILE_DTYPES = "PLD-V016" Error "tile-dtypes": "Tiles and tensors of an op differ in element type";
    TILE_SHAPES = "PLD-V017" Error "tile-shapes": "Tiles of an op differ in shape";
    NO_ARITHMETIC = "PLD-V018" Error "no-arithmetic": "Tile arithmetic on a type that has none: bool and floats of 8 bits";
    REDUCTION = "PLD-V019" Error "reduction-rank": "A reduction of a tile that has no rows and columns";
    OFFSETS = "PLD-V020" Error "offset-count": "The number of offsets or extents is not the rank of the tensor";
    RANKS_DIFFER = "PLD-V021" Error "rank-mismatch": "A tile and its tensor, or both sides of a transfer, differ in rank";
    TRANSFER_DTYPES = "PLD-V022" Error "transfer-dtypes": "Both sides of a transfer differ in element type";
    TRANSFER_SHAPES = "PLD-V023" Error "transfer-shapes": "A transfer of whole tensors whose shapes differ";
    DYNAMIC_SIZE = "PLD-V024" Error "dynamic-size": "The size of a tile, array, window or operand of a collective depends on a dimension bound at launch";
    BAD_SIZE = "PLD-V025" Error "bad-size": "A size is negative or zero where elements are needed, has no value, or is too large";

    // Bounds.
    REGION = "PLD-V030" Error "out-of-bounds": "A region reaches outside its tensor";
    NEGATIVE_EXTENT = "PLD-V031" Error "negative-extent": "An extent of a region is negative";
    VIEW_SIZE = "PLD-V032" Error "view-size": "A window view is larger than its buffer";
    ARRAY_INDEX = "PLD-V033" Error "array-index": "An index is outside its array";
    PEER = "PLD-V034" Error "peer": "A peer is not a rank of the window's domain";
    DIVISION = "PLD-V035" Error "division-by-zero": "An integer is divided by zero";
    STEP = "PLD-V036" Error "loop-step": "The step of a loop is not positive";
    EXPECTATION = "PLD-V037" Error "signal-range": "A wait expects what a signal of 32 bits can never hold";

    // Communication.
    NOT_SIGNAL = "PLD-V040" Error "not-signal": "A notify or wait on a window that is not int32";
    NOT_WINDOW = "PLD-V041" Error "not-window": "An op for windows is given a tensor that is none";
    ATOMIC_DTYPE = "PLD-V042" Error "atomic-dtype": "An atomic add on an element type that has none";
    CHUNKS = "PLD-V043" Error "chunks": "A chunk size is negative, or a pipeline has no chunk sizes";
    SET_AND_ADD = "PLD-V044" Warning "set-and-add": "A signal cell is both set and added to";
    UNDRAINED_STORE = "PLD-V045" Warning "undrained-store": "A notify stands for a remote_store of an earlier task";
    NEVER_NOTIFIED = "PLD-V046" Warning "never-notified": "A wait on a cell that nothing in the program changes";
    NEVER_WAITED = "PLD-V047" Warning "never-waited": "A window is notified, but nothing waits for it or reads it";
    UNPUBLISHED = "PLD-V048" Warning "unpublished": "A wait on a cell that is written, but never notified";
    MIXED_DOMAINS = "PLD-V049" Warning "mixed-domains": "One value is a peer in two domains that number their ranks differently";

    // Host driver.
    ALLOCATION = "PLD-V060" Error "conditional-allocation": "A window is allocated inside a loop or an if";
    UNUSED_BUFFER = "PLD-V061" Warning "unused-buffer": "A window buffer has no view, or none that is dispatched";
    UNUSED_WINDOW = "PLD-V062" Warning "unused-window": "A window view or a window parameter is never used";
    ARGUMENT_COUNT = "PLD-V063" Error "argument-count": "A dispatch passes too few or too many arguments";
    ARGUMENT_KIND = "PLD-V064" Error "argument-kind": "A dispatch passes a tensor, a window or a scalar for another kind of parameter";
    ARGUMENT_DTYPE = "PLD-V065" Error "argument-dtype": "A dispatch passes a tensor of another element type";
    ARGUMENT_SHAPE = "PLD-V066" Error "argument-shape": "A dispatch passes a tensor of another shape";
    DIRECTION = "PLD-V067" Error "direction": "A tensor is written that is declared as input";
    NEVER_WRITTEN = "PLD-V068" Warning "never-written": "An entry never writes one of its outputs";
    DEVICE = "PLD-V069" Error "device": "A device is not a rank, or not one that is known when compiling";
    SLICE_DEVICE = "PLD-V070" Error "slice-device": "A dispatch passes another rank's part of a host tensor";
    LEADING_EXTENT = "PLD-V071" Error "leading-extent": "A host tensor that is sliced by rank does not have one part a rank";
    RANKED_AND_PLAIN = "PLD-V072" Error "ranked-and-plain": "A host tensor is passed both whole and in parts";
    ALIASED = "PLD-V073" Warning "aliased": "A dispatch passes one tensor twice, and writes it";
    SHARED_OUTPUT = "PLD-V074" Warning "shared-output": "Every rank writes the same host tensor";
    UNBOUND_DIM = "PLD-V075" Error "unbound-dim": "No host tensor has a named dimension as an extent";
    UNCERTAIN_DISPATCH = "PLD-V076" Error "uncertain-dispatch": "A launch decides which of the ranks that share a window run a dispatch";
    DOMAIN = "PLD-V077" Error "domain": "A declared domain is empty, or names a rank twice or one that does not exist";
    NOT_MEMBER = "PLD-V078" Error "not-member": "A window is passed to a rank outside its declared domain";
    UNREACHED_MEMBER = "PLD-V079" Error "unreached-member": "No dispatch passes a window of a declared domain to one of its ranks";

    // Tasks.
    DEPENDENCY = "PLD-V080" Error "dependency": "A task depends on one that does not stand before it in its entry";
    DUPLICATE_DEPENDENCY = "PLD-V081" Warning "duplicate-dependency": "A task names one of its deps twice";
    UNUSED_NO_DEP = "PLD-V082" Warning "unused-no-dep": "A no_dep names a tensor that the task does not touch";
    PREDICATE = "PLD-V083" Error "predicate-type": "A predicate compares an element that is neither an integer nor a bool";
    BLOCK_COUNT = "PLD-V084" Error "block-count": "The number of blocks of a task is negative";
    BLOCK_INDEX = "PLD-V085" Warning "block-index": "No block of a grid uses its index";
    NESTED_MANUAL = "PLD-V086" Error "nested-manual": "A manual scope stands inside another one";
    UNANCHORED_WAIT = "PLD-V087" Warning "unanchored-wait": "A task that waits is ordered after no task before it";
    WAITER = "PLD-V088" Error "waiter": "A deferred wait stands in a grid, or in a task with a predicate or allow_early_resolve";
    WAITER_WORK = "PLD-V089" Error "waiter-work": "A task with a deferred wait does other work";
    WAITER_SIGNAL = "PLD-V090" Error "waiter-signal": "A deferred wait on a slice of a window";
    WAITER_VALUE = "PLD-V091" Error "waiter-value": "A deferred wait expects what no counter of 32 bits reaches from 0 up";
    WAITER_CONDITIONS = "PLD-V092" Error "waiter-conditions": "A task has too many deferred waits";
    SIGNATURE = "PLD-V093" Error "signature": "One name of extern or host tasks is given arguments of different kinds";
    HOST_TASK = "PLD-V094" Error "host-task": "A host task stands in a loop or an if, or before a dispatch";
    HOST_TASK_ARGUMENT = "PLD-V095" Error "host-task-argument": "A host task is given a window, or one rank's part of a tensor";

    // Collectives, and what they are made of.
    NOT_PACKED = "PLD-V096" Error "not-packed": "A tensor whose elements do not lie one behind the other is flattened, or given to a collective";
    COMBINED_DTYPE = "PLD-V097" Error "combined-dtype": "Ranks combine elements of a type that does not combine";
    COLLECTIVE_PLACE = "PLD-V098" Error "collective-place": "A collective stands in a grid, or in a loop over ranks";
    COLLECTIVE_MODE = "PLD-V099" Error "collective-mode": "A collective is asked for an algorithm that it does not have";
    CORES = "PLD-V100" Error "cores": "The cores of a collective are fewer than 1, or more than 1 inside a task";
    COLLECTIVE_SHAPE = "PLD-V101" Error "collective-shape": "Operands of a collective do not fit together, or have not one row for each rank";
    COUNTS = "PLD-V102" Error "counts": "Counts or offsets of an all_to_all_v are not one integer for each rank";
    OVERLAP = "PLD-V103" Error "overlap": "A collective is given the same memory twice, and writes it";
    COLLECTIVE_DOMAIN = "PLD-V104" Error "collective-domain": "The windows of a collective are shared by different ranks";
}
