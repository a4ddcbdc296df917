// The type of a row in the option table.

export type OptionKind = 'string' | 'integer' | 'flag' | 'list';

/** Completes file names, `<component>:<level>,…`, or these words. */
export type Completion = 'path' | 'component-levels' | readonly string[];

export interface OptionRow {
  readonly kind: OptionKind;
  /** One letter for the short form. */
  readonly alias?: string;
  /** Placeholder of the value in the help text. */
  readonly value?: string;
  readonly default: string | number | boolean | readonly string[];
  /** Bounds of an integer. */
  readonly min?: number;
  readonly max?: number;
  /** Returns a complete error message for a value that the kind accepts, or undefined. */
  readonly check?: (value: string) => string | undefined;
  readonly help: string;
  /** More sentences, which follow the help text in the man page and in docs/command-line.md. */
  readonly details?: string;
  /** What shells complete the value with. */
  readonly completes?: Completion;
  /** The option's member in command_line_options of /server_info, if any. */
  readonly info?: string;
  /** Converts the value for that member; without it, the value is shown unchanged. */
  readonly render?: (value: never) => unknown;
}

/** `log-level` as a property: `logLevel`. */
export type Camel<S extends string> = S extends `${infer Head}-${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;

/** The type of an option's value. */
export type ValueOf<R extends OptionRow> = R['kind'] extends 'flag'
  ? boolean
  : R['kind'] extends 'integer'
    ? number
    : R['kind'] extends 'list'
      ? readonly string[]
      : string;

/** Returns the default as the documents show it; undefined if there is none or the help text contains it. */
export function shownDefault(row: OptionRow): string | undefined {
  const isSilent = row.kind === 'flag' || row.kind === 'list' || row.default === '' || row.help.includes('Default:');
  return isSilent ? undefined : String(row.default);
}

export function camel(name: string): string {
  return name.replace(/-([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}

/** Splits a list at commas. Surrounding spaces and empty items are dropped. */
export function listOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
