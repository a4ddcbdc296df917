// The answer of a gRPC service (envoy.service.auth.v3.CheckResponse).

import type { Json, Struct } from '../../../../config/generated/api.js';
import { loadMessages } from '../../../grpc-sdk.js';
import { BatonError, byteText, type HeaderBlock, type HeaderKey, headerKey } from '../../../sdk.js';

const MESSAGE = 'envoy.service.auth.v3.CheckResponse';
const FORBIDDEN = 403;
/** Fields that an answer cannot change. */
const FIXED = /^(:|host$|content-length$|transfer-encoding$|connection$|upgrade$|keep-alive$|proxy-connection$)/;

/** HeaderValueOption.HeaderAppendAction, and one more. */
export const enum HeaderAction {
  Append = 0,
  AddIfAbsent = 1,
  Overwrite = 2,
  OverwriteIfPresent = 3,
  /** The value is added to that of the field, behind a comma. */
  Join = 4,
}

export interface HeaderChange {
  readonly key: HeaderKey;
  /** One character per byte. */
  readonly value: string;
  readonly action: HeaderAction;
}

/** The request may pass, as changed. */
export interface Approval {
  readonly isAllowed: true;
  readonly toHost: readonly HeaderChange[];
  readonly removed: readonly HeaderKey[];
  readonly toClient: readonly HeaderChange[];
  readonly queryToSet: readonly QueryParameter[];
  readonly queryToRemove: readonly string[];
  readonly metadata: Struct | undefined;
}

export interface Denial {
  readonly isAllowed: false;
  readonly status: number;
  readonly headers: readonly HeaderChange[];
  readonly body: string;
  readonly metadata: Struct | undefined;
}

export interface QueryParameter {
  readonly key: string;
  readonly value: string;
}

/** The decoded message, with the API's names. */
interface Answer {
  readonly status?: { readonly code?: number };
  readonly denied_response?: {
    readonly status?: { readonly code?: number };
    readonly headers?: readonly HeaderOption[];
    readonly body?: string;
  };
  readonly ok_response?: {
    readonly headers?: readonly HeaderOption[];
    readonly headers_to_remove?: readonly string[];
    readonly response_headers_to_add?: readonly HeaderOption[];
    readonly query_parameters_to_set?: readonly { readonly key?: string; readonly value?: string }[];
    readonly query_parameters_to_remove?: readonly string[];
    readonly dynamic_metadata?: ProtoStruct;
  };
  /** The service has failed. */
  readonly error_response?: object;
  readonly dynamic_metadata?: ProtoStruct;
}

interface HeaderOption {
  readonly header?: { readonly key?: string; readonly value?: string; readonly raw_value?: Uint8Array };
  /** The deprecated google.protobuf.BoolValue. */
  readonly append?: { readonly value?: boolean };
  readonly append_action?: number;
}

interface ProtoStruct {
  readonly fields?: { readonly [key: string]: ProtoValue };
}

interface ProtoValue {
  readonly numberValue?: number;
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly structValue?: ProtoStruct;
  readonly listValue?: { readonly values?: readonly ProtoValue[] };
}

let type: ReturnType<typeof loadMessages>[string] | undefined;

