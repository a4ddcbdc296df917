// Evaluates the table of implemented fields for the value of a field.

import type { ExtensionCatalog } from '../catalog/extension.js';
import type { Any } from '../generated/api.js';
import type { Message } from '../schema/decode.js';
import { messageNameOf } from '../schema/message-name.js';
import type { AnyRow } from './index.js';
import type { ByValue } from './table.js';

export type Refusal =
  | { readonly what: 'field'; readonly reason: string }
  | { readonly what: 'value'; readonly value: string; readonly instead: readonly string[] };

/** Returns why a field with this row cannot have this value; undefined if it can. `holder`: the message that holds the field's message. */
export function refusalOf(
  row: AnyRow | undefined,
  value: unknown,
  catalog: ExtensionCatalog,
  holder = '',
): Refusal | undefined {
  if (row === undefined) return { what: 'field', reason: '' };
  if (row === true || 'accepted' in row || 'everyValue' in row) return undefined;
  if ('refused' in row) return { what: 'field', reason: row.refused };
  if ('within' in row) return row.within.includes(holder) ? undefined : { what: 'field', reason: row.otherwise };
  if ('only' in row) {
    const found = (Array.isArray(value) ? value : [value]) as readonly (Message | null)[];
    const isOther = found.some((each) => each !== null && !row.only.includes(String(extensionIn(each, catalog))));
    return isOther ? { what: 'field', reason: row.otherwise } : undefined;
  }
  if ('data' in row) {
    const messages = '@type' in (value as Message) ? [value] : Object.values(value as Message);
    const isKnown = messages.every((each) => row.data.includes(messageNameOf(String((each as Message)?.['@type']))));
    return isKnown ? undefined : { what: 'field', reason: `it must be ${alternatives(row.data)}` };
  }
  if ('onlyEmpty' in row) {
    return Object.keys(value as Message).length === 0 ? undefined : { what: 'field', reason: row.onlyEmpty };
  }
  if ('onlyFalse' in row) return value === false ? undefined : { what: 'field', reason: row.onlyFalse };
  const wrong = (Array.isArray(value) ? value : [value]).find((element) => row.byValue[element as string] !== true);
  return wrong === undefined ? undefined : { what: 'value', value: String(wrong), instead: obeyedValues(row) };
}

/** Returns the enum values that Baton implements. */
export function obeyedValues({ byValue }: ByValue<string>): readonly string[] {
  return Object.keys(byValue).filter((value) => byValue[value]);
}

/** Returns the name of the extension that a message with name and typed_config refers to. */
function extensionIn({ name, typed_config: config }: Message, catalog: ExtensionCatalog): unknown {
  const url = (config as Any | undefined)?.['@type'];
  return url === undefined ? name : catalog.byTypeUrl(url)?.name;
}

/** Returns `a`, `a or b`, `a, b or c`. */
export function alternatives(names: readonly string[]): string {
  return names.length === 1 ? names[0]! : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}
