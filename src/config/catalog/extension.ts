// The catalog of extensions: the contract between the configuration loader and the higher rooms that implement extensions.

import type { Any, SdsSecretConfig } from '../generated/api.js';
import type { ImplementedTable } from '../implemented/table.js';
import { messageNameOf } from '../schema/message-name.js';

/**
 * Reports a mistake at a path relative to the extension's own configuration, such as `filters[0].name`. `others`: further paths
 * that it depends on. If one of them already has an error, the mistake is not reported.
 */
export type Report = (path: string, message: string, ...others: string[]) => void;

/** What the loader needs to know about an extension. `C` is the message that configures it, or one of them. */
export interface Extension<C = Any> {
  /** Envoy's category, for example `envoy.filters.http`. */
  readonly category: string;
  /** The canonical name, for example `envoy.filters.http.router`. */
  readonly name: string;
  /**
   * Full names of the messages that configure it. The first is used if only the name is given. Further messages of an HTTP
   * filter are its per-route configurations (typed_per_filter_config).
   */
  readonly typeUrls: readonly string[];
  /** Per-route configurations of an HTTP filter may also be of the first message. */
  readonly takesOwnMessageFromRoutes?: boolean;
  /** Whether a filter ends its chain: it must be the last one, and each chain must end with such a filter. */
  readonly isTerminal?: boolean;
  /** Whether an HTTP filter may be an upstream one, of a cluster or a router, which handles the tries of requests. As in Envoy, few may. */
  readonly runsUpstream?: true;
  /**
   * The field of virtual hosts and route actions that configures an HTTP filter like its second message, unless
   * typed_per_filter_config has an entry for the filter.
   */
  readonly routeField?: 'cors';
  /** Implemented fields of the extension's own messages. Other fields that are set are refused. */
  readonly implemented?: ImplementedTable;
  /**
   * Checks what the schema cannot express. `config` is in canonical form and is any of the messages of `typeUrls`; unpack()
   * distinguishes them. Reports and exceptions about parts that violate the schema are ignored. `isOfRoute`: whether it is a
   * per-route configuration (typed_per_filter_config).
   */
  validate?(config: C, report: Report, isOfRoute: boolean): void;
  /**
   * Returns the clusters that `config`, any of the messages of `typeUrls`, names: each with its path as in Report, such as
   * `http_service.server_uri.cluster`. A missing cluster is refused, unless a management server may add it.
   */
  clusters?(config: C): Iterable<readonly [path: string, name: string | undefined]>;
  /**
   * Returns the generic secrets that `config`, any of the messages of `typeUrls` of an HTTP filter, names. Workers have their values
   * in WorkerContext.secrets. A missing one of the bootstrap is refused.
   */
  secrets?(config: C): Iterable<SdsSecretConfig>;
}

/** All extensions of this build, by type URL and by category and name. */
export class ExtensionCatalog {
  /** An extension with the same message and name in several categories has one entry for each category. */
  readonly #byMessage = new Map<string, Extension[]>();
  readonly #byName = new Map<string, Extension>();
  readonly #disabled: ReadonlySet<string>;

  /**
   * Throws if two extensions of a category have the same name, or two extensions with different names have the same message.
   * @param disabled `<category>/<name>` of extensions that no configuration may use
   */
  constructor(extensions: readonly Extension[], disabled: Iterable<string> = []) {
    this.#disabled = new Set(disabled);
    for (const extension of extensions) {
      const key = keyOf(extension);
      if (this.#byName.has(key)) throw new Error(`two extensions are called '${key}'`);
      this.#byName.set(key, extension);
      for (const url of extension.typeUrls) this.#addMessage(messageNameOf(url), extension);
    }
  }

  #addMessage(message: string, extension: Extension): void {
    const others = this.#byMessage.get(message) ?? [];
    const other = others.find(({ name, category }) => name !== extension.name || category === extension.category);
    if (other !== undefined) {
      throw new Error(`the extensions '${other.name}' and '${extension.name}' have the same message ${message}`);
    }
    this.#byMessage.set(message, [...others, extension]);
  }

  /** Returns the extension that a typed_config of this type URL configures; if there are several, the one of the category. */
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

  /** Returns all extensions in order of category and name. */
  list(): readonly Extension[] {
    return [...this.#byName.keys()].sort().map((key) => this.#byName.get(key)!);
  }

  /** Returns the disabled names that no extension has. */
  unknownDisabled(): readonly string[] {
    return [...this.#disabled].filter((key) => !this.#byName.has(key));
  }
}

function keyOf(extension: Extension): string {
  return `${extension.category}/${extension.name}`;
}
