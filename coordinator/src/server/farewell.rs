//! What a client hears that does not speak TLS where TLS is spoken: one line that its user gets to see.

use std::{io, time::Duration};

use inrush_agent::credentials::SPEAKS_TLS;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// With these bytes a client of HTTP/2 begins.
const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// So much of a client is looked at.
const LOOKED_AT: usize = 4_096;

/// For a client to make its call, and again to hear the answer.
const WITHIN: Duration = Duration::from_secs(1);

/// The kinds of HTTP/2's frames (RFC 9113) that are of interest.
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;

/// "The transport is not secure enough."
const INADEQUATE_SECURITY: u32 = 0xc;

/// Tells the client what is expected, if it speaks HTTP; in any case its connection ends. How that went, in words.
pub(super) async fn turn_away(mut stream: TcpStream) -> String {
    let mut said = Vec::new();
    let listened = timeout(WITHIN, listen(&mut stream, &mut said)).await;
    let farewell = match listened {
        Ok(Err(error)) => return format!("it does not speak TLS ({error})"),
        Ok(Ok(())) | Err(_) if begins_alike(&said, OPENING) => go_away(),
        Ok(Ok(())) | Err(_) if said.is_ascii() => bad_request(),
        Ok(Ok(())) | Err(_) => return "it does not speak TLS".to_owned(),
    };
    let told = async {
        stream.write_all(&farewell).await?;
        // What is closed too soon shows its end only, and not what was said before.
        let mut rest = [0; 1_024];
        while stream.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    match timeout(WITHIN, told).await {
        Ok(Err(error)) => format!("it does not speak TLS ({error})"),
        Ok(Ok(())) | Err(_) => "it does not speak TLS, and was told".to_owned(),
    }
}

/// Reads until there is something to answer. A client of HTTP/2 shows its user why its call was refused, and not why there
/// was no connection before it.
async fn listen(stream: &mut TcpStream, said: &mut Vec<u8>) -> io::Result<()> {
    while said.len() < LOOKED_AT && begins_alike(said, OPENING) && !has_called(said) {
        if stream.read_buf(said).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

fn begins_alike(said: &[u8], opening: &[u8]) -> bool {
    said.iter().zip(opening).all(|(a, b)| a == b)
}

/// Whether headers have come, which open a call.
fn has_called(said: &[u8]) -> bool {
    let mut frames = said.get(OPENING.len()..).unwrap_or_default();
    while let [a, b, c, kind, _, _, _, _, _, rest @ ..] = frames {
        if *kind == HEADERS {
            return true;
        }
        let length = u32::from_be_bytes([0, *a, *b, *c]);
        frames =
            usize::try_from(length).ok().and_then(|length| rest.get(length..)).unwrap_or_default();
    }
    false
}

fn bad_request() -> Vec<u8> {
    let length = SPEAKS_TLS.len() + 1;
    format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n\
         {SPEAKS_TLS}\n"
    )
    .into_bytes()
}

fn go_away() -> Vec<u8> {
    let frame = |kind: u8, payload: &[u8]| {
        let [_, length @ ..] = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
        // No flags, and the stream 0: it is about the connection.
        [&length[..], &[kind, 0, 0, 0, 0, 0], payload].concat()
    };
    // No call was begun.
    let farewell =
        [&[0; 4][..], &INADEQUATE_SECURITY.to_be_bytes(), SPEAKS_TLS.as_bytes()].concat();
    [frame(SETTINGS, &[]), frame(GO_AWAY, &farewell)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_known_by_its_headers_however_much_of_them_has_come() {
        let settings = [&[0, 0, 6, SETTINGS, 0, 0, 0, 0, 0][..], &[1; 6]].concat();
        let headers = [0, 0, 200, HEADERS, 4, 0, 0, 0, 1];
        let all = [OPENING, &settings, &settings, &headers].concat();
        for cut in 0..all.len() {
            assert!(!has_called(&all[..cut]), "after {cut} bytes");
        }
        assert!(has_called(&all));
        assert!(!has_called(&[OPENING, &[0xff; 100]].concat()));
    }
}
