// The decompressor filter of one stream: decompresses the request and the response, each if its first content coding is the filter's.

import {
  BodyTransform,
  requestBody,
  responseBody,
  type TransformedBody,
  type TransformOptions,
} from '../../../compression/body-transform.js';
import { forbidsTransform } from '../../../compression/forbids-transform.js';
import type { DecompressionLibrary } from '../../../compression/library.js';
import {
  DataStatus,
  type DynamicCounter,
  type HeaderBlock,
  type HeaderKey,
  HeadersStatus,
  type HttpFilter,
  headerKey,
  type Memory,
  ResponseFlag,
  type RuntimeFlag,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import { BodyStats } from './stats.js';

const ACCEPT_ENCODING = headerKey('accept-encoding');
const CONTENT_ENCODING = headerKey('content-encoding');
const CONTENT_LENGTH = headerKey('content-length');

const { at } = BodyStats;

/** Which bodies of one direction are decompressed. */
export interface DirectionRules {
  readonly enabled: RuntimeFlag;
  readonly ignoresNoTransform: boolean;
  readonly stats: Scope;
}

export interface DecompressorRules {
  readonly library: DecompressionLibrary;
  readonly request: DirectionRules;
  readonly response: DirectionRules;
  /** Hosts are asked for the coding. */
  readonly advertises: boolean;
  /** Trailers with the lengths of the body, compressed and decompressed. */
  readonly compressedTrailer: HeaderKey;
  readonly uncompressedTrailer: HeaderKey;
  invalidBodies(): DynamicCounter;
}

export class DecompressorFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: DecompressorRules;
  readonly #request: DecompressedBody;
  readonly #response: DecompressedBody;

  constructor(stream: StreamControl, rules: DecompressorRules) {
    this.#stream = stream;
    this.#rules = rules;
    const run = (act: () => void) => stream.run(act);
    this.#request = new DecompressedBody(rules, rules.request, run, requestBody(stream), (isShortage) =>
      this.#refuse(isShortage ? 503 : 400),
    );
    this.#response = new DecompressedBody(rules, rules.response, run, responseBody(stream), (isShortage) =>
      this.#refuse(isShortage ? 503 : 502),
    );
  }

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (this.#rules.advertises && this.#rules.response.enabled.value) this.#advertise(headers);
    return this.#request.begin(headers, endStream);
  }

  decodeData(offset: number, length: number, endStream: boolean): DataStatus {
    return this.#request.write(offset, length, endStream);
  }

  decodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#request.end(trailers);
  }

  onRequestBlocked(): void {
    this.#request.blocked();
  }

  onRequestDrained(): void {
    this.#request.drained();
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    return this.#response.begin(headers, endStream);
  }

  encodeData(offset: number, length: number, endStream: boolean): DataStatus {
    return this.#response.write(offset, length, endStream);
  }

  encodeTrailers(trailers: HeaderBlock): HeadersStatus {
    return this.#response.end(trailers);
  }

  onResponseBlocked(): void {
    this.#response.blocked();
  }

  onResponseDrained(): void {
    this.#response.drained();
  }

  onDestroy(): void {
    this.#request.destroy();
    this.#response.destroy();
  }

  /** As in Envoy, the coding stands once, at the end. */
  #advertise(headers: HeaderBlock): void {
    const { encoding } = this.#rules.library;
    const others = (headers.get(ACCEPT_ENCODING) ?? '')
      .split(',')
      .map((element) => element.trim())
      .filter((element) => element !== '' && element.split(';', 1)[0]!.trim() !== encoding);
    headers.set(ACCEPT_ENCODING, [...others, encoding].join(','));
  }

  /** A response whose head has been sent is cut off. */
  #refuse(status: number): void {
    if (status === 503) return this.#stream.sendLocalReply(NO_MEMORY);
    const { encoding } = this.#rules.library;
    this.#stream.sendLocalReply({
      status,
      body: `the body is not valid ${encoding}, or too long without compression`,
      details: 'decompression_failed',
      flags: ResponseFlag.None,
    });
  }
}

