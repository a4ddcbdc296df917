// Compiles request_headers_to_add, …_to_remove and similar fields. Constant values are prepared lines; values with %OPERATORS% are
// formatted for each message.

import { compileFormat, type Format } from '../../access-log/formats/format.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { BatonError, buildEach, Mistakes, messageOf } from '../../common/errors/errors.js';
import { type HeaderKey, headerKey, knownHeader } from '../../common/text/header-names.js';
import { HeadKind } from '../../common/text/joined-names.js';
import type { HeaderValueOption, StringMatcher } from '../../config/generated/api.js';
import { compileStringMatcher, type StringRule } from '../routing/matching/string-rule.js';
import { checkFieldName, checkRemovable } from './field-name.js';
import type { HeaderBlock } from './header-block.js';
import { HeaderLine } from './header-line.js';

/** The changes of one place in the configuration: removals, then additions. */
export interface HeaderChanges {
  readonly toRemove: readonly string[] | undefined;
  readonly toAdd: readonly HeaderValueOption[] | undefined;
  /** Fields whose names match are removed too, except the host of a request. */
  readonly toRemoveMatching?: StringMatcher | undefined;
  /** Returns the path of an element in the configuration, for error messages: `virtual_hosts[0].request_headers_to_add[1]`. */
  where(list: 'to_add' | 'to_remove' | 'to_remove_matching', index: number): string;
  /** Values are literal: '%' does not begin an operator. */
  readonly isLiteral?: boolean;
}

const enum Action {
  Append = 0,
  AddIfAbsent = 1,
  Overwrite = 2,
  OverwriteIfPresent = 3,
}

interface Change {
  /** The added value is made from the request head. */
  readonly needsRequestHeaders: boolean;
  apply(headers: HeaderBlock, info: StreamInfo | undefined): void;
}

/** The lists of HeaderChanges as fields of envoy.config.common.mutation_rules.v3.HeaderMutation. */
export const MUTATION_FIELDS = {
  to_add: 'append',
  to_remove: 'remove',
  to_remove_matching: 'remove_on_match.key_matcher',
} as const;

/** Changes to a head, in order. */
export class HeaderMutations {
  /** Values are made from the request head: it must be kept until the response is changed. */
  readonly needsRequestHeaders: boolean;
  readonly #changes: readonly Change[];

  constructor(changes: readonly Change[]) {
    this.needsRequestHeaders = changes.some((change) => change.needsRequestHeaders);
    this.#changes = changes;
  }

  /** `info` may be undefined only if all values are literal. */
  apply(headers: HeaderBlock, info: StreamInfo | undefined): void {
    for (let i = 0; i < this.#changes.length; i++) this.#changes[i]!.apply(headers, info);
  }

  /** Applies the changes to a response head, whose own status and headers are available to the values. */
  applyToResponse(headers: HeaderBlock, info: StreamInfo): void {
    info.responseCode = headers.status;
    info.responseHeaders = headers;
    this.apply(headers, info);
  }
}

/**
 * Compiles the changes of several places, in the order in which they apply. Returns undefined if there are none.
 * @throws BatonError CONFIG_INVALID
 */
export function compileHeaderMutations(places: readonly HeaderChanges[]): HeaderMutations | undefined {
  const changes = buildEach(places, changesOf).flat();
  return changes.length > 0 ? new HeaderMutations(changes) : undefined;
}

function changesOf(changes: HeaderChanges): Change[] {
  const { toRemove = [], toAdd = [], toRemoveMatching: matcher, isLiteral = false } = changes;
  const removals = buildEach(toRemove, (name, index) => removal(name, changes.where('to_remove', index)));
  const additions = buildEach(toAdd, (option, index) => addition(option, changes.where('to_add', index), isLiteral));
  // As in Envoy, overwrites go first, so that they do not discard values that the same list appends.
  const ordered = [...additions.filter((each) => each.overwrites), ...additions.filter((each) => !each.overwrites)];
  const looksAtHead = ordered.length > 1 && ordered.some((each) => each.looksAtHead);
  const matching =
    matcher === undefined
      ? []
      : [new MatchingRemoval(compileStringMatcher(matcher, changes.where('to_remove_matching', 0)))];
  return [...removals, ...matching, ...(looksAtHead ? [new IndependentAdditions(ordered)] : ordered)];
}

class Removal implements Change {
  readonly needsRequestHeaders = false;
  readonly #key: HeaderKey;

