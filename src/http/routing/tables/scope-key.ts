// Builds the key of a request's scope from its headers (ScopedRoutes.ScopeKeyBuilder).

import { BatonError } from '../../../common/errors/errors.js';
import { byteText } from '../../../common/text/byte-text.js';
import type {
  ScopedRoutes_ScopeKeyBuilder,
  ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor,
} from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { type HeaderReader, headerReader } from '../matching/header-reader.js';

/** Returns the key of a scope as one string. The separator cannot occur in a header. */
export function scopeKey(fragments: readonly string[]): string {
  return byteText(fragments.join('\0'));
}

export class ScopeKeyBuilder {
  readonly #extractors: readonly HeaderValueExtractor[];

  /** Throws BatonError CONFIG_INVALID with a path within `config`. */
  constructor(config: ScopedRoutes_ScopeKeyBuilder) {
    this.#extractors = (config.fragments ?? []).map(
      ({ header_value_extractor: extractor = {} }, index) =>
        new HeaderValueExtractor(extractor, `fragments[${index}].header_value_extractor`),
    );
  }

  /** Returns the key as scopeKey() does; undefined if the headers lack a fragment. */
  keyOf(headers: HeaderBlock): string | undefined {
    const extractors = this.#extractors;
    let key = '';
    for (let i = 0; i < extractors.length; i++) {
      const fragment = extractors[i]!.extract(headers);
      if (fragment === undefined) return undefined;
      key = i === 0 ? fragment : `${key}\0${fragment}`;
    }
    return key;
  }
}

class HeaderValueExtractor {
  readonly #value: HeaderReader;
  /** '': the whole value is one element. */
  readonly #separator: string;
  /** Index of the element to use; ignored if elements are chosen by key. */
  readonly #index: number;
  readonly #element: { readonly key: string; readonly separator: string } | undefined;

  constructor(config: ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor, where: string) {
    const { element, element_separator: separator = '', index, name = '' } = config;
    this.#value = headerReader(name, `${where}.name`);
    this.#separator = byteText(separator);
    this.#index = index ?? 0;
    this.#element = element && { key: byteText(element.key ?? ''), separator: byteText(element.separator ?? '') };
    if (element === undefined && index === undefined) {
      throw new BatonError('CONFIG_INVALID', 'it needs index or element', { where });
    }
    if (separator === '' && this.#index > 0) {
      const remedy = 'give element_separator';
      const problem = 'without element_separator there is one element only, and its index is 0';
      throw new BatonError('CONFIG_INVALID', problem, { where: `${where}.index`, remedy });
    }
  }

  extract(headers: HeaderBlock): string | undefined {
    const value = this.#value(headers);
    if (value === undefined) return undefined;
    const elements = this.#separator === '' ? [value] : value.split(this.#separator);
    if (this.#element === undefined) return elements[this.#index];
    const { key, separator } = this.#element;
    for (const element of elements) {
      const at = element.indexOf(separator);
      // An element without a separator is a key without a value.
      if ((at < 0 ? element : element.slice(0, at)) === key) return at < 0 ? '' : element.slice(at + separator.length);
    }
    return undefined;
  }
}
