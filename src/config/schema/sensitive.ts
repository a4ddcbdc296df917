// Finds values that the API marks as sensitive, such as private keys and passwords, and other credentials. Copies
// configurations without them.

import {
  type Cover,
  coverOf,
  coversContent,
  isCredentialName,
  isNamedValue,
  mayName,
  namesCredential,
  REDACTED,
  shownOf,
  withoutCredentials,
} from '../text/credentials.js';
import type { Path, PathPart } from '../text/path.js';
import type { Message } from './decode.js';
import { ANY, messageNameOf } from './message-name.js';
import type { FieldType, MessageType, Schema, ValueType } from './schema.js';

/** A value to hide; plain data. */
export interface SensitiveValue {
  /** Path from the top of the message. */
  readonly path: Path;
  /** The text shown instead; undefined: nothing is shown. */
  readonly shown: string | undefined;
}

const REDACTED_BYTES = Buffer.from(REDACTED).toString('base64');

/** Returns the sensitive values of a message in canonical form: everything below a sensitive field, and credentials. */
export function sensitiveValues(schema: Schema, name: string, message: Message): SensitiveValue[] {
  const search = new Search(schema);
  search.message(schema.message(name)!, message, 'shown');
  return search.found;
}

/** Returns a message without these values. Unaffected parts are shared with the original. */
export function redact<M extends object>(message: M, values: readonly SensitiveValue[]): M {
  return values.length === 0 ? message : replaced(message, values, redactedParts);
}

/** Returns the redacted version of a part of a message. */
export function shownPart<M extends object>(part: M): M {
  return (redactedParts.get(part) as M | undefined) ?? part;
}

/** Keyed by the originals. Parts that are not in this map contain nothing to hide. */
const redactedParts = new WeakMap<object, object>();

/**
 * Returns a message with these values replaced.
 * @param copies receives all copies, keyed by their originals
 */
