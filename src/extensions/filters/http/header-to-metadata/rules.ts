// The compiled rules of header_to_metadata: where a value comes from, how it is converted, and where it goes.

import type {
  HeaderToMetadataConfig,
  Config_KeyValuePair as KeyValuePair,
  Config_Rule as Rule,
} from '../../../../config/generated/api.js';
import {
  BatonError,
  buildEach,
  decimalOf,
  type Json,
  type Replacement,
  replacementOf,
  settableKey,
  withinPlace,
} from '../../../sdk.js';
import { decodeValue } from './proto-value.js';
import { type Selector, selectorOf } from './selector.js';
import { type RuleScope, RuleStats } from './stats.js';

const NAMESPACE = 'envoy.filters.http.header_to_metadata';
/** As in Envoy, longer values are left out. */
const MAX_VALUE = 8 * 1024;

export interface Rules {
  readonly request: readonly CompiledRule[];
  readonly response: readonly CompiledRule[];
}

export interface CompiledRule {
  readonly selector: Selector;
  readonly present: Target | undefined;
  readonly missing: Target | undefined;
  /** The header is removed once it is read. */
  readonly removes: boolean;
}

/** Throws a BatonError with the place of a mistake, Mistakes for several. */
export function compileRules(config: HeaderToMetadataConfig, where: string): Rules {
  const at = (list: string) => (where === '' ? list : `${where}.${list}`);
  const compile = (rules: readonly Rule[] = [], list: string) =>
    buildEach(rules, (rule, index) => compileRule(rule, `${list}[${index}]`));
  return {
    request: compile(config.request_rules, at('request_rules')),
    response: compile(config.response_rules, at('response_rules')),
  };
}

function compileRule(rule: Rule, where: string): CompiledRule {
  const { cookie = '', header = '', on_header_missing: missing, on_header_present: present, remove = false } = rule;
  const refuse = (message: string, field = '') => {
    throw new BatonError('CONFIG_INVALID', message, { where: field === '' ? where : `${where}.${field}` });
  };
  if (header !== '' && cookie !== '') refuse('header and cookie cannot both be set', 'cookie');
  if (header === '' && cookie === '') refuse('header or cookie must be set');
  if (present === undefined && missing === undefined) refuse('on_header_present or on_header_missing must be set');
  if (missing !== undefined && !missing.value)
    refuse('it must be set: there is no other value', 'on_header_missing.value');
  // ':path' and ':method' are never removed.
  const removed = remove ? header.replace(/^:authority$/i, 'host') : '';
  if (removed !== '' && !removed.startsWith(':')) withinPlace(`${where}.header`, () => settableKey(removed));
  for (const [field, pair] of Object.entries({ on_header_present: present, on_header_missing: missing })) {
    if (pair?.value && pair.regex_value_rewrite !== undefined)
      refuse('it cannot be combined with value', `${field}.regex_value_rewrite`);
  }
  return {
    selector: selectorOf(header, cookie),
    present: present && new Target(present, `${where}.on_header_present`),
    missing: missing && new Target(missing, `${where}.on_header_missing`),
    removes: remove && header !== '',
  };
}

/** A key of the dynamic metadata, and the conversion to its value. */
export class Target {
  readonly namespace: string;
  readonly key: string;
  readonly #value: string;
  readonly #rewrite: Replacement | undefined;
  readonly #type: KeyValuePair['type'];
  readonly #isEncoded: boolean;

  constructor(
    { encode, key, metadata_namespace: namespace, regex_value_rewrite: rewrite, type, value }: KeyValuePair,
    where: string,
  ) {
    this.namespace = namespace || NAMESPACE;
    this.key = key!;
    this.#value = value ?? '';
    this.#rewrite = rewrite && replacementOf(rewrite, `${where}.regex_value_rewrite`);
    this.#type = type;
    this.#isEncoded = encode === 'BASE64';
  }

  /** Returns the value for a text; undefined if there is none, or it cannot be converted, which is counted. */
  valueOf(text: string, stats: RuleScope): Json | undefined {
    const rewritten = this.#rewrite?.apply(text) ?? (this.#value || text);
    if (rewritten === '') {
      if (this.#rewrite !== undefined) stats?.increment(RuleStats.at.regex_substitution_failed);
      return undefined;
    }
    if (Buffer.byteLength(rewritten) >= MAX_VALUE) {
      stats?.increment(RuleStats.at.header_value_too_long);
      return undefined;
    }
    const bytes = this.#isEncoded ? decodeBase64(rewritten) : Buffer.from(rewritten);
    if (bytes === undefined) {
      stats?.increment(RuleStats.at.base64_decode_failed);
      return undefined;
    }
    if (this.#type === 'PROTOBUF_VALUE') return decodeValue(bytes);
    const plain = bytes.toString();
    return this.#type === 'NUMBER' ? numberOf(plain) : plain;
  }
}

function decodeBase64(text: string): Buffer | undefined {
  const digits = withoutPadding(text);
  if (!/^[A-Za-z0-9+/]*$/.test(digits) || digits.length % 4 === 1) return undefined;
  const bytes = Buffer.from(digits, 'base64');
  return bytes.length === 0 ? undefined : bytes;
}

/** A pattern such as =+$ takes quadratic time for a row of = before another character. */
function withoutPadding(text: string): string {
  let end = text.length;
  while (text[end - 1] === '=') end--;
  return text.slice(0, end);
}

/** Reads a decimal number, a hexadecimal integer, an infinity or NaN, as Envoy. */
function numberOf(text: string): number | undefined {
  const [, sign, digits] = /^([+-]?)(.*)$/s.exec(text.trim())!;
  const magnitude = magnitudeOf(digits!.toLowerCase());
  return magnitude === undefined || sign !== '-' ? magnitude : -magnitude;
}

function magnitudeOf(digits: string): number | undefined {
  if (digits === 'nan') return Number.NaN;
  if (digits === 'inf' || digits === 'infinity') return Number.POSITIVE_INFINITY;
  if (/^0x[0-9a-f]+$/.test(digits)) return Number(digits);
  const value = /^[.\d]/.test(digits) ? decimalOf(digits) : Number.NaN;
  return Number.isNaN(value) ? undefined : value;
}
