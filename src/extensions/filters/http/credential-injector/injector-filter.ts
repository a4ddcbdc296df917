// The credential_injector filter of one request.

import {
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  ResponseFlag,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import type { Credential } from './credential.js';
import { InjectorStats } from './stats.js';

export interface InjectorRules {
  readonly credential: Credential;
  /** Replaces what the client has sent. */
  readonly overwrites: boolean;
  /** Requests pass without a credential, too. */
  readonly mayBeMissing: boolean;
  readonly stats: Scope;
}

export class InjectorFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #rules: InjectorRules;

  constructor(stream: StreamControl, rules: InjectorRules) {
    this.#stream = stream;
    this.#rules = rules;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const { credential, mayBeMissing, overwrites, stats } = this.#rules;
    const { key, value } = credential;
    if (!overwrites && headers.find(key) >= 0) {
      stats.increment(InjectorStats.at.already_exists);
      return HeadersStatus.Continue;
    }
    if (value === '') {
      stats.increment(InjectorStats.at.failed);
      return mayBeMissing ? HeadersStatus.Continue : this.#refuse();
    }
    headers.set(key, value);
    stats.increment(InjectorStats.at.injected);
    return HeadersStatus.Continue;
  }

  #refuse(): HeadersStatus {
    this.#stream.sendLocalReply({
      status: 401,
      body: 'Failed to inject credential.',
      details: 'failed_to_inject_credential',
      flags: ResponseFlag.None,
    });
    return HeadersStatus.StopIteration;
  }
}
