//! The servers: started on a free port, stopped when dropped, asked for their own counts.

use std::{
    collections::BTreeSet,
    fs::File,
    net::{SocketAddr, TcpListener},
    path::Path,
    process::Stdio,
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// A server is up long before; Java takes a second or two to compile its source.
const START: Duration = Duration::from_secs(60);

/// nginx with a configuration of its own, as one process: workers would outlive a killed master.
#[derive(Debug)]
pub(crate) struct Nginx {
    pub(crate) addr: SocketAddr,
    directory: TempDir,
    _child: Child,
}

impl Nginx {
    pub(crate) async fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let addr = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let here = directory.path().display();
        let configuration = format!(
            "daemon off;
            master_process off;
            pid {here}/pid;
            error_log {here}/error.log;
            events {{ worker_connections 4096; }}
            http {{
                client_body_temp_path {here}/t1;
                proxy_temp_path {here}/t2;
                fastcgi_temp_path {here}/t3;
                uwsgi_temp_path {here}/t4;
                scgi_temp_path {here}/t5;
                log_format client '$remote_addr';
                access_log {here}/access.log client;
                server {{
                    listen {addr} backlog=4096;
                    location / {{ default_type text/plain; return 200 'Hello, world!'; }}
                    location = /stub_status {{ access_log off; stub_status; }}
                }}
            }}"
        );
        let file = directory.path().join("nginx.conf");
        std::fs::write(&file, configuration).unwrap();
        let mut nginx = server("nginx");
        nginx.arg("-p").arg(directory.path()).arg("-c").arg(&file);
        nginx.arg("-e").arg(directory.path().join("error.log"));
        let mut child = nginx.spawn().expect("nginx is installed");
        let accepting = async {
            // A refused connect costs no time: yielding keeps the test's own thread free.
            while TcpStream::connect(addr).await.is_err() {
                if let Some(status) = child.try_wait().unwrap() {
                    let log = std::fs::read_to_string(directory.path().join("error.log"));
                    panic!("nginx ended with {status}: {log:?}");
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(START, accepting).await.expect("nginx accepts in time");
        Self { addr, directory, _child: child }
    }

    /// Requests by `stub_status`, without the one that asks.
    pub(crate) async fn requests(&self) -> u64 {
        // "server accepts handled requests", and the three numbers on the next line.
        let status = get(self.addr, "/stub_status").await;
        let numbers = status.lines().nth(2).expect("stub_status has three lines of counters");
        let requests = numbers.split_whitespace().nth(2).expect("the third is of requests");
        requests.parse::<u64>().unwrap() - 1
    }

    /// The addresses that requests came from, by the access log, in order.
    pub(crate) fn clients(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.directory.path().join("access.log")).unwrap();
        log.lines().map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// A server of ours that prints its port, counts, and answers `/count`.
#[derive(Debug)]
pub(crate) struct Printing {
    pub(crate) addr: SocketAddr,
    _child: Child,
}

impl Printing {
    pub(crate) async fn node() -> Self {
        Self::start("node", &[], "hello.js").await
    }

    /// Java's server as it is: it keeps no more than 200 idle connections and closes the others.
    pub(crate) async fn java() -> Self {
        Self::start("java", &[], "Hello.java").await
    }

    /// The same, told to keep all connections.
    pub(crate) async fn java_that_keeps_connections() -> Self {
        let keep = "-Dsun.net.httpserver.maxIdleConnections=2000";
        Self::start("java", &[keep], "Hello.java").await
    }

    async fn start(program: &str, options: &[&str], source: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(source);
        let mut command = server(program);
        command.args(options).arg(source).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{program}: {error}"));
        let mut lines = lines(&mut child);
        let port = timeout(START, lines.next_line()).await.expect("it prints its port in time");
        let port: u16 = port.unwrap().expect("it prints its port").parse().unwrap();
        Self { addr: ([127, 0, 0, 1], port).into(), _child: child }
    }

    pub(crate) async fn requests(&self) -> u64 {
        get(self.addr, "/count").await.parse().unwrap()
    }
}

/// What `python3 -m http.server` runs, with a queue of 128 connections instead of 5: when fifty clients
/// connect at once the kernel drops some of them from a queue of 5, and now and then one for good.
const PYTHON: &str = "import runpy, socketserver
socketserver.TCPServer.request_queue_size = 128
runpy.run_module('http.server', run_name='__main__', alter_sys=True)";

/// Python's server: HTTP/1.0, a connection for each request, a log line for each.
#[derive(Debug)]
pub(crate) struct Python {
    pub(crate) addr: SocketAddr,
    directory: TempDir,
    child: Child,
}

impl Python {
    pub(crate) async fn start() -> Self {
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("index.html"), "Hello, world!").unwrap();
        let log = File::create(directory.path().join("log")).unwrap();
        let mut python = server("python3");
        python.args(["-u", "-c", PYTHON, "--bind", "127.0.0.1", "--directory"]);
        python.arg(directory.path()).arg("0").stdout(Stdio::piped()).stderr(log);
        let mut child = python.spawn().expect("python3 is installed");
        let mut lines = lines(&mut child);
        let line =
            timeout(START, lines.next_line()).await.expect("it says in time where it serves");
        // Serving HTTP on 127.0.0.1 port 40123 (http://127.0.0.1:40123/) ...
        let line = line.unwrap().expect("it says where it serves");
        let port = line.split(" port ").nth(1).and_then(|rest| rest.split(' ').next());
        let port: u16 = port.expect("it says its port").parse().unwrap();
        Self { addr: ([127, 0, 0, 1], port).into(), directory, child }
    }

    /// Requests answered with 200, by its log.
    pub(crate) async fn stop_and_count(mut self) -> u64 {
        self.child.kill().await.unwrap();
        let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap();
        log.lines().filter(|line| line.ends_with("\"GET / HTTP/1.1\" 200 -")).count() as u64
    }
}

/// A port that was free a moment ago, for programs that cannot choose one themselves.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn server(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

fn lines(child: &mut Child) -> Lines<BufReader<ChildStdout>> {
    BufReader::new(child.stdout.take().expect("its stdout is piped")).lines()
}

/// The body of one answer.
async fn get(addr: SocketAddr, path: &str) -> String {
    let asked = async {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: example.test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = timeout(START, asked).await.expect("it answers in time");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole head");
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    // One chunk: its size in hexadecimal, then the text.
    body.split("\r\n").nth(1).expect("a chunk").to_owned()
}
