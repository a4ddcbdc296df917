// Parses and checks a command line. A mistake is reported in one line.

import minimist from 'minimist';
import { didYouMean } from '../common/text/suggest.js';
import { camel, type OptionRow } from './option-row.js';
import { OPTION_ROWS, OPTIONS, type OptionName, type Options } from './options.js';

export type ParseResult =
  | {
      readonly ok: true;
      readonly options: Options;
      /** Lines to log as warnings once the log is open. */
      readonly warnings: readonly string[];
    }
  | {
      readonly ok: false;
      /** Names the option and the remedy, without the prefix `error: `. */
      readonly error: string;
    };

/** Parses the arguments after the program's name. Those after `--` or `--ignore_rest` are ignored, as in Envoy. */
export function parseArguments(argv: readonly string[]): ParseResult {
  try {
    const options = parse(withoutRest(argv));
    checkCombinations(options);
    return { ok: true, options, warnings: warningsOf(options) };
  } catch (error) {
    if (error instanceof OptionError) return { ok: false, error: error.message };
    throw error;
  }
}

/** Returns the arguments before `--` or `--ignore_rest`. */
export function withoutRest(argv: readonly string[]): readonly string[] {
  const end = argv.findIndex((argument) => argument === '--' || argument === '--ignore_rest');
  return end < 0 ? argv : argv.slice(0, end);
}

class OptionError extends Error {}

const NAMES = Object.keys(OPTIONS) as OptionName[];
const ALIASES = new Map(OPTION_ROWS.flatMap(([name, row]) => (row.alias ? [[row.alias, name] as const] : [])));

function parse(argv: readonly string[]): Options {
  const parsed = minimist(argv.length > 0 ? joinValues(argv) : [], {
    string: OPTION_ROWS.filter(([, row]) => row.kind !== 'flag').map(([name]) => name),
    boolean: OPTION_ROWS.filter(([, row]) => row.kind === 'flag').map(([name]) => name),
    unknown: refuseUnknown,
  });
  const given: OptionName[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, row] of OPTION_ROWS) {
    const raw: unknown = parsed[name];
    const isGiven = row.kind === 'flag' ? raw !== false : raw !== undefined;
    if (isGiven) given.push(name);
    values[camel(name)] = isGiven ? readValue(name, row, raw) : row.default;
  }
  return { ...values, given } as unknown as Options;
}

/**
 * Rewrites every argument as `--name=value` or `--name`, so that values may begin with a dash. Reports repeated options and
 * unexpected values before the library would merge them.
 */
function joinValues(argv: readonly string[]): string[] {
  const joined: string[] = [];
  const seen = new Set<OptionName>();
  for (let index = 0; index < argv.length; index++) {
    const { name, value } = isFile(argv[index]!) ? fileArgument(argv[index]!, seen) : splitArgument(argv[index]!);
    const row: OptionRow = OPTIONS[name];
    if (seen.has(name) && row.kind !== 'list') throw new OptionError(`option --${name} is given twice; give it once`);
    seen.add(name);
    if (row.kind === 'flag') {
      if (value !== undefined) throw new OptionError(`option --${name} takes no value; give it alone`);
      joined.push(`--${name}`);
      continue;
    }
    const argumentValue = value ?? argv[++index];
    if (argumentValue === undefined || (value === undefined && isOption(argumentValue))) {
      const found = argumentValue === undefined ? '' : `, and '${argumentValue}' is another option`;
      throw new OptionError(`option --${name} needs a value${found}; give it as --${name} <${row.value}>`);
    }
    joined.push(`--${name}=${argumentValue}`);
  }
  return joined;
}

/** Returns whether an argument is the configuration file: a path, or `-` for standard input. */
function isFile(argument: string): boolean {
  return argument === '-' || (argument !== '' && !argument.startsWith('-'));
}

function fileArgument(argument: string, seen: ReadonlySet<OptionName>): Argument {
  if (!seen.has('config-path')) return { name: 'config-path', value: argument };
  const shown = argument.length > 60 ? `${argument.slice(0, 60)}…` : argument;
  throw new OptionError(`unexpected argument '${shown}'; the configuration file is already given`);
}

