// A gRPC status as an error of the Connect protocol.

import { type HeaderBlock, headerKey } from '../../../sdk.js';

const GRPC_STATUS = headerKey('grpc-status');
const GRPC_MESSAGE = headerKey('grpc-message');

/** Names and HTTP statuses of the errors 1 to 16. */
const ERRORS: readonly (readonly [code: string, status: number])[] = [
  ['canceled', 408],
  ['unknown', 500],
  ['invalid_argument', 400],
  ['deadline_exceeded', 408],
  ['not_found', 404],
  ['already_exists', 409],
  ['permission_denied', 403],
  ['resource_exhausted', 429],
  ['failed_precondition', 412],
  ['aborted', 409],
  ['out_of_range', 400],
  ['unimplemented', 404],
  ['internal', 500],
  ['unavailable', 503],
  ['data_loss', 500],
  ['unauthenticated', 401],
];

export interface ConnectError {
  readonly code: string;
  readonly message?: string;
}

/** Returns the error in a head or in trailers, and the HTTP status of a unary response with it; undefined if the call succeeded. */
export function connectError(headers: HeaderBlock): { error: ConnectError; status: number } | undefined {
  const text = headers.get(GRPC_STATUS);
  if (text === undefined || /^0+$/.test(text)) return undefined;
  const [code, status] = ERRORS[Number(text) - 1] ?? ERRORS[1]!;
  const message = headers.get(GRPC_MESSAGE) ?? '';
  return { error: message === '' ? { code } : { code, message: decoded(message) }, status };
}

/** Returns the fields besides the status: values by name, as text. */
export function otherFields(headers: HeaderBlock): Map<string, string[]> {
  const fields = new Map<string, string[]>();
  for (let index = 0; index < headers.size; index++) {
    const name = headers.isRemoved(index) ? '' : headers.name(index);
    if (name === '' || name === GRPC_STATUS.name || name === GRPC_MESSAGE.name) continue;
    const values = fields.get(name);
    if (values === undefined) fields.set(name, [headers.value(index)]);
    else values.push(headers.value(index));
  }
  return fields;
}

/** A grpc-message is UTF-8, with some bytes as %XX. */
function decoded(message: string): string {
  const bytes = message.replace(/%([0-9A-Fa-f]{2})/g, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, 'latin1').toString();
}
