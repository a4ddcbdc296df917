// How the table of implemented fields is written: by message, what Baton does with each field.
//
// A field that is set and not implemented is refused by name and position. The compiler checks messages, fields and enum values against
// the API: each field of a message of Envoy's and each value of an enum has to be decided, so that none that the API gets later is taken
// and ignored.

import type { Messages } from '../generated/api.js';

/**
 * What Baton does with a field:
 * - true: obeys it
 * - byValue({ A: true, B: false }), of an enum: obeys it with the values that are true
 * - everyValue(note), of an enum: obeys it whatever the value, those too that the API gets later; the note says why
 * - onlyExtension(name, otherwise): obeys that extension; refuses the field with others, saying what to do otherwise
 * - onlyFalse(otherwise): obeys false, which is the default; refuses true, saying what to do otherwise
 * - refused(reason): refuses it, saying why
 * - accepted(note): takes it, because it cannot change behaviour; the note says why
 */
export type FieldRow<V> =
  | Refused
  | Accepted
  | OnlyExtension
  | ([V] extends [boolean] ? OnlyFalse : never)
  | (IsEnum<Element<V>> extends true ? ByValue<Element<V> & string> | EveryValue : true);

export interface Refused {
  /** Empty where there is nothing to say but that it is not implemented. */
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

export interface ByValue<V extends string> {
  readonly byValue: { readonly [value in V]: boolean };
}

export interface EveryValue {
  readonly everyValue: string;
}

/** Every field of a message is implemented. Only for messages that change together with the code that obeys them: an extension's own. */
export const ALL = 'all';

/** The rows of a message of Envoy's. */
export type MessageRows<M> = { readonly [F in keyof M]-?: FieldRow<NonNullable<M[F]>> };

/** The rows of an extension's own message: what is left out is not implemented. */
export type OwnRows<M> = typeof ALL | { readonly [F in keyof M]?: FieldRow<NonNullable<M[F]>> | true };

/** Rows by the message's full name. */
export type ImplementedTable = {
  readonly [N in keyof Messages]?: N extends OfEnvoy ? MessageRows<Messages[N]> : OwnRows<Messages[N]>;
};

type OfEnvoy = `envoy.${string}` | `xds.${string}` | `udpa.${string}`;

type Element<V> = V extends readonly (infer E)[] ? E : V;

/** Texts are `string`, enums some of them. */
type IsEnum<V> = [V] extends [string] ? (string extends V ? false : true) : false;

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

export function byValue<V extends string>(values: { readonly [value in V]: boolean }): ByValue<V> {
  return { byValue: values };
}

export function everyValue(note: string): EveryValue {
  return { everyValue: note };
}

/** Rows of fields that Baton obeys. */
export function obeyed<F extends string>(...fields: readonly F[]): { readonly [field in F]: true } {
  return Object.fromEntries(fields.map((field) => [field, true])) as { [field in F]: true };
}

/** Rows of fields that Baton does not implement, without more to say. */
export function notImplemented<F extends string>(...fields: readonly F[]): { readonly [field in F]: Refused } {
  return Object.fromEntries(fields.map((field) => [field, refused('')])) as { [field in F]: Refused };
}
