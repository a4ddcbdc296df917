// A request or a response while a hook has it, and its body.
//
//   Passing: the body passes unseen, or is held while the hook waits     → Passing
//   Discarding: the hook has replaced the body; the received one is dropped to its end
//   Streaming: the hook reads the body in pieces (PieceReader)

import type { BodyPiece, Headers, HttpMessage } from '../../../../api/index.js';
import { bytesOf } from '../../../script/text.js';
import { DataStatus, type HeaderBlock, HeadersStatus, headerKey, type StreamControl } from '../../../sdk.js';
import { BodyWait } from './body-wait.js';
import type { Direction } from './direction.js';
import { ScriptHeaders } from './headers.js';
import { type Beginning, PieceReader } from './piece-reader.js';

const CONTENT_LENGTH = headerKey('content-length');
const NOTHING = new Uint8Array(0);

const enum Body {
  Passing = 0,
  Discarding = 1,
  Streaming = 2,
}

export abstract class ScriptMessage implements HttpMessage {
  readonly hasBody: boolean;
  protected readonly stream: StreamControl;
  readonly #direction: Direction;
  readonly #headers: ScriptHeaders;
  #trailers: ScriptHeaders | undefined;
  #mode: Body = Body.Passing;
  /** A hook waits, and the message with it. */
  #isHeld = false;
  /** The route is selected again when the message goes on. */
  #rematches = false;
  /** The end of the message has arrived. */
  #isComplete: boolean;
  #wait: BodyWait | undefined;
  #whole: Promise<Uint8Array> | undefined;
  #replacement: Uint8Array | undefined;
  #reader: PieceReader | undefined;

  constructor(block: HeaderBlock, endStream: boolean, stream: StreamControl, direction: Direction) {
    this.#headers = new ScriptHeaders(block);
    this.hasBody = !endStream;
    this.#isComplete = endStream;
    this.stream = stream;
    this.#direction = direction;
  }

  // ── For modules ──────────────────────────────────────────────────────────────────────────────────────────────────

  get headers(): Headers {
    return this.#headers;
  }

