// A random world of connections: between two transports, within one, and with Node's own sockets. What each end sees is checked
// by the model.

import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Event, Op } from '../../../src/io/shim.js';
import { internet, loopback, portOf, Rig, type Seen, shim, unix, until } from './harness.js';
import { type End, Link } from './model.js';

const MAX_LINKS = 40;
/** Longer than any test. */
const PATIENT_MS = 600_000;
const SETTLED_WITHIN_MS = 20_000;
const HIGH_WATERMARK = 20_000;
const NOBODY = internet('127.0.0.1', 1);

interface Listener {
  readonly address: Uint8Array;
  /** Ids by rig; those rigs share one socket. */
  readonly ids: Map<Rig, number>;
}

/** An end whose socket belongs to a rig. */
interface Held {
  rig: Rig;
  id: number;
  readonly end: End;
  /** The last batches in which it had bytes, and was paused. */
  dataInBatch: number;
  pausedInBatch: number;
  highWatermark: number;
}

export class World {
  readonly wrong: string[] = [];
  readonly counted: number[] = new Array(16).fill(0);
  readonly #random: (below: number) => number;
  readonly #rigs: Rig[] = [];
  /** By rig, the connections there. */
  readonly #held = new Map<Rig, Map<number, Held>>();
  /** Released ids, and the batch of their release. */
  readonly #gone = new Map<Rig, Map<number, number>>();
  /** Removed listeners, and the last batch in which they may accept. */
  readonly #leaving = new Map<Rig, Map<number, number>>();
  readonly #listeners = new Set<Listener>();
  readonly #sockets = new Map<Socket, End>();
  /** Not accepted yet; by listener and connecting address. */
  readonly #underWay = new Map<string, Link>();
  readonly #links = new Set<Link>();
  readonly #server: Server;
  #made = 0;

  constructor(readonly seed: number) {
    this.#random = generator(seed);
    for (const [index, isSmall] of [seed % 2 === 0, seed % 3 === 0].entries()) {
      const rig = new Rig({
        unlogged: true,
        uncopied: true,
        receiveBytes: isSmall ? 16 * 1024 : 1 << 20,
        maxEvents: isSmall ? 6 + this.#random(20) : 256,
        maxSubmissions: 32,
        highWatermark: HIGH_WATERMARK,
        receiveLimit: index === 0 ? 1 << 20 : 10_000,
        onEvent: (event, at) => this.#onEvent(at, event),
      });
      this.#rigs.push(rig);
      this.#held.set(rig, new Map());
      this.#gone.set(rig, new Map());
      this.#leaving.set(rig, new Map());
    }
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      // It was reset before its peer could be determined.
      if (socket.remotePort === undefined) return void socket.destroy();
      this.#own(socket, this.#accept(`${socket.localPort}/${socket.remotePort}`));
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    for (let count = 0; count < 4; count++) this.#listen();
  }

