//! The load generator: connections that each send a request as soon as they have the response to the one before.
//!
//! It runs in one thread and parses no more of a response than its status and length, so that most of the time is the
//! server's.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{net::TcpStream, task::JoinSet};

use crate::http::Head;

/// Writes the request with this number of a connection into an empty buffer.
pub(crate) type Requests = Arc<dyn Fn(usize, usize, &mut Vec<u8>) + Send + Sync>;

/// When a load ends.
#[derive(Clone)]
pub(crate) enum Until {
    /// After this time, the first tenth of which does not count.
    Elapsed(Duration),
    /// As soon as this is set.
    Set(Arc<AtomicBool>),
}

/// The result of a load.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    /// Requests per second.
    pub rate: f64,
    /// The median of the response times, in seconds.
    pub p50: f64,
    /// The 99th percentile of the response times, in seconds.
    pub p99: f64,
}

/// Sends requests over so many connections. Every response must have the status 200.
pub(crate) fn run(address: SocketAddr, connections: usize, until: &Until, requests: &Requests) -> Figures {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let began = Instant::now();
        let warm = match until {
            Until::Elapsed(time) => began + *time / 10,
            Until::Set(_) => began,
        };
        let mut tasks = JoinSet::new();
        for number in 0..connections {
            tasks.spawn(connection(address, number, until.clone(), (began, warm), Arc::clone(requests)));
        }
        let mut times = Vec::new();
        while let Some(found) = tasks.join_next().await {
            times.extend(found.unwrap().unwrap());
        }
        let seconds = warm.elapsed().as_secs_f64();
        times.sort_unstable();
        let percentile = |share: usize| {
            let nanos: u64 = times.get(times.len() * share / 100).copied().unwrap_or_default();
            Duration::from_nanos(nanos).as_secs_f64()
        };
        assert!(!times.is_empty(), "no request ended in time");
        Figures { rate: times.len() as f64 / seconds, p50: percentile(50), p99: percentile(99) }
    })
}

/// Returns the response times of a connection, in nanoseconds.
async fn connection(
    address: SocketAddr,
    number: usize,
    until: Until,
    (began, warm): (Instant, Instant),
    requests: Requests,
) -> io::Result<Vec<u64>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 1 << 18];
    let mut request = Vec::new();
    let mut times = Vec::new();
    let mut sent = 0;
    loop {
        let start = Instant::now();
        let is_over = match &until {
            Until::Elapsed(time) => start.duration_since(began) >= *time,
            Until::Set(flag) => flag.load(Ordering::Relaxed),
        };
        if is_over {
            return Ok(times);
        }
        request.clear();
        requests(number, sent, &mut request);
        sent += 1;
        write(&stream, &request).await?;
        let status = response(&stream, &mut buffer).await?;
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&request));
        if start >= warm {
            times.push(start.elapsed().as_nanos() as u64);
        }
    }
}

async fn write(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn read(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.try_read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => return Ok(read),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.readable().await?,
            Err(error) => return Err(error),
        }
    }
}

/// Reads a response and returns its status.
async fn response(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<u16> {
    let mut filled = 0;
    let (head, mut missing) = loop {
        filled += read(stream, &mut buffer[filled..]).await?;
        if let Some(head) = Head::read(&buffer[..filled]) {
            let missing = head.body + head.length - filled;
            break (head, missing);
        }
    };
    while missing > 0 {
        missing -= read(stream, buffer).await?;
    }
    Ok(head.status)
}
