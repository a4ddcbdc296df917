// In place of a script that a worker cannot load, for want of memory or of a file: a request that it may have to refuse must not pass.

import { HeadersStatus, type HttpFilter, type Scope, type StreamControl } from '../../../sdk.js';
import { LuaStats } from './stats.js';

export class UnloadedScript implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #stats: Scope;

  constructor(stream: StreamControl, stats: Scope) {
    this.#stream = stream;
    this.#stats = stats;
  }

  decodeHeaders(): HeadersStatus {
    this.#stats.increment(LuaStats.at.errors);
    this.#stream.sendLocalReply({
      status: 500,
      body: 'Internal Server Error',
      details: 'lua_script_not_loaded',
      flags: 0,
    });
    return HeadersStatus.StopIteration;
  }
}
