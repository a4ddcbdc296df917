// The catalog of extensions: the contract between the configuration loader and the rooms above that implement them.

import type { Any } from '../generated/api.js';
import type { ImplementedTable } from '../implemented/table.js';
import { messageNameOf } from '../schema/message-name.js';

/**
 * Reports a mistake at a path relative to the extension's own configuration, such as `filters[0].name`. `others` are paths of what it
 * follows from as well: where something is wrong with them already, it is not reported.
 */
export type Report = (path: string, message: string, ...others: string[]) => void;

/** What the loader needs to know of an extension. `C` is the message that configures it, or one of them. */
export interface Extension<C = Any> {
  /** Envoy's category, for example `envoy.filters.http`. */
  readonly category: string;
  /** The canonical name, for example `envoy.filters.http.router`. */
  readonly name: string;
  /**
   * Full names of the messages that configure it; the first is the one meant when only the name is given. Those that an HTTP
   * filter has beyond it are what routes say to it (typed_per_filter_config).
   */
  readonly typeUrls: readonly string[];
  /** Routes say to an HTTP filter what its chain does, in the first message. */
  readonly takesOwnMessageFromRoutes?: boolean;
  /** Whether a filter ends its chain: it must come last, and a chain must end with such a one. */
  readonly isTerminal?: boolean;
  /**
   * The field of virtual hosts and route actions that says to an HTTP filter what its second message does, where nothing is said to it in
   * typed_per_filter_config.
   */
  readonly routeField?: 'cors';
  /** Fields of its own messages that it implements; what is set beyond them is refused. */
  readonly implemented?: ImplementedTable;
  /**
   * Checks what the schema cannot. `config` is in canonical form, and any of the messages of `typeUrls`: unpack() tells which. What it
   * finds or throws where the schema is not obeyed is left out. `isOfRoute`: a route says it, in typed_per_filter_config.
   */
  validate?(config: C, report: Report, isOfRoute: boolean): void;
  /**
   * The clusters that `config`, any of the messages of `typeUrls`, names: each with its path as in Report, such as
   * `http_service.server_uri.cluster`. One that is not there is refused, unless a management server may bring it.
   */
  clusters?(config: C): Iterable<readonly [path: string, name: string | undefined]>;
}

/** All extensions of this build, by type URL and by category and name. */
export class ExtensionCatalog {
  /** What has one message and one name in several categories is an extension in each. */
  readonly #byMessage = new Map<string, Extension[]>();
  readonly #byName = new Map<string, Extension>();
  readonly #disabled: ReadonlySet<string>;

  /**
   * Throws when two extensions of a category have the same name, or two of different names the same message.
   * @param disabled `<category>/<name>` of those that no configuration may use
   */
  constructor(extensions: readonly Extension[], disabled: Iterable<string> = []) {
    this.#disabled = new Set(disabled);
    for (const extension of extensions) {
      const key = keyOf(extension);
      if (this.#byName.has(key)) throw new Error(`two extensions are called '${key}'`);
      this.#byName.set(key, extension);
      for (const url of extension.typeUrls) this.#takeMessage(messageNameOf(url), extension);
    }
  }

  #takeMessage(message: string, extension: Extension): void {
    const others = this.#byMessage.get(message) ?? [];
    const other = others.find(({ name, category }) => name !== extension.name || category === extension.category);
    if (other !== undefined) {
      throw new Error(`the extensions '${other.name}' and '${extension.name}' have the same message ${message}`);
    }
    this.#byMessage.set(message, [...others, extension]);
  }

  /** The extension that a typed_config of this type URL configures: that of the category where there are several. */
  byTypeUrl(url: string, category?: string): Extension | undefined {
    const found = this.#byMessage.get(messageNameOf(url));
    return found?.find((extension) => extension.category === category) ?? found?.[0];
  }

  byName(category: string, name: string): Extension | undefined {
    return this.#byName.get(`${category}/${name}`);
  }

  isDisabled(extension: Extension): boolean {
    return this.#disabled.has(keyOf(extension));
  }

  /** In order of category, then name. */
  list(): readonly Extension[] {
    return [...this.#byName.keys()].sort().map((key) => this.#byName.get(key)!);
  }

  /** Names given as disabled that no extension has. */
  unknownDisabled(): readonly string[] {
    return [...this.#disabled].filter((key) => !this.#byName.has(key));
  }
}

function keyOf(extension: Extension): string {
  return `${extension.category}/${extension.name}`;
}
