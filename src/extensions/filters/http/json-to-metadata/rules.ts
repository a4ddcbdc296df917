// The compiled rules of json_to_metadata: where a value is in a body, how it is converted, and where it goes.

import type {
  JsonToMetadata,
  JsonToMetadata_KeyValuePair as KeyValuePair,
  JsonToMetadata_MatchRules as MatchRules,
  JsonToMetadata_Rule as Rule,
} from '../../../../config/generated/api.js';
import { BatonError, buildEach, compileFullMatch, type Json, messageOf } from '../../../sdk.js';
import { convert } from './values.js';

const NAMESPACE = 'envoy.filters.http.json_to_metadata';

/** Undefined: bodies of that direction are not read. */
export interface CompiledRules {
  readonly request: BodyRules | undefined;
  readonly response: BodyRules | undefined;
}

export interface BodyRules {
  readonly rules: readonly CompiledRule[];
  /** Returns whether bodies of that type are read; '': a message without content-type. */
  accepts(contentType: string): boolean;
}

export interface CompiledRule {
  readonly path: readonly string[];
  readonly present: Target | undefined;
  readonly missing: Target | undefined;
  readonly error: Target | undefined;
}

/** A key of the dynamic metadata. */
export interface Target {
  readonly namespace: string;
  readonly key: string;
  /** Undefined: that of the body. */
  readonly value: Json | undefined;
  /** A value that the key has already stays. */
  readonly preserves: boolean;
  /** Converts a value of a body; undefined: it cannot be converted. '' as text is left out. */
  readonly convert: (value: Json) => Json | undefined;
  readonly skipsEmpty: boolean;
}

/** Throws a BatonError with the place of a mistake, Mistakes for several. */
export function compileRules(config: JsonToMetadata, where: string): CompiledRules {
  const at = (field: string) => (where === '' ? field : `${where}.${field}`);
  const { request_rules: request, response_rules: response } = config;
  return {
    request: request && bodyRules(request, at('request_rules')),
    response: response && bodyRules(response, at('response_rules')),
  };
}

function bodyRules(config: MatchRules, where: string): BodyRules {
  const {
    allow_content_types: types = [],
    allow_content_types_regex: pattern,
    allow_empty_content_type: empty,
  } = config;
  const allowed = new Set(types.length === 0 ? ['application/json'] : types);
  const regex = pattern && regexOf(pattern.regex!, `${where}.allow_content_types_regex.regex`);
  return {
    rules: buildEach(config.rules ?? [], (rule, index) => compileRule(rule, `${where}.rules[${index}]`)),
    accepts: (type) => (type === '' ? empty === true : allowed.has(type) || regex?.test(type) === true),
  };
}

function regexOf(pattern: string, where: string): ReturnType<typeof compileFullMatch> {
  try {
    return compileFullMatch(pattern);
  } catch (error) {
    throw new BatonError('REGEX_INVALID', messageOf(error), { where, cause: error });
  }
}

function compileRule(rule: Rule, where: string): CompiledRule {
  const { on_error: error, on_missing: missing, on_present: present, selectors = [] } = rule;
  const refuse = (message: string, place: string) => {
    throw new BatonError('CONFIG_INVALID', message, { where: place });
  };
  if (present === undefined && missing === undefined) refuse('on_present or on_missing must be set', where);
  for (const [field, pair] of Object.entries({ on_missing: missing, on_error: error }))
    if (pair !== undefined && pair.value === undefined)
      refuse('it must be set: there is no other value', `${where}.${field}.value`);
  return {
    path: selectors.map(({ key }) => key!),
    present: present && targetOf(present),
    missing: missing && targetOf(missing),
    error: error && targetOf(error),
  };
}

function targetOf(pair: KeyValuePair): Target {
  const { key, metadata_namespace: namespace, preserve_existing_metadata_value: preserves, type, value } = pair;
  return {
    namespace: namespace || NAMESPACE,
    key: key!,
    value,
    preserves: preserves ?? false,
    convert: convert(type ?? 'PROTOBUF_VALUE'),
    skipsEmpty: type === 'STRING',
  };
}
