// Loaded into Baton before its own code (--import): HTTP filters that follow the script of each request. They are configured by
// messages of filters for AWS, whose stat_prefix is the name of the filter.
//
// x-script (JSON) of a request is what the filters do in their callbacks, and x-id is the request's name, under which its
// events are recorded. Requests to the filter named 'control' read the events, or have a filter do something later.

import { setImmediate } from 'node:timers/promises';
import { noHeaderNeeds } from '../../../../src/access-log/formats/format.js';
import type { AwsRequestSigningPerRoute } from '../../../../src/config/generated/api.js';
import type {
  AccessLoggerExtension,
  AnyExtension,
  HttpFilterExtension,
  WorkerContext,
} from '../../../../src/extensions/factories.js';
import { headerKey } from '../../../../src/extensions/header-key.js';
import { EXTENSIONS } from '../../../../src/extensions/index.js';
import {
  DataStatus,
  HeadersStatus,
  type HttpFilter,
  type LocalReply,
  type StreamControl,
} from '../../../../src/http/filters/filter.js';
import { type HeaderBlock, Method } from '../../../../src/http/headers/header-block.js';
import { Timer } from '../../../../src/io/time/timing-wheel.js';
import { getLogger } from '../../../../src/log/logger.js';
import { partialTable } from '../../../config/partial-table.js';

export const FILTER_TYPE = 'envoy.extensions.filters.http.aws_request_signing.v3.AwsRequestSigningPerRoute';

/** Type of an access logger that throws. */
export const LOGGER_TYPE = 'envoy.extensions.access_loggers.wasm.v3.WasmAccessLog';

export type Callback =
  | 'create'
  | 'decodeHeaders'
  | 'decodeData'
  | 'decodeTrailers'
  | 'encodeHeaders'
  | 'encodeData'
  | 'encodeTrailers'
  | 'onDestroy';

/**
 * What a filter does in a callback: words, and a status to return (continue, stop, buffer, drop). From a list each call takes
 * the next entry, and the last entry is repeated.
 */
export type Script = { readonly [callback in Callback]?: string | readonly string[] };

/** Scripts by filter name. */
export type Scripts = Readonly<Record<string, Script>>;

/** The response of the control filter. */
export interface Report {
  /** What the request's filters have seen and done, in order. */
  readonly events: readonly string[];
  /** Arena blocks in use by all requests of the worker. */
  readonly retainedBytes: number;
}

const logger = getLogger('testing');
const ID = headerKey('x-id');
const SCRIPT = headerKey('x-script');
const COMMAND = headerKey('x-command');

/** By request name. */
const requests = new Map<string, { readonly events: string[]; readonly filters: Map<string, ScriptedFilter> }>();

class ScriptedFilter implements HttpFilter {
  readonly #context: WorkerContext;
  readonly #stream: StreamControl;
  readonly #name: string;
  readonly #script: Script;
  readonly #events: string[];
  readonly #calls = new Map<Callback, number>();
  /** Trailers or data of the running callback. */
  #headers: HeaderBlock | undefined;
  decodeHeaders?: HttpFilter['decodeHeaders'];
  decodeData?: HttpFilter['decodeData'];
  decodeTrailers?: HttpFilter['decodeTrailers'];
  encodeHeaders?: HttpFilter['encodeHeaders'];
  encodeData?: HttpFilter['encodeData'];
  encodeTrailers?: HttpFilter['encodeTrailers'];

  constructor(context: WorkerContext, stream: StreamControl, name: string, script: Script, events: string[]) {
    this.#context = context;
    this.#stream = stream;
    this.#name = name;
    this.#script = script;
    this.#events = events;
    // Callbacks without a script are not defined.
    for (const callback of ['decodeHeaders', 'encodeHeaders'] as const) {
      if (callback in script) this[callback] = (headers, end) => this.#onHeaders(callback, headers, end);
    }
    for (const callback of ['decodeData', 'encodeData'] as const) {
      if (callback in script) this[callback] = (offset, length, end) => this.#onData(callback, offset, length, end);
    }
    for (const callback of ['decodeTrailers', 'encodeTrailers'] as const) {
      if (callback in script) this[callback] = (trailers) => this.#onHeaders(callback, trailers, undefined);
    }
    this.#play('create');
  }