const NO_MEMORY = {
  status: 503,
  body: 'no memory for decompression',
  details: 'decompression_overload',
  flags: ResponseFlag.OverloadManager,
};

/** The body of one direction. */
class DecompressedBody {
  readonly #rules: DecompressorRules;
  readonly #direction: DirectionRules;
  readonly #run: (act: () => void) => void;
  readonly #body: TransformedBody;
  readonly #refuse: (isShortage: boolean) => void;
  #memory!: Memory;
  #transform: BodyTransform | undefined;
  #isBlocked = false;
  #compressedBytes = 0;
  #uncompressedBytes = 0;
  /** The trailers of the message, if it has some. */
  #trailers: HeaderBlock | undefined;

  constructor(
    rules: DecompressorRules,
    direction: DirectionRules,
    run: (act: () => void) => void,
    body: TransformedBody,
    refuse: (isShortage: boolean) => void,
  ) {
    this.#rules = rules;
    this.#direction = direction;
    this.#run = run;
    this.#body = body;
    this.#refuse = refuse;
  }

  begin(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (endStream || headers.upgrade) return HeadersStatus.Continue;
    const { stats } = this.#direction;
    if (!this.#applies(headers)) {
      stats.increment(at.not_decompressed);
      return HeadersStatus.Continue;
    }
    this.#memory = headers.memory;
    stats.increment(at.decompressed);
    removeFirstCoding(headers);
    headers.remove(CONTENT_LENGTH);
    this.#transform = this.#newTransform();
    return HeadersStatus.Continue;
  }

  write(offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#transform === undefined) return DataStatus.Continue;
    this.#compressedBytes += length;
    this.#direction.stats.add(at.total_compressed_bytes, length);
    this.#transform.write(this.#memory.bytes.subarray(offset, offset + length), endStream);
    return DataStatus.StopNoBuffer;
  }

  end(trailers: HeaderBlock): HeadersStatus {
    if (this.#transform === undefined) return HeadersStatus.Continue;
    this.#trailers = trailers;
    this.#transform.end();
    return HeadersStatus.StopIteration;
  }

  blocked(): void {
    this.#isBlocked = true;
    this.#transform?.blocked();
  }

  drained(): void {
    this.#isBlocked = false;
    this.#transform?.drained();
  }

  destroy(): void {
    this.#transform?.destroy();
  }

  #applies(headers: HeaderBlock): boolean {
    const { enabled, ignoresNoTransform } = this.#direction;
    if (!enabled.value || firstCoding(headers) !== this.#rules.library.encoding) return false;
    return ignoresNoTransform || !forbidsTransform(headers);
  }

  #newTransform(): BodyTransform {
    const { library } = this.#rules;
    const options: TransformOptions = {
      outside: this.#memory.outside,
      maxRatio: library.maxRatio,
      onOutput: (bytes) => {
        this.#uncompressedBytes += bytes;
        this.#direction.stats.add(at.total_uncompressed_bytes, bytes);
      },
      onInvalid: () => {
        this.#rules.invalidBodies().increment();
        this.#refuse(false);
      },
      onShortage: () => this.#refuse(true),
      onEnd: (body) => this.#addTrailers(this.#trailers ?? body.addTrailers()),
    };
    return new BodyTransform(library, this.#run, this.#body, options, this.#isBlocked);
  }

  #addTrailers(trailers: HeaderBlock | undefined): void {
    if (trailers === undefined) return;
    trailers.set(this.#rules.compressedTrailer, String(this.#compressedBytes));
    trailers.set(this.#rules.uncompressedTrailer, String(this.#uncompressedBytes));
  }
}

/** Returns the coding that was applied first, in lower case. */
function firstCoding(headers: HeaderBlock): string | undefined {
  return headers.get(CONTENT_ENCODING)?.split(',', 1)[0]?.trim().toLowerCase();
}

function removeFirstCoding(headers: HeaderBlock): void {
  const others = headers.get(CONTENT_ENCODING)!.split(',').slice(1).join(',').trim();
  if (others === '') headers.remove(CONTENT_ENCODING);
  else headers.set(CONTENT_ENCODING, others);
}
