// A process outside of the restart that talks to its sockets: by datagrams, and over a link if it gets one.

import { randomBytes } from 'node:crypto';
import { writeSync } from 'node:fs';
import { AddressKind, encodeAddress } from '../../../src/io/addresses/address.js';
import { loadShim, type MessageSocketEvents, type NativeMessageSocket } from '../../../src/io/shim.js';
import {
  decodeToChild,
  decodeToParent,
  encodeHello,
  encodeToChild,
  type OfferedSockets,
  type ToChild,
  type ToParent,
} from '../../../src/restart/messages.js';
import { HOT_RESTART_VERSION } from '../../../src/restart/version.js';
import { type Teardown, waitFor } from '../harness/index.js';

const shim = loadShim();

/** A sender with a datagram socket. */
export class DatagramSender implements MessageSocketEvents {
  readonly received: string[] = [];
  readonly #socket;

  constructor(name = `@baton-test-${process.pid}-${randomBytes(4).toString('hex')}`) {
    this.#socket = shim.watchMessages(shim.openMeetingSocket(at(name)), this);
  }

  /** Returns false when the socket buffer is full. */
  send(socketPath: string, bytes: Uint8Array, fds: readonly number[], which = 'parent'): boolean {
    return this.#socket.sendTo(at(`${socketPath}_${which}_0`), bytes, fds);
  }

  /** Sends a hello; resolves with the reason of the refusal. */
  async hello(socketPath: string, bytes: Uint8Array): Promise<string> {
    const [here, there] = shim.socketPair();
    const answer = new Promise<string>((resolve) => {
      shim.watchMessages(here, {
        onMessage: (message) => {
          const content = decodeToChild(message);
          resolve(content.kind === 'refusal' ? content.reason : content.kind);
        },
        onWritable() {},
        onEnd: () => resolve('nothing'),
      });
    });
    this.send(socketPath, bytes, [there]);
    shim.closeDescriptor(there);
    return answer;
  }

  /** Sends as soon as there is space. */
  async push(socketPath: string, bytes: Uint8Array, fds: readonly number[] = [], which = 'parent'): Promise<void> {
    if (this.send(socketPath, bytes, fds, which)) return;
    await waitFor(() => this.send(socketPath, bytes, fds, which), { what: 'space for a datagram' });
  }

  close(): void {
    this.#socket.close();
  }

  onMessage(bytes: Uint8Array): void {
    this.received.push(Buffer.from(bytes).toString());
  }
  onWritable(): void {}
  onEnd(): void {}
}

/** Sends epoch 0 the hello of epoch 1, under that epoch's name, and waits for the welcome. */
export async function welcomed(t: Teardown, socketPath: string, keepsSockets = false): Promise<FakeChild> {
  const attacker = new DatagramSender(`${socketPath}_child_1`);
  t.teardown(() => attacker.close());
  const [here, there] = shim.socketPair();
  const child = new FakeChild(here, attacker);
  child.keepsSockets = keepsSockets;
  t.teardown(() => child.dropSockets());
  t.teardown(() => child.close());
  await attacker.push(socketPath, encodeHello({ version: HOT_RESTART_VERSION, epoch: 1 }), [there]);
  shim.closeDescriptor(there);
  await waitFor(() => child.received.includes('welcome') || child.isOver, { what: 'a welcome' });
  return child;
}

/** One end of a link to a parent. Received descriptors are closed, and messages are recorded by kind. */
export class FakeChild implements MessageSocketEvents {
  readonly received: ToChild['kind'][] = [];
  /** Descriptors received on the link are kept open until dropSockets(). */
  keepsSockets = false;
  isOver = false;
  readonly #kept: number[] = [];
  readonly #socket: NativeMessageSocket;
  readonly #attacker: DatagramSender;
  readonly #fd: number;

  constructor(fd: number, attacker: DatagramSender) {
    this.#fd = fd;
    this.#socket = shim.watchMessages(fd, this);
    this.#attacker = attacker;
  }

  /** Returns false when the parent's socket buffer is full. Throws when the link is closed. */
  say(bytes: Uint8Array, fds: readonly number[] = []): boolean {
    return this.#socket.send(bytes, fds);
  }

  /** Sends a message that may be longer than Baton's own. */
  sayAtLength(bytes: Uint8Array): void {
    writeSync(this.#fd, bytes);
  }

  /** Releases the name of epoch 1 for another process. */
  freeName(): void {
    this.#attacker.close();
  }

  dropSockets(): void {
    for (const fd of this.#kept.splice(0)) shim.closeDescriptor(fd);
  }

  close(): void {
    this.isOver = true;
    this.#socket.close();
    this.#attacker.close();
  }

  onMessage(bytes: Uint8Array, fds: readonly number[]): void {
    this.#kept.push(...fds);
    if (!this.keepsSockets) this.dropSockets();
    this.received.push(decodeToChild(bytes).kind);
  }
  onWritable(): void {}
  onEnd(): void {
    this.isOver = true;
  }
}

/** What a fake parent hands over. */
export interface FakeWelcome {
  readonly sockets: readonly OfferedSockets[];
  readonly fds: readonly number[];
}

/** Binds the name of epoch 0, proves its identity, and welcomes each process of epoch 1. */
export class FakeParent implements MessageSocketEvents {
  readonly received: ToParent['kind'][] = [];
  readonly #welcome: FakeWelcome;
  readonly #socketPath: string;
  readonly #socket: NativeMessageSocket;
  #link: NativeMessageSocket | undefined;

  constructor(t: Teardown, socketPath: string, welcome: FakeWelcome) {
    this.#welcome = welcome;
    this.#socketPath = socketPath;
    this.#socket = shim.watchMessages(shim.openMeetingSocket(at(`${socketPath}_parent_0`)), this);
    t.teardown(() => this.close());
  }

  /** Returns false when the child's socket buffer is full. Throws when the link is closed, or none exists. */
  say(message: ToChild, fds: readonly number[] = []): boolean {
    return this.#link!.send(encodeToChild(message), fds);
  }

  close(): void {
    this.#socket.close();
    this.#link?.close();
  }

  onMessage(_bytes: Uint8Array, [fd, ...others]: readonly number[]): void {
    for (const each of others) shim.closeDescriptor(each);
    if (fd === undefined) return;
    this.#link = shim.watchMessages(fd, {
      onMessage: (bytes, fds) => {
        for (const each of fds) shim.closeDescriptor(each);
        this.received.push(decodeToParent(bytes).kind);
      },
      onWritable() {},
      onEnd() {},
    });
    this.#socket.sendTo(at(`${this.#socketPath}_child_1`), new Uint8Array([1]), []);
    const { fds, sockets } = this.#welcome;
    this.say({ kind: 'welcome', welcome: { firstStartedMs: 0, generation: 1, sockets, isLast: true } }, fds);
  }
  onWritable(): void {}
  onEnd(): void {}
}

function at(path: string): Uint8Array {
  return encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
}
