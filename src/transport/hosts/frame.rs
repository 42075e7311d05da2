//! What the processes of a world say to each other over their connections.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::transport::far::News;
use crate::transport::hello::Hello;
use crate::transport::waiting::Operation;
use crate::transport::wire::{Put, Reader, decode_error, encode_error};

/// One collective: all ranks count them alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub operation: Operation,
    pub sequence: u32,
}

/// The call in which ranks meet.
pub const JOIN: Call = Call { operation: Operation::Join, sequence: 0 };

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// To rank 0: who comes.
    Hello(Hello),
    /// From rank 0: the world is complete.
    Welcome(Welcome),
    /// To rank 0: this rank's part of a collective.
    Part(Call, Vec<u8>),
    /// To rank 0, instead of a part: this rank cannot go on.
    Refusal(Call, Error),
    /// To rank 0, after a part: this rank has waited long enough.
    Late(Call, Duration),
    /// From rank 0: everyone's parts, by rank.
    Parts(Call, Vec<Vec<u8>>),
    /// From rank 0: the collective has failed on all ranks.
    Failure(Call, Error),
    /// To rank 0: to be told to all.
    Say(Vec<u8>),
    /// To rank 0: this rank takes no further part.
    Leave,
    /// To rank 0: this rank has lost another one.
    Missing { rank: u32, why: String },
    /// From rank 0.
    News(News),
    /// Nothing but a sign of life.
    Beat,
}

/// What ranks know of each other from the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// By rank.
    pub hellos: Vec<Hello>,
    /// Tells this world from all others.
    pub session: Vec<u8>,
    /// How long a process may be silent.
    pub silence: Duration,
}

impl Frame {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Frame::Hello(hello) => {
                bytes.push(1);
                bytes.put_bytes(&hello.encode());
            }
            Frame::Welcome(welcome) => {
                bytes.push(2);
                bytes.put_bytes(&welcome.session);
                put_duration(&mut bytes, welcome.silence);
                welcome.hellos.iter().for_each(|hello| bytes.put_bytes(&hello.encode()));
            }
            Frame::Part(call, body) => {
                put_call(&mut bytes, 3, *call);
                bytes.put_bytes(body);
            }
            Frame::Refusal(call, error) => {
                put_call(&mut bytes, 4, *call);
                bytes.put_bytes(&encode_error(error));
            }
            Frame::Late(call, waited) => {
                put_call(&mut bytes, 5, *call);
                put_duration(&mut bytes, *waited);
            }
            Frame::Parts(call, bodies) => {
                put_call(&mut bytes, 6, *call);
                bodies.iter().for_each(|body| bytes.put_bytes(body));
            }
            Frame::Failure(call, error) => {
                put_call(&mut bytes, 7, *call);
                bytes.put_bytes(&encode_error(error));
            }
            Frame::Say(body) => {
                bytes.push(8);
                bytes.put_bytes(body);
            }
            Frame::Leave => bytes.push(9),
            Frame::Missing { rank, why } => put_rank(&mut bytes, 10, *rank, why.as_bytes()),
            Frame::News(News::Said { rank, body }) => put_rank(&mut bytes, 11, *rank, body),
            Frame::News(News::Left { rank }) => {
                bytes.push(12);
                bytes.put_u32(*rank);
            }
            Frame::News(News::Lost { rank, why }) => put_rank(&mut bytes, 13, *rank, why.as_bytes()),
            Frame::Beat => bytes.push(14),
        }
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let unknown = || Error::new(ErrorKind::Mismatch, "a process sends what this version does not know");
        let (kind, rest) = bytes.split_first().ok_or_else(unknown)?;
        let mut reader = Reader(rest);
        Ok(match kind {
            1 => Frame::Hello(Hello::decode(reader.bytes()?)?),
            2 => {
                let (session, silence) = (reader.bytes()?.to_vec(), duration(&mut reader)?);
                let hellos = list(&mut reader)?.into_iter().map(Hello::decode).collect::<Result<_>>()?;
                Frame::Welcome(Welcome { hellos, session, silence })
            }
            3 => Frame::Part(call(&mut reader)?, reader.bytes()?.to_vec()),
            4 => Frame::Refusal(call(&mut reader)?, decode_error(reader.bytes()?)),
            5 => Frame::Late(call(&mut reader)?, duration(&mut reader)?),
            6 => Frame::Parts(call(&mut reader)?, list(&mut reader)?.into_iter().map(<[u8]>::to_vec).collect()),
            7 => Frame::Failure(call(&mut reader)?, decode_error(reader.bytes()?)),
            8 => Frame::Say(reader.bytes()?.to_vec()),
            9 => Frame::Leave,
            10 => Frame::Missing { rank: reader.u32()?, why: reader.string()? },
            11 => Frame::News(News::Said { rank: reader.u32()?, body: reader.bytes()?.to_vec() }),
            12 => Frame::News(News::Left { rank: reader.u32()? }),
            13 => Frame::News(News::Lost { rank: reader.u32()?, why: reader.string()? }),
            14 => Frame::Beat,
            _ => return Err(unknown()),
        })
    }
}

