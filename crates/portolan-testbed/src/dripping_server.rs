//! A server that starts an answer and never ends it: it sends a byte now and then, without end.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two bytes: shorter than any limit on silence.
const PAUSE: Duration = Duration::from_millis(20);

/// A server on a free port of this machine.
pub struct DrippingServer {
    port: u16,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DrippingServer {
    /// Starts a server that answers with this first line, and a body of a million bytes to come.
    ///
    /// # Panics
    /// When this machine has no free port.
    pub fn start(first_line: &'static str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("a bound address").port();
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stopped);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if flag.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), flag) = (stream, Arc::clone(&flag)) else {
                    continue;
                };
                // A client that goes away is what the test waits for.
                std::thread::spawn(move || drip(stream, first_line, &flag));
            }
        });
        Self {
            port,
            stopped,
            thread: Some(thread),
        }
    }

    /// The address without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

fn drip(mut stream: TcpStream, first_line: &str, stopped: &AtomicBool) -> std::io::Result<()> {
    let _ = stream.read(&mut [0; 4096])?;
    let head = format!("{first_line}\r\ncontent-length: 1000000\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    while !stopped.load(Ordering::SeqCst) {
        stream.write_all(b" ")?;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

impl Drop for DrippingServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
