// The command line: accepted options, and one-line errors for all others.

import t from 'tap';
import { OPTION_ROWS } from '../../src/cli/options.js';
import { parseArguments } from '../../src/cli/parse.js';
import { accepted } from './accepted.js';

t.test('options that were not given have their defaults', async (t) => {
  const { options, warnings } = accepted([]);
  t.equal(options.mode, 'serve');
  t.equal(options.logLevel, 'info');
  t.equal(options.socketPath, '@proxy_domain_socket');
  t.equal(options.drainTimeS, 600);
  t.equal(options.parentShutdownTimeS, 900);
  t.equal(options.fileFlushIntervalMsec, 10_000);
  t.equal(options.fileFlushMinSizeKb, 64);
  t.same(options.statsTag, []);
  t.notOk(Object.values(options).includes(true), 'no flag is on');
  t.same(options.given, []);
  t.same(warnings, []);
});

t.test('values follow a space or an equals sign, by long name or letter, and may begin with a dash', async (t) => {
  const { options } = accepted([
    '-c',
    'a.yaml',
    '--config-yaml',
    '- not\n- an option',
    '-l=debug',
    '--concurrency=3',
    '--log-format',
    '-%v=%l',
    '--stats-tag',
    'a:b',
    '--stats-tag=c:d:e',
    '--service-zone',
    '',
    '--disable-hot-restart',
  ]);
  t.equal(options.configPath, 'a.yaml');
  t.equal(options.configYaml, '- not\n- an option');
  t.equal(options.logLevel, 'debug');
  t.equal(options.concurrency, 3);
  t.equal(options.logFormat, '-%v=%l');
  t.same(options.statsTag, ['a:b', 'c:d:e']);
  t.equal(options.serviceZone, '');
  t.equal(options.disableHotRestart, true);
  t.ok(options.given.includes('service-zone'));
});

t.test('each mistake is refused with a line that names the option and the remedy', async (t) => {
  const refused: readonly (readonly [readonly string[], string | RegExp])[] = [
    [['--mode', 'run'], "unknown mode 'run'; --mode is serve or validate"],
    [['--local-address-ip-version', 'v5'], /^unknown IP address version 'v5'; --local-address-ip-version is v4 or v6$/],
    [['--log-level', 'loud'], /^invalid log level specified 'loud'; levels of --log-level are .*warning/],
    [['--component-log-level', 'http'], /^component log level not correctly specified 'http'; --component-log-level/],
    [['--component-log-level', 'http:a:b'], /^component log level not correctly specified 'http:a:b'/],
    [
      ['--component-log-level', 'rooter:info'],
      /^invalid component specified 'rooter' in --component-log-level; did you mean 'router'\?$/,
    ],
    [['--component-log-level', 'http:loud'], /^invalid log level specified 'loud'; .* --component-log-level/],
    [
      ['--component-log-level', 'http:info', '--enable-fine-grain-logging'],
      /^--component-log-level will not work with --enable-fine-grain-logging/,
    ],
    [['--use-dynamic-base-id', '--restart-epoch', '2'], /^cannot use --restart-epoch=2 with --use-dynamic-base-id; /],
    [['--socket-path', '/tmp/s', '--socket-mode', '689'], /^invalid socket-mode '689'; /],
    [['--socket-mode', '644'], /^--socket-mode needs a --socket-path/],
    [['--socket-path', '@x', '--socket-mode', '644'], /^--socket-mode needs a --socket-path/],
    [['--socket-mode', '600', '--socket-path', ''], /^--socket-mode needs a --socket-path/],
    [['--watch-config', '--config-yaml', '{}'], /^--watch-config needs a file to watch; give it as --config-path/],
    [['--drain-strategy', 'slow'], "unknown drain-strategy 'slow'; --drain-strategy is gradual or immediate"],
    [['--stats-tag', 'x'], /^misformatted stats-tag 'x'; --stats-tag is/],
    [['--stats-tag', 'a-b:c'], /^misformatted stats-tag 'a-b:c' contains invalid char in 'a-b'/],
    [['--stats-tag', 'a:b.c'], /^misformatted stats-tag 'a:b.c' contains invalid char in 'b.c'/],
    [['--stats-tag', 'a:b', '--stats-tag', 'a:c'], "--stats-tag 'a' is given twice; give each tag once"],
    [['--admin-allowed-hosts', 'a,http://localhost'], /^invalid host 'http:\/\/localhost' in --admin-allowed-hosts; /],
    [['--admin-allowed-hosts', 'localhost:http'], /^invalid host 'localhost:http' in --admin-allowed-hosts; /],
    [['--admin-allowed-hosts', ' ,'], /^--admin-allowed-hosts contains no host; /],
    [['--concurrency', 'many'], "option --concurrency takes a whole number from 0 to 1024, not 'many'"],
    [['--concurrency', '-1'], /^option --concurrency takes a whole number/],
    [['--base-id', '1.5'], /^option --base-id takes a whole number/],
    [['--base-id', ''], /^option --base-id takes a whole number/],
    [['--mode', 'serve', '--mode', 'serve'], 'option --mode is given twice; give it once'],
    [['-c', 'a', '--config-path', 'b'], 'option --config-path is given twice; give it once'],
    [['--version', '--version'], 'option --version is given twice; give it once'],
    [['--version=1'], 'option --version takes no value; give it alone'],
    [['--config-path'], 'option --config-path needs a value; give it as --config-path <path>'],
    [['--config-path', '--mode', 'validate'], /^option --config-path needs a value, and '--mode' is another option/],
    [['-c', '-l', 'debug'], /^option --config-path needs a value, and '-l' is another option/],
    [['--file-flush-interval-msec', '2147483648'], /^option --file-flush-interval-msec takes a whole number from 1 to/],
    [['--config-pth', 'a'], "unknown option '--config-pth'; did you mean '--config-path'?"],
    [['--no-version'], /^unknown option '--no-version'/],
    [['-ldebug'], /^unknown option '-ldebug'/],
    [['--__proto__=1'], /^unknown option '--__proto__'/],
    [['a.yaml', 'b.yaml'], "unexpected argument 'b.yaml'; the configuration file is already given"],
    [['-c', 'a.yaml', '--version', 'b.yaml'], "unexpected argument 'b.yaml'; the configuration file is already given"],
    [['a.yaml', '-c', 'b.yaml'], 'option --config-path is given twice; give it once'],
    [[''], "unknown option ''; --help lists all"],
    [['-', '--watch-config'], '--watch-config needs a file to watch; give it as --config-path'],
    [['-', '--restart-epoch', '1'], /^standard input can be read only once; give a file/],
    [['--format', 'json', 'a.yaml'], '--format json needs --mode validate'],
    [['--format', 'xml'], "unknown format 'xml'; --format is text or json"],
  ];
  for (const [argv, expected] of refused) {
    const parsed = parseArguments(argv);
    if (parsed.ok) t.fail(`${argv.join(' ')} was accepted`);
    else if (typeof expected === 'string') t.equal(parsed.error, expected);
    else t.match(parsed.error, expected);
    if (!parsed.ok) t.notMatch(parsed.error, /\n/);
  }
});