  onDestroy(): void {
    this.#note('onDestroy');
    this.#play('onDestroy');
  }

  perform(word: string): void {
    const [verb = '', ...rest] = word.split(':');
    const stream = this.#stream;
    switch (verb) {
      case 'throw':
        throw new Error(`scripted exception of ${this.#name}`);
      case 'reject':
        return void Promise.reject(new Error(`scripted rejection of ${this.#name}`));
      case 'soon':
        return this.#performIn(1, rest.join(':'));
      case 'in':
        return this.#performIn(Number(rest[0]), rest.slice(1).join(':'));
      case 'node':
        return void setTimeout(() => this.perform(rest.slice(1).join(':')), Number(rest[0]));
      case 'race':
        setTimeout(() => this.#note('race of Node'), 300);
        return this.#performIn(600, 'reply:200');
      case 'run':
        return stream.run(() => this.perform(rest.join(':')));
      case 'await':
        return stream.run(async () => {
          await setImmediate();
          this.perform(rest.join(':'));
        });
      case 'reply':
        return stream.sendLocalReply({
          status: Number(rest[0]),
          body: rest[1] === undefined ? `reply of ${this.#name}` : 'r'.repeat(Number(rest[1])),
          details: 'scripted',
          flags: 0,
          editHeaders: editOf(rest[2]),
        });
      case 'say':
        return stream.sendLocalReply({ status: 200, body: 'für 5 €', details: 'scripted', flags: 0 });
      case 'continueDecoding':
        return stream.continueDecoding();
      case 'continueEncoding':
        return stream.continueEncoding();
      case 'pause':
        return stream.pauseRequest();
      case 'resume':
        return stream.resumeRequest();
      case 'putRequest':
        return stream.addRequestBytes(Buffer.from(rest[0]!));
      case 'putResponse':
        return stream.addResponseBytes(Buffer.from(rest[0]!));
      case 'requestTrailer':
        return this.#addTrailer(stream.addRequestTrailers(), rest);
      case 'responseTrailer':
        return this.#addTrailer(stream.addResponseTrailers(), rest);
      case 'limit':
        return stream.setRequestBufferLimit(Number(rest[0]));
      case 'held':
        return this.#note(`held ${stream.heldRequestBytes()} ${stream.heldResponseBytes()}`);
      case 'code':
        return this.#note(`code ${stream.info.responseCode}`);
      case 'missing':
        return this.#note(`missing ${stream.missingHost() !== undefined}`);
      case 'reroute':
        return stream.continueWithNewRoute();
      case 'mark':
        stream.info.isHealthCheck = true;
        return;
      case 'add':
        return this.#headers!.add(headerKey(rest[0]!), rest[1]!);
      case 'addNumber':
        return this.#headers!.add(headerKey(rest[0]!), JSON.parse(rest[1]!));
      case 'path':
        return this.#headers!.setPath(decodeURIComponent(rest[0]!));
      case 'method':
        return this.#headers!.setMethod(Method.Get, decodeURIComponent(rest[0]!));
      case 'status':
        return this.#headers!.setStatus(Number(rest[0]));
      case 'remove':
        return void this.#headers!.remove(headerKey(rest[0]!));
      default:
        throw new Error(`no word of scripts: ${word}`);
    }
  }

  #addTrailer(trailers: HeaderBlock | undefined, [name, value]: string[]): void {
    if (trailers === undefined) this.#note('may add no trailers');
    else trailers.add(headerKey(name!), value!);
  }

