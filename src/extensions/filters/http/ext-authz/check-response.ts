// The answer of a gRPC service (envoy.service.auth.v3.CheckResponse).

import type { Struct } from '../../../../config/generated/api.js';
import { loadMessages } from '../../../grpc-sdk.js';
import { filledStruct, type ProtoStruct } from '../../../messages/proto-struct.js';
import { byteText, type HeaderBlock, type HeaderKey, headerKey } from '../../../sdk.js';
import { isFraming } from '../../common/framing.js';
import { type MutationRules, Verdict } from '../../common/mutation-rules.js';

const MESSAGE = 'envoy.service.auth.v3.CheckResponse';
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const AUTHORITY = /^[\w.~!$&'()*+,;=%:[\]-]+$/;
/** Statuses of final responses. */
const MIN_STATUS = 200;
const MAX_STATUS = 999;

/** HeaderValueOption.HeaderAppendAction, and one more. */
export const enum HeaderAction {
  Append = 0,
  AddIfAbsent = 1,
  Overwrite = 2,
  OverwriteIfPresent = 3,
  /** The value is added to that of an existing field, after a comma. */
  Join = 4,
}

export interface HeaderChange {
  readonly key: HeaderKey;
  /** One character per byte. */
  readonly value: string;
  readonly action: HeaderAction;
}

export const enum Decision {
  Allowed = 0,
  Denied = 1,
  /** The service reports an error of its own. */
  Failed = 2,
  /** The changes of the request are not valid. */
  Invalid = 3,
}

interface Common {
  /** Undefined: there is none. */
  readonly metadata: Struct | undefined;
}

/** The request may pass, as changed. */
export interface Approval extends Common {
  readonly decision: Decision.Allowed;
  /** Undefined: the path stays. */
  readonly path: string | undefined;
  readonly toHost: readonly HeaderChange[];
  readonly removed: readonly HeaderKey[];
  readonly toClient: readonly HeaderChange[];
  readonly queryToSet: readonly QueryParameter[];
  readonly queryToRemove: readonly string[];
}

/** What the client gets instead of a response of a host. */
export interface Refusal extends Common {
  readonly decision: Decision.Denied | Decision.Failed;
  /** Undefined: the service has given none that is valid. */
  readonly status: number | undefined;
  readonly headers: readonly HeaderChange[];
  readonly body: string;
}

export interface InvalidApproval extends Common {
  readonly decision: Decision.Invalid;
  /** The field that is not valid. */
  readonly field: string;
  readonly isDenial: boolean;
}

/** Its parts have one character per byte, and are escaped by the service. */
export interface QueryParameter {
  readonly key: string;
  readonly value: string;
}

/** The decoded message, with the API's names. */
interface Answer {
  readonly status?: { readonly code?: number };
  readonly denied_response?: RefusalMessage;
  readonly ok_response?: {
    readonly headers?: readonly HeaderOption[];
    readonly headers_to_remove?: readonly string[];
    readonly response_headers_to_add?: readonly HeaderOption[];
    readonly query_parameters_to_set?: readonly { readonly key?: string; readonly value?: string }[];
    readonly query_parameters_to_remove?: readonly string[];
    readonly dynamic_metadata?: ProtoStruct;
  };
  readonly error_response?: RefusalMessage;
  readonly dynamic_metadata?: ProtoStruct;
}

interface RefusalMessage {
  readonly status?: { readonly code?: number };
  readonly headers?: readonly HeaderOption[];
  readonly body?: string;
}

interface HeaderOption {
  readonly header?: { readonly key?: string; readonly value?: string; readonly raw_value?: Uint8Array };
  /** The deprecated google.protobuf.BoolValue. */
  readonly append?: { readonly value?: boolean };
  readonly append_action?: number;
}

let type: ReturnType<typeof loadMessages>[string] | undefined;

/** How answers are checked. */
export interface DecodeRules {
  /** Decide which fields of the request may change; undefined: all. */
  readonly mutations?: MutationRules | undefined;
  /** An invalid field for the client makes the answer invalid; otherwise the field is left out. */
  readonly validates?: boolean;
}

/** Decodes an answer. Throws if it is not one. */
export function decodeAnswer(message: Uint8Array, rules: DecodeRules = {}): Approval | Refusal | InvalidApproval {
  type ??= loadMessages(MESSAGE)[MESSAGE];
  const answer = type!.toObject(type!.decode(message)) as Answer;
  const { denied_response: denied, error_response: error, ok_response: ok, status } = answer;
  const metadata = filledStruct(answer.dynamic_metadata ?? ok?.dynamic_metadata);
  const isAllowed = (status?.code ?? 0) === 0;
  const invalid = rules.validates && invalidName(isAllowed ? ok?.response_headers_to_add : (error ?? denied)?.headers);
  if (invalid !== undefined && invalid !== false) {
    // As in Envoy, an error that cannot be sent is an error without a response.
    if (error !== undefined && !isAllowed) return { ...refusalOf({}), decision: Decision.Failed, metadata };
    return { decision: Decision.Invalid, field: invalid, isDenial: !isAllowed, metadata };
  }
  if (isAllowed) return approvalOf(ok, metadata, rules.mutations);
  if (error !== undefined) return { ...refusalOf(error), decision: Decision.Failed, metadata };
  return { ...refusalOf(denied), decision: Decision.Denied, metadata };
}

/** Returns the name of the first field that cannot be sent to the client. */
function invalidName(options: readonly HeaderOption[] = []): string | undefined {
  const invalid = options.find((option) => !NAME.test(option.header?.key ?? '') || !isLine(headerValue(option)));
  return invalid && (invalid.header?.key ?? '');
}

function approvalOf(
  ok: Answer['ok_response'] = {},
  metadata: Struct | undefined,
  rules: MutationRules | undefined,
): Approval | InvalidApproval {
  const overwritten: HeaderChange[] = [];
  const joined: HeaderChange[] = [];
  let path: string | undefined;
  for (const option of ok.headers ?? []) {
    const name = option.header?.key?.toLowerCase() ?? '';
    const isPath = name === ':path';
    const isHost = name === 'host' || name === ':authority';
    if (isFraming(name) || (name.startsWith(':') && !isPath && !isHost)) continue;
    const verdict = rules?.check(name, false) ?? Verdict.Allowed;
    if (verdict === Verdict.Ignored) continue;
    if (verdict === Verdict.Error) return { decision: Decision.Invalid, field: name, isDenial: false, metadata };
    // As in Envoy, only `append` decides about fields of the request.
    const isJoined = option.append?.value === true;
    const value = headerValue(option);
    const isValid =
      isPath || isHost ? !isJoined && (isPath || AUTHORITY.test(value)) : NAME.test(name) && isLine(value);
    if (!isValid) return { decision: Decision.Invalid, field: name, isDenial: false, metadata };
    if (isPath) path = value;
    else if (isJoined) joined.push({ key: headerKey(name), value, action: HeaderAction.Join });
    else overwritten.push({ key: headerKey(isHost ? 'host' : name), value, action: HeaderAction.Overwrite });
  }
  const removed: string[] = [];
  for (const name of ok.headers_to_remove ?? []) {
    const verdict = rules?.check(name.toLowerCase(), true) ?? Verdict.Allowed;
    if (verdict === Verdict.Error) return { decision: Decision.Invalid, field: name, isDenial: false, metadata };
    if (verdict === Verdict.Allowed && NAME.test(name) && !isFixed(name)) removed.push(name);
  }
  return {
    decision: Decision.Allowed,
    path,
    // As in Envoy, overwrites go first.
    toHost: [...overwritten, ...joined],
    removed: removed.map(headerKey),
    toClient: changesOfResponse(ok.response_headers_to_add, ({ append_action: action = 0 }) => action),
    queryToSet: (ok.query_parameters_to_set ?? []).map(({ key = '', value = '' }) => ({
      key: byteText(key),
      value: byteText(value),
    })),
    queryToRemove: (ok.query_parameters_to_remove ?? []).map(byteText),
    metadata,
  };
}

function refusalOf({ body = '', headers, status }: RefusalMessage = {}): Pick<Refusal, 'body' | 'headers' | 'status'> {
  const code = status?.code ?? 0;
  return {
    status: code >= MIN_STATUS && code <= MAX_STATUS ? code : undefined,
    // As in Envoy, all are added.
    headers: changesOfResponse(headers, () => HeaderAction.Append),
    body,
  };
}

/** Applies changes to a head. */
export function applyChanges(headers: HeaderBlock, changes: readonly HeaderChange[]): void {
  for (const { action, key, value } of changes) {
    const exists = headers.find(key) >= 0;
    if (action === HeaderAction.Append) headers.add(key, value);
    else if (action === HeaderAction.Join) join(headers, key, value);
    else if (action === HeaderAction.Overwrite || (action === HeaderAction.AddIfAbsent) !== exists)
      headers.set(key, value);
  }
}

/** Adds to the value of a field, which may be a list of several lines. As in Envoy, of other repeated fields the first is changed. */
function join(headers: HeaderBlock, key: HeaderKey, value: string): void {
  const values: string[] = [];
  if ((key.joinedIn & headers.kind) !== 0) values.push(headers.get(key) ?? '');
  else
    for (let index = headers.find(key); index >= 0; index = headers.findNext(key, index))
      values.push(headers.value(index));
  if (!headers.remove(key)) return;
  headers.add(key, `${values[0]},${value}`);
  for (const each of values.slice(1)) headers.add(key, each);
}

/** Returns the path of an approved request, with its parameters in the order of their names as in Envoy; undefined: it is not valid. */
export function changedPath(
  former: string,
  { path = former, queryToRemove, queryToSet }: Approval,
): string | undefined {
  const changed = changedQuery(path, queryToSet, queryToRemove);
  return changed === former || /^\/[^\0-\x20#\x7f]*$/.test(changed) ? changed : undefined;
}

function changedQuery(path: string, toSet: readonly QueryParameter[], toRemove: readonly string[]): string {
  if (toRemove.length === 0 && toSet.length === 0) return path;
  const start = path.indexOf('?');
  const parameters = new Map<string, string[]>();
  for (const each of start < 0 ? [] : path.slice(start + 1).split('&')) {
    const [, key = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(each) ?? [];
    if (each === '') continue;
    const values = parameters.get(key);
    if (values === undefined) parameters.set(key, [value]);
    else values.push(value);
  }
  for (const { key, value } of toSet) parameters.set(key, [value]);
  for (const key of toRemove) parameters.delete(key);
  const sorted = [...parameters].sort(([a], [b]) => (a < b ? -1 : 1));
  const query = sorted.flatMap(([key, values]) => values.map((value) => `${key}=${value}`)).join('&');
  return (start < 0 ? path : path.slice(0, start)) + (query === '' ? '' : `?${query}`);
}

/** Returns the valid changes of a response. Others are left out: what the service has decided applies without them. */
function changesOfResponse(
  options: readonly HeaderOption[] = [],
  actionOf: (option: HeaderOption) => HeaderAction,
): HeaderChange[] {
  const changes: HeaderChange[] = [];
  for (const option of options) {
    const name = option.header?.key ?? '';
    const value = headerValue(option);
    if (NAME.test(name) && !isFixed(name) && isLine(value))
      changes.push({ key: headerKey(name), value, action: actionOf(option) });
  }
  return changes;
}

/** Returns the value with one character per byte. */
function headerValue({ header }: HeaderOption): string {
  const { raw_value: raw, value = '' } = header ?? {};
  return raw === undefined || raw.length === 0 ? byteText(value) : Buffer.from(raw).toString('latin1');
}

function isLine(value: string): boolean {
  return !/[\0\r\n]/.test(value);
}

function isFixed(name: string): boolean {
  const lower = name.toLowerCase();
  return lower === 'host' || isFraming(lower);
}
