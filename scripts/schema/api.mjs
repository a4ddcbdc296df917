// Loads the types of Envoy's API from src/config/api, and those of extensions' own .proto files.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError, readApi } from './api-text.mjs';
import { EXTENSIONS_FILE } from './extensions.mjs';
import { addOwnProtos } from './own-protos.mjs';
import { mistakesInRules } from './rules.mjs';

export { ApiError } from './api-text.mjs';

const FOLDER = 'src/config/api';

const SCALARS = new Set(
  'double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool string bytes'.split(' '),
);

/**
 * Returns all types by full name.
 * @param {string} root the checkout
 * @returns {Map<string, object>} as readApi() returns them
 * @throws {ApiError} with all errors, one per line
 */
export function loadApi(root) {
  const types = new Map();
  for (const name of readdirSync(join(root, FOLDER)).sort()) {
    if (!name.endsWith('.txt') || name === EXTENSIONS_FILE) continue;
    for (const type of readApi(readFileSync(join(root, FOLDER, name), 'utf8'), `${FOLDER}/${name}`)) {
      const other = types.get(type.name);
      if (other !== undefined) throw new ApiError(`${type.at}: '${type.name}' is already described in ${other.at}`);
      types.set(type.name, type);
    }
  }
  addOwnProtos(root, types);
  const mistakes = [...types.values()].flatMap((type) => mistakesOf(type, types));
  if (mistakes.length > 0) throw new ApiError(mistakes.join('\n'));
  return types;
}

function mistakesOf(type, types) {
  if (type.values !== undefined) return mistakesOfEnum(type);
  const mistakes = [];
  const names = new Set();
  const numbers = new Set();
  for (const field of type.fields) {
    const report = (what) => mistakes.push(`${field.at}: ${type.name}.${field.name}: ${what}`);
    if (names.has(field.name)) report('the message has a field of that name already');
    if (numbers.has(field.id)) report(`the message has a field ${field.id} already`);
    if (field.id < 1) report('field numbers begin at 1');
    names.add(field.name);
    numbers.add(field.id);
    if (!SCALARS.has(field.type) && !types.has(field.type)) report(`there is no type '${field.type}'`);
    else
      mistakes.push(
        ...mistakesInRules(field, (name) => types.get(name)).map(
          (what) => `${field.at}: ${type.name}.${field.name}: ${what}`,
        ),
      );
  }
  for (const { name } of type.oneofs) {
    if (!type.fields.some(({ oneof }) => oneof === name))
      mistakes.push(`${type.at}: the oneof '${name}' has no member`);
  }
  return mistakes;
}

function mistakesOfEnum({ name, at, values }) {
  if (values.length === 0 || values[0].number !== 0) return [`${at}: ${name}: the first value of an enum is 0`];
  const names = new Set();
  return values.flatMap((value) => {
    if (names.has(value.name)) return [`${value.at}: ${name}: '${value.name}' is already defined`];
    names.add(value.name);
    return [];
  });
}