  get trailers(): Headers {
    if (this.#trailers !== undefined) return this.#trailers;
    if (!this.#isComplete)
      throw new Error(`the trailers of a ${this.#direction.what} follow its body: read the body first`);
    const block = this.#direction.addTrailers(this.stream);
    if (block === undefined) throw new Error(`this ${this.#direction.what} cannot have trailers any more`);
    this.#trailers = new ScriptHeaders(block);
    return this.#trailers;
  }

  bytes(): Promise<Uint8Array> {
    if (this.#whole === undefined) {
      this.#whole = this.#read();
      // A hook that has ended without awaiting it is not an error of its own.
      this.#whole.catch(() => {});
    }
    return this.#whole;
  }

  async text(): Promise<string> {
    return Buffer.from(await this.bytes()).toString();
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }

  get body(): AsyncIterable<BodyPiece> {
    if (this.#whole !== undefined) throw new Error('the body was read as a whole');
    if (this.#replacement !== undefined) throw new Error('setBody() has replaced the body');
    this.#reader ??= new PieceReader(this.stream, this.#direction, () => this.#startStreaming());
    return this.#reader;
  }

  setBody(body: string | Uint8Array): void {
    if (this.#reader !== undefined) throw new Error('the body is read in pieces: replace() replaces a piece');
    void this.#headers.block;
    this.#replacement = bytesOf(body);
  }

  /** Undefined once the message has gone on. */
  get openHead(): HeaderBlock | undefined {
    return this.#headers.openBlock;
  }

  protected get block(): HeaderBlock {
    return this.#headers.block;
  }

  /** False: a body of this message is never sent, such as that of a response to HEAD. */
  protected get mayHaveBody(): boolean {
    return true;
  }

  // ── For the filter ───────────────────────────────────────────────────────────────────────────────────────────────

  /** The head was sent on, and a hook that waits need not end soon. */
  get isStreaming(): boolean {
    return this.#mode === Body.Streaming;
  }

  /** Called when the hook waits. What it does not read is not received meanwhile. */
  hold(): void {
    this.#isHeld = true;
    if (!this.#isComplete && this.#wait === undefined && this.#mode === Body.Passing)
      this.#direction.pause(this.stream);
  }

  /** Called when the hook has ended without waiting. Returns what its callback returns. */
  finish(): HeadersStatus {
    this.#fitHead();
    this.#close();
    this.#endStreaming();
    if (this.#replacement === undefined) return HeadersStatus.Continue;
    if (this.#isComplete) {
      this.#addReplacement();
      return HeadersStatus.Continue;
    }
    this.#mode = Body.Discarding;
    return HeadersStatus.StopIteration;
  }

  /** Called when the hook has ended after it has waited: passes the message on, a request by another route if it `rematches`. */
  release(rematches = false): void {
    const { stream } = this;
    this.#isHeld = false;
    this.#rematches = rematches;
    this.#fitHead();
    this.#close();
    if (this.#endStreaming()) return;
    if (this.#replacement !== undefined) {
      this.#direction.drop(stream);
      if (this.#isComplete) this.#addReplacement();
      else this.#mode = Body.Discarding;
    }
    if (this.#mode !== Body.Discarding) this.#passOn();
    this.#direction.resume(stream);
  }

  /** Called when the hook has failed and the message goes on nevertheless: with its own body, and the changes of its head so far. */
  finishAfterFailure(): void {
    this.#replacement = undefined;
    this.#close();
    this.#endStreaming();
  }

  /** Called when the message goes on or ends in another way. */
  abandon(why: string): void {
    this.#isHeld = false;
    this.#close(why);
    this.#reader?.abandon(why);
  }

  onData(offset: number, length: number, endStream: boolean, bytes: Uint8Array): DataStatus {
    if (endStream) this.#isComplete = true;
    if (this.#mode === Body.Streaming) {
      this.#reader!.push(bytes.slice(offset, offset + length), endStream);
      return DataStatus.StopNoBuffer;
    }
    if (this.#mode === Body.Discarding) {
      if (endStream) {
        this.#addReplacement();
        this.#passOn();
      }
      return DataStatus.StopNoBuffer;
    }
    if (!this.#isHeld) return DataStatus.Continue;
    if (endStream) this.#arrived();
    return DataStatus.StopAndBuffer;
  }

  onTrailers(trailers: HeaderBlock): HeadersStatus {
    this.#isComplete = true;
    if (this.#mode === Body.Discarding) {
      this.#addReplacement();
      this.#passOn();
    }
    if (this.#mode !== Body.Streaming && !this.#isHeld) return HeadersStatus.Continue;
    this.#trailers = new ScriptHeaders(trailers);
    this.#reader?.push(NOTHING, true);
    this.#arrived();
    return HeadersStatus.StopIteration;
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Passes on what is held. */
  #passOn(): void {
    if (this.#rematches) this.stream.continueWithNewRoute();
    else this.#direction.continue(this.stream);
  }

  async #read(): Promise<Uint8Array> {
    if (this.#reader !== undefined) throw new Error('the body is read in pieces');
    if (!this.#isComplete) {
      this.#wait = new BodyWait();
      const { arrived } = this.#wait;
      this.#direction.resume(this.stream);
      await arrived;
    }
    return this.#direction.held(this.stream);
  }

  #arrived(): void {
    this.#wait?.end();
    this.#wait = undefined;
  }

  /** Begins to read in pieces: sends the head on, unless a part of the body has arrived. */
  #startStreaming(): Beginning {
    const { stream } = this;
    const isComplete = this.#isComplete;
    const hasFixedLength = this.#headers.has('content-length');
    const bytes = this.#direction.held(stream);
    const isHeadHeld = isComplete || bytes.length > 0;
    this.#direction.drop(stream);
    this.#mode = Body.Streaming;
    this.#headers.close(`the head of the ${this.#direction.what} was sent on when its body was read in pieces`);
    if (!isHeadHeld) this.#direction.continue(stream);
    if (!isComplete) this.#direction.resume(stream);
    return { bytes, isComplete, isHeadHeld, hasFixedLength };
  }

  /** Sends the rest on, also if the hook has not awaited its reading. Returns whether the body was read in pieces. */
  #endStreaming(): boolean {
    if (this.#mode !== Body.Streaming) return false;
    this.#mode = Body.Passing;
    this.#reader!.end(this.#direction.goneOn);
    return true;
  }

  /** Adjusts the head to a body that replaces the received one. */
  #fitHead(): void {
    if (this.#replacement === undefined) return;
    this.#headers.setOwn(CONTENT_LENGTH, String(this.#replacement.length));
    if (!this.mayHaveBody) this.#replacement = NOTHING;
  }

  #addReplacement(): void {
    if (this.#replacement!.length > 0) this.#direction.add(this.stream, this.#replacement!);
  }

  #close(why = this.#direction.goneOn): void {
    this.#headers.close(why);
    this.#trailers?.close(why);
    this.#wait?.fail(why);
    this.#wait = undefined;
  }
}
