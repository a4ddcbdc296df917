// Stands in for a script that a worker cannot load, because memory is short or a file is missing. It refuses all requests, because the
// script might have refused them.

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
