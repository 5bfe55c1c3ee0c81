//! Users of a server: their contexts and tokens, and servers that answer them wrongly.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    process::Command,
};

use super::{
    http::http,
    program::{Folder, Run, Serve, finish},
};

/// The file of contexts.
pub(crate) const CONTEXTS: &str = "config/edgewright/contexts.yaml";

pub(crate) fn url(serve: &Serve) -> String {
    format!("http://{}", serve.address)
}

/// Signs in to the dashboard of a server, and returns the cookie.
pub(crate) fn signed_in(serve: &Serve, token: &str) -> String {
    let origin = url(serve);
    let form = [("Origin", origin.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
    let answer = http(&serve.address, "POST", "/ui/sign-in", &form, &format!("token={token}"));
    assert_eq!(answer.status, 303, "{}", answer.body);
    answer.header("set-cookie")[0].split(';').next().unwrap().to_owned()
}

/// A command of a user who has contexts and no variables.
pub(crate) fn user(folder: &Folder, line: &str) -> Command {
    let mut command = folder.command(line);
    command.env("XDG_CONFIG_HOME", folder.path("config")).env_remove("EDGEWRIGHT_STORE");
    command
}

/// Runs such a command to its end.
pub(crate) fn run_as_user(folder: &Folder, line: &str) -> Run {
    finish(user(folder, line), "")
}

/// Logs in with the token of the first admin.
pub(crate) fn login(folder: &Folder, serve: &Serve, options: &str) -> Run {
    let run = finish(user(folder, &format!("login {options} --server {}", url(serve))), &format!("{}\n", serve.token));
    assert!(!run.all().contains(&serve.token), "{}", run.all());
    run
}

/// A command that finds a server and a token in its variables.
pub(crate) fn client_command(folder: &Folder, url: &str, token: &str, line: &str) -> Command {
    let mut command = folder.command(line);
    command.env("EDGEWRIGHT_SERVER", url).env("EDGEWRIGHT_TOKEN", token);
    command
}

/// Runs such a command with the token of the first admin.
pub(crate) fn client(folder: &Folder, serve: &Serve, line: &str) -> Run {
    run_with_token(folder, serve, &serve.token, line)
}

/// Runs such a command with any token.
pub(crate) fn run_with_token(folder: &Folder, serve: &Serve, token: &str, line: &str) -> Run {
    finish(client_command(folder, &url(serve), token, line), "")
}

/// Runs a command with `--server` and the token of the first admin.
pub(crate) fn through(folder: &Folder, serve: &Serve, line: &str) -> Run {
    let mut command = folder.command(&format!("{line} --server {}", url(serve)));
    command.env("EDGEWRIGHT_TOKEN", &serve.token);
    finish(command, "")
}

pub(crate) fn assert_refused(run: &Run, message: &str) {
    assert_eq!(run.code, 1, "{}", run.all());
    assert!(run.err.contains(message), "no {message:?} in {}", run.all());
}

/// A server that answers a request line with a status and a body, or closes the connection. Returns its URL.
pub(crate) fn server_that_answers(answer: fn(&str) -> Option<(u16, &'static str)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut request = BufReader::new(connection.try_clone().unwrap());
            let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
            request.read_line(&mut first).unwrap();
            while request.read_line(&mut line).unwrap() > 2 {
                let lower = line.to_lowercase();
                length = lower.strip_prefix("content-length:").map_or(length, |it| it.trim().parse().unwrap());
                line.clear();
            }
            request.read_exact(&mut vec![0; length]).unwrap();
            if let Some((status, body)) = answer(&first) {
                let length = if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
                let head = format!("HTTP/1.1 {status} OK\r\nContent-Type: application/json\r\nConnection: close\r\n");
                let again = if matches!(status, 429 | 503) { "Retry-After: 1\r\n" } else { "" };
                let _ = connection.write_all(format!("{head}{again}{length}\r\n{body}").as_bytes());
            }
        }
    });
    url
}
