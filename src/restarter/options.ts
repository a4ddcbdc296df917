// The wrapper's command line: its options, then the program and its arguments.

import minimist from 'minimist';

export interface Options {
  readonly program: string;
  readonly args: readonly string[];
  /** Any child that does not exit with status 0 ends everything (FACTS §8.5). */
  readonly isStrict: boolean;
  /** How long a child may take to become live; Infinity: no limit. */
  readonly liveTimeoutMs: number;
  /** A child that sends nothing on the notify socket for this time counts as live, as long as no child has ever sent anything. */
  readonly silenceMs: number;
  /** How long children may take to exit after SIGTERM before they are killed. */
  readonly endTimeoutMs: number;
}

/** The parsed command line: run, or print a text and exit. */
export type Command =
  | { readonly kind: 'run'; readonly options: Options }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'mistake'; readonly text: string };

export const USAGE = `usage: baton-restarter [options] <program> [arguments]

Runs the program, and starts its next epoch at SIGHUP. The program finds its number in RESTART_EPOCH.

  --strict             any child that exits with another status than 0 ends everything with status 1
  --live-timeout-s <s> how long a child may take to become live, 0 for no limit (default 300)
  --silence-s <s>      a program that sends nothing to NOTIFY_SOCKET for this time counts as live (default 10)
  --end-timeout-s <s>  how long children may take to exit at the end, before they are killed (default 30)
  --help               prints this text

Signals: SIGHUP starts the next epoch, SIGTERM and SIGINT end, SIGUSR1 is forwarded (reopens log files).
`;

/** Parses process.argv without its first two elements. */
export function readCommandLine(argv: readonly string[]): Command {
  const unknown: string[] = [];
  const parsed = minimist([...argv], {
    // Arguments after the program belong to it.
    stopEarly: true,
    string: [...Object.keys(DEFAULT_SECONDS), '_'],
    boolean: ['strict', 'help'],
    alias: { help: 'h' },
    unknown(argument) {
      const isOption = argument.startsWith('-');
      if (isOption) unknown.push(argument);
      return !isOption;
    },
  });
  if (parsed['help'] === true) return { kind: 'help', text: USAGE };
  if (unknown.length > 0) return mistake(`unknown option ${unknown[0]}`);
  // minimist treats any value but `false` as true.
  if (argv.slice(0, argv.length - parsed._.length).some((argument) => argument.startsWith('--strict='))) {
    return mistake('option --strict takes no value');
  }
  const times: Record<string, number> = {};
  for (const [name, seconds] of Object.entries(DEFAULT_SECONDS)) {
    const text: unknown = parsed[name] ?? `${seconds}`;
    if (typeof text !== 'string' || !/^\d{1,6}(\.\d{1,3})?$/.test(text)) {
      return mistake(`option --${name} takes one number of seconds`);
    }
    times[name] = Number(text) * 1000;
  }
  const [program, ...args] = parsed._;
  if (program === undefined || program === '') return mistake('there is no program to run');
  return {
    kind: 'run',
    options: {
      program,
      args,
      isStrict: parsed['strict'] === true,
      liveTimeoutMs: times['live-timeout-s']! || Number.POSITIVE_INFINITY,
      silenceMs: times['silence-s']!,
      endTimeoutMs: times['end-timeout-s']!,
    },
  };
}

const DEFAULT_SECONDS = { 'live-timeout-s': 300, 'silence-s': 10, 'end-timeout-s': 30 };

function mistake(text: string): Command {
  return { kind: 'mistake', text: `baton-restarter: ${text}\n\n${USAGE}` };
}
