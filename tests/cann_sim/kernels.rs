//! Kernels: compiled by the toolkit's compiler, loaded, and launched with blocks.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::ptr::null_mut;

use half::{bf16, f16};
use hccl_sys::*;
use pld_test_ranks::{DEADLINE, Rank};

use crate::acl::*;
use crate::memory::Window;
use crate::toolkit::toolkit;

pub const SCENARIOS: &[(&str, Scenario)] = &[
    ("kernels::blocks", blocks),
    ("kernels::replaced", replaced),
    ("kernels::atomics", atomics),
    ("kernels::exchange", exchange),
    ("kernels::wrong", wrong),
];

/// The command lines are those that CANN's compiler and linker take.
fn compile(source: &Path, object: &Path, arch: &str, more: &[&str]) -> Output {
    let mut ccec = Command::new(toolkit().join("bin/ccec"));
    ccec.args(["-c", "-O3", "-x", "cce", "-std=c++17", "--cce-aicore-only", &format!("--cce-aicore-arch={arch}")]);
    ccec.args(["-mllvm", "-cce-aicore-stack-size=0x8000", "-DMEMORY_BASE"]);
    if let Some(root) = std::env::var_os("PTO_ISA_ROOT") {
        ccec.arg(format!("-I{}", Path::new(&root).join("include").display()));
    }
    ccec.arg(format!("-I{}", toolkit().join("include").display())).args(more);
    ccec.arg("-o").arg(object).arg(source).output().unwrap()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cann_sim/kernels").join(name)
}

/// A binary of one of the sources, made once for all.
fn built(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let unique = format!("{name}.{}", std::process::id());
    let (object, binary) = (directory.join(format!("{unique}.o")), directory.join(format!("{unique}.elf")));
    let compiled = compile(&source(name), &object, "dav-c220-vec", &[]);
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let mut linker = Command::new(toolkit().join("bin/ld.lld"));
    linker.args(["-m", "aicorelinux", "-Ttext=0", "-static", "-o"]).arg(&binary).arg(&object);
    let linked = linker.output().unwrap();
    assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
    let bytes = std::fs::read(&binary).unwrap();
    [object, binary].into_iter().for_each(|file| std::fs::remove_file(file).unwrap());
    bytes
}

/// The binary that rank 0 makes for all.
fn shared(rank: &Rank, name: &str) -> Vec<u8> {
    if rank.rank() == 0 {
        publish(rank, name, &built(name));
    }
    fetch(rank, 0, name)
}

fn load(binary: &[u8]) -> aclrtBinHandle {
    let value = aclrtBinaryLoadOptionValue { magic: ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE };
    let mut option = aclrtBinaryLoadOption { type_: ACL_RT_BINARY_LOAD_OPT_MAGIC, value };
    let options = aclrtBinaryLoadOptions { options: &mut option, numOpt: 1 };
    // SAFETY: the pointers are to values that live during the call.
    made(null_mut(), |handle| unsafe {
        (cann().aclrtBinaryLoadFromData)(binary.as_ptr().cast(), binary.len(), &options, handle)
    })
}

fn function(binary: aclrtBinHandle, name: &str) -> aclrtFuncHandle {
    let name = CString::new(name).unwrap();
    // SAFETY: as above.
    made(null_mut(), |function| unsafe { (cann().aclrtBinaryGetFunction)(binary, name.as_ptr(), function) })
}

/// Launches a kernel; its arguments may end when this returns.
fn launch(function: aclrtFuncHandle, blocks: u32, mut args: Vec<u64>, stream: aclrtStream) -> aclError {
    let bytes = args.len() * 8;
    // SAFETY: the arguments are as many bytes.
    unsafe {
        let args = args.as_mut_ptr().cast();
        (cann().aclrtLaunchKernelWithHostArgs)(function, blocks, stream, null_mut(), args, bytes, null_mut(), 0)
    }
}

fn synchronize(stream: aclrtStream) {
    // SAFETY: a number and a handle are passed.
    unsafe { ok((cann().aclrtSynchronizeStreamWithTimeout)(stream, DEADLINE.as_millis() as i32 / 2)) };
}

