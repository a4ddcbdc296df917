// Decodes and checks resources one by one: an error in one of them does not affect the others.

import { messageOf } from '../../common/errors/errors.js';
import { isRecord } from '../../common/records.js';
import { durationMs } from '../../common/time/duration.js';
import type { ExtensionCatalog } from '../../config/catalog/extension.js';
import { Checker } from '../../config/check.js';
import { checkResource } from '../../config/checks/resources.js';
import { checkConfigSources, reportMissingFiles } from '../../config/checks/services/config-sources.js';
import { FeatureUse } from '../../config/feature-use.js';
import type { Listener } from '../../config/generated/api.js';
import { implementedBy } from '../../config/implemented/index.js';
import type { ImplementedTable } from '../../config/implemented/table.js';
import type { LoadCounts } from '../../config/load/load.js';
import { Decoder, type Message, type RejectedValue } from '../../config/schema/decode.js';
import { messageNameOf } from '../../config/schema/message-name.js';
import { describe } from '../../config/schema/scalar.js';
import type { Schema } from '../../config/schema/schema.js';
import { redact, sensitiveValues } from '../../config/schema/sensitive.js';
import { formatPath, type Path, parsePath } from '../../config/text/path.js';
import { escaped, formatProblem, type Problem } from '../../config/text/problem.js';
import { Problems } from '../../config/text/problems.js';
import type { Source } from '../../config/text/source.js';
import { reportLogFiles } from '../../extensions/log-files.js';
import { reportLogFilters } from '../../extensions/log-filters.js';
import { pack } from './parcel.js';
import type { ReadItem, ReadingSettings, RefusedItem } from './task.js';

const LISTENER = 'envoy.config.listener.v3.Listener';

export const RESOURCE_WRAPPER = 'envoy.service.discovery.v3.Resource';

/** The known properties of a resource before it is read; '' where unknown. */
interface KnownOfResource {
  readonly name: string;
  readonly version: string;
  readonly aliases: readonly string[];
}

interface Decoded {
  readonly message: Message;
  readonly problems: Problems;
  /** Invalid values, which are not in the message. */
  readonly rejected: readonly RejectedValue[];
}

/** How many values YAML aliases may add to those in the text. */
const MAX_EXPANSION = 1_000_000;

export class ResourceCheck {
  readonly #schema: Schema;
  readonly #catalog: ExtensionCatalog;
  readonly #table: ImplementedTable;
  readonly #settings: ReadingSettings;
  readonly #message: string;
  readonly #warnings: Problem[] = [];
  readonly #reported = new Set<string>();
  /** Places of the usable resources by name. */
  readonly #places = new Map<string, string>();
  #unknownFields = 0;
  #deprecatedUses = 0;
  #unfinishedUses = 0;
  #leftOutFilters = 0;

  /** @param message full name of the resources' message */
  constructor(schema: Schema, catalog: ExtensionCatalog, settings: ReadingSettings, message: string) {
    this.#schema = schema;
    this.#catalog = catalog;
    this.#settings = settings;
    this.#message = message;
    this.#table = implementedBy(catalog.list());
  }

