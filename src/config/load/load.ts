// Loads a bootstrap: reads the texts, merges and checks them, and returns plain data or all problems.

import { checkCatalog } from '../catalog/check-catalog.js';
import type { ExtensionCatalog } from '../catalog/extension.js';
import { Checker, runCheck } from '../check.js';
import { checkBootstrap } from '../checks/index.js';
import { FeatureUse, featureKeys } from '../feature-use.js';
import { type LocatedScript, namedScripts, registeredScripts } from '../fields/scripts.js';
import { type FileSourceResult, readFileSource } from '../forms/file-source.js';
import type { Bootstrap } from '../generated/api.js';
import { implementedBy } from '../implemented/index.js';
import { regexLimits } from '../regex-limits.js';
import { Decoder, type Message, type UnknownFields } from '../schema/decode.js';
import { loadSchema, type Schema } from '../schema/schema.js';
import { type SensitiveValue, sensitiveValues } from '../schema/sensitive.js';
import { expandEnvironment } from '../text/environment.js';
import { type Problem, problemOf } from '../text/problem.js';
import { Problems } from '../text/problems.js';
import { readYaml } from '../text/read-text.js';
import type { Source } from '../text/source.js';
import type { BootstrapCheck } from './bootstrap-check.js';
import type { LoadOptions } from './load-options.js';
import { mergeMessage } from './merge.js';

/** Counts of a loaded configuration. */
export interface LoadCounts {
  /** Fields that the API does not have and that were accepted: server.static_unknown_fields. */
  readonly unknownFields: number;
  /** Uses of deprecated fields and enum values: runtime.deprecated_feature_use. */
  readonly deprecatedUses: number;
  /** Uses of fields and messages that are work in progress in the API: server.wip_protos. */
  readonly unfinishedUses: number;
  /** Optional HTTP filters that this build does not have. */
  readonly leftOutFilters: number;
}

/** Where the texts register modules, and give configurations to them. The problems have no messages. */
export interface ScriptPlaces {
  /** By name. */
  readonly modules: ReadonlyMap<string, Problem>;
  readonly uses: readonly LocatedScript[];
}

export type LoadResult =
  | {
      readonly ok: true;
      /** In canonical proto JSON form: only fields that are set, with unpacked extension configurations. */
      readonly bootstrap: Bootstrap;
      readonly warnings: readonly Problem[];
      readonly counts: LoadCounts;
      readonly scriptPlaces: ScriptPlaces;
      /** Values to hide when the bootstrap is shown. */
      readonly sensitive: readonly SensitiveValue[];
    }
  | {
      readonly ok: false;
      readonly errors: readonly Problem[];
      readonly warnings: readonly Problem[];
      /** The file does not exist or is not readable, so its content is unknown. */
      readonly isUnreadable?: boolean;
    };

/** Envoy's error for a start without a file and a text. */
export const NO_CONFIGURATION =
  'At least one of --config-path or --config-yaml or Options::configProto() should be non-empty';

const YAML_OPTION = '--config-yaml';
const STANDARD_INPUT = 'standard input';
const BOOTSTRAP = 'envoy.config.bootstrap.v3.Bootstrap';

/**
 * Loads and checks a bootstrap. User mistakes are returned and never thrown.
 * @param checks checks of higher rooms
 */
export function loadConfiguration(
  options: LoadOptions,
  catalog: ExtensionCatalog,
  checks: readonly BootstrapCheck[] = [],
): LoadResult {
  const schema = loadSchema();
  const read = readSources(options);
  const sources = read.flatMap((result) => result.source ?? []);
  const problems = new Problems(sources);
  for (const result of read) problems.add(result.problems, result.furtherProblems);
  if (sources.length < read.length) {
    const isUnreadable = read.some((result) => result.isUnreadable);
    return { ...refused(problems), isUnreadable };
  }

  if (options.expandsEnvironment === true) expandAll(sources, problems);
  const { bootstrap, unknownFields } = decodeAll(schema, sources, problems, options.unknownStaticFields ?? 'refuse');
  problems.within(sources);
  const notes = options.skipDeprecatedLogs === true ? 'unfinished' : 'all';
  const features = new FeatureUse(problems, featureKeys(bootstrap as Bootstrap), notes);
  const limits = regexLimits(bootstrap as Bootstrap);
  new Checker(schema, catalog, implementedBy(catalog.list()), problems, features, limits).check(BOOTSTRAP, bootstrap);
  problems.checking([], () => checkBootstrap(bootstrap as Bootstrap, schema, catalog, problems));
  checkCatalog(catalog, schema, problems);
  for (const check of checks) runCheck(problems, [], (report) => check(bootstrap as Bootstrap, report, options));
  const { deprecated: deprecatedUses, leftOutFilters, unfinished: unfinishedUses } = features;
  return finish(problems, bootstrap, { unknownFields, deprecatedUses, unfinishedUses, leftOutFilters });
}