fn unload(binary: aclrtBinHandle, stream: aclrtStream) {
    // SAFETY: handles are passed.
    unsafe {
        ok((cann().aclrtDestroyStream)(stream));
        ok((cann().aclrtBinaryUnLoad)(binary));
    }
}

#[test]
fn a_kernel_runs_all_of_its_blocks() {
    run_clean("kernels::blocks", 2, &[("CANN_SIM_CORES", "3")]);
}

fn blocks(rank: &Rank) {
    const BLOCKS: u32 = 50;
    let me = rank.rank();
    begin(me as i32);
    let (binary, stream) = (load(&shared(rank, "right.cpp")), stream());
    let memory = allocate(BLOCKS as usize * 64);
    let kernel = function(binary, "blocks");
    ok(launch(kernel, BLOCKS, vec![memory as u64, u64::from(me)], stream));
    synchronize(stream);
    let expected: Vec<_> = (0..BLOCKS * 16).map(|place| (1000 * me + place) as i32).collect();
    assert_eq!(read::<i32>(memory, expected.len()), expected);

    let acl = cann();
    failed(launch(kernel, 0, vec![], stream), ACL_ERROR_RT_PARAM_INVALID, "0 blocks");
    failed(launch(null_mut(), 1, vec![], stream), ACL_ERROR_RT_INVALID_HANDLE, "no kernel");
    // SAFETY: the library finds out what is wrong before it does anything.
    unsafe {
        let code = (acl.aclrtBinaryGetFunction)(binary, c"nothing".as_ptr(), &mut null_mut());
        failed(code, 507027, "no kernel nothing");
        let code = (acl.aclrtBinaryLoadFromData)(b"none".as_ptr().cast(), 4, std::ptr::null(), &mut null_mut());
        failed(code, ACL_ERROR_INVALID_FILE, "file too short");
        ok((acl.aclrtFree)(memory));
        unload(binary, stream);
        failed((acl.aclrtBinaryUnLoad)(binary), ACL_ERROR_RT_INVALID_HANDLE, "destroyed");
    }
    end(me as i32);
}

#[test]
fn a_binary_is_not_taken_for_one_before_it() {
    run_clean("kernels::replaced", 1, &[]);
}

/// A stream that has run a kernel keeps its library, but not its name.
fn replaced(rank: &Rank) {
    begin(0);
    let (first, stream) = (load(&shared(rank, "right.cpp")), stream());
    let memory = allocate(64);
    ok(launch(function(first, "blocks"), 1, vec![memory as u64, 1], stream));
    synchronize(stream);
    // SAFETY: handles are passed, and memory that lives.
    unsafe {
        ok((cann().aclrtBinaryUnLoad)(first));
        let second = load(&shared(rank, "wrong.cpp"));
        let code = (cann().aclrtBinaryGetFunction)(second, c"blocks".as_ptr(), &mut null_mut());
        failed(code, 507027, "no kernel blocks");
        function(second, "beyond");
        ok((cann().aclrtFree)(memory));
        unload(second, stream);
    }
    end(0);
}

#[test]
fn atomic_additions_of_several_processes_are_exact() {
    run_clean("kernels::atomics", 4, &[]);
}

