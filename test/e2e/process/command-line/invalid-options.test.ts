// Every invalid command line is refused with exit status 1 and one line that says what to do.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { tempDir } from '../../harness/index.js';
import { runAll } from './run.js';

const COMPONENTS = 'a2a, admin, ai_protocol_manager, alternate_protocols_cache';
const TAG_REMEDY = '--stats-tag is <tag>:<value>, the tag of letters and digits, the value without a dot';
const LEVELS = 'are trace, debug, info, warning, error, critical, off';

/** Arguments, and the text after `error: `; after a final `…` more may follow. */
const MISTAKES: readonly (readonly [args: readonly string[], line: string])[] = [
  // Invalid values.
  [['--mode', 'dance'], "unknown mode 'dance'; --mode is serve or validate"],
  [['--local-address-ip-version', 'v5'], "unknown IP address version 'v5'; --local-address-ip-version is v4 or v6"],
  [['-l', 'loud'], `invalid log level specified 'loud'; levels of --log-level ${LEVELS}`],
  [['--drain-strategy', 'slow'], "unknown drain-strategy 'slow'; --drain-strategy is gradual or immediate"],
  // Lists and their elements.
  [
    ['--component-log-level', 'http:debug,http'],
    "component log level not correctly specified 'http'; --component-log-level is <component>:<level>,…",
  ],
  [
    ['--component-log-level', 'http:debug:info'],
    "component log level not correctly specified 'http:debug:info'; --component-log-level is <component>:<level>,…",
  ],
  [
    ['--component-log-level', 'htpt:debug'],
    "invalid component specified 'htpt' in --component-log-level; did you mean 'http'?",
  ],
  [
    ['--component-log-level', 'nobody:debug'],
    `invalid component specified 'nobody' in --component-log-level; components are ${COMPONENTS}…`,
  ],
  [
    ['--component-log-level', 'http:loud'],
    `invalid log level specified 'loud'; levels of --component-log-level ${LEVELS}`,
  ],
  [['--stats-tag', 'x'], `misformatted stats-tag 'x'; ${TAG_REMEDY}`],
  [['--stats-tag', 'a-b:c'], `misformatted stats-tag 'a-b:c' contains invalid char in 'a-b'; ${TAG_REMEDY}`],
  [['--stats-tag', 'a:b.c'], `misformatted stats-tag 'a:b.c' contains invalid char in 'b.c'; ${TAG_REMEDY}`],
  [['--service-cluster', 'a\nb'], 'option --service-cluster takes one line, as its value is sent in headers'],
  [['--service-node', 'a\rb'], 'option --service-node takes one line, as its value is sent in headers'],
  // Numbers.
  [['--concurrency', 'many'], "option --concurrency takes a whole number from 0 to 1024, not 'many'"],
  [['--base-id', '-1'], "option --base-id takes a whole number from 0 to 4294967295, not '-1'"],
  [['--restart-epoch', '1.5'], "option --restart-epoch takes a whole number from 0 to 4294967295, not '1.5'"],
  [
    ['--file-flush-interval-msec', '0'],
    "option --file-flush-interval-msec takes a whole number from 1 to 2147483647, not '0'",
  ],
  [
    ['--file-flush-min-size-kb', '64KB'],
    "option --file-flush-min-size-kb takes a whole number from 0 to 1048576, not '64KB'",
  ],
  [['--drain-time-s', 'soon'], "option --drain-time-s takes a whole number from 0 to 4294967295, not 'soon'"],
  [
    ['--parent-shutdown-time-s', '4294967296'],
    "option --parent-shutdown-time-s takes a whole number from 0 to 4294967295, not '4294967296'",
  ],
  [
    ['--socket-path', '/tmp/s', '--socket-mode', '689'],
    "invalid socket-mode '689'; --socket-mode is a permission in octal such as 600",
  ],
  // Options that exclude each other.
  [
    ['--component-log-level', 'http:info', '--enable-fine-grain-logging'],
    '--component-log-level will not work with --enable-fine-grain-logging; give only one of them',
  ],
  [
    ['--use-dynamic-base-id', '--restart-epoch', '2'],
    'cannot use --restart-epoch=2 with --use-dynamic-base-id; give the ID that epoch 0 chose as --base-id',
  ],
  [
    ['--socket-mode', '644'],
    '--socket-mode needs a --socket-path that is a file; abstract sockets (@) have no permissions',
  ],
  [
    ['--socket-mode', '644', '--socket-path', '@name'],
    '--socket-mode needs a --socket-path that is a file; abstract sockets (@) have no permissions',
  ],
  [['--stats-tag', 'a:b', '--stats-tag', 'a:c'], "--stats-tag 'a' is given twice; give each tag once"],
  // Repeated options, missing values, surplus values.
  [['--mode', 'serve', '--mode', 'serve'], 'option --mode is given twice; give it once'],
  [['-c', 'a.yaml', '--config-path=b.yaml'], 'option --config-path is given twice; give it once'],
  [['--cpuset-threads', '--cpuset-threads'], 'option --cpuset-threads is given twice; give it once'],
  [['--log-path'], 'option --log-path needs a value; give it as --log-path <path>'],
  [
    ['--log-path', '--cpuset-threads'],
    "option --log-path needs a value, and '--cpuset-threads' is another option; give it as --log-path <path>",
  ],
  [['--version=1'], 'option --version takes no value; give it alone'],
  // Unknown options.
  [['--concurency', '1'], "unknown option '--concurency'; did you mean '--concurrency'?"],
  [['--wibble'], "unknown option '--wibble'; --help lists all"],
  [['-x'], "unknown option '-x'…"],
  [['a.yaml', 'b.yaml'], "unexpected argument 'b.yaml'; the configuration file is already given"],
];

t.test('each invalid command line is refused with its error', async (t) => {
  const outcomes = await runAll(
    t,
    MISTAKES.map(([args]) => ({ args })),
  );
  for (const [index, { code, stdout, stderr }] of outcomes.entries()) {
    const [args, line] = MISTAKES[index]!;
    const [first, second, ...rest] = stderr.split('\n');
    if (line.endsWith('…') && !first!.endsWith('…')) t.ok(first!.startsWith(`error: ${line.slice(0, -1)}`), first);
    else t.equal(first, `error: ${line}`);
    t.same([second, ...rest], ["Try 'baton --help' for all options.", ''], args.join(' '));
    t.equal(code, 1);
    t.equal(stdout, '');
  }
});

t.test('a log file that cannot be opened is an error too', async (t) => {
  const path = join(tempDir(t), 'missing', 'log');
  const [outcome] = await runAll(t, [{ config: {}, args: ['--log-path', path] }]);
  t.equal(outcome!.code, 1);
  t.match(outcome!.stderr, new RegExp(`^error: Failed to open log-file '${path}': .*no such file[^\\n]*\\n$`, 'i'));
  t.equal(outcome!.stdout, '');
  t.notOk(existsSync(path));
});
