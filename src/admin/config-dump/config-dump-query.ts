// Selects resources for /config_dump by resource, mask and name_regex, and renders the answer.

import { compileRequestedFullMatch, type Regex, RegexError } from '../../common/text/regex.js';
import { type FieldMask, maskFits, maskFitsResource, parseFieldMask, trim } from '../../config/schema/field-mask.js';
import type { Schema } from '../../config/schema/schema.js';
import { Refusal } from '../admin-handler.js';
import { type Element, type JsonObject, prettyList } from '../json.js';
import type { ConfigDump, DumpList, DumpResource } from './config-dump.js';
import { lineStart, prettyMembers, prettyPieces } from './pretty-pieces.js';

export interface DumpQuery {
  readonly resource?: string | undefined;
  readonly mask?: string | undefined;
  readonly nameRegex?: string | undefined;
}

const TYPE_URL = 'type.googleapis.com/';

/** Resources; undefined in place of skipped ones. */
type Selected = Iterable<DumpResource | undefined>;

/** A dump whose resources may be skipped. */
interface SelectedDump extends Omit<ConfigDump, 'lists'> {
  readonly lists: readonly { readonly field: string; readonly resources: Selected }[];
}

/** Resources examined per step, unless that takes too long. */
const MAX_PER_STEP = 500;
const MAX_STEP_MS = 2;

/**
 * Returns the answer (envoy.admin.v3.ConfigDump) as texts, after steps that check the query; a text is empty where a
 * resource was skipped. `schema`: needed only with a resource or a mask.
 * @throws Refusal at any step
 */
export function* dumpTexts(
  dumps: readonly ConfigDump[],
  query: DumpQuery,
  schema: Schema | undefined,
): Generator<void, Iterable<string>> {
  const candidates = query.nameRegex === undefined ? dumps : withNames(dumps, nameRegex(query.nameRegex));
  const mask = query.mask === undefined ? undefined : fieldMask(query.mask);
  if (schema !== undefined && query.resource !== undefined) {
    return yield* resourceTexts(candidates, query.resource, { mask, maskText: query.mask }, schema);
  }
  if (schema === undefined || mask === undefined) return answer(dumpElements(candidates, undefined));
  const fitting = candidates.filter(({ message }) => maskFits(schema, message, mask));
  if (fitting.length > 0) return answer(dumpElements(fitting, mask));
  throw new Refusal(400, `FieldMask ${query.mask} could not be successfully applied to any configs.`);
}

/** More than the paths of any message need. */
const MAX_MASK = 8192;

function fieldMask(text: string): FieldMask {
  if (text.length > MAX_MASK) throw new Refusal(400, `The mask is longer than ${MAX_MASK} characters.`);
  return parseFieldMask(text);
}

/** Characters of a pattern that a refusal quotes. */
const MAX_SHOWN_PATTERN = 4096;

function nameRegex(pattern: string): Regex {
  try {
    return compileRequestedFullMatch(pattern);
  } catch (error) {
    if (!(error instanceof RegexError)) throw error;
    const shown = pattern.slice(0, MAX_SHOWN_PATTERN);
    throw new Refusal(400, `INVALID_ARGUMENT: Error while parsing name_regex from ${shown}: ${error.reason}`);
  }
}

function withNames(dumps: readonly ConfigDump[], regex: Regex): SelectedDump[] {
  const selected = ({ field, resources }: DumpList) => ({ field, resources: new NameFiltered(resources, regex) });
  return dumps.map(({ message, fields, lists }) => ({ message, fields, lists: lists.map(selected) }));
}

/** The resources whose names match; may be read several times. */
class NameFiltered implements Selected {
  readonly #resources: Iterable<DumpResource>;
  readonly #regex: Regex;

  constructor(resources: Iterable<DumpResource>, regex: Regex) {
    this.#resources = resources;
    this.#regex = regex;
  }

