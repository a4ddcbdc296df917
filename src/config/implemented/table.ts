// The structure of the table of implemented fields: for each message, how Baton treats each field.
//
// A field that is set and not implemented is refused by name and position. The compiler checks messages, fields and enum values
// against the API: every field of an Envoy message and every enum value needs a row, so that fields which the API adds later
// are not silently ignored.

import type { Messages } from '../generated/api.js';

/**
 * How Baton treats a field:
 * - true: implemented
 * - byValue({ A: true, B: false }), for enums: implemented for the values that are true
 * - everyValue(note), for enums: implemented for all values, including future ones; the note says why
 * - onlyExtension(name, otherwise): implemented for that extension; other extensions are refused, with an alternative
 * - onlyFalse(otherwise): implemented for false, the default; true is refused, with an alternative
 * - onlyEmpty(otherwise): implemented for a message without fields; others are refused, with an alternative
 * - onlyWithin(messages, otherwise): implemented where one of these messages holds the field's message; refused elsewhere, with an alternative
 * - dataOf(...names), for a google.protobuf.Any, or a map of them: implemented for messages that are data, not the configuration of an extension
 * - refused(reason): refused, with the reason
 * - accepted(note): accepted because it cannot change behaviour; the note says why
 */
export type FieldRow<V> =
  | Refused
  | Accepted
  | OnlyExtension
  | OnlyEmpty
  | OnlyWithin
  | DataOf
  | ([V] extends [boolean] ? OnlyFalse : never)
  | (IsEnum<Element<V>> extends true ? ByValue<Element<V> & string> | EveryValue : true);

export interface Refused {
  /** Empty if there is no reason but that it is not implemented. */
  readonly refused: string;
}

export interface Accepted {
  readonly accepted: string;
}

export interface OnlyExtension {
  /** Canonical names of the extensions. */
  readonly only: readonly string[];
  readonly otherwise: string;
}

export interface OnlyEmpty {
  readonly onlyEmpty: string;
}

export interface OnlyWithin {
  /** Full names of the messages whose fields have this one's message. */
  readonly within: readonly string[];
  readonly otherwise: string;
}

export interface DataOf {
  /** Full names of the messages. */
  readonly data: readonly string[];
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

/**
 * Every field of a message is implemented. Only for an extension's own messages, which change together with the code that reads
 * them.
 */
export const ALL = 'all';

/** The rows of an Envoy message. */
export type MessageRows<M> = { readonly [F in keyof M]-?: FieldRow<NonNullable<M[F]>> };

/** The rows of an extension's own message. Fields without a row are not implemented. */
export type OwnRows<M> = typeof ALL | { readonly [F in keyof M]?: FieldRow<NonNullable<M[F]>> | true };

/** Rows, keyed by the full name of the message. */
export type ImplementedTable = {
  readonly [N in keyof Messages]?: N extends OfEnvoy ? MessageRows<Messages[N]> : OwnRows<Messages[N]>;
};

type OfEnvoy = `envoy.${string}` | `xds.${string}` | `udpa.${string}`;

type Element<V> = V extends readonly (infer E)[] ? E : V;

/** Strings have the type `string`, enums are unions of literals. */
type IsEnum<V> = [V] extends [string] ? (string extends V ? false : true) : false;

export function refused(reason: string): Refused {
  return { refused: reason };
}

export function accepted(note: string): Accepted {
  return { accepted: note };
}

/** For a field whose message has a name and a typed_config. */
export function onlyExtension(only: string | readonly string[], otherwise: string): OnlyExtension {
  return { only: typeof only === 'string' ? [only] : only, otherwise };
}

export function onlyEmpty(otherwise: string): OnlyEmpty {
  return { onlyEmpty: otherwise };
}

export function onlyWithin(within: readonly string[], otherwise: string): OnlyWithin {
  return { within, otherwise };
}

export function dataOf(...data: readonly string[]): DataOf {
  return { data };
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

/** Returns rows for implemented fields. */
export function obeyed<F extends string>(...fields: readonly F[]): { readonly [field in F]: true } {
  return Object.fromEntries(fields.map((field) => [field, true])) as { [field in F]: true };
}

/** Returns rows for fields that are not implemented, without a reason. */
export function notImplemented<F extends string>(...fields: readonly F[]): { readonly [field in F]: Refused } {
  return Object.fromEntries(fields.map((field) => [field, refused('')])) as { [field in F]: Refused };
}
