// The API's constraints on fields: (validate.rules) of protoc-gen-validate.

import { isIP } from 'node:net';
import { describe } from './scalar.js';
import type { EnumType, FieldRules, FieldType } from './schema.js';

type Rules = { readonly [rule: string]: unknown };

/**
 * Returns the violated rule of a field, or undefined. `value` is in canonical form, undefined if the field is not set. Elements
 * of lists and maps are checked separately, with elementRules().
 */
export function brokenRule(field: FieldType, value: unknown, enumType?: EnumType): string | undefined {
  if (!field.rules) return undefined;
  if (value === undefined && field.oneof !== undefined) return undefined;
  if (value === undefined && field.hasPresence) return isRequired(field.rules) ? 'it must be set' : undefined;
  if (value === undefined) return brokenWhenUnset(field, enumType);
  if (field.shape === 'list') return brokenListRule(field.rules['repeated'] ?? NONE, value as unknown[]);
  if (field.shape === 'map') return brokenMapRule(field.rules['map'] ?? NONE, value as object);
  return brokenValueRule(field.rules, value, enumType);
}

/** Rules apply to the default of an unset field without presence. If the default violates them, the field must be set. */
function brokenWhenUnset(field: FieldType, enumType?: EnumType): string | undefined {
  const rules = field.rules!;
  const broken =
    field.shape === 'list'
      ? brokenListRule(rules['repeated'] ?? NONE, [])
      : field.shape === 'map'
        ? brokenMapRule(rules['map'] ?? NONE, {})
        : brokenValueRule(rules, undefined, enumType);
  return broken === undefined ? undefined : 'it must be set';
}

/** Returns the rules for each element of a list, key of a map or value of a map. */
export function elementRules(field: FieldType, which: 'items' | 'keys' | 'values'): FieldRules | undefined {
  const rules = field.rules?.[which === 'items' ? 'repeated' : 'map'];
  return rules?.[which] as FieldRules | undefined;
}

/** Returns the violated rule of one value. Undefined stands for the default of a field without presence. */
export function brokenValueRule(rules: FieldRules, value: unknown, enumType?: EnumType): string | undefined {
  for (const [kind, rule] of Object.entries(rules)) {
    const broken = brokenKind(kind, rule, value, enumType);
    if (broken !== undefined) return broken;
  }
  return undefined;
}

const NONE: Rules = {};

function isRequired(rules: FieldRules): boolean {
  return REQUIRABLE.some((kind) => rules[kind]?.['required'] === true);
}

const REQUIRABLE = ['message', 'any', 'duration', 'timestamp'];

function brokenKind(kind: string, rules: Rules, value: unknown, enumType?: EnumType): string | undefined {
  switch (kind) {
    case 'string':
      return brokenStringRule(rules, (value as string | undefined) ?? '');
    case 'bytes':
      return brokenBytesRule(rules, (value as string | undefined) ?? '');
    case 'bool':
      return 'const' in rules && (value ?? false) !== rules['const'] ? `it must be ${rules['const']}` : undefined;
    case 'enum':
      return enumType && brokenEnumRule(rules, enumType, value as string | undefined);
    case 'duration':
      return value === undefined ? undefined : brokenDurationRule(rules, value as string);
    case 'any':
      return brokenAnyRule(rules, value);
    case 'message':
    case 'timestamp':
    case 'repeated':
    case 'map':
      return undefined;
    default:
      return brokenNumberRule(rules, value as number | string | undefined);
  }
}

function brokenListRule(rules: Rules, list: readonly unknown[]): string | undefined {
  if (list.length === 0 && rules['ignore_empty'] === true) return undefined;
  const count = broken(rules, 'items', list.length, 'element');
  if (count !== undefined) return count;
  if (rules['unique'] !== true) return undefined;
  const seen = new Set<unknown>();
  for (const element of list) {
    if (seen.has(element)) return `${describe(element)} is listed twice`;
    seen.add(element);
  }
  return undefined;
}

function brokenMapRule(rules: Rules, map: object): string | undefined {
  const size = Object.keys(map).length;
  return size === 0 && rules['ignore_empty'] === true ? undefined : broken(rules, 'pairs', size, 'entry');
}

function brokenStringRule(rules: Rules, value: string): string | undefined {
  if (value === '' && rules['ignore_empty'] === true) return undefined;
  const characters = [...value].length;
  const length =
    broken(rules, 'len', characters, 'character') ?? broken(rules, 'bytes', Buffer.byteLength(value), 'byte');
  if (length !== undefined) return length;
  if ('len' in rules && characters !== Number(rules['len'])) return `it must have ${rules['len']} characters`;
  const fixed = brokenTextRule(rules, value) ?? brokenChoice(rules, value);
  if (fixed !== undefined) return fixed;
  if (typeof rules['pattern'] === 'string' && !new RegExp(rules['pattern']).test(value)) {
    return `${describe(value)} does not match '${rules['pattern']}'`;
  }
  return brokenFormat(rules, value);
}

function brokenTextRule(rules: Rules, value: string): string | undefined {
  const { prefix, suffix, contains, not_contains: without } = rules as { readonly [rule: string]: string | undefined };
  if (prefix !== undefined && !value.startsWith(prefix))
    return `it must start with '${prefix}', found ${describe(value)}`;
  if (suffix !== undefined && !value.endsWith(suffix)) return `it must end with '${suffix}', found ${describe(value)}`;
  if (contains !== undefined && !value.includes(contains)) return `it must contain '${contains}'`;
  if (without !== undefined && value.includes(without)) return `it must not contain '${without}'`;
  return undefined;
}