  async run(steps: number): Promise<void> {
    for (let step = 0; step < steps && this.wrong.length === 0; step++) {
      if (this.#random(8) === 0) this.#actAlone();
      else this.#act();
      if (step % 8 !== 0) continue;
      this.#flush();
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#flush();
    this.#check();
  }

  /** Lets all operations in progress finish. */
  async settle(): Promise<void> {
    for (const rig of this.#rigs) rig.onEvent = (event) => this.#see(rig, event);
    await this.#none('whose sender was not notified of pressure', () =>
      this.#all().flatMap(({ end, highWatermark, id, rig }) => {
        const isOver = rig.transport.pendingBytes(id) > highWatermark;
        return end.isOpen && !end.isFrozen && isOver && !end.isBlocked ? [end.link] : [];
      }),
    );
    for (const held of this.#all()) {
      this.#thaw(held);
      this.#resume(held);
    }
    for (const socket of this.#sockets.keys()) socket.resume();
    this.#flush();
    const links = [...this.#links];
    await this.#none('that is still connecting', () =>
      links.filter(({ connecting }) => !connecting.isConnected && connecting.isOpen),
    );
    for (const listener of [...this.#listeners]) this.#removeListener(listener, true);
    await this.#none('listener that has more to accept', () =>
      this.#rigs.map((rig) => rig.transport.counts()).filter(({ listeners }) => listeners > 0),
    );
    await this.#none('that is undisturbed and not accepted', () =>
      links.filter(({ accepted, disturbed }) => disturbed === '' && accepted === undefined),
    );
    for (const held of this.#all()) if (held.end.isOpen && !held.end.isFinished) this.#shutdown(held);
    for (const [socket, end] of this.#sockets) if (end.isOpen && !end.isFinished) endSocket(socket, end);
    this.#flush();
    await this.#none('that is undisturbed and still open', () =>
      links.filter(
        ({ accepted, connecting, disturbed }) => disturbed === '' && !(accepted?.isDone && connecting.isDone),
      ),
    );
    await this.#none('that was reset without seeing it', () =>
      this.#all().flatMap(({ end }) => (end.peer?.hasReset && !end.isDead ? [end.link] : [])),
    );
    for (const held of this.#all()) this.#close(held, PATIENT_MS, held.end.isEnded ? 0 : PATIENT_MS);
    for (const socket of this.#sockets.keys()) socket.destroy();
    this.#flush();
    await this.#none('that is not closed', () =>
      this.#rigs.map((rig) => rig.transport.counts()).filter(({ closing, connections }) => connections + closing > 0),
    );
  }

  /** Idempotent. */
  async close(): Promise<void> {
    for (const rig of this.#rigs) rig.close();
    for (const socket of this.#sockets.keys()) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  // ---- operations

  /** Runs an operation that is allowed within a batch too. */
  #act(): void {
    const held = this.#pick([...this.#all()]);
    const dice = this.#random(100);
    if (held === undefined || (dice < 8 && this.#links.size < MAX_LINKS)) return this.#connect();
    if (dice < 50) return this.#send(held);
    if (dice < 60) return this.#pause(held);
    if (dice < 76) return this.#resume(held);
    if (dice < 79) return this.#shutdown(held);
    if (dice < 82) return this.#closeRandomly(held);
    if (dice < 84) return this.#reset(held);
    if (dice < 87) return this.#setMarks(held);
    if (dice < 88) return held.rig.submit(Op.ReceiveLimit, held.id, this.#random(200_000));
    if (dice < 90) return this.#submitStale();
    if (dice < 94) return this.#useSocket();
    if (dice < 95) return this.#changeListeners();
    if (dice < 97) return this.#setAccepting();
    held.rig.flush();
  }

  /** Runs an operation that is only allowed between batches. */
  #actAlone(): void {
    this.#flush();
    const held = this.#pick([...this.#all()]);
    if (held === undefined) return;
    if (!held.end.isFrozen) {
      if (held.rig.transport.freeze(held.id)) {
        held.end.does('is frozen');
        held.end.isFrozen = true;
      } else if (held.end.isConnected && held.end.link.disturbed === '' && !held.end.mayFail) {
        held.end.link.blame('it cannot be frozen');
      }
    } else if (this.#random(2) === 0) this.#thaw(held);
    else this.#move(held);
  }

  #listen(): void {
    const name = `@baton-shim-random-${process.pid}-${this.seed}-${++this.#made}`;
    const fd = shim.openListenSocket(this.#random(2) === 0 ? unix(name) : loopback, {
      reusePort: false,
      freebind: false,
      transparent: false,
      v6Only: true,
    });
    try {
      shim.listen(fd, 4096);
      const isShared = this.#random(3) === 0;
      const rigs = isShared ? this.#rigs : [this.#pick(this.#rigs)!];
      const ids = new Map(rigs.map((rig) => [rig, rig.transport.addListener(fd, isShared, 0)]));
      this.#listeners.add({ address: shim.boundAddress(fd), ids });
    } finally {
      shim.closeDescriptor(fd);
    }
  }

  #changeListeners(): void {
    const listener = this.#pick([...this.#listeners])!;
    this.#removeListener(listener, this.#random(2) === 0);
    this.#listen();
  }

  #removeListener(listener: Listener, acceptRest: boolean): void {
    this.#listeners.delete(listener);
    for (const [rig, id] of listener.ids) {
      rig.transport.removeListener(id, acceptRest);
      this.#leaving.get(rig)!.set(id, acceptRest ? Number.POSITIVE_INFINITY : rig.batches);
    }
    for (const link of this.#links) {
      if (link.accepted !== undefined || link.to !== nameOf(listener.address)) continue;
      link.note(`its listener is removed, ${acceptRest ? 'accepting the rest' : 'at once'}`);
      if (!acceptRest || !link.connecting.isConnected) link.disturb('its listener was closed');
    }
  }

  #setAccepting(): void {
    const [rig, id] = this.#pick([...this.#pick([...this.#listeners])!.ids])!;
    rig.transport.setAccepting(id, this.#random(2) === 0);
  }

  #connect(): void {
    const dice = this.#random(10);
    const listener = this.#pick([...this.#listeners])!;
    const rig = this.#pick(this.#rigs)!;
    if (dice === 0) {
      const link = this.#link('nobody', this.#random(2) === 0);
      link.disturb('no listener');
      const remote = link.isLocal ? unix('@baton-shim-nobody') : NOBODY;
      this.#hold(rig, rig.connect(remote, undefined, HIGH_WATERMARK), link.connecting);
      return;
    }
    if (dice < 3 && portOf(listener.address) > 0) return this.#connectSocket(portOf(listener.address));
    const remote = dice < 5 ? internet('127.0.0.1', (this.#server.address() as AddressInfo).port) : listener.address;
    const link = this.#link(nameOf(remote), portOf(remote) === 0);
    const local = link.isLocal ? unix(`@baton-shim-random-${process.pid}-${this.seed}-${++this.#made}`) : undefined;
    const id = rig.connect(remote, local, HIGH_WATERMARK, 0, 1 + this.#random(1 << 20));
    this.#hold(rig, id, link.connecting);
    this.#underWay.set(`${nameOf(remote)}/${nameOf(rig.transport.localAddress(id))}`, link);
  }

  #connectSocket(port: number): void {
    const link = this.#link(String(port), false);
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.once('connect', () => link.connecting.connected());
    // It has started by then.
    process.nextTick(() => this.#underWay.set(`${port}/${socket.localPort}`, link));
    this.#own(socket, link.connecting);
  }

  #send({ end, id, rig }: Held): void {
    if (end.isDead) return;
    if (end.isFinished) {
      if (this.#random(20) > 0) return;
      end.does('sends after its end');
      end.hasSentBehindFin = true;
      return rig.send(id, 'too late');
    }
    const [pieces, length] = this.#pick([
      [1, 1],
      [80, 3],
      [3, 100],
      [4, 5000],
      [2, 70_000],
      [1, 300_000],
    ])!;
    end.does(`sends ${pieces} times ${length} from ${end.sent}`);
    for (let piece = 0; piece < pieces!; piece++) rig.send(id, end.take(length!));
  }

  #pause(held: Held): void {
    const { end, id, rig } = held;
    if (!end.isPaused) held.pausedInBatch = rig.batches;
    end.does('pauses');
    end.isPaused = true;
    rig.submit(Op.Pause, id);
  }

  #resume({ end, id, rig }: Held): void {
    end.does('resumes');
    end.isPaused = false;
    rig.submit(Op.Resume, id);
  }

  #shutdown({ end, id, rig }: Held): void {
    end.finish();
    rig.submit(Op.Shutdown, id);
  }

