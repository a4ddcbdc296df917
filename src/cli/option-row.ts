// How a row of the option table is written.

export type OptionKind = 'string' | 'integer' | 'flag' | 'list';

/** Files, `<component>:<level>,…`, or one of these words. */
export type Completion = 'path' | 'component-levels' | readonly string[];

export interface OptionRow {
  readonly kind: OptionKind;
  /** One letter for the short form. */
  readonly alias?: string;
  /** What the help text calls its value. */
  readonly value?: string;
  readonly default: string | number | boolean | readonly string[];
  /** Bounds of an integer. */
  readonly min?: number;
  readonly max?: number;
  /** What is wrong with a value that the kind allows, as a whole message. */
  readonly check?: (value: string) => string | undefined;
  readonly help: string;
  /** What help has no room for: the man page and docs/command-line.md say it behind the help text. */
  readonly details?: string;
  /** What shells offer for its value. */
  readonly completes?: Completion;
  /** Its member in command_line_options of /server_info, if it has one. */
  readonly info?: string;
  /** Its value there, when it is not the option's own value. */
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

/** The default as texts show it; undefined where there is none, or the help text tells it. */
export function shownDefault(row: OptionRow): string | undefined {
  const isSilent = row.kind === 'flag' || row.kind === 'list' || row.default === '' || row.help.includes('Default:');
  return isSilent ? undefined : String(row.default);
}

export function camel(name: string): string {
  return name.replace(/-([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}

/** The items of a list with commas; spaces around them do not count. */
export function listOf(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}
