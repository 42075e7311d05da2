//! numpy's files of several arrays: a zip archive with a `.npy` file for each.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{Array, Kind, elements};
use crate::exit::{Failure, Result};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Headers are padded to a multiple of this.
const HEADER_ALIGN: usize = 64;

/// The arrays of a file, by name.
pub fn read(path: &Path) -> Result<BTreeMap<String, Array>> {
    let wrong = |cause: String| Failure::file(path, cause);
    let file = File::open(path).map_err(|e| Failure::file(path, e))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|e| wrong(format!("no npz file: {e}")))?;
    let mut arrays = BTreeMap::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|e| wrong(e.to_string()))?;
        let name = member.name().map_err(|e| wrong(e.to_string()))?.into_owned();
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_string();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).map_err(|e| wrong(format!("{name}: {e}")))?;
        let array = parse(&bytes).map_err(|cause| wrong(format!("{name}: {cause}")))?;
        arrays.insert(name, array);
    }
    Ok(arrays)
}

/// Writes a file with these arrays.
pub fn write<'a>(path: &Path, arrays: impl IntoIterator<Item = (&'a str, &'a Array)>) -> Result<()> {
    let failed = |e: io::Error| Failure::file(path, e);
    let mut archive = ZipWriter::new(BufWriter::new(File::create(path).map_err(failed)?));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
    for (name, array) in arrays {
        archive.start_file(format!("{name}.npy"), options).map_err(|e| failed(e.into()))?;
        archive.write_all(&header(array)).and_then(|()| archive.write_all(array.bytes())).map_err(failed)?;
    }
    let mut file = archive.finish().map_err(|e| failed(e.into()))?;
    file.flush().map_err(failed)
}

/// What stands before the elements of an array.
fn header(array: &Array) -> Vec<u8> {
    let order = if array.kind.size == 1 {
        '|'
    } else if cfg!(target_endian = "little") {
        '<'
    } else {
        '>'
    };
    let extents: String = array.shape.iter().map(|extent| format!("{extent}, ")).collect();
    let (letter, size) = (array.kind.letter, array.kind.size);
    let mut text = format!("{{'descr': '{order}{letter}{size}', 'fortran_order': False, 'shape': ({extents}), }}");
    let before = MAGIC.len() + 4;
    let padding = (before + text.len() + 1).next_multiple_of(HEADER_ALIGN) - before - text.len() - 1;
    text.extend(std::iter::repeat_n(' ', padding));
    text.push('\n');
    let mut bytes = [MAGIC, &[1, 0], &(text.len() as u16).to_le_bytes()].concat();
    bytes.extend(text.into_bytes());
    bytes
}

/// Reads a `.npy` file.
fn parse(bytes: &[u8]) -> Result<Array, String> {
    let short = || "the file ends too early".to_string();
    let rest = bytes.strip_prefix(MAGIC).ok_or("no npy file")?;
    let (&[major, _minor], rest) = rest.split_first_chunk().ok_or_else(short)?;
    let (length, rest) = if major == 1 {
        let (length, rest) = rest.split_first_chunk().ok_or_else(short)?;
        (u16::from_le_bytes(*length).into(), rest)
    } else {
        let (length, rest) = rest.split_first_chunk().ok_or_else(short)?;
        (u32::from_le_bytes(*length) as usize, rest)
    };
    let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is no text")?;

    let descr = field(header, "descr").and_then(|text| text.strip_prefix('\'')?.split_once('\''));
    let (descr, _) = descr.ok_or("a structured type; a tensor has elements of one number")?;
    let unknown = || format!("elements of type {descr:?}");
    let (order, kind) = descr.split_at_checked(1).ok_or_else(unknown)?;
    let mut letters = kind.chars();
    let letter = letters.next().ok_or_else(unknown)?;
    let size: usize = letters.as_str().parse().map_err(|_| unknown())?;
    let known = match letter {
        'f' => matches!(size, 2 | 4 | 8),
        'i' | 'u' => matches!(size, 1 | 2 | 4 | 8),
        'b' => size == 1,
        'V' => matches!(size, 1 | 2),
        _ => false,
    };
    if !known {
        return Err(unknown());
    }
    let is_fortran = field(header, "fortran_order").is_some_and(|text| text.starts_with("True"));
    let shape = field(header, "shape").and_then(|text| text.strip_prefix('(')?.split_once(')'));
    let (shape, _) = shape.ok_or("its header has no shape")?;
    let extents = shape.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let shape = extents.map(|extent| extent.parse::<i64>().ok().filter(|&extent| extent >= 0));
    let shape: Vec<i64> = shape.collect::<Option<_>>().ok_or("its shape has no numbers")?;
    let wanted = shape.iter().try_fold(size, |bytes, &extent| bytes.checked_mul(extent as usize));
    if wanted != Some(data.len()) {
        return Err(format!("{} bytes of elements for the shape {shape:?} of {descr}", data.len()));
    }

    let mut array = Array::of(Kind { letter, size }, shape, data);
    if is_fortran {
        let packed = in_row_major(&array);
        array.bytes_mut().copy_from_slice(&packed);
    }
    let foreign = if cfg!(target_endian = "little") { ">" } else { "<" };
    if order == foreign {
        array.bytes_mut().chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    Ok(array)
}

/// The text behind a key of a header.
fn field<'h>(header: &'h str, key: &str) -> Option<&'h str> {
    let (_, behind) = header.split_once(&format!("'{key}'"))?;
    Some(behind.trim_start().strip_prefix(':')?.trim_start())
}

