//! The bodies the target sends.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// What `/bytes/N` sends, over and over: nothing is filled in or allocated for it.
static BLOCK: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// A body of known length.
#[derive(Debug)]
pub(super) enum Answer {
    /// These bytes, once.
    Whole(Bytes),
    /// So many bytes of the static block are left.
    Blocks(u64),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match self.get_mut() {
            Self::Whole(bytes) => std::mem::take(bytes),
            Self::Blocks(left) => {
                let now = usize::try_from(*left).unwrap_or(usize::MAX).min(BLOCK.len());
                *left -= now as u64;
                Bytes::from_static(&BLOCK[..now])
            }
        };
        Poll::Ready((!data.is_empty()).then(|| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}

impl Answer {
    fn left(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Blocks(left) => *left,
        }
    }
}
