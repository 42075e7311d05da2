//! Where ranks meet: a socket in a directory, found by its name.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, chmodat, flock, fstat, mkdir, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
use rustix::process::geteuid;

use crate::error::{Error, Result};

/// Sockets of killed runs that are removed at a time, so that many of them do not delay a start.
const SWEEP: usize = 64;
/// Younger sockets are not looked at.
const SWEEP_AGE: Duration = Duration::from_secs(60);
/// Connections that wait to be accepted; the kernel lowers it to its own limit.
const BACKLOG: i32 = 4096;
/// How the names of our sockets begin and end.
pub const PREFIX: &str = "pld-";
pub const SUFFIX: &str = ".sock";

/// The socket at which the ranks of one world meet.
#[derive(Debug)]
pub struct Place {
    dir: OwnedFd,
    name: OsString,
    path: PathBuf,
}

/// Held while sockets are made and removed, by one process at a time; the kernel takes it back when that one dies.
struct Lock<'a>(&'a OwnedFd);

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        let _ = flock(self.0, FlockOperation::Unlock);
    }
}

/// What became of [`Place::listen`].
#[derive(Debug)]
pub enum Listen {
    Listening(OwnedFd),
    /// Somebody listens there already.
    Taken,
    /// Another process is at work in the directory: try again.
    Busy,
}

/// What became of [`Place::connect`].
#[derive(Debug)]
pub enum Connect {
    Connected(OwnedFd),
    /// There is no socket, or no room at it: try again.
    NotYet,
    /// There is a socket, but nobody behind it.
    Dead,
}

impl Place {
    /// The socket `name` in a directory of ours.
    pub fn private(dir: &Path, name: &OsStr) -> Result<Self> {
        Ok(Self { dir: private_directory(dir)?, name: name.into(), path: dir.join(name) })
    }

    /// The socket `path`, wherever the caller wants it.
    pub fn at(path: &Path) -> Result<Self> {
        let shown = path.display();
        let name = path.file_name().ok_or_else(|| Error::invalid(format!("{shown} is not the path of a socket")))?;
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, dir, flags, Mode::empty()).map_err(|e| Error::io(format!("directory of {shown}"), e));
        Ok(Self { dir: opened?, name: name.into(), path: path.into() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the socket and listens. A socket that a killed run has left is replaced.
    pub fn listen(&self) -> Result<Listen> {
        let Some(_lock) = self.lock()? else { return Ok(Listen::Busy) };
        let socket = new_socket()?;
        let address = self.address()?;
        if let Err(e) = bind(&socket, &address) {
            if e != Errno::ADDRINUSE {
                return Err(self.error("bind", e));
            }
            self.require_socket()?;
            match self.connect()? {
                Connect::Dead => self.unlink(),
                Connect::NotYet => return Ok(Listen::Busy),
                Connect::Connected(_) => return Ok(Listen::Taken),
            }
            bind(&socket, &address).map_err(|e| self.error("bind", e))?;
        }
        let ready = chmodat(&self.dir, &self.name, Mode::RUSR | Mode::WUSR, AtFlags::empty());
        if let Err(e) = ready.and_then(|()| listen(&socket, BACKLOG)) {
            self.unlink();
            return Err(self.error("listen", e));
        }
        Ok(Listen::Listening(socket))
    }

    /// Connects to whoever listens, and makes sure that it is a process of this user.
    pub fn connect(&self) -> Result<Connect> {
        let socket = new_socket()?;
        match connect(&socket, &self.address()?) {
            Ok(()) => {
                check_user(&socket, "listens at", &self.path)?;
                Ok(Connect::Connected(socket))
            }
            Err(Errno::NOENT | Errno::AGAIN | Errno::INTR) => Ok(Connect::NotYet),
            Err(Errno::CONNREFUSED) => Ok(Connect::Dead),
            Err(Errno::ACCESS) => {
                let owner = statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| stat.st_uid);
                let (shown, owner) =
                    (self.path.display(), owner.map_or("another user".into(), |uid| format!("user {uid}")));
                let mine = geteuid().as_raw();
                Err(Error::invalid(format!("{shown} belongs to {owner}, but this process runs as user {mine}")))
            }
            Err(e) => Err(self.error("connect", e)),
        }
    }

    /// Removes the socket if nobody is behind it; returns when it was made, if it was removed.
    pub fn remove_dead(&self) -> Result<Option<SystemTime>> {
        let Some(_lock) = self.lock()? else { return Ok(None) };
        if !matches!(self.connect()?, Connect::Dead) {
            return Ok(None);
        }
        let made = self.require_socket()?;
        self.unlink();
        Ok(made)
    }

    pub fn exists(&self) -> bool {
        statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Removes the name; it is no error if it is gone.
    pub fn unlink(&self) {
        let _ = unlinkat(&self.dir, &self.name, AtFlags::empty());
    }

    /// The socket of another world of the same job, which differs in the number at the end of its name.
    pub fn other_size(&self) -> Option<Self> {
        let name = self.name.to_str().filter(|name| name.starts_with(PREFIX))?;
        let (job, _) = name.rsplit_once('-')?;
        let job_of = |place: &Place| Some(place.name.to_str()?.rsplit_once('-')?.0.to_owned());
        self.siblings().find(|place| job_of(place).as_deref() == Some(job))
    }

    /// Removes some of the sockets that killed runs have left in this directory.
    pub fn sweep(&self) {
        let Ok(Some(_lock)) = self.lock() else { return };
        let old = |place: &Place| {
            let made = place.require_socket().ok().flatten();
            made.and_then(|made| made.elapsed().ok()).is_some_and(|age| age >= SWEEP_AGE)
        };
        for place in self.siblings().filter(old).take(SWEEP) {
            if matches!(place.connect(), Ok(Connect::Dead)) {
                place.unlink();
            }
        }
    }

    /// What else of ours is in the directory.
    fn siblings(&self) -> impl Iterator<Item = Place> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let others = entries.filter(|entry| entry.file_name() != self.name && is_ours(&entry.file_name()));
        others.filter_map(|entry| {
            Some(Place { dir: self.dir.try_clone().ok()?, name: entry.file_name(), path: entry.path() })
        })
    }

    fn lock(&self) -> Result<Option<Lock<'_>>> {
        match flock(&self.dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock(&self.dir))),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(e) => Err(self.error("locking the directory of", e)),
        }
    }

    /// Time of the socket's making; an error if something else has its name.
    fn require_socket(&self) -> Result<Option<SystemTime>> {
        match statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Socket => {
                let since = Duration::new(stat.st_mtime.try_into().unwrap_or(0), stat.st_mtime_nsec as u32);
                Ok(SystemTime::UNIX_EPOCH.checked_add(since))
            }
            Ok(_) => Err(Error::invalid(format!("{} exists and is not a socket", self.path.display()))),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(self.error("stat", e)),
        }
    }

    /// A Unix address holds 107 bytes of path; longer ones go through the directory's descriptor.
    fn address(&self) -> Result<SocketAddrUnix> {
        SocketAddrUnix::new(&self.path)
            .or_else(|_| {
                let mut short = OsString::from(format!("/proc/self/fd/{}/", self.dir.as_raw_fd()));
                short.push(&self.name);
                SocketAddrUnix::new(short.as_os_str())
            })
            .map_err(|e| self.error("socket address", e))
    }

    fn error(&self, what: &str, cause: Errno) -> Error {
        Error::io(format!("{what} {}", self.path.display()), cause)
    }
}

