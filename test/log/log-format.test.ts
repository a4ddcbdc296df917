import t from 'tap';
import { checkJsonLogFormat } from '../../src/log/application-log.js';
import { compileJsonLogFormat, type JsonLogFormat } from '../../src/log/json-log-format.js';
import { compileLogFormat, type LogRecord } from '../../src/log/log-format.js';

process.env.TZ = 'UTC';

const record: LogRecord = {
  epochMs: Date.UTC(2018, 2, 27, 15, 5, 6) + 42.125,
  level: 'warning',
  logger: 'upstream',
  message: 'first "a\\b"\nsecond\t\u00e9',
  source: { file: 'src/upstream/pool.js', line: 123, function: 'take' },
};

function print(pattern: string, options = {}, changes: Partial<LogRecord> = {}): string {
  return compileLogFormat(pattern, options).format({ ...record, ...changes });
}

t.test('every flag of the specification prints its value', async (t) => {
  const expected: Record<string, string> = {
    '%v': 'first "a\\b"\n  second\t\u00e9',
    '%_': 'first "a\\b"\\nsecond\t\u00e9',
    '%j': 'first \\"a\\\\b\\"\\nsecond\\t\u00e9',
    '%N': 'abc/1.0/Clean/RELEASE/OpenSSL',
    '%t': '4711',
    '%P': String(process.pid),
    '%n': 'upstream',
    '%l': 'warning',
    '%L': 'W',
    '%a': 'Tue',
    '%A': 'Tuesday',
    '%b': 'Mar',
    '%h': 'Mar',
    '%B': 'March',
    '%c': 'Tue Mar 27 15:05:06 2018',
    '%C': '18',
    '%Y': '2018',
    '%D': '03/27/18',
    '%x': '03/27/18',
    '%m': '03',
    '%d': '27',
    '%H': '15',
    '%I': '03',
    '%M': '05',
    '%S': '06',
    '%E': String(Date.UTC(2018, 2, 27, 15, 5, 6) / 1000),
    '%e': '042',
    '%f': '042125',
    '%F': '042125000',
    '%p': 'PM',
    '%r': '03:05:06 PM',
    '%R': '15:05',
    '%T': '15:05:06',
    '%X': '15:05:06',
    '%z': '+00:00',
    '%%': '%',
    '%@': 'src/upstream/pool.js:123',
    '%s': 'pool.js',
    '%g': 'src/upstream/pool.js',
    '%#': '123',
    '%!': 'take',
    '%^': '',
    '%$': '',
  };
  const options = { threadId: () => 4711, version: 'abc/1.0/Clean/RELEASE/OpenSSL' };
  for (const [flag, text] of Object.entries(expected)) t.equal(print(flag, options), `${text}\n`, flag);
  t.equal(print('<%l|%n>', options), '<warning|upstream>\n', 'text around flags is kept');
  t.equal(print('%!%n%%%l', options), 'takeupstream%warning\n', 'flags may be adjacent');
});

t.test('flags for the time since the message before', async (t) => {
  const format = compileLogFormat('%O %o %i %u|%6o|');
  const line = (epochMs: number) => format.format({ ...record, epochMs });
  t.equal(line(record.epochMs), '0 0 0 0|     0|\n', 'the first message');
  t.equal(line(record.epochMs + 2345.625), '2 2345 2345625 2345625000|  2345|\n');
  t.equal(line(record.epochMs + 2346), '0 0 375 375000|     0|\n');
  t.equal(line(record.epochMs), '0 0 0 0|     0|\n', 'a clock that was set back');
});

t.test('local time follows the time zone, with its changes', async (t) => {
  process.env.TZ = 'Europe/Berlin';
  const format = compileLogFormat('%H:%M %z');
  t.equal(format.format({ ...record, epochMs: Date.UTC(2024, 2, 31, 0, 59, 59) }), '01:59 +01:00\n');
  t.equal(format.format({ ...record, epochMs: Date.UTC(2024, 2, 31, 1, 0, 0) }), '03:00 +02:00\n');
  process.env.TZ = 'America/St_Johns';
  t.equal(print('%T %z', {}, { epochMs: Date.UTC(2024, 0, 1, 2, 0, 0) }), '22:30:00 -03:30\n');
  process.env.TZ = 'UTC';
});

t.test('midnight and noon of the 12-hour clock', async (t) => {
  t.equal(print('%r', {}, { epochMs: Date.UTC(2024, 0, 1, 0, 30) }), '12:30:00 AM\n');
  t.equal(print('%r', {}, { epochMs: Date.UTC(2024, 0, 1, 12, 30) }), '12:30:00 PM\n');
});

