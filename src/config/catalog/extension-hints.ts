// Explains why an extension that a configuration names cannot be used, and suggests a similar one.

import { nearest, suggestion } from '../../common/text/suggest.js';
import { messageNameOf, typeUrlOf } from '../schema/message-name.js';
import type { Schema } from '../schema/schema.js';
import { newName } from '../text/hints.js';
import type { Extension, ExtensionCatalog } from './extension.js';
import { packageOf, substituteFor } from './substitutes.js';

/** Packages whose messages configure Envoy's extensions. */
const ENVOY_PACKAGES = /^(envoy|xds|udpa|google)\./;
/** The reason for a message outside Envoy's packages that no extension claims. */
const UNCLAIMED = ': no extension in src/extensions/index.ts has this message in its typeUrls';

export class ExtensionHints {
  readonly #schema: Schema;
  readonly #catalog: ExtensionCatalog;

  constructor(schema: Schema, catalog: ExtensionCatalog) {
    this.#schema = schema;
    this.#catalog = catalog;
  }

  /** Returns the error for an unknown extension that is given by name only. */
  unknownName(name: string, category: string | undefined): string {
    return `${notRegistered(name, '')}${this.#hintFor(name, category)}`;
  }

  /**
   * Returns why `found`, the extension of `url`, cannot be used in a place for `category`; undefined if it can. `name`: the
   * name of the owner.
   */
  refusalOf(found: Extension | undefined, name: string, url: string, category: string | undefined): string | undefined {
    const why = found === undefined ? this.#unknownUrl(url) : this.#obstacle(found, category);
    return why === undefined ? undefined : `${notRegistered(name, url)}${why}`;
  }

  #obstacle(found: Extension, category: string | undefined): string | undefined {
    if (this.#catalog.isDisabled(found))
      return `: '${found.category}/${found.name}' is disabled by --disable-extensions`;
    if (category !== undefined && found.category !== category) {
      return `: an extension of ${category} is needed here, and '${found.name}' belongs to ${found.category}`;
    }
    return undefined;
  }

  #unknownUrl(url: string): string {
    const name = messageNameOf(url);
    const successor = this.#schema.successorOf(name);
    if (successor !== undefined) return `: it belongs to an older API; use '${typeUrlOf(successor)}'`;
    if (this.#schema.message(name)) return ENVOY_PACKAGES.test(name) ? notImplemented(name) : UNCLAIMED;
    const similar = suggestionFor(
      url,
      this.#catalog.list().flatMap((extension) => extension.typeUrls.map(typeUrlOf)),
    );
    return similar === '' && ENVOY_PACKAGES.test(name) ? notImplemented(name) : similar;
  }

  #hintFor(name: string, category: string | undefined): string {
    const successor = newName(name);
    if (successor !== undefined) return `: the name belongs to an older API; use '${successor}'`;
    const known = this.#catalog.list();
    const ofApi = this.#schema.extensionsOf(category ?? '');
    const isOfApi = ofApi.has(name) || this.#hasPackage(name);
    if (isOfApi && !known.some((extension) => extension.name === name)) return notImplemented(ofApi.get(name) ?? name);
    return suggestionFor(
      name,
      known.flatMap((extension) => (extension.category === category ? extension.name : [])),
    );
  }

  /** Returns whether the API has a package for an extension of that name: `envoy.extensions.a.b.v3` for `envoy.a.b`. */
  #hasPackage(name: string): boolean {
    const start = `${packageOf(name)}.v`;
    return this.#schema.messageNames().some((message) => message.startsWith(start));
  }
}

function notImplemented(name: string): string {
  return `: Baton does not implement this extension${substituteFor(name)}`;
}

function notRegistered(name: string, url: string): string {
  return `Didn't find a registered implementation for '${name}' with type URL: '${url}'`;
}

/**
 * Suggests a similar name. Only the last parts of dotted names are compared, since many names share the others, which decide between names
 * with the same last part.
 */
function suggestionFor(name: string, known: readonly string[]): string {
  const last = nearest(lastPart(name), known.map(lastPart));
  if (last === undefined) return '';
  const [found] = known
    .filter((candidate) => lastPart(candidate) === last)
    .sort((one, other) => commonStart(other, name) - commonStart(one, name));
  return suggestion(found!);
}

function commonStart(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}

function lastPart(name: string): string {
  return name.slice(name.lastIndexOf('.') + 1);
}