t.test('an argument that is not an option is the configuration file', async (t) => {
  const given = { given: ['config-path'] };
  t.match(accepted(['my.yaml']).options, { configPath: 'my.yaml', ...given });
  t.match(accepted(['-']).options, { configPath: '-', ...given });
  t.match(accepted(['-c', '-']).options, { configPath: '-', ...given });
  t.match(accepted(['--mode', 'validate', 'my.yaml', '-l', 'debug']).options, {
    configPath: 'my.yaml',
    logLevel: 'debug',
  });
});

t.test('arguments after -- or --ignore_rest are ignored', async (t) => {
  for (const end of ['--', '--ignore_rest']) {
    t.match(accepted(['-c', 'a', end, '--nope', 'extra', end]).options, { configPath: 'a', given: ['config-path'] });
  }
});

t.test('every option with a value is refused without one', async (t) => {
  for (const [name, row] of OPTION_ROWS) {
    if (row.kind === 'flag') continue;
    const parsed = parseArguments([`--${name}`]);
    t.match(parsed, { ok: false, error: `option --${name} needs a value` });
  }
});

t.test('no flag causes a warning, except the deprecated one', async (t) => {
  for (const [name, { kind }] of OPTION_ROWS) {
    if (kind !== 'flag' || ['version', 'help', 'allow-unknown-fields'].includes(name)) continue;
    t.same(accepted([`--${name}`, '-c', 'x.yaml']).warnings, [], name);
  }
  t.match(parseArguments(['--restart-epoch', '0', '--drain-time-s', '600']), { warnings: [] });
  t.match(parseArguments(['--cpuset-threads', '--base-id', '7', '--disable-hot-restart']), { warnings: [] });
});

t.test('--allow-unknown-fields works and logs that it is deprecated', async (t) => {
  t.match(parseArguments(['--allow-unknown-fields']), {
    ok: true,
    warnings: ['--allow-unknown-fields is deprecated, use --allow-unknown-static-fields instead.'],
  });
});
