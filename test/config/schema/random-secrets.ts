// Random messages of the API with credentials, and the expected result of redaction.

import type { Random } from '../../../src/common/random.js';
import type { Message } from '../../../src/config/schema/decode.js';
import type { FieldType, MessageType, Schema, ValueType } from '../../../src/config/schema/schema.js';

export const MARKER = 'hunter2';
/** Marked by the API. A configuration text may still show file names in them. */
const MARKED = 'hunter3';

/** A message in canonical form, and the expected result. */
export interface RandomMessage {
  readonly message: Message;
  readonly shown: Message;
}

/** A value, and the value shown; undefined: it is removed. */
type Pair = readonly [value: unknown, shown: unknown];

const HIDDEN = '[redacted]';
const HIDDEN_BYTES = Buffer.from(HIDDEN).toString('base64');
const MAX_DEPTH = 9;

/** Names of credentials, as headers and Struct members have them. */
const CREDENTIALS = [
  ...['authorization', 'Proxy-Authorization', 'cookie', 'Set-Cookie', 'x-api-key', 'apikey', 'x-auth-token'],
  ...['X-Amz-Security-Token', 'db_password', 'clientSecret', 'my.private-key', 'token2', 'x-auth', 'api_keys', 'JWT'],
];
/** Names that resemble credential names, but are not. */
const OTHERS = [
  ...['x-tenant', 'content-type', 'tokens_per_fill', 'max_tokens', 'secretary', 'cookie-policy', 'password-hint-shown'],
  'access-control-allow-credentials',
];

const OPERATORS = ['%REQ(x)%', 'Bearer %DYNAMIC_METADATA(a:b)%', '%REQ(a)%%RESP(b):5%', ''];

/** Texts with a part that is hidden everywhere. */
const TEXTS: readonly Pair[] = [
  [`https://ann:${MARKER}@example.com:80/a?b=c`, `https://${HIDDEN}@example.com:80/a?b=c`],
  [`redis://${MARKER}@h`, `redis://${HIDDEN}@h`],
  [`x,http://a:${MARKER}@b@h/c@d,http://${MARKER}@i`, `x,http://${HIDDEN}@h/c@d,http://${HIDDEN}@i`],
  [`/a?q=1&access_token=${MARKER}&b=${'1'}#c`, `/a?q=1&access_token=${HIDDEN}&b=1#c`],
  [`-----BEGIN PRIVATE KEY-----\n${MARKER}\n-----END PRIVATE KEY-----`, HIDDEN],
  [`Bearer ${MARKER}`, `Bearer ${HIDDEN}`],
  [`jwt eyJhbGci.eyJ${MARKER}.${MARKER}-sig end`, `jwt ${HIDDEN} end`],
];
/** Texts that are shown. */
const PLAIN = [
  'a',
  'b@c.d',
  'http://example.com/?a=b',
  '/a?token',
  'Basic authentication',
  'eyJ.eyJ',
  '?a=b',
  '',
  'x-token',
];

export class Generator {
  readonly #schema: Schema;
  readonly #random: Random;

  constructor(schema: Schema, random: Random) {
    this.#schema = schema;
    this.#random = random;
  }

  message(name: string): RandomMessage {
    const [message, shown] = this.#message(this.#schema.message(name)!, 0, false);
    return { message: message as Message, shown: shown as Message };
  }

  #message(type: MessageType, depth: number, isMarked: boolean): Pair {
    const labelled = this.#labelled(type, isMarked);
    if (labelled !== undefined) return labelled;
    const [message, shown]: [Message, Message] = [{}, {}];
    // All fields of a small message, a few of a large one.
    const chance = Math.min(0.6, 8 / type.fields.size) * (depth < MAX_DEPTH ? 1 : 0);
    for (const field of type.fields.values()) {
      if (this.#random.fraction() >= chance || UNTRIED.has(field.name) || mayBeNamed(type, field)) continue;
      const pair = this.#field(field, depth, isMarked || field.isSensitive);
      if (pair === undefined) continue;
      message[field.name] = pair[0];
      if (pair[1] !== undefined) shown[field.name] = pair[1];
    }
    return [message, shown];
  }

