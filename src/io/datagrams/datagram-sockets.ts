// The UDP sockets of a thread: dispatches received datagrams to their receivers, and sends datagrams at the end of the turn.

import { ID_SLOT_MASK, type NativeDatagrams, type NativeShim, type SocketOption } from '../shim.js';
import type { Transport } from '../transport/transport.js';
import { DatagramPath, localKey, type PathKey, peerKey } from './datagram-path.js';
import { DATAGRAM_STRIDE, DatagramEvent, DatagramWord } from './datagram-record.js';

/** A received datagram. Valid until the receiver returns. */
export interface Datagram {
  /** Its bytes are memory[offset, offset + length). */
  readonly offset: number;
  readonly length: number;
  /** See PathKey. */
  readonly peerKey: PathKey;
  readonly localKey: PathKey;
  /** Copies the addresses. */
  path(): DatagramPath;
}

export interface DatagramReceiver {
  onDatagram(datagram: Datagram): void;
  /** Called when the kernel has dropped datagrams: its buffer was full, or they were longer than the limit. */
  onDropped(count: number): void;
  /** Called when receiving has failed (errno): ECONNREFUSED if the peer has refused an earlier datagram. */
  onReceiveError(errno: number): void;
}

/** The owner of a sent datagram. */
export interface DatagramSender {
  /** Called for each datagram of send(), in order; errno 0: the kernel has accepted it, otherwise it is lost. */
  onSent(socket: number, length: number, errno: number): void;
}

/** The longest datagram over IPv4 and IPv6. */
export const MAX_DATAGRAM_BYTES = 65535;

const RECEIVE_BYTES = 512 * 1024;
const SCRATCH_BYTES = 128 * 1024;
const MAX_EVENTS = 1024;
const MAX_SENDS = 1024;

export class DatagramSockets {
  readonly memory: Uint8Array = new Uint8Array(new SharedArrayBuffer(RECEIVE_BYTES + SCRATCH_BYTES));
  readonly #transport: Transport;
  readonly #native: NativeDatagrams;
  readonly #events = new Int32Array(MAX_EVENTS * DATAGRAM_STRIDE);
  readonly #sends = new Int32Array(MAX_SENDS * DATAGRAM_STRIDE);
  readonly #senders: (DatagramSender | undefined)[] = [];
  readonly #receivers: (DatagramReceiver | undefined)[] = [];
  readonly #received: ReceivedDatagram;
  #queued = 0;
  #scratchNext = RECEIVE_BYTES;
  #inBatch = false;
  #isFlushScheduled = false;