interface Argument {
  readonly name: OptionName;
  readonly value: string | undefined;
}

function splitArgument(argument: string): Argument {
  const match = /^(?:--([^=]+)|-([A-Za-z]))(?:=(.*))?$/s.exec(argument);
  if (!match) return refuseUnknown(argument);
  const [, long, short, value] = match;
  const name = long ?? ALIASES.get(short!);
  if (name === undefined || !Object.hasOwn(OPTIONS, name)) return refuseUnknown(argument);
  return { name: name as OptionName, value };
}

function isOption(argument: string): boolean {
  if (/^-[A-Za-z]$/.test(argument)) return ALIASES.has(argument.slice(1));
  return /^--[a-z]/.test(argument) && Object.hasOwn(OPTIONS, argument.slice(2).replace(/=.*$/s, ''));
}

function refuseUnknown(argument: string): never {
  const name = argument.replace(/=.*$/s, '');
  throw new OptionError(
    `unknown option '${name}'${
      didYouMean(
        name,
        NAMES.map((known) => `--${known}`),
      ) || '; --help lists all'
    }`,
  );
}

function readValue(name: OptionName, row: OptionRow, raw: unknown): unknown {
  if (row.kind === 'flag') return true;
  if (row.kind === 'integer') return readInteger(name, row, String(raw));
  const values = (Array.isArray(raw) ? raw : [raw]).map(String);
  for (const value of values) {
    const problem = row.check?.(value);
    if (problem !== undefined) throw new OptionError(problem);
  }
  return row.kind === 'list' ? values : values[0]!;
}

function readInteger(name: OptionName, row: OptionRow, raw: string): number {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = row;
  const value = Number(raw);
  if (!/^\d{1,16}$/.test(raw) || value < min || value > max) {
    throw new OptionError(`option --${name} takes a whole number from ${min} to ${max}, not '${raw}'`);
  }
  return value;
}

function checkCombinations(options: Options): void {
  const has = (name: OptionName) => options.given.includes(name);
  if (options.componentLogLevel !== '' && options.enableFineGrainLogging) {
    throw new OptionError(
      '--component-log-level will not work with --enable-fine-grain-logging; give only one of them',
    );
  }
  if (options.useDynamicBaseId && options.restartEpoch !== 0) {
    throw new OptionError(
      `cannot use --restart-epoch=${options.restartEpoch} with --use-dynamic-base-id; ` +
        'give the ID that epoch 0 chose as --base-id',
    );
  }
  if (has('socket-mode') && (options.socketPath === '' || options.socketPath.startsWith('@'))) {
    throw new OptionError(
      '--socket-mode needs a --socket-path that is a file; abstract sockets (@) have no permissions',
    );
  }
  const readsInput = options.configPath === '-';
  if (readsInput && options.restartEpoch !== 0) {
    throw new OptionError('standard input can be read only once; give a file as --config-path for a hot restart');
  }
  if (options.format === 'json' && options.mode !== 'validate') {
    throw new OptionError('--format json needs --mode validate');
  }
  if (options.routeTests !== '' && options.mode !== 'validate') {
    throw new OptionError('--route-tests needs --mode validate');
  }
  if (options.watchConfig && (options.configPath === '' || readsInput)) {
    throw new OptionError('--watch-config needs a file to watch; give it as --config-path');
  }
  const tags = options.statsTag.map((tag) => tag.slice(0, tag.indexOf(':')));
  const duplicate = tags.find((tag, index) => tags.indexOf(tag) !== index);
  if (duplicate !== undefined) throw new OptionError(`--stats-tag '${duplicate}' is given twice; give each tag once`);
}

function warningsOf(options: Options): string[] {
  const warnings: string[] = [];
  if (options.allowUnknownFields) {
    warnings.push('--allow-unknown-fields is deprecated, use --allow-unknown-static-fields instead.');
  }
  if (options.cpusetThreads && options.given.includes('concurrency')) {
    warnings.push('Both --concurrency and --cpuset-threads options are set; not applying --cpuset-threads.');
  }
  return warnings;
}
