// A context of a module: the root of a plugin, an HTTP request, or a connection. Host functions act on it.

import { getLogger, onOneLine } from '../../sdk.js';
import { BufferType, MapType, Result, type StreamType } from '../abi.js';
import type { Pairs } from '../vm/pairs.js';
import type { VmContext, WasmVm } from '../vm/wasm-vm.js';
import type { HeaderMap, MutableHeaderMap } from './header-map.js';
import type { Root } from './root.js';
import { FixedBuffer, type WasmBuffer } from './wasm-buffer.js';

const logger = getLogger('wasm');
/** Longer texts are cut. */
const MAX_LOG_CHARACTERS = 16 * 1024;
/** In the order of the ABI's numbers. */
const LEVELS = ['trace', 'debug', 'info', 'warning', 'error', 'critical'] as const;

/** The VM as contexts and host functions know it. */
export type Vm = WasmVm<Context>;

/** The answer of send_local_response(). */
export interface LocalResponse {
  readonly status: number;
  readonly details: string;
  readonly body: Buffer;
  readonly headers: Pairs;
  /** -1: derived from the status. */
  readonly grpcStatus: number;
}

export abstract class Context implements VmContext {
  readonly vm: Vm;
  readonly id: number;
  /** The root of this context: itself for a root. */
  abstract readonly root: Context & Root;
  /** Between `wasm log` and the text. */
  protected abstract readonly logPrefix: string;

  protected constructor(vm: Vm, id: number) {
    this.vm = vm;
    this.id = id;
  }

  vmFailed(): void {}

  log(level: number, text: string): Result {
    const name = LEVELS[level];
    if (name === undefined) return Result.BadArgument;
    if (!logger.isLevelEnabled(name)) return Result.Ok;
    const cut = text.length > MAX_LOG_CHARACTERS ? `${text.slice(0, MAX_LOG_CHARACTERS)}…` : text;
    // One line: the text may contain what a client has sent.
    logger[name](`wasm log${this.logPrefix}: ${onOneLine(Buffer.from(cut, 'latin1').toString())}`);
    return Result.Ok;
  }

  /** The number of the lowest level that is logged. */
  static logLevel(): number {
    const lowest = LEVELS.findIndex((level) => logger.isLevelEnabled(level));
    return lowest < 0 ? LEVELS.length : lowest;
  }

  /** Returns the fields that can be read; undefined: there are none now. */
  readableMap(type: MapType): HeaderMap | undefined {
    const { answer } = this.root.calls;
    if (type === MapType.HttpCallResponseHeaders) return answer?.headers;
    if (type === MapType.HttpCallResponseTrailers) return answer?.trailers;
    return this.mutableMap(type);
  }

  /** Returns the fields that can be changed. */
  mutableMap(_type: MapType): MutableHeaderMap | undefined {
    return undefined;
  }

  buffer(type: BufferType): WasmBuffer | undefined {
    switch (type) {
      case BufferType.VmConfiguration:
        return new FixedBuffer(this.vm.settings.configuration);
      case BufferType.PluginConfiguration: {
        const bytes = this.root.configuration;
        return bytes && new FixedBuffer(bytes);
      }
      case BufferType.HttpCallResponseBody: {
        const body = this.root.calls.answer?.body;
        return body && new FixedBuffer(body);
      }
      case BufferType.CallData:
        return new FixedBuffer(Buffer.alloc(0));
      default:
        return undefined;
    }
  }

  /** Returns the value in the form that modules get; a Result if there is none. */
  property(path: readonly string[]): Buffer | Result {
    return this.root.ownProperty(path) ?? Result.NotFound;
  }

  setProperty(_path: string, _value: Buffer): Result {
    return Result.NotFound;
  }

  continueStream(_type: StreamType): Result {
    return Result.Ok;
  }

  closeStream(_type: StreamType): Result {
    return Result.Ok;
  }

  sendLocalResponse(_response: LocalResponse): Result {
    return Result.Ok;
  }

  clearRouteCache(): void {}

  /** Called by proxy_done(). */
  done(): Result {
    return Result.NotFound;
  }
}