fn is_ours(name: &OsStr) -> bool {
    name.as_bytes().starts_with(PREFIX.as_bytes()) && name.as_bytes().ends_with(SUFFIX.as_bytes())
}

fn new_socket() -> Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
        .map_err(|e| Error::io("socket", e))
}

/// An error if the process at the other end of `socket` is another user's.
pub fn check_user(socket: &OwnedFd, does: &str, path: &Path) -> Result<()> {
    let (pid, uid) = peer_credentials(socket).map_err(|e| Error::io("credentials of a peer", e))?;
    let mine = geteuid().as_raw();
    if uid == mine {
        return Ok(());
    }
    let shown = path.display();
    Err(Error::invalid(format!("process {pid} of user {uid} {does} {shown}, but this process runs as user {mine}")))
}

/// Process and user at the other end. Not through rustix, whose process ids cannot be 0: the kernel's answer for a
/// process of another PID namespace.
fn peer_credentials(socket: &OwnedFd) -> std::io::Result<(i32, u32)> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `peer`, which any bytes are valid for.
    let result = unsafe {
        let value = (&raw mut peer).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, value, &raw mut size)
    };
    if result == 0 { Ok((peer.pid, peer.uid)) } else { Err(std::io::Error::last_os_error()) }
}

/// Opens a directory that only this user may enter, made if it is not there.
fn private_directory(path: &Path) -> Result<OwnedFd> {
    let shown = path.display();
    match mkdir(path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => return Err(Error::io(format!("making directory {shown}"), e)),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(CWD, path, flags, Mode::empty()).map_err(|e| match e {
        Errno::LOOP | Errno::NOTDIR => Error::invalid(format!("{shown} is not a directory, or a symbolic link to one")),
        e => Error::io(format!("opening directory {shown}"), e),
    })?;
    let stat = fstat(&dir).map_err(|e| Error::io(format!("stat {shown}"), e))?;
    let user = geteuid().as_raw();
    if stat.st_uid != user {
        return Err(Error::invalid(format!("directory {shown} belongs to user {}, not to user {user}", stat.st_uid)));
    }
    if stat.st_mode & 0o077 != 0 {
        let mode = stat.st_mode & 0o7777;
        return Err(Error::invalid(format!(
            "directory {shown} is open to others (mode {mode:04o}); it must have 0700"
        )));
    }
    Ok(dir)
}

/// An error if `path` is there and would not do as a [`Place::private`] directory.
pub fn check_directory(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok() { private_directory(path).map(drop) } else { Ok(()) }
}

/// Whether `path` would do as a [`Place::private`] directory, without making it.
pub fn is_private_directory(path: &Path) -> bool {
    let suits = |meta: std::fs::Metadata| meta.is_dir() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o077 == 0;
    std::fs::symlink_metadata(path).is_ok_and(suits)
}