  /** Returns a name and a value: a credential or not. */
  #labelled({ name }: MessageType, isMarked: boolean): Pair | undefined {
    if (isMarked || !LABELLED.has(name)) return undefined;
    const isCredential = this.#random.fraction() < 0.5;
    const label = this.#one(isCredential ? CREDENTIALS : OTHERS);
    const [value, shown] = isCredential ? this.#credential() : this.#text();
    if (name.endsWith('HeaderValue'))
      return [
        { key: label, value },
        { key: label, value: shown },
      ];
    const match = this.#one(['exact', 'prefix', 'contains']);
    return [
      { name: label, string_match: { [match]: value, ignore_case: true } },
      { name: label, string_match: { [match]: shown, ignore_case: true } },
    ];
  }

  #field(field: FieldType, depth: number, isMarked: boolean): Pair | undefined {
    const one = () => this.#value(field.value, depth + 1, isMarked);
    if (field.shape === 'single') return one();
    const pairs = Array.from({ length: 1 + this.#random.below(2) }, one).filter((pair) => pair !== undefined);
    // Removed elements only occur for marked values of types other than strings.
    if (pairs.length === 0 || pairs.some(([, shown]) => shown === undefined)) return undefined;
    if (field.shape === 'list') return [pairs.map(([value]) => value), pairs.map(([, shown]) => shown)];
    const named = (index: 0 | 1) => Object.fromEntries(pairs.map((pair, at) => [`k${at}`, pair[index]]));
    return field.mapKey === 'string' ? [named(0), named(1)] : undefined;
  }

  #value(type: ValueType, depth: number, isMarked: boolean): Pair | undefined {
    switch (type.kind) {
      case 'message':
        return this.#message(this.#schema.message(type.name)!, depth, isMarked);
      case 'enum': {
        const value = [...this.#schema.enum(type.name).values.keys()][0];
        return [value, isMarked ? undefined : value];
      }
      case 'scalar':
        if (type.scalar === 'string') return isMarked ? [MARKED, HIDDEN] : this.#text();
        if (type.scalar === 'bytes') return isMarked ? [MARKED, HIDDEN_BYTES] : ['YQ==', 'YQ=='];
        return isMarked ? [7, undefined] : [7, 7];
      case 'special':
        if (type.special === 'struct') return isMarked ? [{ a: MARKED }, undefined] : this.#struct(depth);
        if (type.special === 'any') return isMarked ? undefined : this.#any(depth);
        return undefined;
    }
  }

  #any(depth: number): Pair {
    if (this.#random.fraction() < 0.3) return withType('type.googleapis.com/acme.Unknown', this.#struct(depth));
    if (this.#random.fraction() < 0.2) {
      const [value, shown] = this.#struct(depth);
      return withType('type.googleapis.com/google.protobuf.Struct', [{ value }, { value: shown }]);
    }
    const name = this.#one(HELD);
    return withType(`type.googleapis.com/${name}`, this.#message(this.#schema.message(name)!, depth + 1, false));
  }

  #struct(depth: number): Pair {
    const [value, shown]: [Message, Message] = [{}, {}];
    const put = (key: string, [held, left]: Pair): void => {
      value[key] = held;
      shown[key] = left;
    };
    for (const key of [this.#one(CREDENTIALS), this.#one(CREDENTIALS)]) put(key, this.#credential());
    put(this.#one(OTHERS), this.#text());
    put('plain', this.#text());
    put('flag_token', [true, true]);
    put('pin_password', [4711, HIDDEN]);
    put('pairs', [[{ key: 'authorization', value: [MARKER] }], [{ key: 'authorization', value: [HIDDEN] }]]);
    put('credentials', [
      { '@type': 'x', a: [MARKER, { b: MARKER }] },
      { '@type': 'x', a: [HIDDEN, { b: HIDDEN }] },
    ]);
    if (depth < MAX_DEPTH && this.#random.fraction() < 0.3) put('inner', this.#struct(depth + 3));
    return [value, shown];
  }

  /** Returns a description of where a credential is. */
  #credential(): Pair {
    if (this.#random.fraction() < 0.7) return [`${MARKER} ${this.#random.below(1000)}`, HIDDEN];
    const operator = this.#one(OPERATORS);
    return [operator, operator];
  }

  #text(): Pair {
    if (this.#random.fraction() < 0.3) return this.#one(TEXTS);
    const text = this.#one(PLAIN);
    return [text, text];
  }

  #one<T>(list: readonly T[]): T {
    return list[this.#random.below(list.length)]!;
  }
}

function withType(url: string, [value, shown]: Pair): Pair {
  return [
    { '@type': url, ...(value as Message) },
    { '@type': url, ...(shown as Message) },
  ];
}

const LABELLED = new Set([
  'envoy.config.core.v3.HeaderValue',
  'envoy.config.route.v3.HeaderMatcher',
  'envoy.config.route.v3.QueryParameterMatcher',
]);

/**
 * Metadata of gRPC services and cookies hide values that are shown elsewhere, and runtime shows values that are hidden
 * elsewhere. They have separate tests.
 */
const UNTRIED = new Set(['initial_metadata', 'cookies', 'static_layer', 'base', 'layer']);

/** Returns whether a field may hide something by name: its own, or that of another field. */
function mayBeNamed(type: MessageType, { name }: FieldType): boolean {
  if (/token|secret|password|credential|authorization|cookie|jwt|_key$/.test(name))
    return !type.fields.get(name)!.isSensitive;
  return /^(value|raw_value|default_value|descriptor_value|literal|.*_match)$/.test(name);
}

const HELD = [
  'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
  'envoy.extensions.filters.http.rbac.v3.RBAC',
  'envoy.extensions.filters.http.header_mutation.v3.HeaderMutation',
  'envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
  'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
  'envoy.extensions.filters.http.basic_auth.v3.BasicAuth',
];