/// All ranks add to rank 0's window at once, with two blocks each.
fn atomics(rank: &Rank) {
    const BLOCKS: u32 = 2;
    let me = rank.rank();
    begin(me as i32);
    let (binary, stream) = (load(&shared(rank, "right.cpp")), stream());
    let windows = Window::all(rank);
    let target = windows[0].address as u64;
    // Sums that every type has exactly.
    let kernels = [
        ("add_float", 500u64),
        ("add_half", 100),
        ("add_bfloat16", 16),
        ("add_int32", 500),
        ("add_int16", 500),
        ("add_int8", 7),
    ];
    for (place, (name, times)) in kernels.iter().enumerate() {
        let (row, cell) = (target + 512 * place as u64, target + 8192 + 64 * place as u64);
        ok(launch(function(binary, name), BLOCKS, vec![row, cell, *times], stream));
    }
    synchronize(stream);
    meet(rank, "added");
    if me == 0 {
        let base = windows[0].address;
        for (place, (name, times)) in kernels.iter().enumerate() {
            let row = base.wrapping_byte_add(512 * place);
            let values: Vec<f64> = match *name {
                "add_float" => read::<f32>(row, 64).into_iter().map(f64::from).collect(),
                "add_half" => read::<f16>(row, 64).into_iter().map(f64::from).collect(),
                "add_bfloat16" => read::<bf16>(row, 64).into_iter().map(f64::from).collect(),
                "add_int32" => read::<i32>(row, 64).into_iter().map(f64::from).collect(),
                "add_int16" => read::<i16>(row, 64).into_iter().map(f64::from).collect(),
                _ => read::<i8>(row, 64).into_iter().map(f64::from).collect(),
            };
            let total = f64::from(rank.nranks() * BLOCKS) * *times as f64;
            let expected: Vec<_> = (0..64).map(|i| total * f64::from(1 + i % 2)).collect();
            assert_eq!(values, expected, "{name}");
            let cell = read::<i32>(base.wrapping_byte_add(8192 + 64 * place), 1)[0];
            assert_eq!(f64::from(cell), total, "{name}");
        }
    }
    meet(rank, "seen");
    windows.into_iter().for_each(Window::release);
    unload(binary, stream);
    end(me as i32);
}

#[test]
fn kernels_of_two_processes_exchange() {
    run_clean("kernels::exchange", 2, &[]);
}

/// Puts through two tiles in chunks that do not divide the matrix, notifies and waits, many epochs on the same window.
fn exchange(rank: &Rank) {
    const EPOCHS: u64 = 50;
    const ROWS: usize = 20;
    const COLS: usize = 40;
    let me = rank.rank();
    let peer = 1 - me;
    begin(me as i32);
    let (binary, stream) = (load(&shared(rank, "right.cpp")), stream());
    let windows = Window::all(rank);
    meet(rank, "mapped");
    let value = |rank: u32, i: usize| (1000 * rank as usize + i) as f32;
    let (input, output) = (allocate(ROWS * COLS * 4), allocate(ROWS * COLS * 4));
    write(input, &(0..ROWS * COLS).map(|i| value(me, i)).collect::<Vec<_>>());
    let [there, here] = [peer, me].map(|rank| windows[rank as usize].address as u64);
    let (cell_there, cell_here) = (there + 65536, here + 65536);
    let sizes = [ROWS as u64, COLS as u64, EPOCHS];
    let args = [input as u64, there, here, cell_there, cell_here, output as u64].into_iter().chain(sizes).collect();
    ok(launch(function(binary, "exchange"), 1, args, stream));
    synchronize(stream);
    let raised = (1..EPOCHS).sum::<u64>() as f32;
    let expected: Vec<_> = (0..ROWS * COLS).map(|i| value(peer, i) + raised).collect();
    assert_eq!(read::<f32>(output, ROWS * COLS), expected);
    meet(rank, "done");
    windows.into_iter().for_each(Window::release);
    for memory in [input, output] {
        // SAFETY: the memory is this rank's.
        unsafe { ok((cann().aclrtFree)(memory)) };
    }
    unload(binary, stream);
    end(me as i32);
}

#[test]
fn what_a_kernel_does_wrong_ends_it_with_an_error() {
    run_clean("kernels::wrong", 1, &[]);
}

