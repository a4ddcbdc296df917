// envoy.type.matcher.v3.ValueMatcher and MetadataMatcher, compiled: match values of metadata.

import type {
  DoubleMatcher,
  Json,
  MetadataMatcher,
  Metadata as MetadataMessage,
  Struct,
  ValueMatcher,
} from '../../../config/generated/api.js';
import { compileStringMatcher, type StringRule } from './string-rule.js';

/** A condition on a value. `undefined`: there is no value. */
export interface ValueRule {
  matches(value: Json | undefined): boolean;
}

/** Structures by namespace. */
export interface MetadataSource {
  get(namespace: string): Struct | undefined;
}

/** A condition on the value at a path of metadata. */
export class MetadataRule {
  readonly #namespace: string;
  readonly #path: readonly string[];
  readonly #value: ValueRule;
  readonly #isInverted: boolean;

  /** `where`: the path of the configuration. Throws a BatonError CONFIG_INVALID or REGEX_INVALID. */
  constructor({ filter = '', invert = false, path = [], value }: MetadataMatcher, where: string) {
    this.#namespace = filter;
    this.#path = path.map(({ key = '' }) => key);
    this.#value = compileValueMatcher(value!, `${where}.value`);
    this.#isInverted = invert;
  }

  matches(metadata: MetadataSource | undefined): boolean {
    const struct = metadata?.get(this.#namespace);
    return this.#value.matches(struct && valueAt(struct, this.#path)) !== this.#isInverted;
  }
}

/** Returns the metadata of a configuration as a source. */
export function configuredMetadata(metadata: MetadataMessage | undefined): MetadataSource | undefined {
  const structs = metadata?.filter_metadata;
  return structs && { get: (namespace) => (Object.hasOwn(structs, namespace) ? structs[namespace] : undefined) };
}

/** Returns the value at a path of keys; undefined if there is none. */
export function valueAt(struct: Struct, path: readonly string[]): Json | undefined {
  let value: Json | undefined = struct;
  for (const key of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, key))
      return undefined;
    value = (value as Struct)[key];
  }
  return value;
}

/** Compiles a matcher. `where`: its path. Throws a BatonError CONFIG_INVALID or REGEX_INVALID. */
export function compileValueMatcher(config: ValueMatcher, where: string): ValueRule {
  const { bool_match, double_match, list_match, null_match, or_match, present_match, string_match } = config;
  if (null_match !== undefined) return { matches: (value) => value === null };
  if (double_match !== undefined) return numberRule(double_match);
  if (string_match !== undefined) return textRule(compileStringMatcher(string_match, `${where}.string_match`));
  if (bool_match !== undefined) return { matches: (value) => value === bool_match };
  // As in Envoy, `false` never matches.
  if (present_match !== undefined) return { matches: (value) => present_match && value !== undefined };
  if (list_match !== undefined) {
    const element = compileValueMatcher(list_match.one_of!, `${where}.list_match.one_of`);
    return { matches: (value) => Array.isArray(value) && value.some((each) => element.matches(each)) };
  }
  const choices = (or_match?.value_matchers ?? []).map((choice, index) =>
    compileValueMatcher(choice, `${where}.or_match.value_matchers[${index}]`),
  );
  return { matches: (value) => choices.some((choice) => choice.matches(value)) };
}

function textRule(rule: StringRule): ValueRule {
  return { matches: (value) => typeof value === 'string' && rule.matchesText(value) };
}

/** The API's JSON form has texts for numbers that are not finite. */
function numberRule({ exact, range }: DoubleMatcher): ValueRule {
  if (range === undefined) return { matches: (value) => value === Number(exact) };
  const start = Number(range.start ?? 0);
  const end = Number(range.end ?? 0);
  return { matches: (value) => typeof value === 'number' && start <= value && value < end };
}