  #performIn(delayMs: number, word: string): void {
    const timer = new Timer(this, () => {
      this.#note(`timer ${word}`);
      this.perform(word);
    });
    this.#context.timers.reschedule(timer, delayMs);
  }

  #onHeaders(callback: Callback, headers: HeaderBlock, end: boolean | undefined): HeadersStatus {
    const what = end === undefined ? '' : ` ${headers.status || headers.pathText()}`;
    this.#note(`${callback}${what}${end === true ? ' end' : ''}`);
    this.#headers = headers;
    return this.#play(callback) === 'stop' ? HeadersStatus.StopIteration : HeadersStatus.Continue;
  }

  #onData(callback: Callback, offset: number, length: number, end: boolean): DataStatus {
    const { memory } = this.#context;
    const text = length > 20 ? `(${length})` : memory.text(offset, offset + length);
    this.#note(`${callback} '${text}'${end ? ' end' : ''}`);
    const status = this.#play(callback);
    if (status === 'buffer') return DataStatus.StopAndBuffer;
    return status === 'drop' ? DataStatus.StopNoBuffer : DataStatus.Continue;
  }

  /** Returns the status at the end of the callback's script. */
  #play(callback: Callback): string {
    const steps = [this.#script[callback] ?? ''].flat();
    const call = this.#calls.get(callback) ?? 0;
    this.#calls.set(callback, call + 1);
    const step = steps[Math.min(call, steps.length - 1)]!;
    let status = '';
    for (const word of step.split(' ')) {
      if (STATUSES.has(word)) status = word;
      else if (word !== '') this.perform(word);
    }
    return status;
  }

  #note(event: string): void {
    this.#events.push(`${this.#name} ${event}`);
  }
}

/** Has a filter of a request do something, and reports the events of the request. */
class ControlFilter implements HttpFilter {
  readonly #context: WorkerContext;
  readonly #stream: StreamControl;

  constructor(context: WorkerContext, stream: StreamControl) {
    this.#context = context;
    this.#stream = stream;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const [id = '', name, ...words] = headers.get(COMMAND)!.split(' ');
    const request = requests.get(id);
    const filter = name === undefined ? undefined : request!.filters.get(name)!;
    for (const word of words) filter!.perform(word);
    const retainedBytes = this.#context.memory.retainedBytes();
    const report: Report = { events: request?.events ?? [], retainedBytes };
    this.#stream.sendLocalReply({ status: 200, body: JSON.stringify(report), details: 'control', flags: 0 });
    return HeadersStatus.StopIteration;
  }
}

const scripted: HttpFilterExtension<AwsRequestSigningPerRoute> = {
  category: 'envoy.filters.http',
  name: 'acme.scripted',
  typeUrls: [`type.googleapis.com/${FILTER_TYPE}`],
  implemented: partialTable({ [FILTER_TYPE]: { stat_prefix: true } }),
  createOnWorker({ stat_prefix: name = '' }, context) {
    return {
      create(stream) {
        if (name === 'control') return new ControlFilter(context, stream);
        const headers = stream.info.requestHeaders!;
        const script = (JSON.parse(headers.get(SCRIPT) ?? '{}') as Scripts)[name];
        const id = headers.get(ID);
        if (script === undefined || id === undefined) return undefined;
        let request = requests.get(id);
        if (request === undefined) {
          request = { events: [], filters: new Map() };
          requests.set(id, request);
        }
        const filter = new ScriptedFilter(context, stream, name, script, request.events);
        request.filters.set(name, filter);
        return filter;
      },
      close: () => logger.warning(`the factory of '${name}' is closed`),
    };
  },
};

const STATUSES: ReadonlySet<string> = new Set(['continue', 'stop', 'buffer', 'drop']);

/** Returns an editor for the headers of a reply: it throws, or writes a content-length. */
function editOf(word: string | undefined): LocalReply['editHeaders'] {
  if (word === undefined) return undefined;
  return word === 'throw' ? throwUp : (headers) => headers.set(headerKey('content-length'), word);
}

function throwUp(): never {
  throw new Error('scripted exception of the edit of a head');
}

/** Throws at the end of a request that is answered with 418. */
const throwingLogger: AccessLoggerExtension = {
  category: 'envoy.access_loggers',
  name: 'envoy.access_loggers.wasm',
  typeUrls: [`type.googleapis.com/${LOGGER_TYPE}`],
  createOnWorker: () => ({
    needs: noHeaderNeeds(),
    log(info) {
      if (info.responseCode === 418) throw new Error('scripted exception of a logger');
    },
    close() {},
  }),
};

(EXTENSIONS as AnyExtension[]).push(scripted as AnyExtension, throwingLogger);
