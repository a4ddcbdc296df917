// The request's fields by which responses vary (RFC 9110, section 12.5.5).

import type { CacheConfig } from '../../../../config/generated/api.js';
import { compileStringMatcher, type HeaderBlock, headerKey, type StringRule } from '../../../sdk.js';
import { allValues } from './stored-response.js';

const VARY = headerKey('vary');

/** The fields of a request that responses may vary by: all values by the name in lower case. */
export type VaryingFields = ReadonlyMap<string, string>;
const NO_FIELDS: VaryingFields = new Map();

export class VaryRules {
  readonly #allowed: readonly StringRule[];

  /** Throws a BatonError for a matcher that cannot be compiled. */
  constructor({ allowed_vary_headers: matchers = [] }: CacheConfig) {
    this.#allowed = matchers.map((matcher, index) => compileStringMatcher(matcher, `allowed_vary_headers[${index}]`));
  }

  /** Returns the fields of a request, as they are before later filters change it. */
  fieldsOf(headers: HeaderBlock): VaryingFields {
    if (this.#allowed.length === 0) return NO_FIELDS;
    const fields = new Map<string, string>();
    for (let index = 0; index < headers.size; index++) {
      if (headers.isRemoved(index)) continue;
      const name = headers.name(index).toLowerCase();
      if (!this.#isAllowed(name)) continue;
      const former = fields.get(name);
      fields.set(name, former === undefined ? headers.value(index) : `${former}\r${headers.value(index)}`);
    }
    return fields;
  }

  /** Returns the sorted names that a response varies by; undefined: by one that is not allowed, or by more than fields of the request. */
  namesOf(response: HeaderBlock): readonly string[] | undefined {
    return this.namesIn(allValues(response, VARY));
  }

  /** `value`: that of vary. */
  namesIn(value: string | undefined): readonly string[] | undefined {
    if (value === undefined) return NO_NAMES;
    const names = new Set<string>();
    for (const part of value.split(',')) {
      const name = part.trim().toLowerCase();
      if (name === '') continue;
      if (name === '*' || !this.#isAllowed(name)) return undefined;
      names.add(name);
    }
    return [...names].sort();
  }

  #isAllowed(name: string): boolean {
    return this.#allowed.some((rule) => rule.matchesText(name));
  }
}

const NO_NAMES: readonly string[] = [];

/** Returns what distinguishes the variants: the values of these fields. */
export function variantOf(names: readonly string[], fields: VaryingFields): string {
  return names.map((name) => `${name}\r${fields.get(name) ?? ''}\n`).join('');
}