  constructor(key: HeaderKey) {
    this.#key = key;
  }

  apply(headers: HeaderBlock): void {
    headers.remove(this.#key);
  }
}

/** Removes the fields whose names match. Rules see names in lower case. */
class MatchingRemoval implements Change {
  readonly needsRequestHeaders = false;
  readonly #rule: StringRule;

  constructor(rule: StringRule) {
    this.#rule = rule;
  }

  apply(headers: HeaderBlock): void {
    const { memory } = headers;
    const isRequest = headers.kind === HeadKind.Request;
    for (let index = 0; index < headers.size; index++) {
      if (headers.isRemoved(index) || (isRequest && headers.id(index) === HOST)) continue;
      const start = headers.nameStart(index);
      const length = headers.nameEnd(index) - start;
      const at = memory.scratch(length);
      const { bytes } = memory;
      for (let i = 0; i < length; i++) bytes[at + i] = lowerCase(bytes[start + i]!);
      if (this.#rule.matches(memory, at, at + length)) headers.removeAt(index);
      memory.withdrawScratch(at);
    }
  }
}

function lowerCase(byte: number): number {
  return byte >= 65 && byte <= 90 ? byte + 32 : byte;
}

class Addition implements Change {
  readonly #action: Action;
  readonly #key: HeaderKey;
  /** A constant value. */
  readonly #line: HeaderLine | undefined;
  readonly #format: Format | undefined;
  readonly #keepsEmpty: boolean;

  constructor(action: Action, key: HeaderKey, value: Format | string | Uint8Array, keepsEmpty: boolean) {
    this.#action = action;
    this.#key = key;
    this.#keepsEmpty = keepsEmpty;
    if (typeof value === 'string' || value instanceof Uint8Array) this.#line = new HeaderLine(key, value);
    else this.#format = value;
  }

  get needsRequestHeaders(): boolean {
    return this.#format !== undefined && this.#format.needs.request.size > 0;
  }

  get overwrites(): boolean {
    return this.#action >= Action.Overwrite;
  }

  /** The value, or whether it is added, may depend on the fields of the head. */
  get looksAtHead(): boolean {
    const isConditional = this.#action === Action.AddIfAbsent || this.#action === Action.OverwriteIfPresent;
    return isConditional || this.#format !== undefined;
  }

  apply(headers: HeaderBlock, info: StreamInfo | undefined): void {
    const value = this.valueFor(headers, info);
    if (value !== undefined) this.put(headers, value);
  }

