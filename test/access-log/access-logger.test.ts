// Access loggers: their formats and files.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  compileFileFormat,
  createFileAccessLogger,
  createStderrAccessLogger,
  createStdoutAccessLogger,
} from '../../src/access-log/access-logger.js';
import { AccessLogFiles } from '../../src/access-log/files/file-log.js';
import type { FileAccessLog } from '../../src/config/generated/api.js';
import { tempDir } from '../e2e/harness/environment.js';
import { stream, tcpStream } from './stream.js';

const directory = tempDir(t);

t.test('each field that can contain a format is compiled', async (t) => {
  const file = join(directory, 'format.txt');
  writeFileSync(file, '%ROUTE_NAME% from a file\n');
  process.env.BATON_TEST_FORMAT = '%ROUTE_NAME% from the environment\n';
  const cases: [config: FileAccessLog, line: string | RegExp][] = [
    [{}, /^\[2016-04-15T20:17:00\.310Z\] "GET .*"\n$/],
    [{ log_format: {} }, /^\[2016-04-15T20:17:00\.310Z\] "GET .*"\n$/],
    [{ format: '%ROUTE_NAME%\n' }, 'to_places\n'],
    [{ json_format: { a: '%DURATION%' } }, '{"a":"226"}\n'],
    [{ typed_json_format: { a: '%DURATION%' } }, '{"a":226}\n'],
    [{ log_format: { text_format: '%ROUTE_NAME% old\n' } }, 'to_places old\n'],
    [{ log_format: { text_format_source: { inline_string: '%ROUTE_NAME%' } } }, 'to_places'],
    [{ log_format: { text_format_source: { inline_bytes: Buffer.from('%DURATION%').toString('base64') } } }, '226'],
    [{ log_format: { text_format_source: { filename: file } } }, 'to_places from a file\n'],
    [
      { log_format: { text_format_source: { environment_variable: 'BATON_TEST_FORMAT' } } },
      'to_places from the environment\n',
    ],
    [{ log_format: { json_format: { b: '%REQ(X-NONE)%', a: '%DURATION%' } } }, '{"a":226,"b":null}\n'],
    [{ log_format: { json_format: { b: '%REQ(X-NONE)%' }, omit_empty_values: true } }, '{}\n'],
    [{ log_format: { text_format: '<%REQ(X-NONE)%>', omit_empty_values: true } }, '<>'],
  ];
  for (const [config, line] of cases) {
    const text = compileFileFormat(config).text(stream());
    if (typeof line === 'string') t.equal(text, line, JSON.stringify(config));
    else t.match(text, line, JSON.stringify(config));
  }
});

t.test('what filters and clients have chosen stays on its line', async (t) => {
  const info = stream();
  info.ownDynamicMetadata().merge('jwt', { sub: 'a\r\nforged\u001b[1m\u0085\u007f\tü', list: ['a\nb'] });
  info.ownFilterState().set('state', { text: 'a\nb', isReadOnly: false, sharing: 'NONE' });
  const cases: [format: string, line: string][] = [
    ['%DYNAMIC_METADATA(jwt:sub)%', 'a\\u000d\\nforged\\u001b[1m\\u0085\\u007f\\u0009ü'],
    ['%METADATA(DYNAMIC:jwt:sub):3%', 'a\\u000d\\n'],
    ['%DYNAMIC_METADATA(jwt:list)%', '["a\\nb"]'],
    ['%FILTER_STATE(state:PLAIN)%', 'a\\nb'],
    ["%CEL('a\\nb')%", 'a\\nb'],
    ['%COALESCE({"operators": [{"command": "FILTER_STATE", "param": "state:PLAIN"}]})%', 'a\\nb'],
  ];
  for (const [format, line] of cases) {
    for (const config of [{ format }, { log_format: { text_format_source: { inline_string: format } } }])
      t.equal(Buffer.from(compileFileFormat(config).text(info), 'latin1').toString(), line, format);
  }
  const json = compileFileFormat({ log_format: { json_format: { a: '%FILTER_STATE(state:PLAIN)%' } } }).text(info);
  t.equal(json, '{"a":"a\\nb"}\n', 'JSON has escapes of its own');
});

t.test('a format with an unreadable or invalid source is refused', async (t) => {
  const source = (text_format_source: object) => () => compileFileFormat({ log_format: { text_format_source } });
  const missing = {
    code: 'CONFIG_UNREADABLE',
    message: /^unable to read file: ENOENT/,
    where: 'text_format_source.filename',
  };
  t.throws(source({ filename: join(directory, 'none') }), missing);
  t.throws(source({ environment_variable: 'BATON_TEST_UNSET' }), /BATON_TEST_UNSET is not set/);
  const wrong = { message: /unknown operator %NOPE%/, where: 'text_format_source.inline_string' };
  t.throws(source({ inline_string: '%NOPE%' }), wrong);
  const text = () => compileFileFormat({ log_format: { text_format: '%NOPE%' } });
  t.throws(text, { message: /unknown operator %NOPE%/, where: 'text_format' });
});

t.test('no file is opened if the format is invalid', async (t) => {
  const path = join(directory, 'untouched.log');
  t.throws(() => createFileAccessLogger({ path, format: '%NOPE%' }, new AccessLogFiles()));
  t.throws(() => readFileSync(path), { code: 'ENOENT' });
});

t.test('each logger of a file uses its own format and header needs', async (t) => {
  const files = new AccessLogFiles();
  const path = join(directory, 'both.log');
  const text = createFileAccessLogger({ path, format: '%REQ(:METHOD)%\n' }, files);
  const json = createFileAccessLogger({ path, typed_json_format: { code: '%RESPONSE_CODE%' } }, files);
  t.same([...text.needs.request], [':method']);
  t.equal(json.needs.request.size, 0);
  for (const info of [stream(), tcpStream()]) {
    text.log(info);
    json.log(info);
  }
  text.close();
  json.log(stream({ responseCode: 503 }));
  await files.flush();
  t.equal(readFileSync(path, 'utf8'), 'GET\n{"code":204}\n-\n{"code":0}\n{"code":503}\n');
  json.close();
});

t.test('standard output and standard error accept the same formats', async (t) => {
  const files = new AccessLogFiles();
  for (const create of [createStdoutAccessLogger, createStderrAccessLogger]) {
    const logger = create({ log_format: { text_format: '%RESP(SERVER)%' } }, files);
    t.same([...logger.needs.response], ['server']);
    logger.close();
  }
});

t.test('a line that fails to format leaves no partial line', async (t) => {
  const files = new AccessLogFiles();
  const path = join(directory, 'unfinished.log');
  const text = createFileAccessLogger({ path, format: '<%ROUTE_NAME% %RESPONSE_CODE%>\n' }, files);
  const json = createFileAccessLogger({ path, typed_json_format: { a: '%ROUTE_NAME%', b: '%RESPONSE_CODE%' } }, files);
  const faulty = Object.defineProperty(stream(), 'responseCode', {
    get: () => {
      throw new Error('no code');
    },
  });
  for (const logger of [text, json]) {
    t.throws(() => logger.log(faulty), { message: 'no code' });
    logger.log(stream());
  }
  await files.flush();
  t.equal(readFileSync(path, 'utf8'), '<to_places 204>\n{"a":"to_places","b":204}\n');
  for (const logger of [text, json]) logger.close();
});
