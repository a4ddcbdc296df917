// Applies what a processor changes in a head or in trailers (HeaderMutation).

import { type HeaderBlock, headerKey, Method, methodOf } from '../../../sdk.js';
import { isFraming } from '../../common/framing.js';
import { type MutationRules, Verdict } from '../../common/mutation-rules.js';
import type { HeaderMutation, HeaderOption } from './answer.js';

/** Changes of one kind in an answer, and fields of a changed head, unless it had more before. */
const MAX_FIELDS = 100;
/** Bytes of a changed head, unless it had more before. */
const MAX_BYTES = 60 * 1024;
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const AUTHORITY = /^[\w.~!$&'()*+,;=%:[\]-]+$/;

/** How a block may be changed. */
export interface ChangeRules {
  readonly rules: MutationRules;
  readonly kind: 'request' | 'response' | 'trailers';
  /** The whole message is replaced: its method may change. */
  readonly isReplacing: boolean;
  /** The length of the body is checked later. */
  readonly takesLength: boolean;
  /** The response to a CONNECT: its status decides whether raw bytes follow. */
  readonly isOfConnect?: boolean;
  /** Called for a change that is left out. */
  onRejected(): void;
}

/** Applies the changes. Returns undefined, or why they are invalid: those before the invalid one stay applied. */
export function applyMutation(block: HeaderBlock, mutation: HeaderMutation, how: ChangeRules): string | undefined {
  const { remove_headers: removed = [], set_headers: set = [] } = mutation;
  const { fieldBytes, fieldCount } = block;
  if (removed.length > MAX_FIELDS || set.length > MAX_FIELDS) return fail(how, 'operation_count_exceeds_limit');
  for (const name of removed) {
    const mistake = remove(block, name, how);
    if (mistake !== undefined) return fail(how, mistake);
  }
  for (const option of set) {
    const mistake = option.header === undefined ? undefined : setField(block, option, how);
    if (mistake !== undefined) return fail(how, mistake);
  }
  if (block.fieldCount > Math.max(fieldCount, MAX_FIELDS) || block.fieldBytes > Math.max(fieldBytes, MAX_BYTES))
    return fail(how, 'result_exceeds_limit');
  return undefined;
}

function fail(how: ChangeRules, mistake: string): string {
  how.onRejected();
  return `header_mutation_${mistake}`;
}

function remove(block: HeaderBlock, written: string, how: ChangeRules): string | undefined {
  const name = written.toLowerCase();
  if (!NAME.test(name.startsWith(':') ? name.slice(1) : name)) return 'remove_contains_invalid_character';
  const verdict = how.rules.check(name, true);
  if (verdict === Verdict.Error) return 'remove_headers_failed';
  // A message whose framing is not known in advance may lose its length.
  const isFixed = isFraming(name) && !(name === 'content-length' && how.takesLength);
  if (verdict === Verdict.Ignored || isFixed || name.startsWith(':')) how.onRejected();
  else block.remove(headerKey(name));
  return undefined;
}

function setField(block: HeaderBlock, option: HeaderOption, how: ChangeRules): string | undefined {
  const name = option.header!.key?.toLowerCase() ?? '';
  const value = rawValueOf(option);
  if (!NAME.test(name.startsWith(':') ? name.slice(1) : name) || /[\0\r\n]/.test(value))
    return 'set_contains_invalid_character';
  const key = name.startsWith(':') ? undefined : headerKey(name);
  // As in Envoy, append_action has no effect.
  const isAppended = option.append?.value === true;
  const verdict = how.isReplacing && name === ':method' ? Verdict.Allowed : how.rules.check(name, false);
  if (verdict === Verdict.Error) return 'set_headers_failed';
  if (verdict === Verdict.Ignored) how.onRejected();
  else if (key === undefined || name === 'host') setSpecial(block, name, value, isAppended, how);
  else if (isFraming(name)) setFraming(block, name, value, how);
  else if (isAppended) block.add(key, value);
  else block.set(key, value);
  return undefined;
}

/** Pseudo fields and the host have one value each. */
function setSpecial(block: HeaderBlock, name: string, value: string, isAppended: boolean, how: ChangeRules): void {
  const isSet =
    !isAppended &&
    (how.kind === 'request'
      ? setRequestLine(block, name, value)
      : how.kind === 'response' && name === ':status' && setStatus(block, value, how.isOfConnect === true));
  if (!isSet) how.onRejected();
}

function setRequestLine(head: HeaderBlock, name: string, value: string): boolean {
  switch (name) {
    case ':path':
      if (!/^\/[^\0-\x20#\x7f]*$/.test(value) || head.method === Method.Connect) return false;
      head.setPath(value);
      return true;
    case 'host':
    case ':authority':
      if (!AUTHORITY.test(value)) return false;
      head.set(HOST, value);
      return true;
    case ':scheme':
      if (value !== 'http' && value !== 'https') return false;
      head.scheme = value;
      return true;
    case ':method': {
      const method = methodOf(value);
      // Both ends must agree on how the response is framed.
      if (!NAME.test(value) || (method !== head.method && (isSpecial(method) || isSpecial(head.method)))) return false;
      head.setMethod(method, value);
      return true;
    }
    default:
      return false;
  }
}

function isSpecial(method: Method): boolean {
  return method === Method.Head || method === Method.Connect;
}

function setStatus(head: HeaderBlock, value: string, isOfConnect: boolean): boolean {
  const status = /^[2-9]\d\d$/.test(value) ? Number(value) : 0;
  if (isOfConnect && status < 300 !== head.status < 300) return false;
  // These have no body.
  if (status === 0 || (status !== head.status && (hasNoBody(status) || hasNoBody(head.status)))) return false;
  head.setStatus(status);
  return true;
}

/** Returns whether responses with a status have no body, whatever their fields are. */
export function hasNoBody(status: number): boolean {
  return status < 200 || status === 204 || status === 304;
}

function setFraming(block: HeaderBlock, name: string, value: string, how: ChangeRules): void {
  if (name === 'content-length' && how.takesLength && /^\d{1,15}$/.test(value)) block.set(LENGTH, value);
  else how.onRejected();
}

/** Returns the value with one character per byte. As in Envoy, only raw_value counts. */
function rawValueOf({ header }: HeaderOption): string {
  return Buffer.from(header!.raw_value ?? '').toString('latin1');
}

const HOST = headerKey('host');
const LENGTH = headerKey('content-length');