fn put_call(bytes: &mut Vec<u8>, kind: u8, call: Call) {
    bytes.push(kind);
    bytes.push(call.operation as u8);
    bytes.put_u32(call.sequence);
}

fn call(reader: &mut Reader<'_>) -> Result<Call> {
    let unknown = || Error::new(ErrorKind::Mismatch, "a process calls what this version does not know");
    let (operation, rest) = reader.0.split_first().ok_or_else(unknown)?;
    reader.0 = rest;
    Ok(Call { operation: Operation::decode(*operation).ok_or_else(unknown)?, sequence: reader.u32()? })
}

fn put_rank(bytes: &mut Vec<u8>, kind: u8, rank: u32, text: &[u8]) {
    bytes.push(kind);
    bytes.put_u32(rank);
    bytes.put_bytes(text);
}

fn put_duration(bytes: &mut Vec<u8>, duration: Duration) {
    bytes.put_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
}

fn duration(reader: &mut Reader<'_>) -> Result<Duration> {
    reader.u64().map(Duration::from_micros)
}

fn list<'a>(reader: &mut Reader<'a>) -> Result<Vec<&'a [u8]>> {
    let mut items = Vec::new();
    while !reader.is_empty() {
        items.push(reader.bytes()?);
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        let call = Call { operation: Operation::Allocate, sequence: 70_000 };
        let hello =
            |rank| Hello { rank, nranks: 3, process: 17 + rank, host: "host".into(), agreement: b"one".to_vec() };
        let error = Error::new(ErrorKind::NoSpace, "no space");
        vec![
            Frame::Hello(hello(1)),
            Frame::Welcome(Welcome {
                hellos: (0..3).map(hello).collect(),
                session: vec![1, 2, 3],
                silence: Duration::from_millis(1500),
            }),
            Frame::Part(call, vec![7; 300]),
            Frame::Refusal(call, error.clone()),
            Frame::Late(call, Duration::from_micros(12)),
            Frame::Parts(call, vec![vec![], vec![1], vec![2; 1000]]),
            Frame::Failure(JOIN, error),
            Frame::Say(vec![9, 8]),
            Frame::Leave,
            Frame::Missing { rank: 4, why: "because".into() },
            Frame::News(News::Said { rank: 1, body: vec![5] }),
            Frame::News(News::Left { rank: 2 }),
            Frame::News(News::Lost { rank: 3, why: "rank 3 died".into() }),
            Frame::Beat,
        ]
    }

    #[test]
    fn frames_arrive_as_they_were() {
        for frame in frames() {
            assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
        }
    }

    /// What is cut off is an error, or a shorter list.
    #[test]
    fn garbage_is_an_error() {
        for frame in frames() {
            let bytes = frame.encode();
            for length in 0..bytes.len() {
                assert_ne!(Frame::decode(&bytes[..length]).as_ref(), Ok(&frame), "{length} bytes of {frame:?}");
            }
        }
        assert!(Frame::decode(&[99, 0, 0]).is_err());
    }
}