  /** Returns the value to add to this head, or undefined for none. */
  valueFor(headers: HeaderBlock, info: StreamInfo | undefined): HeaderLine | string | undefined {
    const action = this.#action;
    if (action === Action.AddIfAbsent && headers.find(this.#key) >= 0) return undefined;
    if (action === Action.OverwriteIfPresent && headers.find(this.#key) < 0) return undefined;
    const line = this.#line;
    if (line !== undefined) return line.isEmpty && !this.#keepsEmpty ? undefined : line;
    const value = this.#format!.text(info!);
    // Metadata and filter state may contain anything.
    if (BREAKS_LINE.test(value)) return undefined;
    return value === '' && !this.#keepsEmpty ? undefined : value;
  }

  put(headers: HeaderBlock, value: HeaderLine | string): void {
    if (typeof value === 'string') {
      if (this.overwrites) headers.set(this.#key, value);
      else headers.add(this.#key, value);
    } else if (this.overwrites) value.setIn(headers);
    else value.addTo(headers);
  }
}

/**
 * A list of additions that do not see each other: all values are made from the head before the list is applied, as in Envoy's
 * HeaderParser::evaluateHeaders.
 */
class IndependentAdditions implements Change {
  readonly needsRequestHeaders: boolean;
  readonly #additions: readonly Addition[];
  /** Values for the head that is being changed. */
  readonly #values: (HeaderLine | string | undefined)[];

  constructor(additions: readonly Addition[]) {
    this.needsRequestHeaders = additions.some((addition) => addition.needsRequestHeaders);
    this.#additions = additions;
    this.#values = additions.map(() => undefined);
  }

  apply(headers: HeaderBlock, info: StreamInfo | undefined): void {
    const additions = this.#additions;
    const values = this.#values;
    for (let i = 0; i < additions.length; i++) values[i] = additions[i]!.valueFor(headers, info);
    for (let i = 0; i < additions.length; i++) {
      const value = values[i];
      if (value !== undefined) additions[i]!.put(headers, value);
    }
  }
}

const HOST = knownHeader('host');

/** Bytes that would end the field. */
const BREAKS_LINE = /[\0\r\n]/;

/** Fields that codecs and upgrades control: they frame the message or affect its connection. */
const CONNECTION_FIELDS = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

/** Returns whether nothing but the codec and the route may set a field of requests. */
export function isControlledField(name: string): boolean {
  const lower = name.toLowerCase();
  return lower === 'host' || CONNECTION_FIELDS.has(lower);
}

function removal(name: string, where: string): Removal {
  checkRemovable(name, where);
  return new Removal(headerKey(name));
}

function addition(option: HeaderValueOption, where: string, isLiteral: boolean): Addition {
  const name = option.header?.key ?? '';
  if (name.startsWith(':') || name.toLowerCase() === 'host') {
    const remedy = 'a route can rewrite path and host';
    throw new BatonError('CONFIG_INVALID', `'${name}' cannot be set here`, { where: `${where}.header.key`, remedy });
  }
  if (CONNECTION_FIELDS.has(name.toLowerCase())) {
    const message = `'${name}' cannot be set: Baton controls it for the message and its connection`;
    throw new BatonError('CONFIG_INVALID', message, { where: `${where}.header.key`, remedy: 'leave it out' });
  }
  checkFieldName(name, `${where}.header.key`);
  const raw = option.header?.raw_value;
  if (raw !== undefined && /[\0\r\n]/.test(Buffer.from(raw, 'base64').toString('latin1'))) {
    const message = 'raw_value holds a byte that would end the header (NUL, CR or LF)';
    throw new BatonError('CONFIG_INVALID', message, { where: `${where}.header.raw_value` });
  }
  const text = option.header?.value ?? '';
  if (raw !== undefined && text !== '') {
    const message = 'value and raw_value exclude each other';
    throw new BatonError('CONFIG_INVALID', message, { where: `${where}.header.raw_value` });
  }
  const constant = raw === undefined ? text : Buffer.from(raw, 'base64');
  const hasOperators = raw === undefined && !isLiteral && text.includes('%');
  const value = hasOperators ? compileValue(text, where) : constant;
  return new Addition(actionOf(option, where), headerKey(name), value, option.keep_empty_value ?? false);
}

function actionOf(option: HeaderValueOption, where: string): Action {
  if (option.append !== undefined) {
    if (option.append_action !== undefined) {
      throw new BatonError('CONFIG_INVALID', 'append and append_action exclude each other', { where });
    }
    return option.append ? Action.Append : Action.Overwrite;
  }
  switch (option.append_action) {
    case 'ADD_IF_ABSENT':
      return Action.AddIfAbsent;
    case 'OVERWRITE_IF_EXISTS_OR_ADD':
      return Action.Overwrite;
    case 'OVERWRITE_IF_EXISTS':
      return Action.OverwriteIfPresent;
    default:
      return Action.Append;
  }
}

function compileValue(value: string, where: string): Format {
  try {
    return compileFormat(value, { omitEmptyValues: true, isInHeader: true });
  } catch (thrown) {
    return buildEach(Mistakes.of(thrown), (error): never => {
      throw new BatonError('CONFIG_INVALID', messageOf(error), { where: `${where}.header.value`, cause: error });
    })[0]!;
  }
}