/// The elements of an array whose first index moves fastest.
fn in_row_major(array: &Array) -> Vec<u8> {
    let size = array.kind.size;
    let mut packed = Vec::with_capacity(array.bytes().len());
    let mut index = vec![0i64; array.shape.len()];
    for _ in 0..elements(&array.shape) {
        let place = index.iter().zip(&array.shape).rev().fold(0, |place, (&i, &extent)| place * extent + i) as usize;
        packed.extend_from_slice(&array.bytes()[place * size..][..size]);
        for (i, &extent) in index.iter_mut().zip(&array.shape).rev() {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        [MAGIC, &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes(), data].concat()
    }

    #[test]
    fn what_is_written_is_read() {
        let path = std::env::temp_dir().join(format!("pld-npz-{}.npz", std::process::id()));
        let floats: Vec<u8> = (0..6).flat_map(|i| (i as f32 + 0.5).to_ne_bytes()).collect();
        let first = Array::of(Kind { letter: 'f', size: 4 }, vec![2, 3], &floats);
        let second = Array::of(Kind { letter: 'i', size: 8 }, vec![], &7i64.to_ne_bytes());
        let third = Array::zeros(Kind { letter: 'b', size: 1 }, vec![0, 5]);
        write(&path, [("first", &first), ("second", &second), ("third", &third)]).unwrap();
        let arrays = read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(arrays.keys().collect::<Vec<_>>(), ["first", "second", "third"]);
        for (name, array) in [("first", &first), ("second", &second), ("third", &third)] {
            assert_eq!((arrays[name].kind, &arrays[name].shape), (array.kind, &array.shape));
            assert_eq!(arrays[name].bytes(), array.bytes());
        }
        assert_eq!(header(&first).len() % HEADER_ALIGN, 0);
    }

    #[test]
    fn other_orders_become_the_usual_one() {
        // Columns first: 1 2 3 / 4 5 6.
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n";
        let array = parse(&npy(header, &[0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6])).unwrap();
        let values: Vec<i16> = array.bytes().chunks(2).map(|b| i16::from_ne_bytes([b[0], b[1]])).collect();
        assert_eq!(values, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn what_is_no_tensor_is_refused() {
        let mistake = |header: &str, data: &[u8]| parse(&npy(header, data)).err().expect("a mistake");
        let complex = "{'descr': '<c8', 'fortran_order': False, 'shape': (), }";
        assert_eq!(mistake(complex, &[0; 8]), "elements of type \"<c8\"");
        let structured = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (), }";
        assert_eq!(mistake(structured, &[0; 4]), "a structured type; a tensor has elements of one number");
        let short = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
        assert_eq!(mistake(short, &[0; 4]), "4 bytes of elements for the shape [2] of <f4");
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }";
        assert!(mistake(huge, &[]).starts_with("0 bytes"));
        assert_eq!(parse(b"PK").err().unwrap(), "no npy file");
        assert_eq!(parse(&npy(short, &[])[..9]).err().unwrap(), "the file ends too early");
    }
}