const HEADER_NAME = /^:?[0-9a-zA-Z!#$%&'*+\-.^_|~`]+$/;
const HEADER_VALUE = /^[^\u0000-\u0008\u000a-\u001f\u007f]*$/;
/** What `strict: false` allows for both, including the empty string. */
const HEADER_STRING = /^[^\u0000\u000a\u000d]*$/;
const HOSTNAME = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.?$/i;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function brokenFormat(rules: Rules, value: string): string | undefined {
  const isStrict = rules['strict'] !== false;
  if (rules['well_known_regex'] === 'HTTP_HEADER_NAME' && !(isStrict ? HEADER_NAME : HEADER_STRING).test(value)) {
    return value === '' ? 'it must not be empty' : `${describe(value)} is not a valid header name`;
  }
  if (rules['well_known_regex'] === 'HTTP_HEADER_VALUE' && !(isStrict ? HEADER_VALUE : HEADER_STRING).test(value)) {
    return `${describe(value)} is not a valid header value`;
  }
  for (const [rule, isValid] of FORMATS) {
    if (rules[rule] === true && !isValid(value)) return `${describe(value)} is not a valid ${rule.replace('_', ' ')}`;
  }
  return undefined;
}

const FORMATS: readonly (readonly [string, (value: string) => boolean])[] = [
  ['email', (value) => /^[^@\s]+@[^@\s]+$/.test(value)],
  ['hostname', (value) => HOSTNAME.test(value)],
  ['ip', (value) => isIP(value) !== 0],
  ['ipv4', (value) => isIP(value) === 4],
  ['ipv6', (value) => isIP(value) === 6],
  ['address', (value) => HOSTNAME.test(value) || isIP(value) !== 0],
  ['uri', (value) => URL.canParse(value)],
  ['uri_ref', (value) => URL.canParse(value, 'http://host')],
  ['uuid', (value) => UUID.test(value)],
];

function brokenBytesRule(rules: Rules, value: string): string | undefined {
  return broken(rules, 'len', Buffer.from(value, 'base64').length, 'byte');
}

function brokenEnumRule(rules: Rules, type: EnumType, value: string | undefined): string | undefined {
  const number = value === undefined ? 0 : type.values.get(value);
  const name = (choice: unknown) => type.names.get(Number(choice)) ?? String(choice);
  if ('const' in rules && number !== Number(rules['const'])) return `it must be ${name(rules['const'])}`;
  if ('in' in rules && !list(rules['in']).map(Number).includes(number!)) {
    return `it must be one of ${list(rules['in']).map(name).join(', ')}`;
  }
  if ('not_in' in rules && list(rules['not_in']).map(Number).includes(number!)) return `it must not be ${name(number)}`;
  return undefined;
}

function brokenAnyRule(rules: Rules, value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { '@type': url } = value as { readonly '@type'?: unknown };
  return brokenChoice(rules, url);
}

function brokenNumberRule(rules: Rules, value: number | string | undefined): string | undefined {
  const number = Number(value ?? 0);
  if (number === 0 && rules['ignore_empty'] === true) return undefined;
  if ('const' in rules && number !== Number(rules['const'])) return `it must be ${rules['const']}, found ${number}`;
  const choice = brokenChoice({ ...rules, ...numericChoices(rules) }, number);
  return choice ?? brokenBounds(rules, number, Number, String(value ?? 0));
}

function numericChoices(rules: Rules): Rules {
  return {
    ...('in' in rules && { in: list(rules['in']).map(Number) }),
    ...('not_in' in rules && { not_in: list(rules['not_in']).map(Number) }),
  };
}

function brokenDurationRule(rules: Rules, value: string): string | undefined {
  return brokenBounds(rules, secondsOf(value), secondsOf, value);
}

/** Parses a duration such as '0.5s'. */
function secondsOf(limit: unknown): number {
  return Number(String(limit).slice(0, -1));
}

function brokenBounds(rules: Rules, value: number, of: (limit: unknown) => number, text: string): string | undefined {
  const unit = of === secondsOf ? 's' : '';
  if ('gt' in rules && !(value > of(rules['gt']))) return `it must be above ${of(rules['gt'])}${unit}, found ${text}`;
  if ('gte' in rules && !(value >= of(rules['gte'])))
    return `it must be at least ${of(rules['gte'])}${unit}, found ${text}`;
  if ('lt' in rules && !(value < of(rules['lt']))) return `it must be below ${of(rules['lt'])}${unit}, found ${text}`;
  if ('lte' in rules && !(value <= of(rules['lte'])))
    return `it must be at most ${of(rules['lte'])}${unit}, found ${text}`;
  return undefined;
}

function brokenChoice(rules: Rules, value: unknown): string | undefined {
  if ('const' in rules && typeof value === 'string' && value !== rules['const'])
    return `it must be '${rules['const']}'`;
  if ('in' in rules && !list(rules['in']).includes(value)) {
    return `it must be one of ${list(rules['in']).join(', ')}, found ${describe(value)}`;
  }
  if ('not_in' in rules && list(rules['not_in']).includes(value)) return `it must not be ${describe(value)}`;
  return undefined;
}

/** Checks `min_<what>` and `max_<what>`. */
function broken(rules: Rules, what: string, count: number, unit: string): string | undefined {
  const min = rules[`min_${what}`];
  const max = rules[`max_${what}`];
  if (min !== undefined && count < Number(min)) {
    return count === 0 && Number(min) === 1 ? 'it must not be empty' : `it needs at least ${plural(Number(min), unit)}`;
  }
  if (max !== undefined && count > Number(max))
    return `it may have at most ${plural(Number(max), unit)}, found ${count}`;
  return undefined;
}

function plural(count: number, unit: string): string {
  return `${count} ${count === 1 ? unit : unit === 'entry' ? 'entries' : `${unit}s`}`;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}
