//! Packets of the tunnel, as protocol buffers in the frames of gRPC. Upstream:
//! `konnectivity-client/proto/client/client.proto` of apiserver-network-proxy.

/// The longest packet that is read: bytes. Servers send a few kilobytes at once.
const LONGEST: usize = 4 << 20;

/// Length of the head of a frame: whether it is compressed, and how long its message is.
const HEAD: usize = 5;

/// A packet, as far as a client of one connection sends and receives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Packet {
    /// Asks for a connection.
    DialRequest {
        /// Host and port, which the agent resolves.
        address: String,
        /// Names the request among all that the server knows.
        random: u64,
    },
    /// Says what became of it.
    DialResponse {
        /// Why there is none; empty if there is one.
        error: String,
        /// Names the connection.
        id: u64,
    },
    /// Ends a connection.
    CloseRequest {
        /// Its name.
        id: u64,
    },
    /// It has ended.
    CloseResponse {
        /// Why; empty if it was asked for.
        error: String,
    },
    /// Bytes of a connection.
    Data {
        /// Its name.
        id: u64,
        /// What they are.
        bytes: Vec<u8>,
    },
    /// The server has given up a dial.
    CloseDial,
    /// What such a client has no use for.
    Other,
}

/// What is no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    /// Nobody has agreed on a compression.
    #[error("a frame is compressed")]
    Compressed,
    /// A frame that is longer than any packet.
    #[error("a frame is too long")]
    TooLong,
    /// No protocol buffer.
    #[error("a packet cannot be read")]
    Packet,
}

/// A kind of packets, as their member `type` has it, and the number of the member that holds its payload.
type Kind = (u64, u64);

const DIAL_REQUEST: Kind = (0, 2);
const DIAL_RESPONSE: Kind = (1, 3);
const CLOSE_REQUEST: Kind = (2, 5);
const CLOSE_RESPONSE: Kind = (3, 6);
const DATA: Kind = (4, 4);
const CLOSE_DIAL: Kind = (5, 7);
const KINDS: [Kind; 6] = [DIAL_REQUEST, DIAL_RESPONSE, CLOSE_REQUEST, CLOSE_RESPONSE, DATA, CLOSE_DIAL];

// How a member is written.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

impl Packet {
    /// The packet as a frame.
    pub(super) fn frame(&self) -> Vec<u8> {
        let ((kind, member), payload) = self.parts();
        let mut message = Vec::new();
        number(&mut message, 1, kind);
        bytes(&mut message, member, &payload);
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let mut frame = vec![0];
        frame.extend(length.to_be_bytes());
        frame.append(&mut message);
        frame
    }

    fn parts(&self) -> (Kind, Vec<u8>) {
        let mut payload = Vec::new();
        let kind = match self {
            Self::DialRequest { address, random } => {
                bytes(&mut payload, 1, b"tcp");
                bytes(&mut payload, 2, address.as_bytes());
                number(&mut payload, 3, *random);
                DIAL_REQUEST
            }
            Self::DialResponse { error, id } => {
                bytes(&mut payload, 1, error.as_bytes());
                number(&mut payload, 2, *id);
                DIAL_RESPONSE
            }
            Self::CloseRequest { id } => {
                number(&mut payload, 1, *id);
                CLOSE_REQUEST
            }
            Self::CloseResponse { error } => {
                bytes(&mut payload, 1, error.as_bytes());
                CLOSE_RESPONSE
            }
            Self::Data { id, bytes: data } => {
                number(&mut payload, 1, *id);
                bytes(&mut payload, 3, data);
                DATA
            }
            Self::CloseDial | Self::Other => CLOSE_DIAL,
        };
        (kind, payload)
    }

    fn read(message: &[u8]) -> Result<Self, Malformed> {
        let members = members(message)?;
        let number = find_number(&members, 1);
        let Some(kind) = KINDS.into_iter().find(|(kind, _)| *kind == number) else { return Ok(Self::Other) };
        let payload = self::members(find_bytes(&members, kind.1))?;
        let text = |field: u64| String::from_utf8_lossy(find_bytes(&payload, field)).into_owned();
        Ok(match kind {
            DIAL_REQUEST => Self::DialRequest { address: text(2), random: find_number(&payload, 3) },
            DIAL_RESPONSE => Self::DialResponse { error: text(1), id: find_number(&payload, 2) },
            CLOSE_REQUEST => Self::CloseRequest { id: find_number(&payload, 1) },
            CLOSE_RESPONSE => Self::CloseResponse { error: text(1) },
            DATA => Self::Data { id: find_number(&payload, 1), bytes: find_bytes(&payload, 3).to_vec() },
            CLOSE_DIAL => Self::CloseDial,
            _ => Self::Other,
        })
    }
}

/// Takes the first packet off what was received; none if it is not whole yet.
pub(super) fn next(received: &mut Vec<u8>) -> Result<Option<Packet>, Malformed> {
    let Some(head) = received.first_chunk::<HEAD>() else { return Ok(None) };
    let [compressed, length @ ..] = *head;
    if compressed != 0 {
        return Err(Malformed::Compressed);
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST {
        return Err(Malformed::TooLong);
    }
    let Some(message) = received.get(HEAD..HEAD + length) else { return Ok(None) };
    let packet = Packet::read(message)?;
    received.drain(..HEAD + length);
    Ok(Some(packet))
}

/// A member of a message.
enum Member<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn members(mut message: &[u8]) -> Result<Vec<(u64, Member<'_>)>, Malformed> {
    let mut all = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        match tag & 7 {
            VARINT => all.push((tag >> 3, Member::Number(varint(&mut message)?))),
            BYTES => {
                let length = usize::try_from(varint(&mut message)?).map_err(|_| Malformed::Packet)?;
                all.push((tag >> 3, Member::Bytes(take(&mut message, length)?)));
            }
            // Members of kinds that no packet has are passed over.
            FIXED64 => {
                take(&mut message, 8)?;
            }
            FIXED32 => {
                take(&mut message, 4)?;
            }
            _ => return Err(Malformed::Packet),
        }
    }
    Ok(all)
}