t.test('only the first line of a message begins where a line of the log begins', async (t) => {
  const forged = '[2026-01-01 00:00:00.000][1][critical][main] closed';
  const message = `refused:\n${forged}\r${forged}\u2028${forged}\n${forged}`;
  for (const pattern of ['[%t][%l] %v', '[%t][%l] %-9v']) {
    const [first, ...others] = print(pattern, { threadId: () => 7 }, { message })
      .trimEnd()
      .split(/[\n\r\u2028]/);
    t.equal(first, '[7][warning] refused:', pattern);
    t.equal(others.length, 2);
    for (const line of others) t.ok(line.startsWith(`  ${forged}`), line);
  }
});

t.test('flags with a width pad and cut texts', async (t) => {
  t.equal(print('[%10n][%-10n][%=10n][%3!n][%3n]'), '[  upstream][upstream  ][ upstream ][ups][upstream]\n');
});

t.test('an unknown flag prints itself', async (t) => {
  t.equal(print('%q %8q %- 100%'), '%q %8q %- 100%\n');
  t.equal(print(''), '\n');
});

t.test('an escaped entry is one line with a line end', async (t) => {
  t.equal(print('%v', { escaped: true }), 'first \\"a\\\\b\\"\\nsecond\\t\\303\\251\n');
  t.equal(print('%v', { escaped: true }, { message: "it's\r\u0001\u007f" }), "it\\'s\\r\\001\\177\n");
});

t.test('a layout reports whether it needs the source location', async (t) => {
  for (const flag of ['%s', '%g', '%@', '%#', '%!']) t.ok(compileLogFormat(`%v ${flag}`).needsSource, flag);
  t.notOk(compileLogFormat('[%T][%l][%n] %v %%g').needsSource);
});

t.test('a JSON layout writes valid JSON for any message, with its members and no others', async (t) => {
  const line = (format: JsonLogFormat, changes: Partial<LogRecord> = {}) =>
    compileJsonLogFormat(format, {}).format({ ...record, ...changes });
  const parsed = (format: JsonLogFormat, changes: Partial<LogRecord> = {}) => JSON.parse(line(format, changes));
  t.equal(line({ b: '%l', a: '%n' }), '{"b":"warning","a":"upstream"}\n', 'members keep their order');
  t.same(parsed({ Level: '%l', Message: '%j', Where: { Logger: '%n' } }), {
    Level: 'warning',
    Message: record.message,
    Where: { Logger: 'upstream' },
  });
  for (const message of ['', '\0\x1f\x7f\u2028', '\ud83d\ude00', '"'.repeat(200), '%s %d %j %v', '\\u0041'])
    t.equal(parsed({ m: '%j' }, { message }).m, message);
  const values = { i: 30, f: 1.5, yes: true, none: null, list: ['%l', 2, ['%n']], empty: {}, text: '100%' };
  t.same(parsed(values), { ...values, list: ['warning', 2, ['upstream']] }, 'values other than strings are unchanged');
  t.same(parsed({ 'the %l of "%n"': '"%L"', __proto__x: 1 }), { 'the warning of "upstream"': '"W"', __proto__x: 1 });
  t.equal(line(JSON.parse('{"__proto__":"%L","a":{"__proto__":"%L"}}')), '{"__proto__":"W","a":{"__proto__":"W"}}\n');
  const pinos = {
    level: '%L',
    time: 'now',
    msg: 'a',
    err: { message: '%j' },
    method: 'a',
    headers: 'b',
    socket: 'c',
  };
  t.same(parsed(pinos), { ...pinos, level: 'W', err: { message: record.message } }, 'no key is special');
  t.same(parsed({ m: '<%9!j>' }), { m: `<${record.message.slice(0, 9)}>` }, 'no escape is cut in half');
  t.ok(compileJsonLogFormat({ a: { b: ['%g'] } }, {}).needsSource);
  t.notOk(compileJsonLogFormat({ a: { b: ['%j'] } }, {}).needsSource);
});

t.test('flags that Envoy refuses in a JSON layout are refused', async (t) => {
  t.throws(() => checkJsonLogFormat({ Message: '%v' }), /%v is unavailable for JSON/);
  t.throws(() => checkJsonLogFormat({ Message: '%_' }), /%_ is unavailable for JSON/);
  t.throws(() => checkJsonLogFormat({ a: { '%-80v': '' } }), /%v is unavailable for JSON/);
  checkJsonLogFormat({ Message: '%%v', a: ['%j'] });
});
