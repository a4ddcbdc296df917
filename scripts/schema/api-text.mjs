// The text format in which src/config/api describes messages: lines that are easy to read, compare and write by hand.
//
//   # A comment.
//   file envoy/type/v3/percent.proto [unfinished]
//   message FractionalPercent [was envoy.type.FractionalPercent] [unfinished]
//     uint32 numerator = 1
//     FractionalPercent.DenominatorType denominator = 2 rules {"enum":{"defined_only":true}}
//     oneof kind [required]
//       string text = 3
//   enum FractionalPercent.DenominatorType
//     HUNDRED = 0
//
// The folder of the file is the package. A type name that begins with a capital letter is in the package, others are full names.
// A type may be preceded by 'repeated' or 'optional', or is 'map<string, Type>'. The number of a field or value may be followed
// by marks (MARKS), 'category <extension category>', and last the rules of protoc-gen-validate in JSON, with durations as
// strings.

/** The marks, and the properties that they set. */
const MARKS = {
  deprecated: 'isDeprecated',
  /** Deprecated, and refused by default. */
  disallowed: 'isDisallowed',
  /** Work in progress in the API. */
  unfinished: 'isUnfinished',
  /** Redacted in dumps. */
  sensitive: 'isSensitive',
};

const FILE = /^file ([\w/-]+\.proto)( unfinished)?$/;
const TYPE = /^(message|enum) ([A-Z]\w*(?:\.[A-Z]\w*)*)(?: was ([\w.]+))?( unfinished)?$/;
const ONEOF = /^ {2}oneof (\w+)( required)?$/;
const FIELD =
  /^( {2}| {4})(repeated |optional )?(?:map<(\w+), ([\w.]+)>|([\w.]+)) (\w+) = (\d+)((?: (?!rules )[\w.]+)*)(?: rules (\{.*\}))?$/;
const VALUE = /^ {2}(\w+) = (-?\d+)((?: \w+)*)$/;

/** An error in the description of the API. */
export class ApiError extends Error {}

/**
 * Returns the types that a text describes.
 * @param {string} text
 * @param {string} name of the file, for errors
 * @returns {object[]} in order: messages { name, file, at, was, isUnfinished, fields, oneofs }, enums { name, file, at, values }
 * @throws {ApiError} with file and line
 */
export function readApi(text, name) {
  const reader = new Reader(name);
  for (const line of text.split('\n')) reader.line(line);
  return reader.types;
}

class Reader {
  types = [];
  #name;
  #number = 0;
  #file;
  #type;
  #oneof;

  constructor(name) {
    this.#name = name;
  }

  line(line) {
    this.#number++;
    if (line === '' || line.startsWith('#')) return;
    if (line.startsWith('file ')) this.#startFile(line);
    else if (!line.startsWith(' ')) this.#startType(line);
    else if (this.#type === undefined) this.#fail(`a message or an enum is missing before '${line.trim()}'`);
    else if (this.#type.values !== undefined) this.#value(line);
    else this.#member(line);
  }

  #startFile(line) {
    const [, path, unfinished] = FILE.exec(line) ?? this.#fail(`expected 'file <path>.proto', found '${line}'`);
    this.#file = { path, isUnfinished: unfinished !== undefined };
    this.#type = undefined;
  }

  #startType(line) {
    const [, kind, local, was, unfinished] =
      TYPE.exec(line) ?? this.#fail(`expected 'file', 'message' or 'enum' with a name, found '${line}'`);
    if (this.#file === undefined) this.#fail("a line 'file <path>.proto' is missing before it");
    const common = { name: `${packageOf(this.#file.path)}.${local}`, file: this.#file.path, at: this.#place() };
    if (kind === 'enum') this.#type = { ...common, values: [] };
    else {
      const isUnfinished = unfinished !== undefined;
      this.#type = { ...common, was, isUnfinished, isFileUnfinished: this.#file.isUnfinished, fields: [], oneofs: [] };
    }
    this.#oneof = undefined;
    this.types.push(this.#type);
  }

  #member(line) {
    const oneof = ONEOF.exec(line);
    if (oneof) {
      this.#oneof = oneof[1];
      this.#type.oneofs.push({ name: oneof[1], isRequired: oneof[2] !== undefined });
      return;
    }
    const [, indent, label, keyType, valueType, type, name, id, marks, rules] =
      FIELD.exec(line) ?? this.#fail(`expected '<type> <name> = <number>' or 'oneof <name>', found '${line.trim()}'`);
    const isMember = indent.length > 2;
    if (isMember && this.#oneof === undefined)
      this.#fail(`'${name}' is indented as a member of a oneof, and there is none`);
    if (!isMember) this.#oneof = undefined;
    this.#type.fields.push({
      name,
      id: Number(id),
      type: this.#fullName(valueType ?? type),
      keyType,
      isRepeated: label === 'repeated ',
      isOptional: label === 'optional ',
      oneof: isMember ? this.#oneof : undefined,
      ...this.#marks(marks),
      rules: rules && this.#rules(rules),
      at: this.#place(),
    });
  }

  #value(line) {
    const [, name, number, marks] =
      VALUE.exec(line) ?? this.#fail(`expected '<NAME> = <number>' of an enum, found '${line.trim()}'`);
    this.#type.values.push({ name, number: Number(number), ...this.#marks(marks), at: this.#place() });
  }

