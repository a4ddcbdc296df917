// The API key filter of one request.

import {
  defineLayout,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  ResponseFlag,
  type Scope,
  type StreamControl,
} from '../../../sdk.js';
import type { PlaceRules } from './rules.js';

export const ApiKeyAuthStats = defineLayout({ allowed: 'counter', unauthorized: 'counter', forbidden: 'counter' });

const FAILED = 'Client authentication failed.';
const { at } = ApiKeyAuthStats;

export class ApiKeyAuthFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #own: PlaceRules;
  readonly #ofRoute: PlaceRules | undefined;
  readonly #stats: Scope;

  constructor(stream: StreamControl, own: PlaceRules, ofRoute: PlaceRules | undefined, stats: Scope) {
    this.#stream = stream;
    this.#own = own;
    this.#ofRoute = ofRoute;
    this.#stats = stats;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    const sources = this.#ofRoute?.sources ?? this.#own.sources;
    const clients = this.#ofRoute?.clients ?? this.#own.clients;
    const forwarding = this.#ofRoute?.forwarding ?? this.#own.forwarding;
    const allowed = this.#ofRoute?.allowed;
    if (sources === undefined) return this.#deny('missing_key_sources');
    if (clients === undefined) return this.#deny('missing_credentials');
    let key = '';
    for (let index = 0; index < sources.length && key === ''; index++) key = sources[index]!.read(headers);
    if (key === '') return this.#deny('missing_api_key');
    const client = clients.get(key);
    if (client === undefined) return this.#deny('unknown_api_key');
    if (allowed?.has(client) === false) {
      this.#stats.increment(at.forbidden);
      return this.#reply(403, 'Client is forbidden.', 'client_not_allowed');
    }
    if (forwarding?.hidesKeys === true) for (const source of sources) source.hide(headers);
    if (forwarding?.header !== undefined) headers.set(forwarding.header, client);
    this.#stats.increment(at.allowed);
    return HeadersStatus.Continue;
  }

  #deny(details: string): HeadersStatus {
    this.#stats.increment(at.unauthorized);
    return this.#reply(401, FAILED, details);
  }

  #reply(status: number, body: string, details: string): HeadersStatus {
    this.#stream.sendLocalReply({ status, body, details, flags: ResponseFlag.None });
    return HeadersStatus.StopIteration;
  }
}
