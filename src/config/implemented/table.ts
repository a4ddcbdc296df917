// How the table of implemented fields is written: by message, the fields that Baton obeys.
//
// A field that is set and not in the table is refused by name and position. Adding or removing one is a one-line edit;
// the compiler checks messages, fields and enum values against the API.

import type { Messages } from '../generated/api.js';

/**
 * What Baton does with a field:
 * - true: obeys it
 * - a list: obeys these values of the enum
 * - onlyExtension(name, otherwise): obeys that extension; refuses the field with others, saying what to do otherwise
 * - onlyFalse(otherwise): obeys false, which is the default; refuses true, saying what to do otherwise
 * - refused(reason): refuses it, saying why
 * - accepted(note): takes it, because it cannot change behaviour; the note says why
 */
export type FieldRow<V> =
  | true
  | Refused
  | Accepted
  | OnlyExtension
  | ([V] extends [boolean] ? OnlyFalse : never)
  | ([V] extends [string] ? readonly V[] : never);

export interface Refused {
  readonly refused: string;
}

export interface Accepted {
  readonly accepted: string;
}

export interface OnlyExtension {
  /** Its canonical name. */
  readonly only: string;
  readonly otherwise: string;
}

export interface OnlyFalse {
  readonly onlyFalse: string;
}

/** Every field of a message is implemented. */
export const ALL = 'all';

/** The rows of one message. */
export type MessageRows<M> = typeof ALL | { readonly [F in keyof M]?: FieldRow<NonNullable<M[F]>> };

/** Rows by the message's full name. */
export type ImplementedTable = { readonly [N in keyof Messages]?: MessageRows<Messages[N]> };

export function refused(reason: string): Refused {
  return { refused: reason };
}

export function accepted(note: string): Accepted {
  return { accepted: note };
}

/** Of a field whose message has a name and a typed_config. */
export function onlyExtension(only: string, otherwise: string): OnlyExtension {
  return { only, otherwise };
}

export function onlyFalse(otherwise: string): OnlyFalse {
  return { onlyFalse: otherwise };
}
