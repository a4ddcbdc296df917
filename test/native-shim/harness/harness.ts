// Drives one transport for a test: its arrays, a log of its events, sends from plain bytes, and raw socket addresses.

import { rmSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  ClockWord,
  Control,
  EVENT_STRIDE,
  Event,
  type ListenSocketOptions,
  loadShim,
  type NativeTransport,
  Op,
  SUBMISSION_STRIDE,
  type TransportOptions,
} from '../../../src/io/shim.js';
import { DEFAULT_DEADLINE_MS } from '../../e2e/harness/wait-for.js';

export const shim = loadShim();

/** An event as a test sees it; bytes are copied, so they may be kept. */
export interface Seen {
  kind: Event;
  id: number;
  /** Received bytes, or the peer's sockaddr of an Accept. */
  bytes: Buffer;
  /** The record's `length`: an errno for Reset and AcceptFailed. */
  value: number;
  /** The record's `offset`: pending bytes of Blocked. */
  offset: number;
  /** The listener of an Accept. */
  listener: number;
  /** The index of the onBatch call that delivered it. */
  batch: number;
}

export interface RigOptions {
  receiveBytes?: number;
  scratchBytes?: number;
  maxEvents?: number;
  maxSubmissions?: number;
  highWatermark?: number;
  hardLimit?: number;
  receiveLimit?: number;
  reserve?: number;
  onVerdict?: TransportOptions['onVerdict'];
  /** Called for each event. By default events are only logged in `seen`. */
  onEvent?: (event: Seen, rig: Rig) => void;
  /** Keeps no log (for tests with very many events). */
  unlogged?: boolean;
  /** Does not copy received bytes (`bytes` is then a view that is valid during onEvent only). */
  uncopied?: boolean;
}

export const listenOptions: ListenSocketOptions = {
  reusePort: false,
  freebind: false,
  transparent: false,
  v6Only: true,
};

/** A transport with everything that JavaScript must provide. */
export class Rig {
  readonly seen: Seen[] = [];
  readonly memory: Buffer;
  readonly events: Int32Array;
  readonly submissions: Int32Array;
  readonly control: Int32Array;
  readonly clock: Float64Array;
  readonly transport: NativeTransport;
  readonly maxSubmissions: number;
  batches = 0;
  onEvent: ((event: Seen, rig: Rig) => void) | undefined;
  private readonly options: RigOptions;
  private readonly scratchStart: number;
  private scratchAt: number;

  constructor(options: RigOptions = {}) {
    const receiveBytes = options.receiveBytes ?? 1 << 20;
    const maxEvents = options.maxEvents ?? 1024;
    this.options = options;
    this.onEvent = options.onEvent;
    this.maxSubmissions = options.maxSubmissions ?? 1024;
    this.memory = Buffer.from(new SharedArrayBuffer(receiveBytes + (options.scratchBytes ?? 1 << 20)));
    this.events = new Int32Array(EVENT_STRIDE * maxEvents);
    this.submissions = new Int32Array(SUBMISSION_STRIDE * this.maxSubmissions);
    this.control = new Int32Array(Control.AcceptedBy + maxEvents);
    this.clock = new Float64Array(2);
    this.scratchStart = this.scratchAt = receiveBytes;
    this.transport = shim.createTransport({
      memory: this.memory,
      receiveBytes,
      events: this.events,
      submissions: this.submissions,
      control: this.control,
      clock: this.clock,
      onBatch: (from, count) => this.onBatch(from, count),
      highWatermark: options.highWatermark ?? 64 * 1024,
      hardLimit: options.hardLimit ?? 0,
      receiveLimit: options.receiveLimit ?? 1 << 20,
      reserve: options.reserve ?? 0,
      ...(options.onVerdict === undefined ? {} : { onVerdict: options.onVerdict }),
    });
  }

  /** Listens; returns the listener's id and its bound address. */
  listen(address: Uint8Array, options: Partial<ListenSocketOptions> = {}, backlog = 4096, contended = false) {
    const fd = shim.openListenSocket(address, { ...listenOptions, ...options });
    try {
      shim.listen(fd, backlog);
      const bound = shim.boundAddress(fd);
      return { id: this.transport.addListener(fd, contended, 0), address: bound, port: portOf(bound) };
    } finally {
      shim.closeDescriptor(fd);
    }
  }

  connect(
    remote: Uint8Array,
    local?: Uint8Array,
    highWatermark = 64 * 1024,
    hardLimit = 0,
    receiveLimit = 1 << 20,
  ): number {
    return this.transport.connect(remote, local, highWatermark, hardLimit, receiveLimit);
  }

  /** Queues a submission; flush() or the end of the batch carries it out. */
  submit(op: Op, id: number, offset = 0, length = 0): void {
    if (this.isFull) this.flush();
    const at = this.control[Control.Submissions]!++ * SUBMISSION_STRIDE;
    this.submissions[at] = op;
    this.submissions[at + 1] = id;
    this.submissions[at + 2] = offset;
    this.submissions[at + 3] = length;
  }

  private get isFull(): boolean {
    return this.control[Control.Submissions]! === this.maxSubmissions;
  }