/** How many values aliases may add to those in the texts. */
const MAX_EXPANSION = 1_000_000;

function finish(problems: Problems, bootstrap: Message, counts: LoadCounts): LoadResult {
  const { warnings } = problems;
  if (problems.errorCount > 0) return refused(problems);
  const sensitive = sensitiveValues(loadSchema(), BOOTSTRAP, bootstrap);
  const scriptPlaces = scriptPlacesOf(bootstrap as Bootstrap, problems);
  return {
    ok: true,
    bootstrap: bootstrap as Bootstrap,
    warnings: warnings.sort(inOrder),
    counts,
    scriptPlaces,
    sensitive,
  };
}

function scriptPlacesOf(bootstrap: Bootstrap, problems: Problems): ScriptPlaces {
  const modules = new Map(registeredScripts(bootstrap).map(({ name, path }) => [name, problems.placeOf(path)]));
  const named = modules.size === 0 ? [] : namedScripts(bootstrap.static_resources, ['static_resources']);
  return { modules, uses: named.map((use) => ({ ...use, place: problems.placeOf([...use.path, 'config']) })) };
}

function refused({ errors, warnings, errorCount }: Problems): Extract<LoadResult, { readonly ok: false }> {
  errors.sort(inOrder);
  const rest = errorCount - errors.length;
  if (rest > 0) {
    const message = `and ${rest} further error${rest === 1 ? '' : 's'}`;
    errors.push(problemOf(errors[0]!.source, message));
  }
  return { ok: false, errors, warnings: warnings.sort(inOrder) };
}

/** In reading order: the file or standard input, then --config-yaml, each from top to bottom. */
function inOrder(a: Problem, b: Problem): number {
  if (a.source !== b.source) return a.source === YAML_OPTION ? 1 : -1;
  return a.line - b.line || a.column - b.column;
}

/** A variable may hold a secret, whatever field it is for: messages show only short values, such as ports. */
const MAX_SHOWN = 7;

function expandAll(sources: readonly Source[], problems: Problems): void {
  const values = sources.flatMap((source) => {
    problems.within([source]);
    return [...expandEnvironment(source.value, process.env, (path, message) => problems.error(path, message))];
  });
  problems.hide(values.filter(({ length }) => length > MAX_SHOWN));
}

function decodeAll(
  schema: Schema,
  sources: readonly Source[],
  problems: Problems,
  unknown: UnknownFields,
): { bootstrap: Message; unknownFields: number } {
  const type = schema.message(BOOTSTRAP)!;
  const bootstrap: Message = {};
  let unknownFields = 0;
  for (const [index, source] of sources.entries()) {
    problems.within(sources.slice(0, index + 1));
    const decoder = new Decoder(schema, problems, unknown, source.size + MAX_EXPANSION);
    mergeMessage(schema, type, bootstrap, decoder.decode(BOOTSTRAP, source.value, bootstrap));
    decoder.noteUnknown(source.unknownFields ?? []);
    unknownFields += decoder.unknownCount;
  }
  return { bootstrap, unknownFields };
}

function readSources(options: LoadOptions): FileSourceResult[] {
  const results: FileSourceResult[] = [];
  if (options.path) results.push(readFileSource(options.path, BOOTSTRAP, options.pipeMs));
  if (options.input !== undefined) results.push(readYaml(STANDARD_INPUT, options.input));
  if (options.yaml) results.push(readYaml(YAML_OPTION, options.yaml));
  return results.length > 0 ? results : [{ problems: [problemOf('', NO_CONFIGURATION)] }];
}