  /** `reserve`: see TransportOptions. Turns and internal errors are those of `transport`. */
  constructor(shim: NativeShim, transport: Transport, reserve: number) {
    this.#transport = transport;
    this.#received = new ReceivedDatagram(this.#events);
    this.#native = shim.createDatagramSockets({
      memory: this.memory,
      receiveBytes: RECEIVE_BYTES,
      events: this.#events,
      sends: this.#sends,
      onBatch: (count) => this.#onBatch(count),
      reserve,
    });
  }

  /** Adds a copy of a bound socket, which receives after setReceiving(). Returns its ID. Throws an Error with `code`. */
  listen(fd: number, maxBytes: number, receiver: DatagramReceiver): number {
    return this.#add(this.#native.addListener(fd, maxBytes), receiver);
  }

  /** Opens a socket that is connected to a raw sockaddr. Returns its ID. Throws an Error with `code`. */
  connect(
    remote: Uint8Array,
    local: Uint8Array | undefined,
    options: readonly SocketOption[] | undefined,
    maxBytes: number,
    receiver: DatagramReceiver,
  ): number {
    return this.#add(this.#native.connect(remote, local, options, maxBytes), receiver);
  }

  #add(id: number, receiver: DatagramReceiver): number {
    this.#receivers[id & ID_SLOT_MASK] = receiver;
    return id;
  }

  setReceiving(id: number, receives: boolean): void {
    this.#native.setReceiving(id, receives);
  }

  /** Closes the socket after its datagrams of this turn are sent. */
  remove(id: number): void {
    this.#flush();
    this.#receivers[id & ID_SLOT_MASK] = undefined;
    this.#native.remove(id);
  }

  /** Sends what is queued and closes all sockets. */
  close(): void {
    this.#flush();
    this.#receivers.length = 0;
    this.#native.close();
  }

  /** Returns the raw sockaddr of the local end. */
  localAddress(id: number): Uint8Array {
    return this.#native.localAddress(id);
  }

  /** Sends memory[offset, offset + length) at the end of the turn; `path`: to whom, undefined on a connected socket. */
  send(id: number, offset: number, length: number, sender: DatagramSender, path?: DatagramPath): void {
    if (this.#queued === MAX_SENDS) this.#flush();
    const at = this.#queued * DATAGRAM_STRIDE;
    const sends = this.#sends;
    sends[at + DatagramWord.Id] = id;
    sends[at + DatagramWord.Offset] = offset;
    sends[at + DatagramWord.Length] = length;
    if (path !== undefined) sends.set(path.words, at + DatagramWord.Peer);
    else sends[at + DatagramWord.Peer] = sends[at + DatagramWord.Local] = 0;
    this.#senders[this.#queued++] = sender;
    if (!this.#inBatch && !this.#isFlushScheduled) this.#scheduleFlush();
  }

  /** Copies bytes to memory that is valid until they are sent in this turn. Returns their offset. */
  place(bytes: Uint8Array): number {
    if (bytes.length > SCRATCH_BYTES) throw new RangeError(`${bytes.length} bytes are no datagram`);
    // If send() flushed in between, the place would be used again before these bytes are sent.
    if (this.#queued === MAX_SENDS || this.#scratchNext + bytes.length > this.memory.length) this.#flush();
    const offset = this.#scratchNext;
    this.memory.set(bytes, offset);
    this.#scratchNext += bytes.length;
    return offset;
  }

  #scheduleFlush(): void {
    this.#isFlushScheduled = true;
    queueMicrotask(() => {
      this.#isFlushScheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    const count = this.#queued;
    this.#scratchNext = RECEIVE_BYTES;
    if (count === 0) return;
    // Senders may send more, which is flushed later.
    const senders = this.#senders.splice(0, count);
    this.#queued = 0;
    this.#native.flush(count);
    const results = this.#sends.slice(0, count * DATAGRAM_STRIDE);
    for (let index = 0; index < count; index++) {
      const at = index * DATAGRAM_STRIDE;
      const errno = results[at + DatagramWord.Kind]!;
      try {
        senders[index]!.onSent(results[at + DatagramWord.Id]!, results[at + DatagramWord.Length]!, errno);
      } catch (error) {
        this.#transport.report(error, FAULT);
      }
    }
  }

  #onBatch(count: number): void {
    this.#transport.beginTurn();
    this.#inBatch = true;
    try {
      for (let index = 0; index < count; index++) this.#dispatch(index * DATAGRAM_STRIDE);
    } finally {
      this.#inBatch = false;
      this.#flush();
      this.#transport.settle();
    }
  }

  #dispatch(at: number): void {
    const events = this.#events;
    const receiver = this.#receivers[events[at]! & ID_SLOT_MASK];
    // Its socket has been removed in this batch.
    if (receiver === undefined) return;
    const length = events[at + DatagramWord.Length]!;
    try {
      switch (events[at + DatagramWord.Kind]) {
        case DatagramEvent.Datagram:
          this.#received.at = at;
          return receiver.onDatagram(this.#received);
        case DatagramEvent.Dropped:
          return receiver.onDropped(length);
        default:
          return receiver.onReceiveError(length);
      }
    } catch (error) {
      this.#transport.report(error, FAULT);
    }
  }
}

const FAULT = 'a datagram was lost after an internal error';

class ReceivedDatagram implements Datagram {
  readonly #events: Int32Array;
  at = 0;

  constructor(events: Int32Array) {
    this.#events = events;
  }

  get offset(): number {
    return this.#events[this.at + DatagramWord.Offset]!;
  }
  get length(): number {
    return this.#events[this.at + DatagramWord.Length]!;
  }
  get peerKey(): PathKey {
    return peerKey(this.#events, this.at);
  }
  get localKey(): PathKey {
    return localKey(this.#events, this.at);
  }
  path(): DatagramPath {
    return new DatagramPath(this.#events, this.at);
  }
}