/** Decodes an answer. Throws if it is not one, or contains an invalid header. */
export function decodeAnswer(message: Uint8Array): Approval | Denial {
  type ??= loadMessages(MESSAGE)[MESSAGE];
  const answer = type!.toObject(type!.decode(message)) as Answer;
  const { denied_response: denied, dynamic_metadata, ok_response: ok, status } = answer;
  if (answer.error_response !== undefined) throw new BatonError('INTERNAL', 'the service reports an error');
  const metadata = dynamic_metadata ?? ok?.dynamic_metadata;
  const common = { metadata: metadata && structOf(metadata) };
  if ((status?.code ?? 0) !== 0) {
    return {
      ...common,
      isAllowed: false,
      status: denied?.status?.code || FORBIDDEN,
      headers: free(denied?.headers).map((option) => changeOf(option, HeaderAction.Append)),
      body: denied?.body ?? '',
    };
  }
  return {
    ...common,
    isAllowed: true,
    // As in Envoy, only `append` decides about fields of the request, and fields of a denial are all added.
    toHost: free(ok?.headers).map((option) =>
      changeOf(option, option.append?.value === true ? HeaderAction.Join : HeaderAction.Overwrite),
    ),
    removed: (ok?.headers_to_remove ?? []).filter((name) => !isFixed(name)).map(keyOf),
    toClient: free(ok?.response_headers_to_add).map((option) => changeOf(option, option.append_action ?? 0)),
    queryToSet: (ok?.query_parameters_to_set ?? []).map(({ key = '', value = '' }) => ({ key, value })),
    queryToRemove: ok?.query_parameters_to_remove ?? [],
  };
}

/** Applies changes to a head. */
export function applyChanges(headers: HeaderBlock, changes: readonly HeaderChange[]): void {
  for (const { action, key, value } of changes) {
    const former = headers.get(key);
    if (action === HeaderAction.Append) headers.add(key, value);
    else if (action === HeaderAction.Join) headers.set(key, former === undefined ? value : `${former},${value}`);
    else if (action === HeaderAction.Overwrite || (action === HeaderAction.AddIfAbsent) === (former === undefined))
      headers.set(key, value);
  }
}

/** Returns a path with changed parameters, in the order of their names as in Envoy. */
export function changedQuery(path: string, { queryToRemove, queryToSet }: Approval): string {
  if (queryToRemove.length === 0 && queryToSet.length === 0) return path;
  const start = path.indexOf('?');
  const parameters = new Map<string, string[]>();
  for (const each of start < 0 ? [] : path.slice(start + 1).split('&')) {
    const [, key = '', value = ''] = /^([^=]*)=?(.*)$/s.exec(each) ?? [];
    if (each !== '') parameters.set(key, [...(parameters.get(key) ?? []), value]);
  }
  for (const { key, value } of queryToSet) parameters.set(encodeURIComponent(key), [encodeURIComponent(value)]);
  for (const key of queryToRemove) parameters.delete(key);
  const sorted = [...parameters].sort(([a], [b]) => (a < b ? -1 : 1));
  const query = sorted.flatMap(([key, values]) => values.map((value) => `${key}=${value}`)).join('&');
  return (start < 0 ? path : path.slice(0, start)) + (query === '' ? '' : `?${query}`);
}

function changeOf({ header }: HeaderOption, action: HeaderAction): HeaderChange {
  const { key = '', raw_value: raw, value = '' } = header ?? {};
  const text = raw === undefined || raw.length === 0 ? byteText(value) : Buffer.from(raw).toString('latin1');
  if (/[\0\r\n]/.test(text)) throw new BatonError('INTERNAL', `the value of '${key}' contains a line end`);
  return { key: keyOf(key), value: text, action };
}

/** Returns the headers that an answer may change. */
function free(options: readonly HeaderOption[] = []): readonly HeaderOption[] {
  return options.filter(({ header }) => !isFixed(header?.key));
}

function isFixed(name = ''): boolean {
  return FIXED.test(name.toLowerCase());
}

function keyOf(name: string): HeaderKey {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw new BatonError('INTERNAL', `'${name}' is not a header name`);
  return headerKey(name.toLowerCase());
}

function structOf({ fields = {} }: ProtoStruct): Struct {
  const struct: Record<string, Json> = { __proto__: null } as unknown as Record<string, Json>;
  for (const key of Object.keys(fields)) struct[key] = jsonOf(fields[key]!);
  return struct;
}

function jsonOf({ boolValue, listValue, numberValue, stringValue, structValue }: ProtoValue): Json {
  if (structValue !== undefined) return structOf(structValue);
  if (listValue !== undefined) return (listValue.values ?? []).map(jsonOf);
  return stringValue ?? numberValue ?? boolValue ?? null;
}