  /** Warnings and counts besides the resources. */
  get found(): { readonly warnings: readonly Problem[]; readonly counts: LoadCounts } {
    const counts = {
      unknownFields: this.#unknownFields,
      deprecatedUses: this.#deprecatedUses,
      unfinishedUses: this.#unfinishedUses,
      leftOutFilters: this.#leftOutFilters,
    };
    return { warnings: this.#warnings, counts };
  }

  /** Returns why a type URL is not that of `expected`; undefined when it is. */
  refusalOfType(typeUrl: string, expected: string): string | undefined {
    const name = messageNameOf(typeUrl);
    if (name === expected) return undefined;
    const what = `expected a ${expected}, found ${typeUrl === '' ? "no '@type'" : `type URL '${escaped(typeUrl)}'`}`;
    const successor = this.#schema.successorOf(name);
    return successor === undefined ? what : `${what}: it is of an older API; use 'type.googleapis.com/${successor}'`;
  }

  refused({ name, version }: KnownOfResource, details: string): RefusedItem {
    return { kind: 'refused', name, version, details, message: undefined };
  }

  /** Reads `raw`, a message with its '@type' or a Resource that wraps one, at `path` in the source. */
  read(raw: unknown, source: Source, path: Path, known: KnownOfResource): ReadItem {
    try {
      return this.#read(raw, source, path, known);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      return this.refused(known, `it cannot be read: ${messageOf(error)}`);
    }
  }

  /** Decodes and checks a message on its own, without checks that depend on its meaning. */
  decode(name: string, raw: unknown, source: Source, path: Path): Decoded {
    const problems = new Problems([within(source, path)]);
    const decoder = new Decoder(
      this.#schema,
      problems,
      this.#settings.unknownFields,
      source.size + MAX_EXPANSION,
      this.#message === SECRET,
    );
    const message = decoder.decode(name, raw);
    decoder.noteUnknown(unknownBelow(source, path));
    const features = new FeatureUse(problems, this.#settings.featureKeys, this.#settings.features);
    const { regexLimits } = this.#settings;
    new Checker(this.#schema, this.#catalog, this.#table, problems, features, regexLimits).check(name, message);
    if (this.#settings.unknownFields === 'warn') this.#unknownFields += decoder.unknownCount;
    this.#deprecatedUses += features.deprecated;
    this.#unfinishedUses += features.unfinished;
    this.#leftOutFilters += features.leftOutFilters;
    return { message, problems, rejected: decoder.rejected };
  }

  #read(raw: unknown, source: Source, path: Path, known: KnownOfResource): ReadItem {
    if (!isRecord(raw)) {
      return this.#refusedAt(known, source, path, `expected a resource with its '@type', found ${describe(raw)}`);
    }
    const { '@type': url, ...fields } = raw;
    if (messageNameOf(String(url ?? '')) === RESOURCE_WRAPPER) return this.#wrapped(fields, source, path, known);
    const refusal = this.refusalOfType(String(url ?? ''), this.#message);
    if (refusal !== undefined) {
      const name = known.name || this.#nameIn(fields);
      return this.#refusedAt({ ...known, name }, source, path, refusal);
    }
    return this.#resource(fields, source, path, known, undefined);
  }

  #wrapped(raw: Message, source: Source, path: Path, known: KnownOfResource): ReadItem {
    const { resource, ...rest } = raw;
    const { message, problems } = this.decode(RESOURCE_WRAPPER, rest, source, path);
    const {
      name = '',
      version = '',
      aliases = [],
      ttl,
    } = message as {
      readonly name?: string;
      readonly version?: string;
      readonly aliases?: readonly string[];
      readonly ttl?: string;
    };
    const own = {
      name: known.name || name,
      version: known.version || version,
      aliases: known.aliases.length > 0 ? known.aliases : aliases,
    };
    if (problems.errorCount > 0) return this.refused(own, formatAll(problems.errors));
    this.#warn(problems);
    const ttlMs = durationMs(ttl, undefined);
    const inner = (resource ?? {}) as Message;
    if (ttlMs !== undefined && own.name !== '' && Object.keys(inner).length === 0) {
      return { kind: 'alive', name: own.name, ttlMs };
    }
    const at = [...path, 'resource'];
    const { '@type': url, ...fields } = inner;
    const refusal = this.refusalOfType(String(url ?? ''), this.#message);
    if (refusal !== undefined) return this.#refusedAt(own, source, at, refusal);
    return this.#resource(fields, source, at, own, ttlMs);
  }

  #resource(raw: Message, source: Source, path: Path, known: KnownOfResource, ttlMs: number | undefined): ReadItem {
    const { message, problems, rejected } = this.decode(this.#message, raw, source, path);
    checkResource(this.#message, message, {
      catalog: this.#catalog,
      problems,
      clusters: undefined,
      secrets: undefined,
      http2Clusters: this.#settings.reach.http2Clusters,
      permitsInternal: this.#settings.reach.permitsInternal,
      mayGrow: true,
    });
    checkConfigSources(this.#schema, this.#message, message, this.#settings.reach, problems);
    if (problems.errorCount === 0) {
      if (this.#message === LISTENER) {
        const { access_log: logs } = message as Listener;
        reportLogFilters(logs, 'access_log', (place, text) => problems.error(parsePath(place), text));
      }
      // There are many, which hold no logs.
      if (this.#message !== ENDPOINTS)
        reportLogFiles(message, [], (place, text) => problems.error(parsePath(place), text));
      reportMissingFiles(this.#schema, this.#message, message, (place, text) => problems.error(place, text));
    }
    const name = this.#checkName(message, known.name, problems, formatPath(path));
    this.#warn(problems);
    const { version, aliases } = known;
    if (problems.errorCount > 0) for (const { path, value } of rejected) putBack(message, path, value);
    const sensitive = sensitiveValues(this.#schema, this.#message, message);
    if (problems.errorCount > 0) {
      const shown = pack(redact(message, sensitive));
      return { kind: 'refused', name, version, details: formatAll(problems.errors), message: shown };
    }
    return { kind: 'usable', name, version, aliases, message: pack(message), sensitive, ttlMs };
  }

  /** Returns the resource's name. Reports a missing, wrong or duplicate one. */
  #checkName(message: Message, given: string, problems: Problems, place: string): string {
    const field = this.#nameField;
    const own = this.#nameIn(message);
    // The name of a virtual host begins with that of its route configuration.
    const name = given === '' || this.#message === VIRTUAL_HOST ? given || own : own;
    if (problems.has([field])) return name;
    if (own === '') problems.error([field], 'a dynamic resource needs a name');
    else if (given !== '' && name !== given) {
      problems.error([field], `the resource was sent as '${given}', and is called '${own}'`);
    }
    const earlier = this.#places.get(name);
    if (earlier !== undefined) {
      const where = earlier === '' ? 'another resource of the update' : earlier;
      problems.error([field], `duplicate resource '${name}': ${where} is the same`);
    } else if (problems.errorCount === 0) this.#places.set(name, place);
    return given || own;
  }

  /** Returns its name, or ''. */
  #nameIn(message: Message): string {
    const name = message[this.#nameField];
    return typeof name === 'string' ? name : '';
  }

  get #nameField(): string {
    return this.#message === ENDPOINTS ? 'cluster_name' : 'name';
  }

  /** Collects each warning once: a thousand resources may have it. */
  #warn({ warnings }: Problems): void {
    for (const warning of warnings) {
      if (this.#reported.has(warning.message)) continue;
      this.#reported.add(warning.message);
      this.#warnings.push(withoutLine(warning));
    }
  }

  #refusedAt(known: KnownOfResource, source: Source, path: Path, message: string): RefusedItem {
    const problems = new Problems([within(source, path)]);
    problems.error([], message);
    return this.refused(known, formatAll(problems.errors));
  }
}

const ENDPOINTS = 'envoy.config.endpoint.v3.ClusterLoadAssignment';
const SECRET = 'envoy.extensions.transport_sockets.tls.v3.Secret';
const VIRTUAL_HOST = 'envoy.config.route.v3.VirtualHost';

/** Restores an invalid value, so that the refused message shows it. */
function putBack(message: Message, path: Path, value: unknown): void {
  let holder = message;
  for (const part of path.slice(0, -1)) {
    const held = Object.hasOwn(holder, part) ? holder[part] : undefined;
    // The containing message was omitted.
    if (typeof held !== 'object' || held === null) return;
    holder = held as Message;
  }
  const last = path.at(-1)!;
  if (last !== '__proto__') holder[last] = value;
}

/** Returns the part of a source at `path` as a source whose paths begin there. */
function within(source: Source, path: Path): Source {
  let value = source.value;
  for (const part of path) value = (value as { readonly [part: string]: unknown } | undefined)?.[part];
  return {
    ...source,
    value,
    locate: (inner, at) => source.locate([...path, ...inner], at),
  };
}

/** Returns the unknown fields of the message at `path`, without those of a resource that it wraps. */
function unknownBelow({ unknownFields = [] }: Source, path: Path) {
  return unknownFields.flatMap((field) => {
    if (!path.every((part, index) => field.path[index] === part)) return [];
    const inner = field.path.slice(path.length);
    const isOfOther = (path.length === 0 && inner[0] === 'resources') || inner[0] === 'resource';
    return isOfOther ? [] : [{ ...field, path: inner }];
  });
}

/**
 * Formats errors. Without a text, the path alone identifies the place. Lines are not quoted: they may contain secrets, and more
 * users see this than may read the file.
 */
function formatAll(problems: readonly Problem[]): string {
  return problems
    .map((problem) => {
      if (problem.source !== '' || problem.path === '') return formatProblem(withoutLine(problem));
      return escaped(`${problem.path}: ${problem.message}`);
    })
    .join('\n');
}

function withoutLine(problem: Problem): Problem {
  return { ...problem, excerpt: '', caret: 0 };
}
