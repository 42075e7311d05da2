//! Hosts that are network namespaces of this machine, joined by links that can be cut: each has one device, `eth0`,
//! whose other end is a port of a switch in one more namespace.
//!
//! The namespaces have no names: the kernel removes them, and all devices in them, with the last process and the last
//! descriptor that use them, however the test ends.

use std::io::{Error, Write, stderr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{geteuid, getpid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Hosts and the links between them.
pub struct Network {
    switch: Namespace,
    hosts: Vec<Namespace>,
}

/// A network namespace.
struct Namespace(OwnedFd);

impl Namespace {
    /// A new one, with nothing in it but a loopback.
    fn new() -> Result<Self, String> {
        let make = || -> Result<OwnedFd, Error> {
            // SAFETY: concerns the network of this thread only, which ends here.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
            Ok(open("/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
        };
        let made = std::thread::scope(|scope| scope.spawn(make).join()).expect("it does not panic");
        made.map(Self).map_err(|e| format!("a network namespace: {e}"))
    }

    /// Its file, for other processes.
    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", getpid().as_raw_nonzero(), self.0.as_raw_fd())
    }

    /// Lets `command` run in it.
    fn enter(&self, command: &mut Command) {
        let namespace = self.0.try_clone().expect("a descriptor is left");
        // SAFETY: between fork and exec there are system calls only, which are given what exists already.
        unsafe { command.pre_exec(move || enter(&namespace)) };
    }

    /// Changes devices in it, as `ip` says it.
    fn ip(&self, changes: &str) -> Result<(), String> {
        let mut command = Command::new("ip");
        self.enter(&mut command);
        command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("ip (package iproute2): {e}"))?;
        let written = child.stdin.take().expect("it is a pipe").write_all(changes.as_bytes());
        let output = child.wait_with_output().map_err(|e| format!("ip: {e}"))?;
        match output.status.success() {
            true => written.map_err(|e| format!("ip: {e}")),
            false => Err(format!("ip: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    }
}

/// Moves this process into a network namespace, and shows it the devices there under `/sys`, where libraries look.
fn enter(namespace: &OwnedFd) -> Result<(), Error> {
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
    // SAFETY: mounts concern no memory.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    Ok(mount(c"sysfs", c"/sys", c"sysfs", MountFlags::empty(), None)?)
}

impl Network {
    /// So many hosts; an error says why there can be none.
    pub fn new(hosts: u32) -> Result<Self, String> {
        if !geteuid().is_root() {
            return Err("only root can make network namespaces".to_owned());
        }
        let switch = Namespace::new()?;
        let hosts = (0..hosts).map(|_| Namespace::new()).collect::<Result<Vec<_>, _>>()?;
        let network = Self { switch, hosts };
        network.connect()?;
        Ok(network)
    }

    fn connect(&self) -> Result<(), String> {
        let ports = self.hosts.iter().enumerate().map(|(host, namespace)| {
            format!(
                "link add name port{host} type veth peer name eth0 netns {}\nlink set port{host} master switch up\n",
                namespace.path()
            )
        });
        let ports: String = ports.collect();
        self.switch.ip(&format!("link add name switch type bridge\nlink set switch up\n{ports}"))?;
        self.hosts.iter().enumerate().try_for_each(|(host, namespace)| {
            let address = Self::address(host as u32);
            namespace.ip(&format!("link set lo up\naddress add {address}/24 dev eth0\nlink set eth0 up\n"))
        })
    }

    /// The address of a host.
    pub fn address(host: u32) -> String {
        format!("10.0.0.{}", host + 1)
    }

    /// The file of the namespace of each host, for other processes.
    pub fn files(&self) -> Vec<String> {
        self.hosts.iter().map(Namespace::path).collect()
    }

    /// Lets `command` run on a host.
    pub fn enter(&self, host: u32, command: &mut Command) {
        self.hosts[host as usize].enter(command);
    }

    /// Runs `body` in a thread that is on a host.
    pub fn inside<T: Send>(&self, host: u32, body: impl FnOnce() -> T + Send) -> T {
        let namespace = &self.hosts[host as usize].0;
        let run = || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), network).expect("root may enter its own namespaces");
            body()
        };
        std::thread::scope(|scope| scope.spawn(run).join()).expect("the body does not panic")
    }

    /// Cuts the link of a host.
    pub fn cut(&self, host: u32) {
        self.switch.ip(&format!("link set port{host} down\n")).expect("the port is there");
    }

    /// Mends it.
    pub fn mend(&self, host: u32) {
        self.switch.ip(&format!("link set port{host} up\n")).expect("the port is there");
    }
}

/// Why there can be no networks here; none if there can be.
pub fn why_no_namespaces() -> Option<&'static str> {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    WHY_NOT.get_or_init(|| Network::new(1).err()).as_deref()
}

/// There can be networks here. If not, says so and why: tests that need them pass without.
pub fn namespaces_available() -> bool {
    let why_not = why_no_namespaces();
    if let Some(why_not) = why_not {
        writeln!(stderr(), "skipped, without network namespaces: {why_not}").expect("standard error takes a line");
    }
    why_not.is_none()
}
