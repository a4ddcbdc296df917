// Mutated HTTP/2 connections to the server codec, whose streams respond, pause, and reset at random; and mutated header blocks.
//
// The codec must not throw, must send only valid frames within the client's windows, and must hold nothing when a connection has ended.

import type { Random } from '../../src/common/random.js';
import { ResetReason } from '../../src/http/codec/streams.js';
import {
  data,
  FramePeer,
  FrameType,
  frame,
  PREFACE,
  requestList,
  resetFrame,
  settings,
  windowUpdate,
} from '../../test/http/h2/frames.js';
import { DecoderBench } from '../../test/http/h2/hpack/bench.js';
import { ServerPeer, type TestStream } from '../../test/http/h2/server-peer.js';
import { mutateBytes, pick } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Turns of one connection. */
const TURNS = 12;
const MAX_FRAMES = 6;

/** Throws a Finding when the codec shows a defect. Returns a summary. */
export async function fuzzHttp2(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const end = performance.now() + durationMs;
  let connections = 0;
  let ended = 0;
  let blocks = 0;
  while (performance.now() < end) {
    for (let i = 0; i < 20; i++) {
      connections++;
      if (runConnection(random)) ended++;
      blocks += runBlocks(random);
    }
    // Signals and timers of the process.
    await new Promise(setImmediate);
  }
  return `${connections} connections, of which ${ended} were ended by the codec; ${blocks} header blocks`;
}

/** Runs one connection. Returns whether the codec ended it. */
function runConnection(random: Random): boolean {
  const history: string[] = [];
  const note = (what: string) => history.push(what);
  try {
    const peer = new ServerPeer(
      { maxStreams: 8, streamWindow: 65_535, connectionWindow: 100_000, maxHeadBytes: 4096 },
      true,
    );
    const ledger = new WindowLedger();
    const client = new Client(random);
    peer.onRequest = (stream) => act(random, peer, stream, note);
    peer.onBody = (stream) => {
      if (random.below(4) === 0) act(random, peer, stream, note);
    };
    send(peer, ledger, random.below(20) === 0 ? mutateBytes(random, [PREFACE], [PREFACE]) : PREFACE, note);
    for (let turn = 0; turn < TURNS && !peer.isClosed; turn++) {
      send(peer, ledger, client.input(turn), note);
      if (peer.isClosed) break;
      peer.turn(() => {
        if (peer.streams.length > 0) act(random, peer, pick(random, peer.streams), note);
      });
      ledger.read(peer);
    }
    const isEnded = peer.isClosed;
    const kept = peer.end();
    if (kept !== 0) throw new Error(`${kept} bytes of the arena are held after the end`);
    return isEnded;
  } catch (error) {
    throw new Finding(`${error instanceof Error ? error.stack : error}\n${history.join('\n')}`);
  }
}

function send(peer: ServerPeer, ledger: WindowLedger, bytes: Buffer, note: (what: string) => void): void {
  note(`>> ${bytes.toString('hex')}`);
  ledger.received(bytes);
  // Received in up to three parts.
  const at = Math.floor(bytes.length / 3);
  for (const part of [bytes.subarray(0, at), bytes.subarray(at, 2 * at), bytes.subarray(2 * at)]) {
    if (part.length > 0 && !peer.isClosed) peer.receive(part);
  }
  ledger.read(peer);
}

const EXPECTING: [string, string][] = [
  ['expect', '100-continue'],
  ['cookie', 'a=b'],
  ['cookie', 'c=d'],
];

/** A client: most of its frames are valid, so that connections live for some turns. */
class Client {
  readonly #random: Random;
  readonly #frames = new FramePeer();
  #nextStream = 1;
  /** The stream whose request continues; 0 if there is none. */
  #bodyStream = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Returns what the client sends in a turn. */
  input(turn: number): Buffer {
    const random = this.#random;
    const parts = turn === 0 ? [settings([4, random.below(100_000)])] : [];
    for (let left = 1 + random.below(MAX_FRAMES); left > 0; left--) {
      const next = random.below(30) === 0 ? this.#oddFrame() : this.#plainFrame();
      parts.push(random.below(60) === 0 ? mutateBytes(random, [next], [next]) : next);
    }
    return Buffer.concat(parts);
  }