  *[Symbol.iterator](): Generator<DumpResource | undefined, void> {
    for (const resource of this.#resources) yield this.#regex.test(resource.name) ? resource : undefined;
  }
}

/** Depth of an element of `configs`. */
const DEPTH = 2;

function* answer(elements: Iterable<Element>): Generator<string, void> {
  yield* prettyList({}, 'configs', elements);
  yield '\n';
}

function* dumpElements(dumps: readonly SelectedDump[], mask: FieldMask | undefined): Generator<Iterable<string>, void> {
  for (const dump of dumps) yield dumpElement(dump, mask);
}

function* dumpElement({ message, fields, lists }: SelectedDump, mask: FieldMask | undefined): Generator<string, void> {
  const head = { '@type': `${TYPE_URL}${message}`, ...(mask === undefined ? fields : trim(fields, mask)) };
  let text = '';
  for (const piece of prettyMembers(Object.entries(head), DEPTH)) {
    if (text !== '') yield text;
    text = piece;
  }
  // The last piece is the closing brace, which follows the lists.
  for (const { field, resources } of lists) {
    if (mask !== undefined && !mask.has(field)) continue;
    yield* listMember(field, resources);
  }
  yield text;
}

/** Renders a list. A list without resources is omitted, as fields with default values are. */
function* listMember(field: string, resources: Selected): Generator<string, void> {
  let separator = `,${lineStart(DEPTH + 1)}${JSON.stringify(field)}: [`;
  for (const resource of resources) {
    if (resource === undefined) {
      yield '';
      continue;
    }
    yield `${separator}${lineStart(DEPTH + 2)}`;
    yield* prettyPieces(resource.message, DEPTH + 2);
    separator = ',';
  }
  if (separator === ',') yield `${lineStart(DEPTH + 1)}]`;
}

interface ResourceMask {
  readonly mask: FieldMask | undefined;
  readonly maskText: string | undefined;
}

function* resourceTexts(
  dumps: readonly SelectedDump[],
  resource: string,
  { mask, maskText }: ResourceMask,
  schema: Schema,
): Generator<void, Iterable<string>> {
  for (const dump of dumps) {
    const field = schema.message(dump.message)?.fields.get(resource);
    if (field === undefined) continue;
    if (field.shape !== 'list') {
      const remedy = `Use ?mask=${resource} to get only this field`;
      throw new Refusal(400, `${resource} is not a repeated field. ${remedy}`);
    }
    if (field.value.kind !== 'message') throw new Refusal(400, `${resource} is not a repeated message field`);
    const type = field.value.name;
    const resources = dump.lists.find((list) => list.field === resource)?.resources ?? [];
    // All resources are checked before the first is sent: an answer that has begun cannot become a refusal.
    if (mask !== undefined && !(yield* allFit(resources, resourceRule(schema, type, mask)))) {
      throw new Refusal(400, `FieldMask ${maskText} could not be successfully used.`);
    }
    return answer(resourceElements(type, resources, mask));
  }
  throw new Refusal(404, `${resource} not found in config dump`);
}

function* allFit(resources: Selected, fits: (resource: JsonObject) => boolean): Generator<void, boolean> {
  let count = 0;
  let begunMs = performance.now();
  for (const resource of resources) {
    if (resource !== undefined && !fits(resource.message)) return false;
    if (++count < MAX_PER_STEP && performance.now() - begunMs < MAX_STEP_MS) continue;
    yield;
    count = 0;
    begunMs = performance.now();
  }
  return true;
}

/**
 * Returns whether a mask fits a resource. The result depends on the types of the nested messages, which are mostly the same,
 * so it is cached by these.
 */
function resourceRule(schema: Schema, type: string, mask: FieldMask): (resource: JsonObject) => boolean {
  const known = new Map<string, boolean>();
  return (resource) => {
    let types = '';
    for (const name of mask.keys()) types += `${(resource[name] as JsonObject | undefined)?.['@type']},`;
    let fits = known.get(types);
    if (fits === undefined) known.set(types, (fits = maskFitsResource(schema, type, mask, resource)));
    return fits;
  };
}

function* resourceElements(type: string, resources: Selected, mask: FieldMask | undefined): Generator<Element, void> {
  const element = ({ message }: DumpResource) =>
    prettyPieces({ '@type': `${TYPE_URL}${type}`, ...(mask === undefined ? message : trim(message, mask)) }, DEPTH);
  for (const resource of resources) yield resource && element(resource);
}