  /** Queues bytes through the scratch area after the receive window. */
  send(id: number, bytes: Uint8Array | string): void {
    let left = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    while (left.length > 0) {
      if (this.scratchAt === this.memory.length || this.isFull) this.flush();
      const part = left.subarray(0, this.memory.length - this.scratchAt);
      this.memory.set(part, this.scratchAt);
      this.submit(Op.Send, id, this.scratchAt, part.length);
      this.scratchAt += part.length;
      left = left.subarray(part.length);
    }
  }

  flush(): void {
    this.transport.flush();
    this.scratchAt = this.scratchStart;
  }

  /** Carries a submission out at once instead of with the batch. */
  now(op: Op, id: number, offset = 0, length = 0): void {
    this.submit(op, id, offset, length);
    this.flush();
  }

  sendNow(id: number, bytes: Uint8Array | string): void {
    this.send(id, bytes);
    this.flush();
  }

  of(kind: Event, id?: number): Seen[] {
    return this.seen.filter((event) => event.kind === kind && (id === undefined || event.id === id));
  }

  /** Returns all bytes received on a connection. */
  received(id: number): Buffer {
    return Buffer.concat(this.of(Event.Data, id).map((event) => event.bytes));
  }

  /** Waits for the n-th event of a kind. */
  async next(kind: Event, id?: number, count = 1): Promise<Seen> {
    await until(() => this.of(kind, id).length >= count, `event ${kind} of ${id ?? 'any connection'}`);
    return this.of(kind, id)[count - 1]!;
  }

  /** Connects to a listener of this rig; returns the ids of both ends. */
  async pair(remote: Uint8Array): Promise<{ client: number; server: number }> {
    const accepted = this.of(Event.Accept).length;
    const client = this.connect(remote);
    await this.next(Event.Connected, client);
    return { client, server: (await this.next(Event.Accept, undefined, accepted + 1)).id };
  }

  close(): void {
    this.transport.close();
  }

  private onBatch(from: number, count: number): void {
    if (from === 0) this.batches++;
    this.scratchAt = this.scratchStart;
    for (let i = from; i < count; i++) {
      this.control[Control.Cursor] = i;
      const [id, kind, offset, length] = this.events.subarray(i * EVENT_STRIDE, (i + 1) * EVENT_STRIDE);
      const carries = kind === Event.Data || kind === Event.Accept;
      const view = carries ? this.memory.subarray(offset!, offset! + length!) : empty;
      const event: Seen = {
        kind: kind!,
        id: id!,
        bytes: this.options.uncopied ? view : Buffer.from(view),
        value: length!,
        offset: offset!,
        listener: kind === Event.Accept ? this.control[Control.AcceptedBy + i]! : -1,
        batch: this.batches,
      };
      if (!this.options.unlogged) this.seen.push(event);
      this.onEvent?.(event, this);
      if (this.transportClosed) return;
    }
  }

  /** Set by a test that closes the transport within a batch. */
  transportClosed = false;

  get monotonic(): number {
    return this.clock[ClockWord.Monotonic]!;
  }
}

const empty = Buffer.alloc(0);

/** Waits until a condition holds, polling more often than waitFor(); fails after the deadline with `what`. */
export async function until(condition: () => boolean, what: string, withinMs = DEFAULT_DEADLINE_MS): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms without success for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Encodes a raw sockaddr_in or sockaddr_in6. */
export function internet(host: string, port = 0): Uint8Array {
  const bytes = Buffer.alloc(isIPv6(host) ? 28 : 16);
  if (isIPv6(host)) {
    if (host !== '::1' && host !== '::') throw new Error('the harness knows only ::1 and ::');
    bytes.writeUInt16LE(10, 0);
    if (host === '::1') bytes[23] = 1;
  } else {
    bytes.writeUInt16LE(2, 0);
    host.split('.').forEach((part, i) => {
      bytes[4 + i] = Number(part);
    });
  }
  bytes.writeUInt16BE(port, 2);
  return bytes;
}

/** Encodes a raw sockaddr_un; a leading @ stands for the zero byte of an abstract name. */
export function unix(path: string): Uint8Array {
  const name = Buffer.from(path.startsWith('@') ? `\0${path.slice(1)}` : `${path}\0`);
  return Buffer.concat([Buffer.from([1, 0]), name]);
}

export const loopback = internet('127.0.0.1');

/** Returns the port of a raw internet sockaddr, else 0. */
export function portOf(address: Uint8Array): number {
  return address[0] === 1 ? 0 : (address[2]! << 8) | address[3]!;
}

/** Returns an unused path for a Unix socket; removed when the process exits. */
export function socketPath(): string {
  const path = join(tmpdir(), `baton-shim-${process.pid}-${++paths}.sock`);
  process.once('exit', () => rmSync(path, { force: true }));
  return path;
}

let paths = 0;

/** Returns bytes that differ by position, so that a lost or repeated piece shows. */
export function pattern(length: number, seed = 1): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  let state = (seed * 2654435761) >>> 0 || 1;
  for (let i = 0; i < length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state;
  }
  return bytes;
}
