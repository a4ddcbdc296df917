// Values that the API marks as sensitive, such as private keys and passwords, and other credentials: where they are in a
// configuration, and a copy without them.

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

/** A value that is not to be shown; plain data. */
export interface SensitiveValue {
  /** From the top of the message. */
  readonly path: Path;
  /** What is shown in its place; undefined: nothing. */
  readonly shown: string | undefined;
}

const REDACTED_BYTES = Buffer.from(REDACTED).toString('base64');

/** The sensitive values of a message in canonical form: all that is below a sensitive field, and credentials. */
export function sensitiveValues(schema: Schema, name: string, message: Message): SensitiveValue[] {
  const search = new Search(schema);
  search.message(schema.message(name)!, message, 'shown');
  return search.found;
}

/** A message without these values. What holds none of them is shared with the original. */
export function redact<M extends object>(message: M, values: readonly SensitiveValue[]): M {
  return values.length === 0 ? message : replaced(message, values, redactedParts);
}

/** A part of a message that has been redacted, as it may be shown. */
export function shownPart<M extends object>(part: M): M {
  return (redactedParts.get(part) as M | undefined) ?? part;
}

/** By the originals: what is not here holds nothing that is hidden. */
const redactedParts = new WeakMap<object, object>();

/**
 * A message with other values at these places.
 * @param copies is given all that was copied, by what it was copied from
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
    // A copy stands for itself when it is met again.
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

/** What is hidden: by its name and place (`Cover`), or all of it because the API marks it. */
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

  /** A value of a Struct, or a message that the schema does not have. */
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
    // A message that is refused has this where an element of a list is wrong.
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
    // Those of protobuf itself have their JSON form in a member: a Struct of any names.
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

/** What a marked value becomes; undefined: it is left out. */
function markedAs(type: ValueType): string | undefined {
  const scalar = type.kind === 'scalar' ? type.scalar : undefined;
  return scalar === 'string' ? REDACTED : scalar === 'bytes' ? REDACTED_BYTES : undefined;
}

/** Of the rest, as `ignore_case` of a matcher, nothing is secret. */
function isText(type: ValueType): boolean {
  return (type.kind === 'scalar' && (type.scalar === 'string' || type.scalar === 'bytes')) || type.kind === 'special';
}

/** What of a message can be a credential. */
interface Traits {
  /** Fields that are by their names. */
  readonly credentials: ReadonlySet<string>;
  /** Whether it may name one beside its value. */
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

/** What a field of such a name may hold: other messages say where a credential is. */
function mayBeCredential(type: ValueType): boolean {
  if (type.kind === 'special') return type.special !== 'any';
  return type.kind === 'message' ? type.name === DATA_SOURCE : isText(type);
}

/** Values of runtime are shown: the admin interface has them apart, and changes them. */
function isOpen({ name }: MessageType, { value }: FieldType): boolean {
  return RUNTIME.has(name) && value.kind === 'special' && value.special === 'struct';
}

const RUNTIME = new Set([
  'envoy.config.bootstrap.v3.Runtime',
  'envoy.config.bootstrap.v3.RuntimeLayer',
  'envoy.service.runtime.v3.Runtime',
]);
const DATA_SOURCE = 'envoy.config.core.v3.DataSource';
/** Of a DataSource. */
const PLACES = new Set(['filename', 'environment_variable']);