fn find_number(members: &[(u64, Member<'_>)], field: u64) -> u64 {
    let number = |member: &(u64, Member<'_>)| match member {
        (of, Member::Number(number)) if *of == field => Some(*number),
        _ => None,
    };
    members.iter().rev().find_map(number).unwrap_or_default()
}

fn find_bytes<'a>(members: &[(u64, Member<'a>)], field: u64) -> &'a [u8] {
    for (of, member) in members.iter().rev() {
        if let Member::Bytes(bytes) = member
            && *of == field
        {
            return bytes;
        }
    }
    &[]
}

fn take<'a>(message: &mut &'a [u8], length: usize) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = message.split_at_checked(length).ok_or(Malformed::Packet)?;
    *message = rest;
    Ok(taken)
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn varint(message: &mut &[u8]) -> Result<u64, Malformed> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(message, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Malformed::Packet)
}

fn write_varint(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

fn tag(field: u64, kind: u64) -> u64 {
    (field << 3) | kind
}

fn number(message: &mut Vec<u8>, field: u64, number: u64) {
    write_varint(message, tag(field, VARINT));
    write_varint(message, number);
}

fn bytes(message: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    write_varint(message, tag(field, BYTES));
    write_varint(message, bytes.len() as u64);
    message.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_were_written_also_in_parts() {
        let all = [
            Packet::DialRequest { address: "c1:443".to_owned(), random: u64::MAX >> 1 },
            Packet::DialResponse { error: String::new(), id: 300 },
            Packet::DialResponse { error: "No agent available".to_owned(), id: 0 },
            Packet::Data { id: 300, bytes: vec![0xff; 70_000] },
            Packet::CloseRequest { id: 300 },
            Packet::CloseResponse { error: String::new() },
            Packet::CloseDial,
        ];
        let whole: Vec<u8> = all.iter().flat_map(Packet::frame).collect();
        let (mut received, mut read) = (Vec::new(), Vec::new());
        for part in whole.chunks(999) {
            received.extend(part);
            while let Some(packet) = next(&mut received).unwrap() {
                read.push(packet);
            }
        }
        assert_eq!((read.as_slice(), received.len()), (&all[..], 0));
    }

    #[test]
    fn a_packet_has_the_bytes_that_upstream_writes() {
        // type: DIAL_REQ is the default, and may stand there; dialRequest { protocol: "tcp", address: "c:1", random: 1 }
        let frame = Packet::DialRequest { address: "c:1".to_owned(), random: 1 }.frame();
        assert_eq!(frame, b"\x00\x00\x00\x00\x10\x08\x00\x12\x0c\x0a\x03tcp\x12\x03c:1\x18\x01");
        assert_eq!(Packet::CloseRequest { id: 300 }.frame(), b"\x00\x00\x00\x00\x07\x08\x02\x2a\x03\x08\xac\x02");
        let frame = Packet::Data { id: 7, bytes: b"hi".to_vec() }.frame();
        assert_eq!(frame, b"\x00\x00\x00\x00\x0a\x08\x04\x22\x06\x08\x07\x1a\x02hi");
        // What Go writes: members that are empty are left out.
        let mut received = b"\x00\x00\x00\x00\x08\x08\x01\x1a\x04\x10\x07\x18\x01".to_vec();
        assert_eq!(next(&mut received), Ok(Some(Packet::DialResponse { error: String::new(), id: 7 })));
        let mut received = b"\x00\x00\x00\x00\x0a\x08\x04\x22\x06\x08\x07\x1a\x02hi".to_vec();
        assert_eq!(next(&mut received), Ok(Some(Packet::Data { id: 7, bytes: b"hi".to_vec() })));
        let mut received = b"\x00\x00\x00\x00\x0b\x08\x03\x32\x07\x0a\x03bye\x10\x07".to_vec();
        assert_eq!(next(&mut received), Ok(Some(Packet::CloseResponse { error: "bye".to_owned() })));
        let mut received = b"\x00\x00\x00\x00\x06\x08\x05\x3a\x02\x08\x01".to_vec();
        assert_eq!(next(&mut received), Ok(Some(Packet::CloseDial)));
        // A kind that is newer than this client.
        let mut received = b"\x00\x00\x00\x00\x02\x08\x06".to_vec();
        assert_eq!(next(&mut received), Ok(Some(Packet::Other)));
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        for (bytes, why) in [
            (&b"\x01\x00\x00\x00\x00"[..], Malformed::Compressed),
            (&b"\x00\xff\xff\xff\xff"[..], Malformed::TooLong),
            (&b"\x00\x00\x00\x00\x01\x80"[..], Malformed::Packet),
            (&b"\x00\x00\x00\x00\x02\x12\x7f"[..], Malformed::Packet),
            (&b"\x00\x00\x00\x00\x01\x07"[..], Malformed::Packet),
        ] {
            assert_eq!(next(&mut bytes.to_vec()), Err(why), "{bytes:?}");
        }
    }
}
