// request_headers_to_add, …_to_remove and their likes, compiled: constants are lines copied at once, values with %OPERATORS%
// are formatted for each message.

import { compileFormat, type Format } from '../../access-log/format.js';
import type { StreamInfo } from '../../access-log/stream-info.js';
import { BatonError, messageOf } from '../../common/errors.js';
import { type HeaderKey, headerKey } from '../../common/header-names.js';
import type { HeaderValueOption } from '../../config/generated/api.js';
import type { HeaderBlock } from './header-block.js';
import { HeaderLine } from './header-line.js';

/** The changes of one place in the configuration: what it removes, and what it adds behind that. */
export interface HeaderChanges {
  readonly toRemove: readonly string[] | undefined;
  readonly toAdd: readonly HeaderValueOption[] | undefined;
  /** Path of both lists in the configuration, for messages: `virtual_hosts[0].request_headers`. */
  readonly where: string;
  /** Values are taken as they are written: '%' begins no operator. */
  readonly isLiteral?: boolean;
}

const enum Action {
  Remove = 0,
  Append = 1,
  AddIfAbsent = 2,
  Overwrite = 3,
  OverwriteIfPresent = 4,
}

/** Changes to a head, in the order in which they are made. */
export class HeaderMutations {
  /** Values are made from the request's head: it must still be there when a response is changed. */
  readonly needsRequestHeaders: boolean;
  readonly #steps: readonly Step[];

  constructor(steps: readonly Step[]) {
    this.needsRequestHeaders = steps.some((step) => step.needsRequestHeaders);
    this.#steps = steps;
  }

  /** `info` may be left out only where all values are literal. */
  apply(headers: HeaderBlock, info: StreamInfo | undefined): void {
    for (let i = 0; i < this.#steps.length; i++) this.#steps[i]!.apply(headers, info);
  }

  /** Values may be made from the response itself, which is not on its way yet. */
  applyToResponse(headers: HeaderBlock, info: StreamInfo): void {
    info.responseCode = headers.status;
    info.responseHeaders = headers;
    this.apply(headers, info);
  }
}

/**
 * Compiles the changes of several places, the first to be applied first. Undefined when nothing is to be changed, so that
 * nothing configured costs nothing.
 * @throws BatonError CONFIG_INVALID
 */
export function compileHeaderMutations(places: readonly HeaderChanges[]): HeaderMutations | undefined {
  const steps: Step[] = [];
  for (const place of places) {
    (place.toRemove ?? []).forEach((name, index) => {
      steps.push(removal(name, `${place.where}_to_remove[${index}]`));
    });
    const additions = (place.toAdd ?? []).map((option, index) =>
      addition(option, `${place.where}_to_add[${index}]`, place.isLiteral ?? false),
    );
    // As in Envoy what overwrites goes first: a value that the same list appends is not lost.
    steps.push(...additions.filter((step) => step.overwrites), ...additions.filter((step) => !step.overwrites));
  }
  return steps.length > 0 ? new HeaderMutations(steps) : undefined;
}

class Step {
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
    return this.#format?.needsRequestHeaders ?? false;
  }

  get overwrites(): boolean {
    return this.#action >= Action.Overwrite;
  }

  apply(headers: HeaderBlock, info: StreamInfo | undefined): void {
    const action = this.#action;
    if (action === Action.Remove) {
      headers.remove(this.#key);
      return;
    }
    if (action === Action.AddIfAbsent && headers.find(this.#key) >= 0) return;
    if (action === Action.OverwriteIfPresent && headers.find(this.#key) < 0) return;
    const line = this.#line;
    if (line !== undefined) {
      if (line.isEmpty && !this.#keepsEmpty) return;
      if (action >= Action.Overwrite) line.setIn(headers);
      else line.addTo(headers);
      return;
    }
    const value = this.#format!.text(info!);
    if (value === '' && !this.#keepsEmpty) return;
    if (action >= Action.Overwrite) headers.set(this.#key, value);
    else headers.add(this.#key, value);
  }
}

/** What codecs write themselves, whatever a head says. */
const CONNECTION_FIELDS = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding']);

function removal(name: string, where: string): Step {
  if (name.startsWith(':') || name.toLowerCase() === 'host') {
    throw new BatonError('CONFIG_INVALID', `'${name}' cannot be removed: every request needs it`, { where });
  }
  return new Step(Action.Remove, headerKey(name), '', false);
}

function addition(option: HeaderValueOption, where: string, isLiteral: boolean): Step {
  const name = option.header?.key ?? '';
  if (name.startsWith(':') || name.toLowerCase() === 'host') {
    const remedy = 'a route can rewrite path and host';
    throw new BatonError('CONFIG_INVALID', `'${name}' cannot be set here`, { where: `${where}.header.key`, remedy });
  }
  if (CONNECTION_FIELDS.has(name.toLowerCase())) {
    const message = `'${name}' cannot be set: it belongs to a connection, and Baton writes it as the connection needs it`;
    throw new BatonError('CONFIG_INVALID', message, { where: `${where}.header.key`, remedy: 'leave it out' });
  }
  const raw = option.header?.raw_value;
  if (raw !== undefined && /[\0\r\n]/.test(Buffer.from(raw, 'base64').toString('latin1'))) {
    const message = 'raw_value holds a byte that would end the header (NUL, CR or LF)';
    throw new BatonError('CONFIG_INVALID', message, { where: `${where}.header.raw_value` });
  }
  const text = option.header?.value ?? '';
  const constant = raw === undefined ? text : Buffer.from(raw, 'base64');
  const hasOperators = raw === undefined && !isLiteral && text.includes('%');
  const value = hasOperators ? compileValue(text, where) : constant;
  return new Step(actionOf(option, where), headerKey(name), value, option.keep_empty_value ?? false);
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
    return compileFormat(value, { omitEmptyValues: true });
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', messageOf(error), { where: `${where}.header.value`, cause: error });
  }
}
