// The two ends of a datagram: its peer, and the address of this machine that the peer knows.

import { type Address, addressOfBytes } from '../addresses/address.js';
import { ADDRESS_WORDS, DatagramWord } from './datagram-record.js';

const PATH_WORDS = 2 * ADDRESS_WORDS;
const LOCAL = ADDRESS_WORDS;
const FAMILY_MASK = 0xffff;

export class DatagramPath {
  /** The peer's words, then the local ones. */
  readonly words: Int32Array;

  /** Copies the path of the record that begins at `at`. */
  constructor(records: Int32Array, at: number) {
    this.words = records.slice(at + DatagramWord.Peer, at + DatagramWord.Peer + PATH_WORDS);
  }

  get peer(): Address {
    return addressOf(this.words, 0, this.words[0]! >>> 16);
  }

  /** The local address with a port, which datagrams do not carry; undefined: the kernel has not reported it. */
  local(port: number): Address | undefined {
    return (this.words[LOCAL]! & FAMILY_MASK) === 0 ? undefined : addressOf(this.words, LOCAL, port);
  }
}

/** The key of one end of a path. Ends with equal keys are equal. Those of IPv4 are numbers, which are looked up fastest. */
export type PathKey = number | string;

/** Returns the key of the peer in the record that begins at `at`. */
export function peerKey(records: Int32Array, at: number): PathKey {
  return keyOf(records, at + DatagramWord.Peer);
}

/** Returns the key of the local address in the record that begins at `at`. */
export function localKey(records: Int32Array, at: number): PathKey {
  return keyOf(records, at + DatagramWord.Local);
}

function keyOf(words: Int32Array, at: number): PathKey {
  const first = words[at]! >>> 0;
  if ((first & FAMILY_MASK) !== 6) return (words[at + 1]! >>> 0) * 65536 + (first >>> 16);
  // The interface is included: a machine may have the same link-local address on several.
  return `${first},${words[at + 1]},${words[at + 2]},${words[at + 3]},${words[at + 4]},${words[at + 5]}`;
}

function addressOf(words: Int32Array, at: number, port: number): Address {
  const bytes = new Uint8Array(words.buffer, words.byteOffset + (at + 1) * 4, 16);
  return addressOfBytes((words[at]! & FAMILY_MASK) === 4 ? bytes.slice(0, 4) : bytes, port);
}
