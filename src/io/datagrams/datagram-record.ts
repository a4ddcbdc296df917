// The records that the shim and JavaScript exchange about datagrams: [id, kind or result, offset, length, peer, local].

/** Words of a record. */
export const DATAGRAM_STRIDE = 16;

/** Words of an address: [port << 16 | family, four words of address bytes, scope]. Family: 0 (none), 4 or 6. */
export const ADDRESS_WORDS = 6;

export const enum DatagramWord {
  Id = 0,
  /** In an event: a DatagramEvent. In a sent record: 0 or an errno. */
  Kind = 1,
  /** The datagram's place in the memory. */
  Offset = 2,
  /** For Datagram: its length in bytes. For Dropped: the number of datagrams. For Error: the errno. */
  Length = 3,
  /** The other end; none on a connected socket. */
  Peer = 4,
  /** The address that it was sent to, or is sent from, without a port; none: the socket's own. */
  Local = 10,
}

export const enum DatagramEvent {
  Datagram = 1,
  /** The kernel has dropped datagrams: its buffer was full, or they were too long. */
  Dropped = 2,
  /** Receiving failed, or the peer has refused an earlier datagram (ECONNREFUSED). */
  Error = 3,
}