  #closeRandomly(held: Held): void {
    const flushMs = this.#pick([0, 1, PATIENT_MS, PATIENT_MS])!;
    this.#close(held, flushMs, this.#pick([0, 1, PATIENT_MS, PATIENT_MS])!);
  }

  #close({ end, id, rig }: Held, mostFlushMs: number, lingerMs: number): void {
    // Two closing ends with more to send than the kernel holds wait for each other: neither reads.
    const flushMs = end.peer?.isClosed ? Math.min(1, mostFlushMs) : mostFlushMs;
    const isPatient = flushMs === PATIENT_MS && (end.isEnded || lingerMs === PATIENT_MS);
    end.close(`with ${flushMs}, ${lingerMs}`, isPatient, rig.transport.pendingBytes(id));
    rig.submit(Op.Close, id, flushMs, lingerMs);
    this.#release(rig, id);
  }

  #reset({ end, id, rig }: Held): void {
    end.reset(rig.transport.pendingBytes(id));
    rig.submit(Op.Reset, id);
    this.#release(rig, id);
  }

  #setMarks(held: Held): void {
    const { end, id, rig } = held;
    held.highWatermark = this.#random(50_000);
    const hardLimit = this.#random(4) === 0 ? 1 + this.#random(200_000) : 0;
    end.hasHardLimit ||= hardLimit > 0;
    end.does(`sets its hard limit to ${hardLimit}`);
    rig.submit(Op.Watermark, id, held.highWatermark, hardLimit);
  }

  /** Uses an id of no connection. */
  #submitStale(): void {
    const rig = this.#pick(this.#rigs)!;
    const id = this.#pick([...this.#gone.get(rig)!.keys()]);
    if (id !== undefined) rig.submit(this.#pick([Op.Send, Op.Reset, Op.Close, Op.Pause, Op.Shutdown])!, id);
  }

  #thaw({ end, id, rig }: Held): void {
    if (!end.isFrozen) return;
    end.does('is thawed');
    end.isFrozen = false;
    if (!rig.transport.thaw(id)) end.link.blame('it cannot be thawed');
  }

  /** The other rig continues with it, or the same one under another id. */
  #move(held: Held): void {
    const { end, id, rig } = held;
    let copy: ReturnType<typeof rig.transport.copyFrozen>;
    try {
      copy = rig.transport.copyFrozen(id);
    } catch (error) {
      if (!end.mayFail) end.link.blame(`it cannot be copied: ${error}`);
      return this.#thaw(held);
    }
    if (copy.ended !== end.isEnded) end.link.blame('a copy with a different end');
    if (copy.finAsked !== end.isFinished) end.link.blame('a copy with a different FIN');
    const to = this.#pick(this.#rigs)!;
    const highWatermark = this.#random(100_000);
    end.does(`moves with ${copy.pending.length} pending`);
    const { fd, ...progress } = copy;
    const moved = to.transport.adopt(fd, {
      ...progress,
      highWatermark,
      hardLimit: 0,
      receiveLimit: this.#random(100_000),
      paused: end.isPaused,
      frozen: true,
    });
    if (!rig.transport.releaseFrozen(id)) end.link.blame('it cannot be released');
    this.#release(rig, id);
    end.isBlocked = copy.pending.length > highWatermark;
    this.#hold(to, moved, end, highWatermark);
  }

  /** Runs an operation of one of Node's sockets. */
  #useSocket(): void {
    const [socket, end] = this.#pick([...this.#sockets]) ?? [];
    if (socket === undefined || end === undefined || !end.isOpen || !end.isConnected) return;
    const dice = this.#random(20);
    // Node does not reset a socket that is shutting down, and leaks it.
    if (dice === 0 && !end.isFinished) {
      end.reset(0);
      socket.resetAndDestroy();
    } else if (dice < 3 && !end.isFinished) endSocket(socket, end);
    else if (dice < 7) socket.pause();
    else if (dice < 12) socket.resume();
    else if (!end.isFinished) socket.write(end.take(this.#pick([1, 4000, 200_000])!));
  }

  // ---- events

  #onEvent(rig: Rig, event: Seen): void {
    this.#see(rig, event);
    const held = this.#held.get(rig)!.get(event.id);
    if (held?.end.isDead && this.#random(4) > 0) this.#closeRandomly(held);
    if (this.#random(3) === 0) this.#act();
    // Operations on connections of other batches are carried out by nothing else.
    for (const other of this.#rigs) if (other !== rig) other.flush();
  }

  #see(rig: Rig, event: Seen): void {
    this.counted[event.kind]!++;
    if (event.kind === Event.Accept) return this.#sawAccept(rig, event);
    const held = this.#held.get(rig)!.get(event.id);
    if (held === undefined) {
      // An id released within a batch may still have events further on in that batch.
      if (this.#gone.get(rig)!.get(event.id) !== rig.batches) this.wrong.push(`event ${event.kind} for ${event.id}`);
      return;
    }
    const { end } = held;
    const isReceived = event.kind === Event.Data || event.kind === Event.End;
    if (isReceived && end.isPaused && held.pausedInBatch !== rig.batches) end.link.blame('received while paused');
    switch (event.kind) {
      case Event.Data:
        if (held.dataInBatch === rig.batches) end.link.blame('Data twice in a batch');
        held.dataInBatch = rig.batches;
        return end.data(event.bytes);
      case Event.End:
        return end.ended();
      case Event.Reset:
        return end.wasReset(event.value);
      case Event.Connected:
        return end.connected();
      case Event.Blocked:
        return end.blocked();
      case Event.Drained:
        return end.drained();
      default:
        this.wrong.push(`event ${event.kind} with ${event.value}`);
    }
  }

  #sawAccept(rig: Rig, event: Seen): void {
    const listener = [...this.#listeners].find(({ ids }) => ids.get(rig) === event.listener);
    if (listener === undefined && !(this.#leaving.get(rig)!.get(event.listener)! >= rig.batches)) {
      this.wrong.push('Accept of a listener that is closed');
    }
    if (this.#held.get(rig)!.has(event.id)) this.wrong.push(`Accept of ${event.id}, which is open`);
    const local = rig.transport.localAddress(event.id);
    this.#hold(rig, event.id, this.#accept(`${nameOf(local)}/${nameOf(event.bytes)}`));
  }

  #accept(key: string): End {
    const link = this.#underWay.get(key);
    this.#underWay.delete(key);
    if (link !== undefined) return link.accept(this.#random(1 << 20));
    this.wrong.push(`accepted is ${key}, which has not connected`);
    return this.#link(key, false).accept(0);
  }

  // ---- bookkeeping

  #link(to: string, isLocal: boolean): Link {
    // Links that are over on both sides are dropped.
    for (const link of this.#links) {
      if (link.connecting.isClosed && (link.accepted?.isClosed ?? link.disturbed !== '')) this.#links.delete(link);
    }
    const link = new Link(to, isLocal, this.#random(1 << 20), this.wrong);
    this.#links.add(link);
    return link;
  }

  #hold(rig: Rig, id: number, end: End, highWatermark = HIGH_WATERMARK): void {
    this.#held.get(rig)!.set(id, { rig, id, end, highWatermark, dataInBatch: -1, pausedInBatch: -1 });
  }

  #release(rig: Rig, id: number): void {
    this.#held.get(rig)!.delete(id);
    this.#gone.get(rig)!.set(id, rig.batches);
  }

  #own(socket: Socket, end: End): void {
    this.#sockets.set(socket, end);
    end.takesResetForEnd = true;
    // Events of a socket that it was asked to reset are ignored.
    socket.on('data', (bytes) => end.isClosed || end.data(bytes));
    socket.on('end', () => end.isClosed || end.ended());
    socket.on('error', ({ errno = 0 }: NodeJS.ErrnoException) => end.isClosed || end.wasReset(errno));
    socket.once('close', () => {
      this.#sockets.delete(socket);
      if (end.isOpen) end.close('', end.isEnded, 0);
      end.isClosed = true;
    });
  }

  #all(): Held[] {
    return [...this.#held.values()].flatMap((held) => [...held.values()]);
  }

  #flush(): void {
    for (const rig of this.#rigs) {
      rig.flush();
      const { connections } = rig.transport.counts();
      const held = this.#held.get(rig)!.size;
      if (connections !== held) this.wrong.push(`${connections} connections are counted, ${held} are there`);
    }
  }

  #pick<T>(values: readonly T[]): T | undefined {
    return values[this.#random(values.length)];
  }

  /** Waits until no such object is left. */
  async #none(what: string, left: () => readonly object[]): Promise<void> {
    try {
      await until(() => this.wrong.length > 0 || left().length === 0, what, SETTLED_WITHIN_MS);
    } catch (error) {
      const first = left()[0];
      const shown = first instanceof Link ? first.toString() : JSON.stringify(first);
      throw new Error(`seed ${this.seed}: one is left ${what}: ${shown}`, { cause: error });
    }
    this.#check();
  }

  #check(): void {
    if (this.wrong.length > 0) throw new Error(`seed ${this.seed}: ${this.wrong[0]}`);
  }
}

function endSocket(socket: Socket, end: End): void {
  end.finish();
  socket.end();
}

/** Returns a port, or the name of a Unix socket. */
function nameOf(address: Uint8Array): string {
  return address[0] === 1 ? Buffer.from(address.subarray(3)).toString() : String(portOf(address));
}

/** Returns random(n), an integer from 0 to n - 1. */
function generator(seed: number): (below: number) => number {
  let state = seed * 2654435761;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
