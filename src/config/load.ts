// Loads a bootstrap: reads the texts, merges them, checks everything, and gives plain data or all mistakes at once.

import { readFileSync, statSync } from 'node:fs';
import { extname } from 'node:path';
import { messageOf } from '../common/errors.js';
import { Checker } from './check.js';
import { checkBootstrap } from './checks/index.js';
import { Decoder, type Message, type UnknownFields } from './decode.js';
import type { ExtensionCatalog } from './extension.js';
import type { Bootstrap } from './generated/api.js';
import { IMPLEMENTED } from './implemented/index.js';
import type { ImplementedTable } from './implemented/table.js';
import { mergeMessage } from './merge.js';
import type { Problem } from './problem.js';
import { Problems } from './problems.js';
import { readProto } from './proto-source.js';
import { loadSchema, type Schema } from './schema.js';
import { readJson, readYaml, type Source, type SourceResult } from './source.js';

export interface LoadOptions {
  /** The bootstrap file; its extension selects the format. */
  readonly path?: string;
  /** The text of --config-yaml: alone, or merged onto the file. */
  readonly yaml?: string;
  readonly unknownStaticFields?: UnknownFields;
}

export type LoadResult =
  | {
      readonly ok: true;
      /** In canonical proto JSON form: nothing that is not set, extensions' configurations in place. */
      readonly bootstrap: Bootstrap;
      readonly warnings: readonly Problem[];
      /** Fields that the API does not have and that were accepted. */
      readonly unknownFields: number;
    }
  | { readonly ok: false; readonly errors: readonly Problem[]; readonly warnings: readonly Problem[] };

/** Said when there is neither a file nor a text. */
export const NO_CONFIGURATION =
  'At least one of --config-path or --config-yaml or Options::configProto() should be non-empty';

const YAML_OPTION = '--config-yaml';
const BOOTSTRAP = 'envoy.config.bootstrap.v3.Bootstrap';

/** Loads and checks a bootstrap. A user's mistake is never an exception. */
export function loadConfiguration(options: LoadOptions, catalog: ExtensionCatalog): LoadResult {
  const schema = loadSchema();
  const read = readSources(options);
  const sources = read.flatMap((result) => result.source ?? []);
  const problems = new Problems(sources);
  for (const result of read) if (result.problems) problems.add(result.problems);
  if (problems.errorCount > 0) return finish(problems, {}, 0);

  const { bootstrap, unknownFields } = decodeAll(schema, sources, problems, options.unknownStaticFields ?? 'refuse');
  problems.within(sources);
  new Checker(schema, catalog, tableWith(catalog), problems).check(BOOTSTRAP, bootstrap);
  checkBootstrap(bootstrap as Bootstrap, catalog, problems);
  return finish(problems, bootstrap, unknownFields);
}

/** Configuration files above this size are refused. */
export const MAX_FILE_BYTES = 128 * 1024 * 1024;

/** What aliases may add to the values that stand in the texts. */
const MAX_EXPANSION = 1_000_000;

function finish(problems: Problems, bootstrap: Message, unknownFields: number): LoadResult {
  const { errors, warnings, errorCount } = problems;
  warnings.sort(inOrder);
  if (errorCount === 0) return { ok: true, bootstrap: bootstrap as Bootstrap, warnings, unknownFields };
  errors.sort(inOrder);
  const rest = errorCount - errors.length;
  if (rest > 0) {
    const message = `and ${rest} further error${rest === 1 ? '' : 's'}`;
    errors.push({ source: errors[0]!.source, line: 0, column: 0, path: '', message, excerpt: '', caret: 0 });
  }
  return { ok: false, errors, warnings };
}

/** As a reader goes through the texts: the file, then --config-yaml, each from top to bottom. */
function inOrder(a: Problem, b: Problem): number {
  if (a.source !== b.source) return a.source === YAML_OPTION ? 1 : -1;
  return a.line - b.line || a.column - b.column;
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
  for (const source of sources) {
    problems.within([source]);
    const decoder = new Decoder(schema, problems, unknown, source.size + MAX_EXPANSION);
    mergeMessage(schema, type, bootstrap, decoder.decode(BOOTSTRAP, source.value ?? {}));
    unknownFields += decoder.unknownCount;
  }
  return { bootstrap, unknownFields };
}

function tableWith(catalog: ExtensionCatalog): ImplementedTable {
  return Object.assign({}, IMPLEMENTED, ...catalog.list().map((extension) => extension.implemented));
}

function readSources(options: LoadOptions): SourceResult[] {
  const results: SourceResult[] = [];
  if (options.path) results.push(readFile(options.path));
  if (options.yaml) results.push(readYaml(YAML_OPTION, options.yaml));
  return results.length > 0 ? results : [refuse('', NO_CONFIGURATION)];
}

function readFile(path: string): SourceResult {
  const format = extname(path);
  if (!FORMATS.includes(format)) {
    return refuse(path, `unknown extension '${format}': a configuration file ends in ${FORMATS.join(', ')}`);
  }
  let bytes: Buffer;
  try {
    const { size } = statSync(path);
    if (size > MAX_FILE_BYTES) return refuse(path, `the file is larger than ${MAX_FILE_BYTES >> 20} MiB`);
    bytes = readFileSync(path);
  } catch (error) {
    return refuse(path, `unable to read file: ${reasonOf(error)}`);
  }
  if (format === '.pb') return readProto(path, 'binary', bytes, BOOTSTRAP);
  const text = decodeText(bytes);
  if (text === undefined) return refuse(path, 'the file is not UTF-8 text');
  if (format === '.pb_text') return readProto(path, 'text', text, BOOTSTRAP);
  return format === '.json' ? readJson(path, text) : readYaml(path, text);
}

/** `no such file or directory` of `ENOENT: no such file or directory, open '…'`. */
function reasonOf(error: unknown): string {
  return messageOf(error).replace(/^[A-Z0-9_]+: ([^,]*).*$/s, '$1');
}

const FORMATS = ['.yaml', '.yml', '.json', '.pb', '.pb_text'];

function decodeText(bytes: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

function refuse(name: string, message: string): SourceResult {
  return { problems: [{ source: name, line: 0, column: 0, path: '', message, excerpt: '', caret: 0 }] };
}
