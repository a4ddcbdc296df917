// The decision of a service that is only observed (shadow_mode), as an object of the filter state.

import { writeText } from '../../../messages/wire.js';
import { type FilterStateObject, ProtobufWriter } from '../../../sdk.js';

const TYPE_URL = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ShadowDecision';
/** ShadowDecision.CheckResult. */
const NUMBERS = { OK: 1, DENIED: 2, ERROR: 3 } as const;
const NO_FIELDS: readonly NamedValue[] = [];

export type CheckResult = keyof typeof NUMBERS;

export interface NamedValue {
  readonly key: string;
  readonly value: string;
}

/** Returns the object. `status` and `fields` are those of the response that the client would get. */
export function shadowDecision(result: CheckResult, status: number, fields = NO_FIELDS): FilterStateObject {
  const snake = { check_result: result, status_code: status, ...(fields.length > 0 && { response_headers: fields }) };
  const camel = { checkResult: result, statusCode: status, ...(fields.length > 0 && { responseHeaders: fields }) };
  return {
    text: JSON.stringify(snake),
    json: JSON.stringify(camel),
    fields: { check_result: result, status_code: status },
    message: { typeUrl: TYPE_URL, encoded: encode(result, status, fields) },
    isReadOnly: false,
    sharing: 'NONE',
  };
}

function encode(result: CheckResult, status: number, fields: readonly NamedValue[]): Uint8Array {
  const message = new ProtobufWriter();
  const field = new ProtobufWriter();
  message.number(1, NUMBERS[result]);
  message.number(2, status);
  for (const { key, value } of fields) {
    field.clear();
    writeText(field, 1, key);
    writeText(field, 2, value);
    message.message(3, field);
  }
  return message.copy();
}
