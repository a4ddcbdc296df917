// The compiled configuration of the API key filter or of a route.

import type { ApiKeyAuthPerRoute, Credential, Forwarding, KeySource } from '../../../../config/generated/api.js';
import { BatonError, buildEach, byteText, type HeaderKey, headerKey, messageOf, settableKey } from '../../../sdk.js';
import { CookieSource, HeaderSource, QuerySource, type Source } from './sources.js';

/** What is undefined is left to the filter. */
export interface PlaceRules {
  /** Clients by their keys. Both have one character per byte. */
  readonly clients: ReadonlyMap<string, string> | undefined;
  readonly sources: readonly Source[] | undefined;
  readonly forwarding: ForwardingRules | undefined;
  /** Undefined: all clients of the keys. */
  readonly allowed: ReadonlySet<string> | undefined;
}

export interface ForwardingRules {
  /** Gets the name of the client; undefined: none does. */
  readonly header: HeaderKey | undefined;
  readonly hidesKeys: boolean;
}

/** Throws a BatonError with the place of a mistake, Mistakes for several. */
export function compilePlace(config: ApiKeyAuthPerRoute, where: string): PlaceRules {
  const at = (field: string) => (where === '' ? field : `${where}.${field}`);
  const { allowed_clients: allowed = [], credentials = [], forwarding, key_sources: sources = [] } = config;
  return {
    clients: credentials.length === 0 ? undefined : clientsOf(credentials, at('credentials')),
    sources:
      sources.length === 0
        ? undefined
        : buildEach(sources, (source, index) => sourceOf(source, `${at('key_sources')}[${index}]`)),
    forwarding: forwarding && forwardingOf(forwarding, at('forwarding')),
    allowed: allowed.length === 0 ? undefined : new Set(allowed.map(byteText)),
  };
}

function clientsOf(credentials: readonly Credential[], where: string): ReadonlyMap<string, string> {
  const clients = new Map<string, string>();
  buildEach(credentials, ({ client, key }, index) => {
    const bytes = byteText(key!);
    if (clients.has(bytes))
      throw new BatonError('CONFIG_INVALID', 'another client has this key', { where: `${where}[${index}].key` });
    clients.set(bytes, byteText(client!));
  });
  return clients;
}

function sourceOf({ cookie = '', header = '', query = '' }: KeySource, where: string): Source {
  // As in Envoy, the first of these fields applies.
  if (header !== '') return new HeaderSource(keyOf(header, `${where}.header`));
  if (query !== '') return new QuerySource(query);
  if (cookie !== '') return new CookieSource(cookie);
  throw new BatonError('CONFIG_INVALID', 'header, query or cookie must be set', { where });
}

function forwardingOf({ header = '', hide_credentials: hides }: Forwarding, where: string): ForwardingRules {
  return {
    header: header === '' ? undefined : keyOf(header, `${where}.header`, settableKey),
    hidesKeys: hides ?? false,
  };
}

function keyOf(name: string, where: string, key = headerKey): HeaderKey {
  try {
    return key(name.toLowerCase());
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', messageOf(error), { where, cause: error });
  }
}
