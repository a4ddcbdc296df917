// Finds all messages of a type within a message, at any depth. Uses the schema to skip parts that cannot contain them.

import type { Path, PathPart } from '../text/path.js';
import type { Message } from './decode.js';
import { messageNameOf } from './message-name.js';
import type { FieldType, Schema, ValueType } from './schema.js';

export class MessageFinder {
  readonly #schema: Schema;
  readonly #target: string;
  /** Whether a message can contain one, by name. An Any always can. */
  readonly #holders = new Map<string, boolean>();

  /** @param target full name of the messages to find */
  constructor(schema: Schema, target: string) {
    this.#schema = schema;
    this.#target = target;
  }

  /** Calls `found` for each of them in `message`, a message named `name` in canonical form. */
  find(name: string, message: Message, found: (message: Message, path: Path) => void): void {
    this.#message(name, message, [], found);
  }

  #message(name: string, message: Message, path: PathPart[], found: (message: Message, path: Path) => void): void {
    if (name === this.#target) found(message, [...path]);
    const type = this.#schema.message(name);
    if (type === undefined) return;
    for (const [fieldName, value] of Object.entries(message)) {
      const field = type.fields.get(fieldName);
      if (field === undefined || !this.#mayHold(field.value)) continue;
      path.push(fieldName);
      this.#field(field, value, path, found);
      path.pop();
    }
  }

  #field(field: FieldType, value: unknown, path: PathPart[], found: (message: Message, path: Path) => void): void {
    if (field.shape === 'single') {
      this.#value(field.value, value, path, found);
      return;
    }
    for (const [key, element] of Object.entries(value as object)) {
      path.push(field.shape === 'list' ? Number(key) : key);
      this.#value(field.value, element, path, found);
      path.pop();
    }
  }

  #value(type: ValueType, value: unknown, path: PathPart[], found: (message: Message, path: Path) => void): void {
    if (typeof value !== 'object' || value === null) return;
    const message = value as Message;
    const name = type.kind === 'message' ? type.name : messageNameOf(String(message['@type'] ?? ''));
    this.#message(name, message, path, found);
  }

  #mayHold(type: ValueType): boolean {
    if (type.kind === 'special') return type.special === 'any';
    return type.kind === 'message' && this.#holds(type.name);
  }

  #holds(name: string): boolean {
    const known = this.#holders.get(name);
    if (known !== undefined) return known;
    const open = [name];
    const seen = new Set(open);
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (next === this.#target) break;
      for (const { value } of this.#schema.message(next)?.fields.values() ?? []) {
        if (value.kind === 'special' && value.special === 'any') seen.add(this.#target);
        if (value.kind !== 'message' || seen.has(value.name)) continue;
        seen.add(value.name);
        open.push(value.name);
      }
    }
    const holds = seen.has(this.#target);
    this.#holders.set(name, holds);
    return holds;
  }
}
