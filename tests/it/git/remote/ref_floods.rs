//! A hostile server that sends refs without end.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{configure, pushed, serve};
use crate::support::sources::in_state;

/// What a fetch may allocate at most (D88), and what the server sends at most.
const MOST_MEMORY: u64 = 1 << 30;
const MOST_SENT: u64 = 4 << 30;

/// Answers a request with refs whose names are as long as the protocol allows.
fn send_refs(mut connection: TcpStream, sent: &AtomicU64) -> std::io::Result<()> {
    let mut line = String::new();
    let mut reader = BufReader::new(connection.try_clone()?);
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let packet = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let id = "1".repeat(40);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nContent-Length: 1099511627776\r\n\r\n";
    let service = packet("# service=git-upload-pack\n");
    let first = packet(&format!("{id} HEAD\0ofs-delta side-band-64k\n"));
    connection.write_all(format!("{head}{service}0000{first}").as_bytes())?;
    let padding = "x".repeat(65_000);
    for number in 0_u64.. {
        let line = packet(&format!("{id} refs/heads/{number}-{padding}\n"));
        connection.write_all(line.as_bytes())?;
        if sent.fetch_add(line.len() as u64, Ordering::Relaxed) > MOST_SENT {
            break;
        }
    }
    Ok(())
}

#[test]
fn a_list_of_refs_without_end_is_given_up_and_does_not_fill_the_memory() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/edge.git", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&sent);
    std::thread::spawn(move || {
        // One fetch: the next ones are not answered.
        if let Ok((connection, _)) = listener.accept() {
            let _ = send_refs(connection, &counted);
        }
    });
    let folder = pushed();
    configure(&folder, &format!("repository: \"{url}\", interval: 1h"));
    let serve = serve(&folder);
    let found = in_state(&serve, "shop", "Failed");
    let message = found["conditions"][0]["message"].as_str().unwrap();
    assert!(message.starts_with(&format!("cannot fetch {url}: Out of memory")), "{message}");
    // A part of what is sent is in the buffers of the connection.
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < MOST_MEMORY + MOST_MEMORY / 2, "{sent} bytes");
    assert_eq!(serve.stop().code, 0);
}
