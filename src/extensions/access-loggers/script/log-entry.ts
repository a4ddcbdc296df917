// What onLog() gets. What it does not use is not created.

import type { LogEntry } from '../../../api/index.js';
import { formatOf } from '../../script/formats.js';
import { keyOf } from '../../script/header-keys.js';
import { textOfHead } from '../../script/text.js';
import { type HeaderView, type StreamInfo, shortFlags } from '../../sdk.js';

const AUTHORITY = ':authority';

export class ScriptLogEntry implements LogEntry {
  #info: StreamInfo | undefined;

  constructor(info: StreamInfo) {
    this.#info = info;
  }

  /** The stream is used for another request. */
  close(): void {
    this.#info = undefined;
  }

  get #stream(): StreamInfo {
    if (this.#info === undefined)
      throw new Error('an entry can be used until onLog() has returned or awaited something');
    return this.#info;
  }

  get type(): 'http' | 'tcp' {
    return this.#stream.accessLogType.startsWith('Tcp') || this.#stream.scheme === '' ? 'tcp' : 'http';
  }

  get startTime(): Date {
    return new Date(this.#stream.startRealtimeMs);
  }

  get durationMs(): number {
    return this.#stream.durationMs;
  }

  get status(): number {
    return this.#stream.responseCode;
  }

  get flags(): string {
    return shortFlags(this.#stream.responseFlags);
  }

  get details(): string {
    return this.#stream.responseCodeDetails;
  }

  get bytesReceived(): number {
    return this.#stream.bytesReceived;
  }

  get bytesSent(): number {
    return this.#stream.bytesSent;
  }

  get method(): string {
    const head = this.#stream.requestHeaders;
    return head === undefined ? '' : head.memory.text(head.methodStart, head.methodEnd);
  }

  get path(): string {
    const head = this.#stream.requestHeaders;
    return head === undefined ? '' : textOfHead(head.memory.text(head.pathStart, head.pathEnd));
  }

  get host(): string {
    return this.requestHeader('host') ?? '';
  }

  get routeName(): string {
    return this.#stream.routeName;
  }

  get cluster(): string {
    return this.#stream.upstreamCluster?.name ?? '';
  }

  get upstreamHost(): string {
    return this.#stream.upstreamHost;
  }

  get remoteAddress(): string {
    return this.#stream.downstreamRemoteAddress;
  }

  get localAddress(): string {
    return this.#stream.downstreamLocalAddress;
  }

  requestHeader(name: string): string | undefined {
    return valueIn(this.#stream.requestHeaders, name);
  }

  responseHeader(name: string): string | undefined {
    return valueIn(this.#stream.responseHeaders, name);
  }

  responseTrailer(name: string): string | undefined {
    return valueIn(this.#stream.responseTrailers, name);
  }

  metadata(namespace: string): Readonly<Record<string, unknown>> | undefined {
    return this.#stream.dynamicMetadata?.get(namespace);
  }

  format(text: string): string {
    return textOfHead(formatOf(text).text(this.#stream));
  }
}

function valueIn(head: HeaderView | undefined, name: string): string | undefined {
  if (head === undefined) return undefined;
  const value = head.get(keyOf(name === AUTHORITY ? 'host' : name));
  return value === undefined ? undefined : textOfHead(value);
}