  /** Returns a stream that has been opened. */
  get #stream(): number {
    return 2 * this.#random.below((this.#nextStream - 1) / 2) + 1;
  }

  #plainFrame(): Buffer {
    const random = this.#random;
    const frames = this.#frames;
    let kind = this.#nextStream === 1 ? 0 : random.below(11);
    if (this.#bodyStream === 0 && (kind === 4 || kind === 5)) kind = 3;
    switch (kind) {
      case 0:
      case 1:
        return frames.request(this.#open(), '/');
      case 2:
        this.#bodyStream = this.#open();
        return frames.request(this.#bodyStream, '/body', random.below(2) === 0 ? [] : [['content-length', '5']], false);
      case 3:
        this.#bodyStream = this.#open();
        return frames.request(this.#bodyStream, '/', EXPECTING, false);
      case 4: {
        const stream = this.#bodyStream;
        this.#bodyStream = 0;
        return random.below(3) === 0 ? frames.headers(stream, [['x-trailer', '1']]) : data(stream, 'hello', true);
      }
      case 5:
        return data(this.#bodyStream, 'x'.repeat(1 + random.below(16_384)));
      case 6:
        return windowUpdate(this.#stream, 1 + random.below(100_000));
      case 7:
        return windowUpdate(0, 1 + random.below(100_000));
      case 8:
        return resetFrame(this.#stream, random.below(14));
      case 9:
        return settings([4, random.below(100_000)], [1, random.below(5000)]);
      default:
        return frame(FrameType.Ping, random.below(2), 0, Buffer.alloc(8));
    }
  }

  #open(): number {
    this.#nextStream += 2;
    return this.#nextStream - 2;
  }

  #oddFrame(): Buffer {
    const random = this.#random;
    const stream = random.below(this.#nextStream + 4);
    switch (random.below(7)) {
      case 0:
        return frame(FrameType.Priority, 0, stream, Buffer.from([0, 0, 0, random.below(4), 1]));
      case 1:
        return frame(FrameType.Continuation, 4, stream, Buffer.from([0x82]));
      case 2:
        return frame(FrameType.Headers, random.below(64), stream, Buffer.from(this.#frames.block(requestList('/'))));
      case 3:
        return frame(FrameType.GoAway, 0, 0, Buffer.alloc(8));
      case 4:
        return this.#frames.headers(stream, [['x-trailer', '1']]);
      case 5:
        return data(stream, 'x'.repeat(random.below(20)), random.below(2) === 0);
      default:
        return frame(random.below(256), random.below(256), stream, Buffer.alloc(random.below(20)));
    }
  }
}

/** What the side of the application does with a stream. */
function act(random: Random, peer: ServerPeer, stream: TestStream, note: (what: string) => void): void {
  const action = random.below(12);
  note(`!! ${action} on stream ${peer.streams.indexOf(stream) + 1}`);
  switch (action) {
    case 0:
      return stream.respond([['content-type', 'text/plain']], 'x'.repeat(random.below(2000)));
    case 1:
      return stream.respond();
    case 2:
      return stream.begin([['x-large', 'y'.repeat(random.below(random.below(8) === 0 ? 40_000 : 100))]]);
    case 3:
      return stream.body('z'.repeat(random.below(30_000)));
    case 4:
      return stream.body('end', true);
    case 5:
      return stream.trailers([['grpc-status', '0']]);
    case 6:
      return stream.encoder.reset(ResetReason.LocalReset);
    case 7:
      return stream.encoder.pauseReading();
    case 8:
      return stream.encoder.resumeReading();
    case 9:
      return stream.encoder.sendContinue();
    case 10:
      return peer.codec.blocked();
    default:
      return peer.codec.drained();
  }
}

/** Checks that DATA stays within the windows that the client has opened. Mutated frames may open windows that it does not know. */
class WindowLedger {
  #isExact = true;
  #connection = 65_535;

  received(bytes: Buffer): void {
    for (let at = 0; at + 9 <= bytes.length; ) {
      if (bytes.subarray(at, at + PREFACE.length).equals(PREFACE)) {
        at += PREFACE.length;
        continue;
      }
      const length = bytes.readUIntBE(at, 3);
      if (at + 9 + length > bytes.length) break;
      if (bytes[at + 3] === FrameType.WindowUpdate && length === 4 && (bytes.readUInt32BE(at + 5) & 0x7fffffff) === 0)
        this.#connection += bytes.readUInt32BE(at + 9) & 0x7fffffff;
      at += 9 + length;
      if (at > bytes.length) this.#isExact = false;
    }
    // A frame that a mutation has cut off makes the rest another one.
    this.#isExact &&= isWhole(bytes);
  }

  read(peer: ServerPeer): void {
    const bytes = Buffer.from(peer.wire.take(), 'latin1');
    for (const line of peer.frames.read(bytes)) if (line.includes('INVALID')) throw new Error(`sent: ${line}`);
    if (!this.#isExact) return;
    for (let at = 0; at < bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
      if (bytes[at + 3] === FrameType.Data) this.#connection -= bytes.readUIntBE(at, 3);
    }
    if (this.#connection < 0) throw new Error(`${-this.#connection} bytes more than the window were sent`);
  }
}

function isWhole(bytes: Buffer): boolean {
  let at = bytes.subarray(0, PREFACE.length).equals(PREFACE) ? PREFACE.length : 0;
  while (at + 9 <= bytes.length) at += 9 + bytes.readUIntBE(at, 3);
  return at === bytes.length;
}

function runBlocks(random: Random): number {
  const frames = new FramePeer();
  const decoder = new DecoderBench();
  const seeds = [
    frames.block(requestList('/')),
    frames.block([
      ['x-custom', 'value'],
      ['cookie', 'a=b; c=d; e=f; g=h'],
    ]),
    Uint8Array.from([0x3f, 0xe1, 0x1f, 0x82]),
    Uint8Array.from([
      0x40, 0x88, 0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f, 0x89, 0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4,
      0xbf,
    ]),
  ].map((block) => Buffer.from(block));
  const count = 8;
  for (let left = count; left > 0; left--) {
    const block = mutateBytes(random, seeds, seeds).subarray(0, 20_000);
    try {
      decoder.decode(block);
    } catch (error) {
      throw new Finding(`${error instanceof Error ? error.stack : error}\n${block.toString('hex')}`);
    }
    if (decoder.decoder.tableBytes > 4096) throw new Finding(`a table of ${decoder.decoder.tableBytes} bytes`);
  }
  return count;
}