export function replaced<M extends object>(
  message: M,
  values: readonly SensitiveValue[],
  copies?: WeakMap<object, object>,
): M {
  const made = new Map<object, object>();
  const copyOf = (held: object): object => {
    const known = made.get(held);
    if (known !== undefined) return known;
    const copy = Array.isArray(held) ? [...held] : { ...held };
    made.set(held, copy);
    copies?.set(held, copy);
    // A copy is not copied again when it is reached once more.
    made.set(copy, copy);
    return copy;
  };
  const top = copyOf(message);
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

/** How a value is hidden: by its name and place (`Cover`), or completely because the API marks it. */
type Hiding = Cover | 'marked';

class Search {
  readonly found: SensitiveValue[] = [];
  readonly #schema: Schema;
  readonly #path: PathPart[] = [];

  constructor(schema: Schema) {
    this.#schema = schema;
  }

  message(type: MessageType, message: Message, hiding: Hiding): void {
    const { credentials, mayNameOne } = traitsOf(type);
    const isNamed = mayNameOne && namesCredential((label) => message[label]);
    for (const [name, value] of Object.entries(message)) {
      const field = type.fields.get(name);
      if (field === undefined || isOpen(type, field)) continue;
      const isMarked = hiding === 'marked' || field.isSensitive;
      const isPlace = hiding === 'hidden' && type.name === DATA_SOURCE && PLACES.has(name);
      this.#path.push(name);
      this.#field(
        field,
        value,
        isMarked ? 'marked' : isPlace ? 'shown' : coverOf(name, credentials.has(name), isNamed, hiding as Cover),
      );
      this.#path.pop();
    }
  }

  /** Visits a value of a Struct, or a message that the schema does not have. */
  #plain(value: unknown, cover: Cover): void {
    if (typeof value !== 'object' || value === null) return this.#leaf(value, cover, REDACTED);
    const isList = Array.isArray(value);
    const fields = value as Message;
    const entries = Object.entries(fields);
    const isNamed =
      !isList && entries.some(([name]) => isNamedValue(name)) && namesCredential((label) => fields[label]);
    for (const [name, held] of entries) {
      this.#path.push(isList ? Number(name) : name);
      const isCredential = (typeof held === 'object' ? coversContent : isCredentialName)(name);
      this.#plain(held, isList ? cover : coverOf(name, isCredential, isNamed, cover));
      this.#path.pop();
    }
  }

  #field(field: FieldType, value: unknown, hiding: Hiding): void {
    if (field.shape === 'single' || typeof value !== 'object' || value === null) {
      this.#value(field.value, value, hiding);
      return;
    }
    if (hiding === 'shown' && field.value.kind === 'scalar' && field.value.scalar !== 'string') return;
    const isMap = field.shape === 'map';
    const isText = field.value.kind === 'scalar';
    for (const [key, element] of Object.entries(value)) {
      this.#path.push(isMap ? key : Number(key));
      const isNamed = isMap && isText && hiding !== 'marked' && isCredentialName(key);
      this.#value(field.value, element, isNamed ? 'hidden' : hiding);
      this.#path.pop();
    }
  }

  #value(type: ValueType, value: unknown, hiding: Hiding): void {
    // Refused messages have null for an invalid list element.
    if (value === null) return;
    if (typeof value === 'object') this.#content(type, value as Message, hiding);
    else if (hiding === 'marked') this.#note(markedAs(type));
    else this.#leaf(value, isText(type) ? hiding : 'shown', markedAs(type) ?? REDACTED);
  }

  #content(type: ValueType, value: Message, hiding: Hiding): void {
    if (type.kind === 'message') this.message(this.#schema.message(type.name)!, value, hiding);
    else if (type.kind === 'special' && type.special === 'any') this.#any(type, value, hiding);
    else if (hiding === 'marked') this.#note(undefined);
    else this.#plain(value, hiding);
  }

  #any(type: ValueType, value: Message, hiding: Hiding): void {
    const url = value['@type'];
    const name = messageNameOf(String(url));
    // Protobuf's own types have their JSON form in one member, for example a Struct with any names.
    const hasFields = name === ANY || !name.startsWith('google.protobuf.');
    const inner = hasFields ? this.#schema.message(name) : undefined;
    const isKnown = inner !== undefined && (inner.name !== ANY || typeof value['value'] === 'object');
    if (isKnown) {
      this.#path.push('@type');
      this.#leaf(url, 'shown', REDACTED);
      this.#path.pop();
    }
    if (isKnown && inner.name === ANY) {
      this.#path.push('value');
      this.#value(type, value['value'], hiding);
      this.#path.pop();
    } else if (isKnown) this.message(inner, value, hiding);
    else if (hiding === 'marked') this.#note(undefined);
    else this.#plain(value, hiding);
  }

  #leaf(value: unknown, cover: Cover, redacted: string): void {
    if (cover === 'hidden') {
      if (shownOf(value) !== value) this.#note(redacted);
    } else if (typeof value === 'string') {
      const shown = withoutCredentials(value);
      if (shown !== value) this.#note(shown);
    }
  }

  #note(shown: string | undefined): void {
    this.found.push({ path: [...this.#path], shown });
  }
}

/** Returns the text shown for a marked value; undefined: the value is removed. */
function markedAs(type: ValueType): string | undefined {
  const scalar = type.kind === 'scalar' ? type.scalar : undefined;
  return scalar === 'string' ? REDACTED : scalar === 'bytes' ? REDACTED_BYTES : undefined;
}

/** Other types, such as the boolean `ignore_case` of a matcher, cannot be secret. */
function isText(type: ValueType): boolean {
  return (type.kind === 'scalar' && (type.scalar === 'string' || type.scalar === 'bytes')) || type.kind === 'special';
}

/** Which fields of a message can be credentials. */
interface Traits {
  /** Fields that are credentials by name. */
  readonly credentials: ReadonlySet<string>;
  /** Whether the message may contain the name of a credential and its value. */
  readonly mayNameOne: boolean;
}

const known = new WeakMap<MessageType, Traits>();

function traitsOf(type: MessageType): Traits {
  let traits = known.get(type);
  if (traits === undefined) {
    const credentials = new Set<string>();
    for (const { name, value } of type.fields.values()) {
      if (coversContent(name) && mayBeCredential(value)) credentials.add(name);
    }
    traits = { credentials, mayNameOne: mayName(type.fields) };
    known.set(type, traits);
  }
  return traits;
}

/** Returns whether a field with such a name can contain a credential. Other messages describe where a credential is. */
function mayBeCredential(type: ValueType): boolean {
  if (type.kind === 'special') return type.special !== 'any';
  return type.kind === 'message' ? type.name === DATA_SOURCE : isText(type);
}

/** Runtime values are shown, since the admin interface shows and changes them separately. */
function isOpen({ name }: MessageType, { value }: FieldType): boolean {
  return RUNTIME.has(name) && value.kind === 'special' && value.special === 'struct';
}

const RUNTIME = new Set([
  'envoy.config.bootstrap.v3.Runtime',
  'envoy.config.bootstrap.v3.RuntimeLayer',
  'envoy.service.runtime.v3.Runtime',
]);
const DATA_SOURCE = 'envoy.config.core.v3.DataSource';
/** Fields of a DataSource. */
const PLACES = new Set(['filename', 'environment_variable']);
