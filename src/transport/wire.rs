//! Numbers, strings and errors as bytes of messages. Numbers are little-endian.

use crate::error::{Error, ErrorKind, Result};

/// Appends values to a message.
pub trait Put {
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    fn put_bytes(&mut self, bytes: &[u8]);
}

impl Put for Vec<u8> {
    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_u32(u32::try_from(bytes.len()).expect("messages are small"));
        self.extend_from_slice(bytes);
    }
}

/// Takes values from the front of a message.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(truncated)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub fn string(&mut self) -> Result<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(truncated)?;
        self.0 = rest;
        Ok(*array)
    }
}

fn truncated() -> Error {
    Error::new(ErrorKind::Mismatch, "a message of another rank is too short: it runs another version")
}

pub fn encode_error(error: &Error) -> Vec<u8> {
    let mut body = Vec::new();
    body.put_u32(error.kind as u32);
    body.put_bytes(error.message.as_bytes());
    body
}

pub fn decode_error(body: &[u8]) -> Error {
    let mut reader = Reader(body);
    let decode = |reader: &mut Reader<'_>| {
        let code = reader.u32()?;
        let kind = ErrorKind::from_code(code).unwrap_or(ErrorKind::Internal);
        Ok(Error::new(kind, reader.string()?))
    };
    decode(&mut reader).unwrap_or_else(|error| error)
}
