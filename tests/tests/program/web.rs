//! The smallest web client, and a web server whose answers a test gives.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use configurator_tests::program::PATIENCE;

/// What was answered: the status line, the rest of the head, the body.
pub struct Answer {
    pub status: String,
    pub head: String,
    pub body: String,
}

/// Gets a page.
pub fn get(address: &str, path: &str) -> Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").context("half an answer")?;
    let (status, head) = head.split_once("\r\n").context("no head")?;
    Ok(Answer {
        status: status.to_owned(),
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

/// Listens until it is dropped with the test.
pub struct Server {
    pub address: SocketAddr,
    requests: Receiver<Request>,
}

/// A request that waits for its answer.
pub struct Request {
    pub head: String,
    pub body: Vec<u8>,
    stream: TcpStream,
}

impl Server {
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (found, requests) = sync_channel(16);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A connection that breaks off asks for nothing.
                if let Ok(request) = Request::read(stream)
                    && found.send(request).is_err()
                {
                    return;
                }
            }
        });
        Ok(Self { address, requests })
    }

    /// The next request.
    pub fn next(&self) -> Result<Request> {
        let request = self.requests.recv_timeout(PATIENCE);
        request.context("nobody asked")
    }

    /// The next request, if one comes soon.
    pub fn next_soon(&self) -> Result<Option<Request>> {
        match self.requests.recv_timeout(Duration::from_millis(20)) {
            Ok(request) => Ok(Some(request)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Request {
    fn read(stream: TcpStream) -> Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = reader.read_line(&mut head)?;
            anyhow::ensure!(read > 0, "half a request");
        }
        let length = head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map_or(Ok(0), |(_, value)| value.parse())?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok(Self { head, body, stream })
    }

    /// Answers it.
    pub fn answer(mut self, status: &str) -> Result<()> {
        write!(
            self.stream,
            "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )?;
        Ok(())
    }
}
