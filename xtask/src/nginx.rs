//! The target of the benchmarks: nginx with a configuration of its own.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use inrush_agent::clock;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

use crate::{Failed, trying};

/// It has to answer within so long after its start.
const PATIENCE: Duration = Duration::from_secs(10);

/// nginx on one core. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Nginx {
    master: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Nginx {
    /// Starts one worker on core 1, and waits until it answers.
    ///
    /// # Errors
    /// When nginx is not installed or does not answer in time.
    pub(crate) fn start() -> Result<Self, Failed> {
        let folder = tempfile::tempdir().map_err(trying("a folder for nginx"))?;
        let address = free_address()?;
        let configuration = folder.path().join("nginx.conf");
        fs::write(&configuration, configured(address, &folder)).map_err(trying("nginx.conf"))?;
        let mut command = Command::new("taskset");
        command.args(["-c", "1", "nginx", "-c"]).arg(&configuration);
        command.arg("-e").arg(folder.path().join("error.log"));
        // Debian has it where only root looks.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
        let master = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(trying("taskset, to start nginx"))?;
        let mut nginx = Self { master, address, _folder: folder };
        nginx.wait_until_it_listens()?;
        Ok(nginx)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    fn wait_until_it_listens(&mut self) -> Result<(), Failed> {
        let until = clock::now() + PATIENCE;
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = self.master.try_wait().map_err(trying("nginx"))? {
                return Err(Failed::new(format!(
                    "nginx did not start ({status}); is it installed?"
                )));
            }
            if expired(until) {
                return Err(Failed::new(format!("nginx did not listen within {PATIENCE:?}")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its master tells the workers to go. Where it cannot be told it is gone already.
        if let Ok(id) = i32::try_from(self.master.id()) {
            let _gone = kill(Pid::from_raw(id), Signal::SIGTERM);
        }
        drop(self.master.wait());
    }
}

fn expired(until: Instant) -> bool {
    clock::now() >= until
}

fn free_address() -> Result<SocketAddr, Failed> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(trying("a free port"))?;
    listener.local_addr().map_err(trying("a free port"))
}

fn configured(address: SocketAddr, folder: &TempDir) -> String {
    let folder = folder.path().display();
    format!(
        "daemon off; worker_processes 1; worker_rlimit_nofile 20000; pid {folder}/pid;
events {{ worker_connections 19900; multi_accept on; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 600s;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen {address} backlog=4096;
    location / {{ default_type text/plain; return 200 \"Hello, world!\"; }}
  }}
}}
"
    )
}
