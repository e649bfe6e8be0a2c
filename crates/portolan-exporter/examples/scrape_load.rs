//! Scrapes at a steady rate and tells how long the answers took, for `bench/audit-cluster.sh`.
//!
//! `scrape_load ADDRESS RATE SECONDS` asks for `/metrics` on twenty connections. A request's time counts from when it was
//! due, so that a server that falls behind shows it. It prints the number of answers, the median, the 99th percentile and
//! the worst in milliseconds, and the 99th percentile of how late the requests themselves were sent: on a busy machine it
//! is this program that waits.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const CONNECTIONS: u32 = 20;

fn main() {
    let mut words = std::env::args().skip(1);
    let address = words.next().expect("an address");
    let mut number = || {
        words
            .next()
            .and_then(|word| word.parse::<u32>().ok())
            .expect("a number")
    };
    let (rate, seconds) = (number(), number());
    let start = Instant::now() + Duration::from_millis(100);
    let workers: Vec<_> = (0..CONNECTIONS)
        .map(|worker| {
            let address = address.clone();
            let period = Duration::from_secs(1) * CONNECTIONS / rate;
            let first = start + period * worker / CONNECTIONS;
            std::thread::spawn(move || {
                scrape(&address, first, period, rate * seconds / CONNECTIONS)
            })
        })
        .collect();
    let (mut times, mut late): (Vec<Duration>, Vec<Duration>) = workers
        .into_iter()
        .flat_map(|worker| worker.join().expect("every answer is good"))
        .unzip();
    let line = format!(
        "{} {:.2} {:.2} {:.2} {:.2}",
        times.len(),
        at(&mut times, 0.5),
        at(&mut times, 0.99),
        at(&mut times, 1.0),
        at(&mut late, 0.99)
    );
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The time, in milliseconds, that this share stays below.
fn at(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1000.0
}

/// The times of a worker's requests, and how late they were sent; panics at an answer that is not 200.
fn scrape(
    address: &str,
    first: Instant,
    period: Duration,
    count: u32,
) -> Vec<(Duration, Duration)> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut buffer = Vec::new();
    let mut times = Vec::new();
    for number in 0..count {
        let due = first + period * number;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let late = due.elapsed();
        stream
            .write_all(request.as_bytes())
            .expect("it takes a request");
        read_answer(&mut stream, &mut buffer);
        times.push((due.elapsed(), late));
    }
    times
}

fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) {
    buffer.clear();
    let mut part = [0; 16 * 1024];
    loop {
        let count = stream.read(&mut part).expect("an answer");
        assert!(count > 0, "the connection was closed");
        buffer.extend_from_slice(&part[..count]);
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            assert!(head.starts_with("http/1.1 200"), "{head}");
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .expect("a length");
            if buffer.len() >= end + 4 + length.trim().parse::<usize>().expect("a number") {
                return;
            }
        }
    }
}
