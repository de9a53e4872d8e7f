//! Hands descriptors to a process of our own that has just been started.
//!
//! They travel in one message over a socket that is the process's stdin. Passing them by number would need code
//! between fork and exec, and so a real fork, which copies the page tables of the supervisor: measured, 3 ms for
//! each 100 MB that it holds. Without such code the standard library starts processes without a copy. A received
//! descriptor is also owned by its receiver without any promise that the compiler cannot check, and no other
//! process that is started at the same moment can inherit it.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// As many as are ever sent at once.
const DESCRIPTORS_MAX: usize = 4;

/// A message needs at least one byte to carry descriptors; what it says is of no importance.
const ENVELOPE: [u8; 1] = *b"d";

/// Sends descriptors. The message waits in the socket until it is fetched.
pub(crate) fn send(socket: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !message.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(&ENVELOPE)], &mut message, SendFlags::empty())?;
    Ok(())
}

/// Fetches the descriptors that were sent to this process, as many as are expected.
pub(crate) fn receive<const COUNT: usize>(socket: impl AsFd) -> io::Result<[OwnedFd; COUNT]> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut envelope = ENVELOPE;
    #[cfg(target_os = "linux")]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = RecvFlags::empty();
    recvmsg(socket, &mut [IoSliceMut::new(&mut envelope)], &mut message, flags)?;
    let mut received = Vec::new();
    for part in message.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = part {
            received.extend(descriptors);
        }
    }
    received.try_into().map_err(|_| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn descriptors_arrive_in_order_and_open() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let (mut second_reader, second_writer) = io::pipe().unwrap();
        send(&ours, &[writer.as_fd(), second_writer.as_fd()]).unwrap();
        drop((writer, second_writer));
        let received: [OwnedFd; 2] = receive(&theirs).unwrap();
        let [mut first, mut second] = received.map(std::fs::File::from);
        first.write_all(b"first").unwrap();
        second.write_all(b"second").unwrap();
        drop((first, second));
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        second_reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "firstsecond");
    }

    #[test]
    fn too_few_or_none_are_refused() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        send(&ours, &[ours.as_fd()]).unwrap();
        assert!(receive::<2>(&theirs).is_err());
        drop(ours);
        assert!(receive::<2>(&theirs).is_err());
    }
}