  #marks(text) {
    const found = {};
    const words = text.split(' ').filter((word) => word !== '');
    for (let at = 0; at < words.length; at++) {
      const word = words[at];
      if (word === 'category' && at + 1 < words.length) found.category = words[++at];
      else if (Object.hasOwn(MARKS, word)) found[MARKS[word]] = true;
      else this.#fail(`'${word}' is unknown here; expected ${Object.keys(MARKS).join(', ')}, category and rules`);
    }
    return found;
  }

  #rules(text) {
    try {
      return JSON.parse(text);
    } catch (error) {
      return this.#fail(`the rules are not valid JSON: ${error.message}`);
    }
  }

  #fullName(type) {
    return /^[A-Z]/.test(type) ? `${packageOf(this.#file.path)}.${type}` : type;
  }

  #place() {
    return `${this.#name}:${this.#number}`;
  }

  #fail(message) {
    throw new ApiError(`${this.#place()}: ${message}`);
  }
}

/** Returns the package of the messages in a .proto file: its folder. */
export function packageOf(path) {
  return path.slice(0, path.lastIndexOf('/')).replaceAll('/', '.');
}

/**
 * Returns the text that describes types, from which readApi() reads the same types.
 * @param {readonly object[]} types those of a file together
 * @returns {string}
 */
export function writeApi(types) {
  const parts = [];
  let file;
  for (const type of types) {
    if (type.file !== file) {
      file = type.file;
      parts.push(`file ${file}${type.isFileUnfinished ? ' unfinished' : ''}`);
    }
    parts.push(type.values === undefined ? messageText(type) : enumText(type));
  }
  return `${parts.join('\n\n')}\n`;
}

function messageText(type) {
  const { was, isUnfinished, oneofs, fields } = type;
  const lines = [`message ${localName(type)}${was ? ` was ${was}` : ''}${isUnfinished ? ' unfinished' : ''}`];
  let open;
  for (const field of fields) {
    if (field.oneof !== undefined && field.oneof !== open) {
      const { isRequired } = oneofs.find(({ name }) => name === field.oneof);
      lines.push(`  oneof ${field.oneof}${isRequired ? ' required' : ''}`);
    }
    open = field.oneof;
    lines.push(fieldText(field, packageOf(type.file)));
  }
  return lines.join('\n');
}

function fieldText(field, home) {
  const { name, id, keyType, isRepeated, isOptional, oneof, category, rules } = field;
  const type =
    field.type.startsWith(`${home}.`) && /^[A-Z]/.test(field.type.slice(home.length + 1))
      ? field.type.slice(home.length + 1)
      : field.type;
  const shape = keyType
    ? `map<${keyType}, ${type}>`
    : `${isRepeated ? 'repeated ' : isOptional ? 'optional ' : ''}${type}`;
  const more = `${marksText(field)}${category ? ` category ${category}` : ''}${rules ? ` rules ${JSON.stringify(rules)}` : ''}`;
  return `${oneof === undefined ? '  ' : '    '}${shape} ${name} = ${id}${more}`;
}

function enumText(type) {
  const values = type.values.map((value) => `  ${value.name} = ${value.number}${marksText(value)}`);
  return [`enum ${localName(type)}`, ...values].join('\n');
}

function marksText(of) {
  return Object.entries(MARKS)
    .flatMap(([mark, key]) => (of[key] ? ` ${mark}` : []))
    .join('');
}

function localName({ name, file }) {
  return name.slice(packageOf(file).length + 1);
}
