//! A web server for one test: every request goes to a closure, and the test can inspect the requests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::Authority;

/// A request as it came.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// GET, POST, …
    pub method: String,
    /// The path with its query.
    pub target: String,
    /// Headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Vec<u8>,
}

/// What to answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Headers besides the length.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Breaks the connection after so many bytes of the body.
    pub cut_after: Option<usize>,
    /// Sends the body byte by byte, with this pause after each.
    pub drip: Option<Duration>,
}

/// A server on a free port of this machine.
pub struct HttpServer {
    scheme: &'static str,
    port: u16,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

type Answer = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

struct State {
    answer: Answer,
    requests: Mutex<Vec<Request>>,
    stopped: AtomicBool,
    tls: Option<Arc<ServerConfig>>,
}

// === impl Request ===

impl Request {
    /// The path without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

// === impl Reply ===

impl Reply {
    /// A body with status 200.
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            ..Self::status(200)
        }
    }

    /// A status without a body.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            cut_after: None,
            drip: None,
        }
    }

    /// Sends the reader elsewhere.
    pub fn redirect(location: impl Into<String>) -> Self {
        Self::status(302).header("location", location)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Breaks the connection after so many bytes of the body.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.cut_after = Some(bytes);
        self
    }

    /// Sends the body byte by byte, with a pause after each, until the client has enough of it.
    #[must_use]
    pub fn drip(mut self, pause: Duration) -> Self {
        self.drip = Some(pause);
        self
    }

    fn write(&self, stream: &mut impl Write) -> std::io::Result<()> {
        let mut head = format!(
            "HTTP/1.1 {} X\r\nconnection: close\r\ncontent-length: {}\r\n",
            self.status,
            self.body.len()
        );
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes())?;
        let end = self.cut_after.unwrap_or(self.body.len());
        let body = self.body.get(..end).unwrap_or(&self.body);
        let Some(pause) = self.drip else {
            stream.write_all(body)?;
            return stream.flush();
        };
        for byte in body {
            stream.write_all(&[*byte])?;
            stream.flush()?;
            std::thread::sleep(pause);
        }
        Ok(())
    }
}

// === impl HttpServer ===

impl HttpServer {
    /// Starts a server without TLS.
    ///
    /// # Panics
    /// When this machine has no free port.
    pub fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(None, Box::new(answer))
    }

    /// Starts a server with the authority's server certificate.
    ///
    /// # Panics
    /// When this machine has no free port.
    pub fn start_tls(
        authority: &Authority,
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::listen(Some(authority.server_config()), Box::new(answer))
    }

    fn listen(tls: Option<Arc<ServerConfig>>, answer: Answer) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("a bound address").port();
        let state = Arc::new(State {
            answer,
            requests: Mutex::default(),
            stopped: AtomicBool::new(false),
            tls,
        });
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || serve(&listener, &shared));
        Self {
            scheme: if state.tls.is_some() { "https" } else { "http" },
            port,
            state,
            thread: Some(thread),
        }
    }

    /// The address without a slash at its end.
    pub fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    /// Host and port.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        let requests = self.state.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The paths of every request so far.
    pub fn paths(&self) -> Vec<String> {
        let requests = self.requests();
        requests.iter().map(|r| r.path().to_owned()).collect()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, state: &Arc<State>) {
    for stream in listener.incoming() {
        if state.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let state = Arc::clone(state);
        std::thread::spawn(move || {
            // A client that goes away is its own affair.
            let _ = handle(stream, &state);
        });
    }
}

fn handle(stream: TcpStream, state: &State) -> std::io::Result<()> {
    match &state.tls {
        None => exchange(stream, state),
        Some(config) => {
            let connection = ServerConnection::new(Arc::clone(config));
            let connection = connection.map_err(std::io::Error::other)?;
            exchange(StreamOwned::new(connection, stream), state)
        }
    }
}

fn exchange(stream: impl Read + Write, state: &State) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let request = read_request(&mut reader)?;
    {
        let requests = state.requests.lock();
        requests
            .unwrap_or_else(PoisonError::into_inner)
            .push(request.clone());
    }
    (state.answer)(&request).write(reader.get_mut())
}

fn read_request(reader: &mut impl BufRead) -> std::io::Result<Request> {
    let first = read_line(reader)?;
    let mut words = first.split(' ').map(str::to_owned);
    let mut request = Request {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        ..Request::default()
    };
    request.headers = read_headers(reader)?;
    request.body = read_body(reader, &request.headers)?;
    Ok(request)
}

pub(crate) fn read_headers(reader: &mut impl BufRead) -> std::io::Result<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    loop {
        let line = read_line(reader)?;
        let Some((name, value)) = line.split_once(':') else {
            return Ok(headers);
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}

fn read_body(
    reader: &mut impl BufRead,
    headers: &BTreeMap<String, String>,
) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if headers.contains_key("transfer-encoding") {
        loop {
            let size = read_line(reader)?;
            let size = u64::from_str_radix(size.trim(), 16).unwrap_or(0);
            reader.by_ref().take(size).read_to_end(&mut body)?;
            read_line(reader)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
    let length = headers.get("content-length").and_then(|n| n.parse().ok());
    reader
        .by_ref()
        .take(length.unwrap_or(0))
        .read_to_end(&mut body)?;
    Ok(body)
}

pub(crate) fn read_line(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}
