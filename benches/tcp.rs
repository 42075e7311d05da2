//! What the kernel's TCP does between two ranks, without any library.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::rank::Bench;

/// The line of a board where rank 0 says at which port it listens.
const PORT: usize = 8;

/// A connection between ranks 0 and 1.
pub struct Connection(TcpStream);

impl Connection {
    /// Made by both. Rank 0 listens at the address where the ranks of a world would meet.
    pub fn new(bench: &Bench) -> Result<Self, String> {
        Self::open(bench).map_err(|e| format!("a TCP connection: {e}"))
    }

    fn open(bench: &Bench) -> Result<Self, Box<dyn std::error::Error>> {
        let address = std::env::var("PLD_ADDRESS")?;
        let (host, _) = address.rsplit_once(':').ok_or("PLD_ADDRESS has no port")?;
        let board = bench.board();
        let port = board.line(PORT);
        let stream = if bench.rank() == 0 {
            let listener = TcpListener::bind((host, 0))?;
            port.store(listener.local_addr()?.port().into(), Ordering::Release);
            listener.accept()?.0
        } else {
            while port.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
            TcpStream::connect((host, port.load(Ordering::Acquire) as u16))?
        };
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self(stream))
    }

    /// One-way trip of 8 bytes, in microseconds. Both look for them without sleeping.
    pub fn trip(&mut self, rank: u32, times: u32) -> Result<f64, String> {
        let begin = Instant::now();
        for _ in 0..times {
            if rank == 0 {
                self.send(&[1; 8])?;
            }
            self.receive(&mut [0; 8])?;
            if rank != 0 {
                self.send(&[1; 8])?;
            }
        }
        Ok(begin.elapsed().as_secs_f64() * 1e6 / f64::from(times) / 2.0)
    }

    /// Speed of `times` times `data` from rank 0 to rank 1, in GB/s, until rank 1 has got all.
    pub fn stream(&mut self, rank: u32, data: &mut [u8], times: u32) -> Result<f64, String> {
        let begin = Instant::now();
        for _ in 0..times {
            if rank == 0 {
                self.send(data)?;
            } else {
                self.receive(data)?;
            }
        }
        if rank == 0 {
            self.receive(&mut [0])?;
        } else {
            self.send(&[1])?;
        }
        Ok(data.len() as f64 * f64::from(times) / begin.elapsed().as_secs_f64() / 1e9)
    }

    fn send(&mut self, mut data: &[u8]) -> Result<(), String> {
        while !data.is_empty() {
            data = &data[done(self.0.write(data))?..];
        }
        Ok(())
    }

    fn receive(&mut self, mut data: &mut [u8]) -> Result<(), String> {
        while !data.is_empty() {
            let length = done(self.0.read(data))?;
            data = &mut data[length..];
        }
        Ok(())
    }
}

/// Bytes that a call has moved, none if there was nothing to do.
fn done(result: std::io::Result<usize>) -> Result<usize, String> {
    match result {
        Ok(0) => Err("the TCP connection has ended".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(0),
        other => other.map_err(|e| format!("the TCP connection: {e}")),
    }
}