fn wrong(rank: &Rank) {
    let kernels = [
        ("beyond", "128 bytes at"),
        ("of_the_host", "is no device memory"),
        ("null_pointer", "memory that is not there"),
        ("notify_the_host", "is no device memory"),
        ("division", "division by zero"),
        ("no_place", "a tile that TASSIGN has given no place"),
        ("behind_ub", "at byte 196512 of UB, which has 196608"),
        ("unaligned", "multiples of 32"),
        ("never_written", "TSTORE reads byte 0 of UB, which nothing has written"),
        ("no_flag", "TADDS on V touches byte 0 of UB, which was written on MTE2"),
        ("no_barrier", "TADDS on V touches byte 0 of UB, which was written on V"),
        ("overwritten", "TLOAD on MTE2 touches memory at"),
        ("stale_memory", "that TSTORE on MTE3 has touched"),
        ("scalar_too_soon", "which was written on MTE2"),
        ("early_notify", "TNOTIFY while TSTORE on MTE3 may not have ended"),
        ("flag_left", "MTE2 -> V, EVENT_ID3 is set at the end"),
        ("flag_twice", "which is set"),
        ("flag_unset", "which nothing has set"),
        ("shapes", "a tensor of 1 x 32 elements, and a tile of which 2 x 32 are valid"),
        ("valid_parts", "TADD: tiles of which 1 x 32 and 1 x 8 elements are valid"),
    ];
    begin(0);
    let binary = load(&shared(rank, "wrong.cpp"));
    let memory = allocate(4096);
    let mut host = [0f32; 64];
    write(memory, &[1f32; 1024]);
    let acl = cann();
    for (name, part) in kernels {
        let stream = stream();
        let args = vec![memory as u64, host.as_mut_ptr() as u64];
        // What comes behind is dropped, and does not keep the binary.
        for _ in 0..3 {
            ok(launch(function(binary, name), 2, args.clone(), stream));
        }
        // SAFETY: a handle is passed.
        let code = unsafe { (acl.aclrtSynchronizeStream)(stream) };
        let text = message();
        assert_eq!(code, ACL_ERROR_RT_VECTOR_CORE_EXCEPTION, "{name}: {text}");
        assert!(text.contains(&format!("kernel {name}, block ")) && text.contains(part), "{text:?} has no {part:?}");
        // SAFETY: as above.
        unsafe { ok((acl.aclrtDestroyStream)(stream)) };
    }
    // SAFETY: as above.
    unsafe {
        ok((acl.aclrtFree)(memory));
        ok((acl.aclrtBinaryUnLoad)(binary));
    }
    end(0);
}

/// With each standard, and with the dtypes and the UB of each generation.
#[test]
fn instructions_compute_what_they_should() {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pto_sim");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("check.{}", std::process::id()));
    for (standard, generation) in [("-std=c++17", "2"), ("-std=c++20", "5")] {
        let mut compiler = Command::new("g++");
        compiler.args([standard, "-Wall", "-Wextra", "-Werror", "-O1", "-D__CPU_SIM"]);
        compiler.arg(format!("-DPTO_SIM_GENERATION={generation}")).arg("-I").arg(&headers);
        let compiled = compiler.arg(headers.join("check.cpp")).arg("-o").arg(&program).output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let checked = Command::new(&program).output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
    std::fs::remove_file(program).unwrap();
}

#[test]
fn the_compiler_takes_the_real_command_line_only() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ccec.{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let object = directory.join("k.o");
    let refused = |arch: &str, more: &[&str], text: &str, part: &str| {
        let source = directory.join("k with spaces.cpp");
        std::fs::write(&source, text).unwrap();
        let compiled = compile(&source, &object, arch, more);
        let errors = String::from_utf8_lossy(&compiled.stderr);
        assert!(!compiled.status.success() && errors.contains(part), "{errors}");
    };
    refused("dav-c220-cube", &[], "", "unknown --cce-aicore-arch: 'dav-c220-cube'");
    refused("dav-c220-vec", &["-fwhatever"], "", "unknown argument: -fwhatever");
    refused("dav-c220-vec", &["-mllvm", "-x"], "", "unknown argument: -mllvm -x");
    refused("dav-c220-vec", &[], "int f() { return nothing; }", "was not declared");
    // Only A2/A3 add to bf16.
    let text = "#include <cstdint>\n#include <pto/pto-inst.hpp>\nusing namespace pto;\n\
        using T = Tile<TileType::Vec, bfloat16_t, 1, 16>; using G = GlobalTensor<bfloat16_t, Shape<>, Stride<>>;\n\
        void f(T &t, G &g) { TSTORE<T, G, AtomicType::AtomicAdd>(g, t); }\n";
    refused("dav-c310-vec", &[], text, "the card cannot add to elements of this type");
    let compiled = compile(&directory.join("k with spaces.cpp"), &object, "dav-c220-vec", &["-DNAME=\"it's\""]);
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    std::fs::remove_dir_all(directory).unwrap();
}
