// Values that the API marks as sensitive, such as private keys and passwords: where they are in a configuration, and a
// copy without them.

import type { Path, PathPart } from '../text/path.js';
import type { Message } from './decode.js';
import { ANY, messageNameOf } from './message-name.js';
import type { FieldType, MessageType, Schema, ValueType } from './schema.js';

/** A value that is not to be shown; plain data. */
export interface SensitiveValue {
  /** From the top of the message. */
  readonly path: Path;
  /** What is shown in its place; undefined: nothing. */
  readonly shown: string | undefined;
}

const REDACTED = '[redacted]';
const REDACTED_BYTES = Buffer.from(REDACTED).toString('base64');

/** The sensitive values of a message in canonical form: all that is below a sensitive field. Structs hold none that are known. */
export function sensitiveValues(schema: Schema, name: string, message: Message): SensitiveValue[] {
  const search = new Search(schema);
  search.message(schema.message(name)!, message, false);
  return search.found;
}

/** A message without these values. What holds none of them is shared with the original. */
export function redact<M extends object>(message: M, values: readonly SensitiveValue[]): M {
  const copies = new Map<object, object>();
  const copyOf = (held: object): object => {
    const known = copies.get(held);
    if (known !== undefined) return known;
    const copy = Array.isArray(held) ? [...held] : { ...held };
    copies.set(held, copy);
    // A copy stands for itself when it is met again.
    copies.set(copy, copy);
    return copy;
  };
  const top = values.length === 0 ? message : copyOf(message);
  for (const { path, shown } of values) {
    let holder = top as Record<PathPart, unknown>;
    for (const part of path.slice(0, -1)) {
      const copy = copyOf(holder[part] as object);
      holder[part] = copy;
      holder = copy as Record<PathPart, unknown>;
    }
    const last = path.at(-1)!;
    if (shown === undefined) delete holder[last];
    else holder[last] = shown;
  }
  return top as M;
}

class Search {
  readonly found: SensitiveValue[] = [];
  readonly #schema: Schema;
  readonly #path: PathPart[] = [];

  constructor(schema: Schema) {
    this.#schema = schema;
  }

  message(type: MessageType, message: Message, isSensitive: boolean): void {
    for (const [name, value] of Object.entries(message)) {
      const field = type.fields.get(name);
      if (field === undefined) continue;
      this.#path.push(name);
      this.#field(field, value, isSensitive || field.isSensitive);
      this.#path.pop();
    }
  }

  #field(field: FieldType, value: unknown, isSensitive: boolean): void {
    if (field.shape === 'single') {
      this.#value(field.value, value, isSensitive);
      return;
    }
    if (!isSensitive && (field.value.kind === 'scalar' || field.value.kind === 'enum')) return;
    for (const [key, element] of Object.entries(value as object)) {
      this.#path.push(field.shape === 'list' ? Number(key) : key);
      this.#value(field.value, element, isSensitive);
      this.#path.pop();
    }
  }

  #value(type: ValueType, value: unknown, isSensitive: boolean): void {
    // A message that is refused has this where an element of a list is wrong.
    if (value === null) return;
    if (type.kind === 'message') {
      this.message(this.#schema.message(type.name)!, value as Message, isSensitive);
    } else if (type.kind === 'special' && type.special === 'any') {
      const held = value as Message;
      const inner = this.#schema.message(messageNameOf(String(held['@type'])));
      if (inner?.name === ANY && typeof held['value'] === 'object') {
        this.#path.push('value');
        this.#value(type, held['value'], isSensitive);
        this.#path.pop();
      } else if (inner !== undefined) this.message(inner, held, isSensitive);
      else if (isSensitive) this.#note(undefined);
    } else if (isSensitive) {
      const scalar = type.kind === 'scalar' ? type.scalar : undefined;
      this.#note(scalar === 'string' ? REDACTED : scalar === 'bytes' ? REDACTED_BYTES : undefined);
    }
  }

  #note(shown: string | undefined): void {
    this.found.push({ path: [...this.#path], shown });
  }
}
